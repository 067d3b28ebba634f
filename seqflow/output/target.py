"""Target: the place of an output, on this machine or in an object store, with the record of its state."""

from seqflow.output.local_target import LocalTarget
from seqflow.output.stores.store_target import StoreTarget

Target = LocalTarget | StoreTarget
"""Both have the methods that LocalTarget describes. Until the end of a run its finished parts are committed, and a
progress record lists them; `install` completes the output. From `prepare` to `leave` no other run may write."""
