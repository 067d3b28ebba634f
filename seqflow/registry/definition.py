"""OpDef: the definition of an op."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from seqflow.deprecated_names import old_names, renamed_arguments
from seqflow.errors import OpTypeError, SeqflowError, nearest
from seqflow.registry.errors import name_op
from seqflow.registry.gradients import Gradients
from seqflow.signature import Attribute, Signature
from seqflow.signature.op_properties import NONE, Claims, Condition, read_claims

if TYPE_CHECKING:  # inference is imported when it is asked for: calling ops does without
    from seqflow.registry.inference import Inference
    from seqflow.registry.values import TermOf
    from seqflow.shape import Equalities, InferenceContext
    from seqflow.signature.bind_specs import Names, SpecReader, Specs

ShapeFunction = Callable[["InferenceContext"], None]
FileCheck = Callable[[Mapping[str, Any]], None]


def family_of(function: Callable[..., Any]) -> str | None:
    """Return the module of `seqflow.ops` that a function is defined in; None for a user's own."""
    package, _, module = str(function.__module__).rpartition(".")  # None of code that exec ran
    return module if package == "seqflow.ops" else None


@dataclass(frozen=True, eq=False)
class OpDef:
    """The definition of an op: what is declared of it, and the functions that run it."""

    name: str
    signature: Signature
    attributes: tuple[Attribute, ...]
    function: Callable[..., Any]
    """The op's body: no checks; arrays in, one array or a tuple of arrays out."""
    call: Callable[..., Any]
    """The op itself: checks its inputs, then runs the body."""
    result: type | None
    """The NamedTuple of an op with several outputs."""
    doc: str
    """What it does: first in one sentence, at the end in an example."""
    caffe2: str | None = None
    """The operator of Caffe2 it comes from; several are separated by commas."""
    known_as: str = ""
    """What other libraries, and people who ask, call it; several are separated by semicolons."""
    same: tuple[str, str] | None = None
    """Two lengths inputs that the op declares to be equal, and so the rows they describe."""
    shape: ShapeFunction | None = None
    """What the signature cannot say of the outputs' shapes; it finds what the signature says set already."""
    files: FileCheck | None = None
    """Reads the files that its attributes name; OpError where one is not what the op needs."""
    variadic: bool = False
    """It takes its one list of inputs as `*args`."""
    random: str | None = None
    """The attribute that seeds its random numbers."""
    expression: str | None = None
    """The attribute that is the expression which it computes."""
    takes_total: bool = False
    """Calls in torch may say how many rows the lengths add up to, of which nothing else says it."""
    sparse_factor: str | None = None
    """What a pooled look-up multiplies the rows of its first input by, where that may have a sparse gradient."""
    claimed: Mapping[str, Any] | Claims = NONE
    """What it claims of its outputs beyond the signature, as it was written."""
    grad: Gradients | None = None
    """The derivative: a formula for each input, or the reason why there is none; None where nothing is said."""

    @cached_property
    def claims(self) -> Claims:
        """What it claims of its outputs beyond the signature; OpError for what it does not have."""
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
        """The defaults of the attributes, whether required or not."""
        return {attribute.name: attribute.default for attribute in self.attributes}

    @cached_property
    def required(self) -> tuple[Attribute, ...]:
        """The attributes that have to be given."""
        return tuple(attribute for attribute in self.attributes if attribute.required)

    @cached_property
    def spec_reader(self) -> SpecReader:
        """What inference reads off the signature."""
        from seqflow.signature.bind_specs import SpecReader

        return SpecReader(self.signature, self.claims, [attribute.name for attribute in self.attributes])

    @cached_property
    def definitions(self) -> Mapping[str, TermOf]:
        """What inference takes the outputs to be that the signature defines, by the names of results."""
        from seqflow.registry.values import read_term

        return {name: read_term(self, value) for name, value in self.signature.definitions.items()}

    @cached_property
    def padded(self) -> tuple[tuple[str, TermOf, Condition], ...]:
        """What an output is padded for, as the op claims it of its lengths."""
        from seqflow.registry.values import read_term

        steps = self.claims.steps.items()
        return tuple((name, read_term(self, value), condition) for name, (value, condition) in steps)

    @property
    def family(self) -> str | None:
        """The module of `seqflow.ops` that declares it; None for an op of a user's own."""
        return family_of(self.function)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The fields of the result."""
        return tuple(argument.field for argument in self.signature.output_arguments)

    def tensor_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """Return the names of all output tensors, which no input has: those of lists are numbered, `parts.0`, `parts.1`."""
        return self.signature.tensor_names(self.complete(attributes))

    def result_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """Return the same by the names that results and nets use: without the prime of `lengths'`."""
        return self.signature.result_names(self.complete(attributes))

    def complete(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes with their defaults."""
        return {**self.defaults, **attributes}

    def check_attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given attributes as the body of the op gets them: numbers as tuples, names as dtypes.

        Raises OpTypeError for an attribute that the op does not have and for one that is missing, OpError and
        OpTypeError for values that an attribute does not take.
        """
        if not given and not self.required:
            return {}
        known = {attribute.name: attribute for attribute in self.attributes}
        if old_names(self.name):
            given = renamed_arguments(self.name, given)
        self._refuse_unknown("attribute", given, known)
        try:
            missing = next((one for one in self.required if one.name not in given), None)
            if missing is not None:
                raise OpTypeError(f"{missing.name} is missing, expected {missing.expected}")
            return {name: known[name].check(value) for name, value in given.items()}
        except SeqflowError as error:
            raise name_op(self.name, self.signature, error) from None

    def check_total(self, total: Any) -> int | None:
        """Return the rows that a call in torch or jax says a result has, None unless it does; raise OpError for no such number."""
        try:
            checked: int | None = Attribute("total", "int", optional=True, minimum=0).check(total)
        except SeqflowError as error:
            raise error.in_op(self.name) from None
        return checked

    def _refuse_unknown(self, kind: str, given: Iterable[str], known: Collection[str]) -> None:
        wrong = next((name for name in given if name not in known), None)
        if wrong is not None:
            takes = ", ".join(known) or "none"
            message = (
                f"there is no {kind} {wrong!r}{nearest(wrong, known)}, expected {takes}\n  {self.signature}"
            )
            raise OpTypeError(message).in_op(self.name)

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
        """Return the outputs' specs for inputs of these specs; no data is needed.

        Where the op takes a list of tensors, `specs` has a list. `values` are those inputs that are known as
        arrays: a shape to reshape to, for instance. `names` and `results` say which tensors of a net the inputs
        and outputs are (by default they have the signature's own names), `equalities` what is known to be equal
        in it. Unless `all_declared`, inputs without rows may hold the rows they meet. Raises OpTypeError, also for
        an input or attribute that the op does not have, OpError, ShapeError, and LodError where values meet
        lengths of other rows.

        >>> data, lengths = TensorSpec("float32", "{7,4}"), TensorSpec("int64", "{3}")
        >>> print(*registry.get("lengths_sum").infer({"data": data, "lengths": lengths}).outputs)
        float32{3,4}
        """
        if not self.input_names.issuperset(specs):
            self._refuse_unknown("input", specs, [one.name for one in self.signature.input_arguments])
        completed = self.complete(self.check_attributes(attributes or {}))
        from seqflow.registry.inference import CallOfSpecs, infer

        call = CallOfSpecs.alone(self, specs, completed)
        given: dict[str, Any] = {"values": values, "names": names, "results": results}
        call = call._replace(**{name: one for name, one in given.items() if one is not None})
        return infer(call, equalities, all_declared)

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.signature}>"
