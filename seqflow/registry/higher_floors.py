"""Modules of higher floors that the registry calls when it needs them: names, since they import the registry."""

OPS = "seqflow.ops"
"""`FAMILIES`: the modules that declare ops, by the names of the ops."""
DERIVATIVES = "seqflow.net.gradient.proof"
"""`check_declared`: checks the derivative of a user's op."""
TENSOR_OPS = "seqflow.torch.ops.registration"
"""`call_of`: the op of a name for tensors of torch."""
