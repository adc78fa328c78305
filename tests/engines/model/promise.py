"""What a promise is: a function that finds where it is broken, its sentence, and the place in the docs that gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Self

Check = Callable[..., list[str]]


class Fault(str):
    """A place where a promise is broken, in words. ``promise`` is the name of the promise."""

    __slots__ = ("promise",)
    promise: str

    @classmethod
    def of(cls, promise: str, text: str) -> Self:
        fault = cls(text)
        fault.promise = promise
        return fault


@dataclass(frozen=True, slots=True)
class Promise:
    """One rule that must hold whatever clients, faults and collections do.

    check         returns a line for each place where the rule is broken; with none, none
    page, heading where users read of it
    """

    check: Check
    page: str
    heading: str

    @property
    def name(self) -> str:
        return self.check.__name__

    @property
    def sentence(self) -> str:
        return (self.check.__doc__ or "").partition("\n")[0]


PROMISES: dict[str, Promise] = {}
"""Every promise by its name."""


def promised(page: str, heading: str) -> Callable[[Any], Any]:
    """Enter a function in ``PROMISES``; the first line of its docstring is the sentence. What it returns are faults of this promise."""

    def enter(check: Check) -> Check:
        @wraps(check)
        def find_faults(*arguments: Any, **named: Any) -> list[Fault]:
            return [Fault.of(check.__name__, text) for text in check(*arguments, **named)]

        PROMISES[check.__name__] = Promise(find_faults, page, heading)  # type: ignore[arg-type]  # a fault is a text
        return find_faults  # type: ignore[return-value]

    return enter
