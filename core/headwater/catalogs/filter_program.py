"""A filter in CEL that was compiled, and is asked about one item after another. The only room that knows the library.

An item that the filter cannot be evaluated on, for example because a map has no such key, is not chosen. The library is imported
with the first filter: it takes longer than the rest of a short command.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from headwater.catalogs.filter_text import (
    FilterShape,
    FilterToken,
    ascii_pattern,
    check_filter_names,
    named_fields,
    pattern_micros,
    quoted_text,
    read_tokens,
    refuse_filter,
)

if TYPE_CHECKING:
    import cel

_FAULTS = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError)
"""What the library raises for an item that a filter cannot be evaluated on."""
_EVALUATION = 8
"""Microseconds, measured."""
_STEPS_A_MICRO = 30
"""Tokens that are evaluated in a microsecond, measured."""

_SYNTAX_FAULT = re.compile(r"<input>:[0-9]+:([0-9]+): Syntax error: (.+?)(?: expecting .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FilterProgram:
    """A filter that may be evaluated often, by many threads. Two of the same text are equal."""

    text: str
    tokens: tuple[FilterToken, ...] = field(compare=False, repr=False)
    _compiled: cel.Program = field(compare=False, repr=False)
    _needs: Mapping[str, frozenset[str] | None] = field(compare=False, repr=False)
    _steps: int = field(compare=False, repr=False)

    def is_true(self, variables: Mapping[str, Any]) -> bool:
        """Evaluate the filter. False where it cannot be evaluated."""
        # Most of the time is spent in handing values over to the library, so it is given what the filter names.
        needed = {name: _named_parts(variables[name], fields) for name, fields in self._needs.items() if name in variables}
        try:
            return self._compiled.execute(needed) is True
        except _FAULTS:
            return False

    @property
    def micros(self) -> int:
        """About how long an evaluation takes, in microseconds, on something small."""
        return (
            _EVALUATION
            + self._steps // _STEPS_A_MICRO
            + sum(pattern_micros(pattern.value) for pattern in _patterns(self.tokens))
        )

    def names(self, variable: str) -> bool:
        """True if the filter may name a variable; False is certain."""
        return any(token.kind == "name" and token.value == variable for token in self.tokens)

    def check_result(self, sample: Mapping[str, Any]) -> None:
        """Check that the filter gives true or false on a sample, where it can be evaluated.

        raises        RefusedError for a filter that gives a text or a number there
        """
        try:
            result = self._compiled.execute(dict(sample))
        except _FAULTS:
            return
        if not isinstance(result, bool):
            refuse_filter(self.text, f"it gives a {type(result).__name__}, and neither true nor false")


T = TypeVar("T")


@dataclass(frozen=True)
class FilterExpression(ABC, Generic[T]):
    """A filter of values of one kind, in CEL; ``docs/reference/filters.md``. Two of the same text are equal. The kinds are its subclasses.

    VARIABLES     what a filter may name
    SAMPLE        a value on which every filter is tried
    """

    VARIABLES: ClassVar[Mapping[str, FilterShape]]
    SAMPLE: ClassVar[Any]

    text: str
    program: FilterProgram = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Compile a filter.

        raises        RefusedError for a malformed one, and for a name that is not declared
        """
        made = cls(text, compile_filter(text, cls.VARIABLES))
        made.program.check_result(made.variables_of(cls.SAMPLE))
        return made

    @abstractmethod
    def variables_of(self, value: T, /) -> dict[str, Any]:
        """The variables that a filter finds for a value."""

    def chooses(self, value: T, /) -> bool:
        """True if the filter is true for a value; False also where it cannot be evaluated."""
        return self.program.is_true(self.variables_of(value))


def _named_parts(value: Any, fields: frozenset[str] | None) -> Any:
    """The fields of an object, or of each of a list, that a filter names; None: all of them."""
    if fields is None:
        return value
    if isinstance(value, list):
        return [_named_parts(element, fields) for element in value]
    return {name: value[name] for name in fields if name in value} if isinstance(value, dict) else value


def compile_filter(text: str, declared: Mapping[str, FilterShape]) -> FilterProgram:
    """Compile a filter.

    declared      the variables that it may name, with their fields
    raises        RefusedError for text that is not a filter, and for an undeclared name, which it tells
    """
    tokens = read_tokens(text)
    steps = check_filter_names(text, tokens, declared)
    needs = {name: named_fields(tokens, name) for name in declared}
    program = FilterProgram(text, tokens, _compiled(text, _spelled(text, tokens)), needs, steps)
    _check_patterns(text, tokens)
    return program


def _compiled(text: str, spelled: str) -> cel.Program:
    import cel

    try:
        return cel.compile(spelled)
    except _FAULTS as fault:
        refuse_filter(text, f"it is malformed{_syntax_fault(str(fault))}")


def _syntax_fault(fault: str) -> str:
    where = _SYNTAX_FAULT.search(fault)
    return "" if where is None else f" at character {int(where[1]) + 1}, {where[2]}"


def _spelled(text: str, tokens: tuple[FilterToken, ...]) -> str:
    """The text for the library, with the patterns as CEL means them."""
    pieces, at = [], 0
    for token in _patterns(tokens):
        pieces += [text[at : token.start], quoted_text(ascii_pattern(token.value))]
        at = token.end
    return "".join([*pieces, text[at:]])


def _patterns(tokens: tuple[FilterToken, ...]) -> list[FilterToken]:
    called = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return [
        pattern
        for name, bracket, pattern in called
        if name.value == "matches" and name.kind == "name" and bracket.is_sign("(") and pattern.kind == "text"
    ]


def _check_patterns(text: str, tokens: tuple[FilterToken, ...]) -> None:
    for token in _patterns(tokens):
        try:
            _compiled(text, f"''.matches({quoted_text(ascii_pattern(token.value))})").execute({})
        except _FAULTS as fault:
            why = str(fault).partition("error: ")[2].splitlines() or ["malformed"]
            refuse_filter(text, f"{token.value!r} is not a regular expression: {why[-1].strip()}")
