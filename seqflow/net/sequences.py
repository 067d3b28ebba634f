"""Fills in the lengths that a net omits because a name stands for a Sequence.

    words = sequence(doc.values, doc.lengths)
    h     = lstm(words, w_ih, w_hh, bias)
    y     = fc(h.h, weight)

is read as `h = lstm(doc.values, doc.lengths, w_ih, w_hh, bias)` and so on. The rule is the same as for calls with
Sequences. It uses only names; inference then proves or refuses the filled-in lengths, as if they were written out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seqflow.lod_propagation.rule import Feed, Kind, Slot, Stack, brought_lengths, make_plan, name_of
from seqflow.net.step import Input
from seqflow.net.syntax import Listed, LiteralOperand, Reference
from seqflow.registry import OpDef
from seqflow.signature.rows import dividing

Levels = tuple[str, ...]
"""Lengths tensors of a Sequence, outermost first."""


@dataclass(slots=True)
class Sequences:
    """Lengths that describe the names of a net, and the names that stand for Sequences."""

    in_use: bool
    """Whether the net declares a Sequence; if not, its text has all lengths."""
    levels: dict[str, Levels] = field(default_factory=dict)
    """Lengths that describe each tensor's rows."""
    lengths: set[str] = field(default_factory=set)
    """Tensors that hold lengths."""
    values: dict[str, str] = field(default_factory=dict)
    """Tensor of the values for each name that stands for a Sequence."""
    parts: dict[str, str] = field(default_factory=dict)
    """Tensors that `words.values` and `words.lengths` mean."""

    def declare(self, name: str, values: str, levels: Levels) -> None:
        """Define a name for these values with these lengths, outermost first."""
        self.values[name] = values
        self.parts |= {f"{name}.values": values, f"{name}.lengths": levels[-1]}
        self.levels[values] = levels
        self.lengths.update(levels)
        for i, lengths in enumerate(levels):
            self.levels.setdefault(lengths, levels[:i])

    def tensor(self, reference: Reference) -> Reference:
        """Return the tensor that a name stands for; for a Sequence, its values."""
        name = reference.name
        tensor = self.values.get(name) or self.parts.get(name)
        return reference if tensor is None else replace(reference, name=tensor)

    def tensors(self, reference: Reference) -> list[Reference]:
        """Return all tensors that a name stands for; for a Sequence, its values and its lengths."""
        found = [self.tensor(reference)]
        if reference.name in self.values:
            found += [replace(reference, name=name) for name in self.levels[found[0].name]]
        return found

    # Calls

    def positional(self, op: OpDef, arguments: Sequence[Input], keywords: Mapping[str, Input]) -> list[str]:
        """Return the inputs for positional arguments, without lengths that other arguments supply."""
        names = [argument.name for argument in op.signature.input_arguments]
        if not self.in_use:
            return names
        brought = brought_lengths(op)
        written = {name for name, one in zip(names, arguments, strict=False) if self._is_lengths(one)}
        supplied = set(brought) - written
        # which inputs are meant depends on which lengths come with others, and the other way round: take all lengths
        # as supplied, then ask for those whose source has none, until nothing changes
        while True:
            found = [name for name in names if name not in supplied]
            given = {**dict(zip(found, arguments, strict=False)), **keywords}
            plain = {
                name for name in supplied - set(keywords) if not self._has_lengths(given.get(brought[name]))
            }
            if not plain and (not supplied or len(arguments) <= len(found)):
                return found
            supplied = supplied - plain if plain else set()

    def _is_lengths(self, operand: Input) -> bool:
        return isinstance(operand, Reference) and operand.name in self.lengths

    def _has_lengths(self, operand: Input | None) -> bool:
        """Return whether lengths are known for the operand; for a list, for every tensor in it."""
        if isinstance(operand, Listed):
            return all(bool(self._levels(one)) for one in operand.items)
        return bool(self._levels(operand))

    def _levels(self, operand: object) -> Levels:
        return self.levels.get(operand.name, ()) if isinstance(operand, Reference) else ()

    def fill(
        self, op: OpDef, given: Mapping[str, Input], attributes: Mapping[str, Any], results: Sequence[str]
    ) -> dict[str, Input]:
        """Return the inputs with the lengths that other inputs supply, and record the lengths of the results."""
        if not self.in_use:
            return dict(given)
        slots = _slots(given)
        plan = make_plan(op, {slot: self._kind(op, slot, slots, given) for slot in slots}, attributes, None)
        if plan.missing:  # the caller raises the error for missing inputs
            return dict(given)
        for name, rule in zip(results, plan.outputs, strict=True):
            if rule.argument.is_lengths:
                self.lengths.add(name)
            self.levels[name] = self._of_stack(rule.stack, slots, results)

        filled: dict[str, Input] = {}
        for argument, feed in zip(op.signature.input_arguments, plan.inputs, strict=True):
            if isinstance(feed, Feed):
                if feed.outer is not None or argument.name in given:
                    filled[argument.name] = self._fed(feed, slots)
            else:
                items = tuple(self._fed(one, slots) for one in feed)
                filled[argument.name] = Listed(items, items[0].location)
        return filled

    def _fed(
        self, feed: Feed, slots: Mapping[Slot, Reference | LiteralOperand]
    ) -> Reference | LiteralOperand:
        """Return one input: the given operand, or the innermost lengths of the part that supplies it."""
        if feed.outer is None:
            return slots[feed.slot]
        source = slots[feed.outer.source]
        return Reference(self._levels(source)[feed.outer.levels - 1], source.location)

    def _kind(self, op: OpDef, slot: Slot, slots: Mapping[Slot, Any], given: Mapping[str, Input]) -> Kind:
        """Return the facts about an input that the rule needs; lengths in the text replace those of a Sequence."""
        argument = next(one for one in op.signature.input_arguments if one.name == name_of(slot))
        levels = () if dividing(argument) in given else self._levels(slots[slot])
        return Kind(len(levels), holds_lengths=self._is_lengths(slots[slot]))

    def _of_stack(
        self, stack: Stack | None, slots: Mapping[Any, Reference | LiteralOperand], results: Sequence[str]
    ) -> Levels:
        """Return the lengths tensors of an output's LoD; () if one of them has no name."""
        if stack is None:
            return ()
        outer = () if stack.outer is None else self._levels(slots[stack.outer.source])[: stack.outer.levels]
        inner = [results[one] if isinstance(one, int) else str(slots[one]) for one in stack.inner]
        literal = any(isinstance(slots.get(one), LiteralOperand) for one in stack.inner)
        return () if literal or "_" in inner else (*outer, *inner)


def _slots(given: Mapping[str, Input]) -> dict[Slot, Reference | LiteralOperand]:
    """Return the inputs by slot; inputs in lists have a slot for each place."""
    found: dict[Slot, Any] = {}
    for name, operand in given.items():
        if isinstance(operand, Listed):
            found |= {(name, i): one for i, one in enumerate(operand.items)}
        else:
            found[name] = operand
    return found
