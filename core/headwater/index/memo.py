"""Decoded state that is remembered on what it was decoded from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["memo", "remember"]

R = TypeVar("R")


class memo(Generic[R]):  # noqa: N801  # reads like property
    """A property that is computed once and then lies in the instance's dictionary.

    Unlike functools.cached_property it holds no lock, which a fork could leave locked for ever: threads that meet here compute the
    same thing twice.
    """

    def __init__(self, compute: Callable[[Any], R]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> memo[R]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> R: ...
    def __get__(self, instance: object | None, owner: type) -> memo[R] | R:
        if instance is None:
            return self
        value = self._compute(instance)
        remember(instance, **{self._name: value})
        return value


def remember(instance: object, **values: object) -> None:
    """What the writer of something knows already need not be decoded by its readers."""
    vars(instance).update(values)
