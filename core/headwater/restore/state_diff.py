"""The differences between what a reference holds now and what it held then: by key, and counted by type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headwater.catalogs import CONTENT, IDS, ContentType, ContentValue
from headwater.commits import Head
from headwater.errors import CorruptionError, ExpiredError
from headwater.index import Index, IndexValue, index_differences
from headwater.realms import PRINCIPALS
from headwater.realms.principals import BY_CLIENT, BY_NAME
from headwater.store import ObjectId, RealmReader, StoredObject, id_text

_READ_AT_ONCE = 500


class StateDifference(NamedTuple):
    """A key of an index whose earlier value is to be restored. ``then`` None: the key did not exist."""

    index_name: str
    key: bytes
    now: IndexValue | None
    then: IndexValue | None


@dataclass(slots=True)
class ChangeCounts:
    """The numbers of keys that are added, changed and removed."""

    put: int = 0
    changed: int = 0
    removed: int = 0

    def as_plain(self) -> dict[str, int]:
        return {"put": self.put, "changed": self.changed, "removed": self.removed}


def indexes_of(now: Head | None, then: Head | None) -> dict[str, Index]:
    """All indexes of both commits, with their current contents in ``now``."""
    names = sorted({name for head in (now, then) if head is not None for name in head.names})
    return {name: Index() if now is None else now.index(name) for name in names}


def state_differences(rows: RealmReader, reference: str, now: Mapping[str, Index], then: Head | None) -> list[StateDifference]:
    """The differences to restore, in the order of indexes and keys. Equal values stay, whatever objects hold them.

    The index of content ids is left out: it follows the content's.

    now           the reference's indexes as they are
    then          the commit whose state is wanted; None: the reference held nothing
    raises        ExpiredError when that commit was collected meanwhile, even if this process has parts of it cached
    """
    try:
        found = _without_equal(rows, list(_all_differing(now, then)))
    except CorruptionError as fault:
        if then is not None and then.is_collected():
            raise ExpiredError(
                f"commit {id_text(then.id)} of realm {rows.realm!r} was collected: only history that is kept can be restored"
            ) from fault
        raise
    return _principals(rows, found) if reference == PRINCIPALS else found


def _all_differing(now: Mapping[str, Index], then: Head | None) -> Iterator[StateDifference]:
    for name, index in now.items():
        if name == IDS:
            continue
        for key, here, there in index_differences(index, Index() if then is None else then.index(name)):
            if not _is_equal(name, here, there):
                yield StateDifference(name, key, here, there)


def count_differences(found: Iterable[StateDifference]) -> dict[str, ChangeCounts]:
    """The number of keys by the type of content, or for other references by index."""
    counts: dict[str, ChangeCounts] = {}
    for one in found:
        here = counts.setdefault(_type(one), ChangeCounts())
        if one.then is None:
            here.removed += 1
        elif one.now is None:
            here.put += 1
        else:
            here.changed += 1
    return counts


def _type(one: StateDifference) -> str:
    value = one.then or one.now
    if one.index_name != CONTENT or value is None:
        return one.index_name
    kind = ContentValue.from_value(value).type
    return kind.name if isinstance(kind, ContentType) else f"type {kind}"


def _is_equal(name: str, here: IndexValue | None, there: IndexValue | None) -> bool:
    """Whether two entries are equal. An entry of content contains the digest, so a copy is equal."""
    return name == CONTENT and here is not None and there is not None and here.data == there.data


def _without_equal(rows: RealmReader, found: list[StateDifference]) -> list[StateDifference]:
    """Remove differences whose two objects are equal, where the index alone does not show it."""
    unclear = [
        (one.now.object_id, one.then.object_id)
        for one in found
        if one.index_name != CONTENT
        and one.now is not None
        and one.then is not None
        and one.now.data == one.then.data
        and one.now.object_id is not None
        and one.then.object_id is not None
    ]
    if not unclear:
        return found
    objects = _read(rows, list(dict.fromkeys(one for pair in unclear for one in pair)))
    equal = {pair for pair in unclear if objects[pair[0]] is not None and objects[pair[0]] == objects[pair[1]]}
    return [
        one
        for one in found
        if one.now is None
        or one.then is None
        or (one.now.object_id, one.then.object_id) not in equal
        or one.index_name == CONTENT
    ]


def _read(rows: RealmReader, wanted: Sequence[ObjectId]) -> dict[ObjectId, StoredObject | None]:
    found: dict[ObjectId, StoredObject | None] = {}
    for start in range(0, len(wanted), _READ_AT_ONCE):
        part = wanted[start : start + _READ_AT_ONCE]
        found.update(zip(part, rows.read_many(part, StoredObject), strict=True))
    return found


def _principals(rows: RealmReader, found: list[StateDifference]) -> list[StateDifference]:
    """Never restore credentials: existing principals keep the current ones, or a revoked secret would be valid again.

    Only deleted principals come back, and later ones are removed, with all client ids that point to them.
    """
    chosen = [one for one in found if one.index_name == BY_NAME and (one.now is None or one.then is None)]
    back = {one.then.object_id for one in chosen if one.then is not None}
    gone = {one.now.object_id for one in chosen if one.now is not None}
    for one in found:
        comes_back = one.then is not None and one.now is None and one.then.object_id in back
        goes = one.now is not None and one.then is None and one.now.object_id in gone
        if one.index_name == BY_CLIENT and (comes_back or goes):
            chosen.append(one)
    return chosen
