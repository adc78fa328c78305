"""The differences between what a reference holds now and what it held then: by key, and counted by type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headwater.catalogs import CONTENT, IDS, REQUESTS, ContentType, ContentValue
from headwater.commits import Head, LogRange, read_log
from headwater.errors import CorruptionError, ExpiredError
from headwater.index import Index, IndexValue, index_differences
from headwater.realms import PRINCIPALS
from headwater.realms.principals import BY_CLIENT, BY_NAME, Principal
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


def state_differences(
    rows: RealmReader, reference: str, now: Mapping[str, Index], then: Head | None, *, head: ObjectId | None
) -> list[StateDifference]:
    """The differences to restore, in the order of indexes and keys. Equal values stay, whatever objects hold them.

    The index of content ids is left out: it follows the content's. So are the applied requests: a restore is a commit like others, and
    what was applied before it must not be applied once more.

    now           the reference's indexes as they are
    then          the commit whose state is wanted; None: the reference held nothing
    head          the commit whose indexes ``now`` are; None: there is none yet
    raises        ExpiredError when that commit was collected meanwhile, even if this process has parts of it cached
    """
    try:
        differences = _without_equal(rows, list(_all_differing(now, then)))
    except CorruptionError as fault:
        if then is not None and then.is_collected():
            raise ExpiredError(
                f"commit {id_text(then.id)} of realm {rows.realm!r} was collected: only history that is kept can be restored"
            ) from fault
        raise
    return _principals(rows, differences, then, head) if reference == PRINCIPALS else differences


def _all_differing(now: Mapping[str, Index], then: Head | None) -> Iterator[StateDifference]:
    for name, index in now.items():
        if name in (IDS, REQUESTS):
            continue
        for key, now_value, then_value in index_differences(index, Index() if then is None else then.index(name)):
            if not _is_equal(name, now_value, then_value):
                yield StateDifference(name, key, now_value, then_value)


def count_differences(differences: Iterable[StateDifference]) -> dict[str, ChangeCounts]:
    """The number of keys by the type of content, or for other references by index."""
    counts: dict[str, ChangeCounts] = {}
    for difference in differences:
        here = counts.setdefault(_type(difference), ChangeCounts())
        if difference.then is None:
            here.removed += 1
        elif difference.now is None:
            here.put += 1
        else:
            here.changed += 1
    return counts


def _type(difference: StateDifference) -> str:
    value = difference.then or difference.now
    if difference.index_name != CONTENT or value is None:
        return difference.index_name
    kind = ContentValue.from_value(value).type
    return kind.name if isinstance(kind, ContentType) else f"type {kind}"


def _is_equal(name: str, now: IndexValue | None, then: IndexValue | None) -> bool:
    """Whether two entries are equal. An entry of content contains the digest, so a copy is equal."""
    return name == CONTENT and now is not None and then is not None and now.data == then.data


def _without_equal(rows: RealmReader, differences: list[StateDifference]) -> list[StateDifference]:
    """Remove differences whose two objects are equal, where the index alone does not show it."""
    pairs = [_unclear_pair(difference) for difference in differences]
    objects = _read(rows, list(dict.fromkeys(object_id for pair in pairs if pair is not None for object_id in pair)))
    equal = {
        pair for pair in pairs if pair is not None and objects[pair[0]] is not None and objects[pair[0]] == objects[pair[1]]
    }
    return [difference for difference, pair in zip(differences, pairs, strict=True) if pair not in equal]


def _unclear_pair(difference: StateDifference) -> tuple[ObjectId, ObjectId] | None:
    """The objects of two entries that differ in nothing else; None where the entries themselves differ, or have no objects."""
    now, then = difference.now, difference.then
    if difference.index_name == CONTENT or now is None or then is None or now.data != then.data:
        return None
    return None if now.object_id is None or then.object_id is None else (now.object_id, then.object_id)


def _read(rows: RealmReader, wanted: Sequence[ObjectId]) -> dict[ObjectId, StoredObject | None]:
    objects: dict[ObjectId, StoredObject | None] = {}
    for start in range(0, len(wanted), _READ_AT_ONCE):
        part = wanted[start : start + _READ_AT_ONCE]
        objects.update(zip(part, rows.read_many(part, StoredObject), strict=True))
    return objects


def _principals(
    rows: RealmReader, differences: list[StateDifference], then: Head | None, head: ObjectId | None
) -> list[StateDifference]:
    """Never restore credentials: existing principals keep the current ones, or a revoked secret would be valid again.

    Deleted principals come back as they were when they were deleted, and later ones are removed, with all client ids that point to them.
    """
    named = [difference for difference in differences if difference.index_name == BY_NAME]
    returning = {
        difference.key: difference.then for difference in named if difference.now is None and difference.then is not None
    }
    removed = [difference for difference in named if difference.then is None and difference.now is not None]
    gone = {difference.now.object_id for difference in removed if difference.now is not None}
    clients = [
        difference
        for difference in differences
        if difference.index_name == BY_CLIENT
        and difference.now is not None
        and difference.then is None
        and difference.now.object_id in gone
    ]
    return [*removed, *clients, *_last_of(rows, returning, then, head)]


def _last_of(
    rows: RealmReader, returning: Mapping[bytes, IndexValue], then: Head | None, head: ObjectId | None
) -> Iterator[StateDifference]:
    """What puts deleted principals back, by name and by client id: from the last commits that had them."""
    wanted = dict(zip(returning, _read_principals(rows, returning.values()), strict=True))
    if not wanted or head is None or then is None:
        return
    for commit in read_log(rows, head, stretch=LogRange(until=then.id)):
        by_name = commit.index(BY_NAME)
        found = {key: value for key in wanted if (value := by_name.get(key)) is not None}
        for (key, value), last in zip(found.items(), _read_principals(rows, found.values()), strict=True):
            if last.entity == wanted[key].entity:
                del wanted[key]
                yield StateDifference(BY_NAME, key, None, value)
                yield from (StateDifference(BY_CLIENT, client.encode(), None, value) for client in last.clients)
        if not wanted:
            return


def _read_principals(rows: RealmReader, values: Iterable[IndexValue]) -> list[Principal]:
    values = list(values)
    found = rows.read_many([value.object_id for value in values if value.object_id is not None], Principal)
    principals = [principal for principal in found if principal is not None]
    if len(principals) != len(values):
        raise CorruptionError(
            f"principals of realm {rows.realm!r} that come back are listed, and not there: run `headwater fsck`"
        )
    return principals
