"""Histories that end where no collection cut them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headwater.commits import read_collection
from headwater.errors import HeadwaterError
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight, keys_text
from headwater.maintenance.garbage.collecting import marker_for
from headwater.maintenance.garbage.retention import BrokenHistoryError, kept
from headwater.store import ObjectId, id_text

__all__ = ["check_histories"]

_LOOKS = 5


class _Break(NamedTuple):
    """Where a history ends too early: the last commit that is there, and the one before it, which was lost."""

    above: ObjectId
    lost: ObjectId


def check_histories(sight: Sight) -> Iterator[Finding]:
    """Each lost commit once, with the references whose history needs it.

    Walks every line of history that is kept on its own, so call it where one is known to be broken.
    """
    for lost, names in _settled(sight).items():
        if lost.lost in sight.lost:
            continue  # a head is read from it: that has been told
        words = keys_text(sorted({sight.words(name.partition("@")[0]) for name in names}))
        yield sight.finding(
            Code.HISTORY_BROKEN,
            id_text(lost.lost),
            f"commit {id_text(lost.lost)}, before commit {id_text(lost.above)} in the history of {words}, was lost:"
            " history ends there, and no collection cut it",
            "restore the commit from a backup of the database; nothing of this realm is collected until then. Or give up what lies"
            " before it: keep less history of these references than reaches there (retention), and collect",
        )


def _settled(sight: Sight) -> dict[_Break, list[str]]:
    """The breaks; a collection that ends meanwhile cuts history anew, so then it is looked at again."""
    for _ in range(_LOOKS):
        before = read_collection(sight.rows)
        found = _breaks(sight)
        after = read_collection(sight.rows)
        if not found or (before and before.value.cuts) == (after and after.value.cuts):
            break
    return found


def _breaks(sight: Sight) -> dict[_Break, list[str]]:
    marker, found = marker_for(sight.scope), dict[_Break, list[str]]()
    for line in marker.all_lines(sight.scope.found()):
        try:
            for _ in kept(sight.rows, line):
                pass
        except BrokenHistoryError as broken:
            found.setdefault(_Break(broken.above, broken.lost), []).append(broken.line)
        except HeadwaterError:
            continue  # its head is not there: that has been told
    return found
