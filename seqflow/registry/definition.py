"""OpDef: the definition of an op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from seqflow.deprecated_names import old_names, renamed_arguments
from seqflow.errors import OpTypeError, SeqflowError
from seqflow.registry.errors import check_names, name_op
from seqflow.registry.gradients import Gradients, MovedRows
from seqflow.signature import Attribute, Signature
from seqflow.signature.language import Name, OpCall
from seqflow.signature.op_properties import NONE, AttributeCondition, Claims, read_claims

if TYPE_CHECKING:  # inference is imported when first needed: calls of ops do not use it
    from seqflow.registry.inference import Inference
    from seqflow.registry.value_numbering import TermOf
    from seqflow.shape import Equalities, InferenceContext
    from seqflow.signature.bind_specs import Names, SpecReader, Specs

ShapeFunction = Callable[["InferenceContext"], None]
FileCheck = Callable[[Mapping[str, Any]], None]


def family_of(function: Callable[..., Any]) -> str | None:
    """Return the module of `seqflow.ops` that defines a function; None for a function of a user."""
    # `__module__` is None in code that exec ran
    package, _, module = str(function.__module__).rpartition(".")
    return module if package == "seqflow.ops" else None


@dataclass(frozen=True, eq=False)
class OpDef:
    """Definition of an op: its declaration, and the functions that run it."""

    name: str
    signature: Signature
    attributes: tuple[Attribute, ...]
    function: Callable[..., Any]
    """Body of the op, without checks: takes arrays, returns an array or a tuple of arrays."""
    call: Callable[..., Any]
    """The op as users call it: checks the inputs, then runs the body."""
    result: type | None
    """NamedTuple of the results of an op with several outputs; None for other ops."""
    doc: str
    """Description: one sentence first, an example at the end."""
    caffe2: str | None = None
    """Operators of Caffe2 that it comes from, separated by commas."""
    known_as: str = ""
    """Its names in other libraries, and in questions, separated by semicolons."""
    same: tuple[str, str] | None = None
    """Two lengths inputs that the op declares to be equal; then they describe the same rows."""
    shape: ShapeFunction | None = None
    """Sets shapes that the signature cannot express; runs after inference by the signature, and sees its results."""
    files: FileCheck | None = None
    """Reads the files that attributes name; raises OpError when the op cannot use one."""
    variadic: bool = False
    """Whether it takes its one list of inputs as `*args`."""
    random: str | None = None
    """Attribute that seeds its random numbers."""
    expression: str | None = None
    """Attribute with the expression that the op computes."""
    takes_total: bool = False
    """Whether calls in torch may give the sum of the lengths, if no input has that size."""
    sparse_factor: str | None = None
    """Factor of each row of the first input in a pooled look-up; None if the input has no sparse gradient."""
    trained_as: str | None = None
    """Op that torch runs in its place if a gradient is required: with more outputs, which the derivative reads."""
    claimed: Mapping[str, Any] | Claims = NONE
    """Claims as written in the declaration."""
    grad: Gradients | None = None
    """Derivative: a formula for each input, or the reason why there is none; None if not declared."""

    @cached_property
    def claims(self) -> Claims:
        """Claims beyond the signature; raises OpError when one uses a name that the signature does not have."""
        from seqflow.registry.lookup import get

        if isinstance(self.claimed, Claims):
            return self.claimed
        return read_claims(self.name, self.signature, look_up=get, **self.claimed)

    @cached_property
    def input_names(self) -> frozenset[str]:
        return frozenset(argument.name for argument in self.signature.input_arguments)

    @cached_property
    def required_inputs(self) -> frozenset[str]:
        return frozenset(
            argument.name for argument in self.signature.input_arguments if not argument.optional
        )

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """Defaults of all attributes; `Parameter.empty` for required ones."""
        return {attribute.name: attribute.default for attribute in self.attributes}

    @cached_property
    def required(self) -> tuple[Attribute, ...]:
        """Attributes without a default."""
        return tuple(attribute for attribute in self.attributes if attribute.required)

    @cached_property
    def spec_reader(self) -> SpecReader:
        """Functions that infer shapes by the signature, made when they are first needed."""
        from seqflow.signature.bind_specs import SpecReader

        return SpecReader(self.signature, self.claims, [attribute.name for attribute in self.attributes])

    @cached_property
    def definitions(self) -> Mapping[str, TermOf]:
        """Terms of the outputs that the signature defines, by the names of results."""
        from seqflow.registry.value_numbering import read_term

        return {name: read_term(self, value) for name, value in self.signature.definitions.items()}

    @cached_property
    def padded(self) -> tuple[tuple[str, TermOf, AttributeCondition], ...]:
        """Claims of the lengths that outputs are padded for: an input of lengths, a term, and a condition."""
        from seqflow.registry.value_numbering import read_term

        steps = self.claims.steps.items()
        return tuple((name, read_term(self, value), condition) for name, (value, condition) in steps)

    @cached_property
    def selects_sequences(self) -> bool:
        """Whether it selects whole sequences of `data`: its results are their values, and some of the lengths."""
        lengths = self.signature.definitions.get("lengths")
        moves = isinstance(self.grad, MovedRows) and self.output_names == ("values", "lengths")
        if not (moves and isinstance(lengths, OpCall) and "data" in self.input_names):
            return False
        return lengths.op in ("boolean_mask", "gather") and lengths.arguments[0] == Name("lengths")

    @property
    def family(self) -> str | None:
        """Module of `seqflow.ops` that declares it; None for an op of a user."""
        return family_of(self.function)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, without primes."""
        return tuple(argument.field for argument in self.signature.output_arguments)

    def tensor_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """Return the unique names of all output tensors; tensors of lists are numbered, `parts.0`, `parts.1`."""
        return self.signature.tensor_names(self.complete(attributes))

    def result_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """Return the names of all output tensors in results and nets: without the prime of `lengths'`."""
        return self.signature.result_names(self.complete(attributes))

    def complete(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes with their defaults."""
        return {**self.defaults, **attributes}

    def check_attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given attributes in the form that the body of the op takes: lists as tuples, names as dtypes.

        Raises OpTypeError for attributes that are unknown or missing, and OpError or OpTypeError for values that an
        attribute does not take.
        """
        if not given and not self.required:
            return {}
        known = {attribute.name: attribute for attribute in self.attributes}
        if old_names(self.name):
            given = renamed_arguments(self.name, given)
        check_names(self.name, self.signature, "attribute", given, known)
        try:
            missing = next((one for one in self.required if one.name not in given), None)
            if missing is not None:
                raise OpTypeError(f"{missing.name} is missing, expected {missing.expected}")
            return {name: known[name].check(value) for name, value in given.items()}
        except SeqflowError as error:
            raise name_op(self.name, self.signature, error) from None

    def check_total(self, total: Any) -> int | None:
        """Return the number of rows that a call in torch or jax gives, or None; raise OpError when it is not one."""
        try:
            checked: int | None = Attribute("total", "int", optional=True, minimum=0).check(total)
        except SeqflowError as error:
            raise error.in_op(self.name) from None
        return checked

    def infer(
        self,
        specs: Specs,
        attributes: Mapping[str, Any] | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        names: Names | None = None,
        results: Sequence[str] | None = None,
        equalities: Equalities | None = None,
        all_declared: bool = True,
    ) -> Inference:
        """Infer the outputs' specs from the specs of the inputs; no data is needed.

        If the op takes a list of tensors, `specs` has a list. `values` are inputs that are known as arrays, such as a
        shape to reshape to. `names` and `results` are the tensors of a net that are inputs and outputs (by default
        the signature's own names), and `equalities` are the known equalities of the net. Unless `all_declared`,
        inputs without rows may take the rows they are combined with. Raises OpTypeError, also for an input or
        attribute that the op does not have, OpError, ShapeError, and LodError when values are combined with lengths
        of other rows.

        >>> data, lengths = TensorSpec("float32", "{7,4}"), TensorSpec("int64", "{3}")
        >>> print(*registry.get("lengths_sum").infer({"data": data, "lengths": lengths}).outputs)
        float32{3,4}
        """
        if not self.input_names.issuperset(specs):
            known = [one.name for one in self.signature.input_arguments]
            check_names(self.name, self.signature, "input", specs, known)
        completed = self.complete(self.check_attributes(attributes or {}))
        from seqflow.registry.inference import CallOfSpecs, infer

        call = CallOfSpecs.alone(self, specs, completed)
        given: dict[str, Any] = {"values": values, "names": names, "results": results}
        call = call._replace(**{name: one for name, one in given.items() if one is not None})
        return infer(call, equalities, all_declared)

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.signature}>"
