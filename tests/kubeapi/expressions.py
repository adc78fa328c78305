"""CEL as Kubernetes speaks it, evaluated by a kept library.

Operators, macros and the standard functions are the library's; the functions that Kubernetes adds are here, one by one, and an
expression that asks for another one is refused. Patterns are matched by the library too: as in Go, without look-around.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cel

__all__ = ["Expression", "ExpressionError", "has_match"]

_NAME = re.compile(r"[A-Za-z]\w*(\.\w+)*")
_MACRO = re.compile(r"\.(?:all|exists|exists_one|map|filter)\(\s*([A-Za-z_]\w*)\s*,")
_NATIVE = {
    *("size", "contains", "startsWith", "endsWith", "matches"),
    *("int", "uint", "double", "string", "bytes", "timestamp", "duration", "dyn", "type"),
}
_LITERALS = {"true", "false", "null"}
_FAILURES = (RuntimeError, LookupError, TypeError, ValueError, ArithmeticError)


class ExpressionError(Exception):
    """An expression that is none, or that came to no result."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression. The text is checked for what is called and named in it; types show when it is evaluated."""

    text: str
    program: cel.Program
    names: frozenset[str]

    @classmethod
    def compile(cls, text: str, known: frozenset[str]) -> Expression:
        """Raises ExpressionError for what is no CEL, and for each name and function that is not known."""
        try:
            program = cel.compile(text)
        except ValueError as error:
            raise ExpressionError(" ".join(str(error).split())) from error
        names = frozenset(program.variables()) - _LITERALS
        functions = {name for name in program.functions() if _NAME.fullmatch(name)}
        unknown = (names - known - set(_MACRO.findall(text))) | (functions - _NATIVE - FUNCTIONS.keys())
        if unknown:
            listed = ", ".join(f"'{name}'" for name in sorted(unknown))
            raise ExpressionError(f"compilation failed: undeclared reference to {listed} (in container '')")
        return cls(text, program, names & known)

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """Raises ExpressionError when it comes to nothing, as for a field that is not there."""
        try:
            return self.program.execute(cel.Context(dict(variables), FUNCTIONS))
        except KeyError as error:
            raise ExpressionError(f"no such key: {error.args[0].strip(chr(39))}") from error
        except _FAILURES as error:
            raise ExpressionError(str(error).split(". ")[0]) from error

    def claims(self, variables: Mapping[str, Any]) -> bool:
        """The result, which must be true or false."""
        result = self.evaluate(variables)
        if not isinstance(result, bool):
            raise ExpressionError(f"cel expression must evaluate to a bool, not {type(result).__name__}")
        return result


@lru_cache(maxsize=8192)
def has_match(text: str, pattern: str) -> bool:
    """Whether the pattern occurs in the text. Raises ExpressionError for what is no pattern."""
    try:
        return bool(_MATCHES.execute({"text": text, "pattern": pattern}))
    except _FAILURES as error:
        raise ExpressionError(f"error parsing regexp: {pattern}: {error}") from error


_MATCHES = cel.compile("text.matches(pattern)")


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> re.Pattern[str]:
    """The pattern for Python's own machine, where the two mean the same."""
    has_match("", pattern)
    if re.search(r"\\[^.+*?()|\[\]{}/-]|\[\^?[^]]*\$|\(\?", pattern):
        raise ValueError(f"the pattern {pattern} is not evaluated here by find and findAll")
    return re.compile(pattern.replace("$", r"\Z"))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no such overload")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("no such overload")
    return value


def _find(text: Any, pattern: Any) -> str:
    found = _pattern(_text(pattern)).search(_text(text))
    return found[0] if found else ""


def _find_all(text: Any, pattern: Any, limit: int = -1) -> list[str]:
    found = [match[0] for match in _pattern(_text(pattern)).finditer(_text(text))]
    return found if limit < 0 else found[:limit]


def _replace(text: Any, old: Any, new: Any, limit: int = -1) -> str:
    return _text(text).replace(_text(old), _text(new), limit)


def _split(text: Any, separator: Any, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    return _text(text).split(_text(separator), limit - 1 if limit > 0 else -1) if separator else list(_text(text))


def _join(texts: Any, separator: Any = "") -> str:
    return _text(separator).join(map(_text, _list(texts)))


def _substring(text: Any, start: int, end: int | None = None) -> str:
    size = len(_text(text))
    last = size if end is None else end
    if not 0 <= start <= last <= size:
        raise IndexError(f"index out of range: {start}")
    return _text(text)[start:last]


def _index_of(where: Any, what: Any) -> int:
    if isinstance(where, str):
        return where.find(_text(what))
    return next((number for number, item in enumerate(_list(where)) if item == what), -1)


def _lower(text: Any) -> str:
    return re.sub(r"[A-Z]+", lambda found: found[0].lower(), _text(text))


def _upper(text: Any) -> str:
    return re.sub(r"[a-z]+", lambda found: found[0].upper(), _text(text))


def _trim(text: Any) -> str:
    """Go's white space: unlike Python's, without the four separators of ASCII."""
    return re.sub(r"\A[^\S\x1c-\x1f]+|[^\S\x1c-\x1f]+\Z", "", _text(text))


def _sum(numbers: Any) -> Any:
    return sum(_list(numbers))


def _is_sorted(values: Any) -> bool:
    return _list(values) == sorted(_list(values))


def _format(text: Any, values: Any) -> str:
    """Of the verbs, %s and %d alone."""
    if re.search(r"%[^sd%]", _text(text)):
        raise ValueError("of the verbs of format, only %s and %d are evaluated here")
    return _text(text) % tuple(_list(values))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "find": _find,
    "findAll": _find_all,
    "format": _format,
    "indexOf": _index_of,
    "isSorted": _is_sorted,
    "join": _join,
    "lowerAscii": _lower,
    "max": lambda values: max(_list(values)),
    "min": lambda values: min(_list(values)),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "sum": _sum,
    "trim": _trim,
    "upperAscii": _upper,
}
