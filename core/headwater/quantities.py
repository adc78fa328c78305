"""Checks of numbers that come from outside: which durations, counts and times are accepted.

NaN compares unequal to itself, so no comparison with it holds; True is 1 to Python and a mistake to people; a time beyond the year 9999
cannot be shown. All of them are refused at the input.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from headwater.errors import RefusedError

__all__ = [
    "LATEST",
    "LONGEST_SECONDS",
    "MOST",
    "check_count",
    "check_seconds",
    "check_time",
    "count_fault",
    "seconds_fault",
    "setting_faults",
    "sound_count",
    "sound_seconds",
    "time_fault",
    "without",
]

S = TypeVar("S")
LONGEST_SECONDS = 36500 * 86400.0
"""100 years: longer durations would lead beyond any time that can be stored."""
MOST = (1 << 53) - 1
"""The most that a count may be: JSON readers know no larger whole numbers."""
LATEST = 253_402_300_799_999_999
"""The end of the year 9999, in microseconds since 1970."""


def seconds_fault(value: object, *, least: float = 0.0) -> str:
    """The fault of a duration in seconds, to follow its name; an empty text when nothing is wrong."""
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= LONGEST_SECONDS:  # NaN is not
        return ""
    return f"must be a number of seconds from {least:g} to {LONGEST_SECONDS:.0f}, not {_shown(value)}"


def count_fault(value: object, *, least: int = 1) -> str:
    """The fault of a count, to follow its name; an empty text when nothing is wrong."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST:
        return ""
    return f"must be a whole number from {least} to {MOST}, not {_shown(value)}"


def time_fault(value: object) -> str:
    """The fault of a time in microseconds since 1970, to follow its name; an empty text when nothing is wrong."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LATEST:
        return ""
    return f"must be a time from 1970 to 9999, as a whole number of microseconds since 1970, not {_shown(value)}"


def check_seconds(value: object, what: str, *, least: float = 0.0) -> None:
    """raises RefusedError that names ``what`` for a value that is no duration; None is fine"""
    _check(value, what, seconds_fault(value, least=least))


def check_count(value: object, what: str, *, least: int = 1) -> None:
    """raises RefusedError that names ``what`` for a value that is no such number of things; None is fine"""
    _check(value, what, count_fault(value, least=least))


def check_time(value: object, what: str) -> None:
    """raises RefusedError that names ``what`` for a value that is no time; None is fine"""
    _check(value, what, time_fault(value))


def _is_right_type(settings: Any, field: dataclasses.Field[Any]) -> bool:
    """Whether a setting has a value of its field's type; a whole number is a number."""
    value = getattr(settings, field.name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    kinds = {"bool": isinstance(value, bool), "str": isinstance(value, str), "float": is_number}
    kinds["int"] = is_number and isinstance(value, int)
    kinds["tuple[str, ...]"] = isinstance(value, tuple) and all(isinstance(text, str) for text in value)
    assert str(field.type) in kinds, f"setting {field.name} has the type {field.type}, for which nothing is checked"
    return kinds[str(field.type)]


def sound_seconds(value: float | None, default: float) -> float:
    """A stored duration, limited to the longest; the default where an earlier release accepted NaN or a negative value."""
    if value is None or math.isnan(value) or value < 0:
        return default
    return min(value, LONGEST_SECONDS)


def sound_count(value: int | None, default: int) -> int:
    """A stored count, or the default where an earlier release accepted a count below 1."""
    return default if value is None or value < 1 else value


def setting_faults(settings: Any, variable_of: Callable[[str], str], *, may_be_zero: Callable[[Any], bool]) -> dict[str, str]:
    """Faults of single settings, of type or range, by the name of the field.

    may_be_zero   whether a field may be 0; all others must be above 0
    """
    faults = {}
    for field in dataclasses.fields(settings):
        value, fault = getattr(settings, field.name), ""
        if not _is_right_type(settings, field):
            fault = f"a value of the type {field.type}"
        elif field.type == "int" and count_fault(value, least=int(not may_be_zero(field))):
            fault = f"{'0 or more' if may_be_zero(field) else 'above 0'}, and at most {MOST}"
        elif field.type == "float" and (seconds_fault(value) or not value > 0):
            fault = f"above 0, and at most {LONGEST_SECONDS:.0f}"
        if fault:
            faults[field.name] = f"{variable_of(field.name)} must be {fault}, not {_shown(value)}"
    return faults


def without(settings: S, names: Iterable[str]) -> S:
    """Settings with these fields reset to their defaults: a value that is not a number cannot be compared with others."""
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}  # type: ignore[arg-type]  # a dataclass
    return dataclasses.replace(settings, **{name: defaults[name] for name in names})  # type: ignore[type-var]  # a dataclass


def _check(value: object, what: str, fault: str) -> None:
    if value is not None and fault:
        raise RefusedError(f"{what} {fault}")


def _shown(value: object) -> str:
    """The value as text of at most one line: a number may have thousands of digits."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
