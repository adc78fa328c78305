"""Clients that work on a few references and objects of one store at once, and write down what they asked, when, and what came back.

Times are of ``time.monotonic_ns``, which is one clock for all processes of a Linux machine.
"""

from __future__ import annotations

import os
import random
import threading
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from cas_rows import Call, CasRow, Create, Read, Remove, Row, Swap, Write

from engines.model import Operation, rows_change_at_one_instant
from headwater.clock import Micros
from headwater.errors import SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import Backend, ObjectId, ObjectKey, ObjectRow, RealmKey, ReferenceMove, ReferenceRow

__all__ = [
    "KEYS",
    "LENGTH",
    "Entry",
    "Key",
    "Work",
    "anomalies",
    "assert_linearizable",
    "changes",
    "histories",
    "look",
    "meetings",
    "run_client",
    "run_threads",
]

LENGTH = 20 if os.environ.get("HEADWATER_SOAK") == "1" else 1
"""How many times as long histories are as in a quick run."""
REALM = RealmKey(77)
_GIVE_UP_SECONDS = 60.0 * LENGTH
_PAUSE_SECONDS = 0.02
_LINGER_SECONDS = 0.0005


class Key(NamedTuple):
    """One row: a reference by its name, or an object by its id."""

    kind: str
    number: int


KEYS = (Key("reference", 1), Key("reference", 2), Key("object", 1), Key("object", 2))


class Entry(NamedTuple):
    """A line of a journal. ``what``: a call, its answer, or that it certainly did not happen; a call may be the last of its client."""

    what: str
    client: int
    number: int
    time: int
    key: Key
    content: Any


class Work(NamedTuple):
    """What each client shall do."""

    seed: int
    operations: int
    """Answers to wait for; calls that did not happen are asked again, up to a minute."""
    keys: Sequence[Key] = KEYS


def run_client(backend: Backend, client: int, work: Work, note: Callable[[Entry], None]) -> None:
    """Ask one thing after the other, and note each call before it is made. Faults other than those that change nothing are raised."""
    chance = random.Random(f"{work.seed} {client}")
    seen: dict[Key, Row | None] = {}
    answered = number = 0
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    while answered < work.operations and time.monotonic() < deadline:
        number += 1
        key = chance.choice(work.keys)
        call = _choose(chance, key, seen.get(key), client * 1_000_000 + number)
        note(Entry("call", client, number, time.monotonic_ns(), key, call))
        try:
            _linger(chance)
            answer = _ask(backend, key, call, chance)
            _linger(chance)
        except UnavailableError:
            note(Entry("never", client, number, time.monotonic_ns(), key, None))
            time.sleep(_PAUSE_SECONDS)
            continue
        except UnknownOutcomeError:
            seen.pop(key, None)
        else:
            note(Entry("answer", client, number, time.monotonic_ns(), key, answer))
            _learn(seen, key, call, answer)
        answered += 1


def run_threads(
    count: int, backend: Backend, work: Work, *, meanwhile: Callable[[list[Entry]], None] = lambda journal: None
) -> list[Entry]:
    """The journal of so many clients on threads of this process, which start together. Their faults are raised here.

    meanwhile     what this thread does while they work; it is given the journal that grows
    """
    journal: list[Entry] = []
    faults: list[BaseException] = []
    start = threading.Barrier(count + 1)

    def run(client: int) -> None:
        try:
            start.wait(30)
            run_client(backend, client, work, journal.append)
        except BaseException as fault:  # noqa: BLE001  raised by the caller's thread
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(client,), daemon=True) for client in range(1, count + 1)]
    for thread in threads:
        thread.start()
    start.wait(30)
    meanwhile(journal)
    for thread in threads:
        thread.join(2 * _GIVE_UP_SECONDS)
        assert not thread.is_alive(), "a call never ended"
    if faults:
        raise faults[0]
    return journal


def look(backend: Backend, keys: Iterable[Key] = KEYS) -> list[Entry]:
    """The journal of one who reads every row once, after the others: what was acknowledged must be there."""
    journal = []
    for number, key in enumerate(keys):
        journal.append(Entry("call", 0, number, time.monotonic_ns(), key, Read()))
        answer = _ask(backend, key, Read(), random.Random(0))
        journal.append(Entry("answer", 0, number, time.monotonic_ns(), key, answer))
    return journal


def histories(journal: Iterable[Entry]) -> dict[Key, list[Operation]]:
    """The operations on each row; without those that certainly did not happen."""
    calls: dict[tuple[int, int], Entry] = {}
    ends: dict[tuple[int, int], Entry] = {}
    for entry in journal:
        (calls if entry.what == "call" else ends)[entry.client, entry.number] = entry
    found: dict[Key, list[Operation]] = defaultdict(list)
    for place, call in calls.items():
        end = ends.get(place)
        if end is None:
            found[call.key].append(Operation(call.client, call.content, call.time))
        elif end.what == "answer":
            found[call.key].append(Operation(call.client, call.content, call.time, end.time, end.content))
    return found


