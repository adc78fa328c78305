"""What is wrong with a metadata document: where in it, and what."""

from __future__ import annotations

from enum import Enum
from typing import Any

from headwater.errors import UnreadableError

__all__ = ["FaultError", "Weight", "inconsistent", "invalid", "shown"]

_SHOWN = 60


class Weight(Enum):
    """How a document is wrong."""

    UNSUPPORTED = "of a version that is not read"
    INVALID = "not of the shape that its version has"
    INCONSISTENT = "of the right shape, but one part contradicts another"


class FaultError(UnreadableError):
    """A document is not what the specification says. The message is half a sentence whose subject is the document."""

    def __init__(self, weight: Weight, message: str) -> None:
        super().__init__(message)
        self.weight = weight


def invalid(message: str) -> FaultError:
    return FaultError(Weight.INVALID, message)


def inconsistent(message: str) -> FaultError:
    return FaultError(Weight.INCONSISTENT, message)


def shown(value: Any) -> str:
    """A value in a sentence, never more than a few words of it."""
    text = repr(value) if isinstance(value, str | int | float | bool) else f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
