"""Repairs of a store: what would mend it, what is done of that, and where what cannot be read is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headwater.durability import make_folder, write_new
from headwater.errors import RefusedError
from headwater.fsck import RepairStep


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairStepInfo:
    """One step of a repair, planned or done.

    action        GO_BACK, COMPLETE_CATALOG, SET_ASIDE, SETTLE_TASKS, WITHDRAW_FLAG, BY_HAND or COLLECT
    safe          ``repair`` does it: it guesses nothing, and takes nothing away that can be read
    does, loses   what it does, or what a person has to do; and what is gone after it
    because       codes of the findings that it mends
    target        the commit that it goes back to; None: none
    result        what came of it; None: it was not done
    """

    action: str
    safe: bool
    realm: str
    subject: str
    does: str
    loses: str
    because: tuple[str, ...]
    target: str | None
    result: str | None

    @classmethod
    def of(cls, step: RepairStep) -> RepairStepInfo:
        """The values of a step."""
        return cls(
            action=str(step.action),
            safe=step.is_safe,
            realm=step.realm,
            subject=step.subject,
            does=step.does,
            loses=step.loses,
            because=tuple(code.value for code in step.because),
            target=step.target or None,
            result=step.result or None,
        )


def keeper_of(folder: Path | None) -> Callable[[str, bytes], str] | None:
    """Saves what is taken off a list because it cannot be read, in a folder; None: nothing is kept."""
    return None if folder is None else partial(_keep, folder)


def _keep(folder: Path, name: str, content: bytes) -> str:
    """Save content in a file and sync its folder, before the entries that it holds are removed from a list.

    raises        RefusedError when it cannot be written, and when a file of that name holds something else
    """
    try:
        make_folder(folder)
    except OSError as fault:
        raise RefusedError(f"{folder} cannot be made: {fault.strerror or fault}") from fault
    write_new(folder / name, content)
    return str(folder / name)