def anomalies(journal: Iterable[Entry]) -> list[str]:
    """What cannot have happened, row by row, in words; an empty list is a linearizable history."""
    rows = {f"{key.kind} {key.number}": history for key, history in histories(journal).items()}
    return rows_change_at_one_instant(rows, CasRow())


def changes(journal: Iterable[Entry]) -> int:
    """How many conditional changes were made: a history without them shows nothing."""
    return sum(entry.what == "answer" and entry.content is True for entry in journal)


def meetings(journal: Iterable[Entry]) -> int:
    """How many operations had another's call or answer on the same row during them."""
    count = 0
    for history in histories(journal).values():
        moments = sorted(moment for one in history for moment in (one.called, one.returned) if moment is not None)
        count += sum(bisect_left(moments, one.returned or 0) - bisect_right(moments, one.called) > 0 for one in history)
    return count


def assert_linearizable(journal: list[Entry], *, least: int) -> None:
    """And that there was enough to judge: so many changes that were made, and a fifth as many operations beside others."""
    assert anomalies(journal) == []
    assert changes(journal) >= least * LENGTH
    assert meetings(journal) >= least * LENGTH // 5


def _linger(chance: random.Random) -> None:
    """What a network does to some calls and answers; without it, quick backends are never asked two things at once."""
    if chance.random() < 0.2:
        time.sleep(chance.random() * _LINGER_SECONDS)


def _choose(chance: random.Random, key: Key, seen: Row | None, unique: int) -> Call:
    new = _new_row(chance, key, seen, unique)
    if key.kind == "object" and chance.random() < 0.03:
        return Write(new)
    if seen is None:
        return Read() if chance.random() < 0.5 else Create(new)
    wish = chance.random()
    if wish < 0.35:
        return Read()
    if wish < 0.85:
        return Swap(seen.mark, new)
    return Create(new) if wish < 0.9 else Remove(seen.mark)


def _new_row(chance: random.Random, key: Key, seen: Row | None, unique: int) -> Row:
    """Never the same twice, whoever makes it."""
    if key.kind == "object":
        return Row((f"token-{unique}", unique), b"x" * chance.choice([0, 1, 300, 20_000]) + b"%d" % unique)
    version = seen.mark[1] + 1 if seen is not None else 5  # the same again after a removal: the pointer makes it unique
    return Row((unique, version), (unique + 1, (unique + 2, unique + 3), ((unique + 4, unique + 5),), chance.choice([None, 9])))


def _learn(seen: dict[Key, Row | None], key: Key, call: Call, answer: Any) -> None:
    if isinstance(call, Read):
        seen[key] = answer
    elif answer and isinstance(call, Create | Write):
        seen[key] = call.row
    elif answer and isinstance(call, Swap):
        seen[key] = call.new
    elif answer:
        seen[key] = None


def _ask(backend: Backend, key: Key, call: Call, chance: random.Random) -> Any:
    return (_ask_reference if key.kind == "reference" else _ask_object)(backend, key.number, call, chance)


def _ask_reference(backend: Backend, number: int, call: Call, chance: random.Random) -> Any:
    name = f"reference-{number}"
    try:
        match call:
            case Read():
                found = backend.read_references(REALM, [name])[0]
                return None if found is None else _plain_reference(found)
            case Create(row) if chance.random() < 0.5:
                return backend.create_references([_reference(name, row)])[0]
            case Create(row):
                backend.create_reference(_reference(name, row))
            case Swap(seen, new):
                backend.swap_reference(_reference(name, Row(seen)), _reference(name, new))
            case Remove(seen):
                backend.remove_reference(_reference(name, Row(seen)))
    except SwapConflictError:
        return False
    return True


def _reference(name: str, row: Row) -> ReferenceRow:
    (pointer, version), rest = row
    created, recent, moves, deleted = rest or (0, (), (), None)
    return ReferenceRow(
        realm=REALM,
        name=name,
        pointer=ObjectId(pointer),
        version=version,
        created=Micros(created),
        recent=recent,
        moves=tuple(ReferenceMove(*move) for move in moves),
        deleted=deleted,
    )


def _plain_reference(row: ReferenceRow) -> Row:
    return Row((row.pointer, row.version), (row.created, row.recent, tuple(tuple(move) for move in row.moves), row.deleted))


def _ask_object(backend: Backend, number: int, call: Call, chance: random.Random) -> Any:
    object_id = ObjectId(1000 + number)
    try:
        match call:
            case Read():
                found = backend.read_objects(REALM, [(object_id, 0)])[0]
                return None if found is None else Row((found.token, found.created), found.value)
            case Create(row):
                backend.insert_object(_object(object_id, row))
            case Write(row):
                backend.write_objects([_object(object_id, row)])
            case Swap((token, _), new):
                backend.update_object(_object(object_id, new), token)
            case Remove((token, created)):
                return backend.delete_objects([ObjectKey(REALM, object_id, 0, "note", created, token, 1, 0)]) == 1
    except SwapConflictError:
        return False
    return True


def _object(object_id: ObjectId, row: Row) -> ObjectRow:
    token, created = row.mark
    return ObjectRow(
        realm=REALM, id=object_id, part=0, type="note", value=row.rest, created=Micros(created), token=token, parts=1
    )
