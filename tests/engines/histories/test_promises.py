"""Every promise has its sentence, its place in the docs and engines that judge by it; every mutant has a promise that kills it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from engines.model import (
    MUTANTS,
    PROMISES,
    HeadSpan,
    KeyNote,
    Mutant,
    Outcome,
    Promise,
    RowWalk,
    Step,
    Told,
    keys_hold_what_was_told,
    outcome_is_as_told,
    recent_heads_are_whole,
    versions_go_up,
)
from engines.model import archive_has_the_head_of_its_moment as archive_has_the_head
from engines.model import archive_has_the_keys_of_its_moment as archive_has_the_keys
from engines.model.journal import outcome_of
from engines.model.mutants import MODELS
from headwater.errors import (
    CommitTimeoutError,
    CorruptionError,
    FencedError,
    HeadwaterError,
    RefusedError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store import ObjectId, RealmKey, ReferenceRow
from headwater.store.backends.memory import MemoryBackend

FOLDER = Path(__file__).parents[3]
ENGINES = Path(__file__).parents[1]
EXPECTED = {"engines.properties.wrong_backends": "WRONG", "engines.properties.broken_backends": "BROKEN"}
promises = pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
mutants = pytest.mark.parametrize("name", MUTANTS)


@promises
def test_promise_is_one_sentence(promise: Promise) -> None:
    assert re.fullmatch(r"[A-Z][^.]*\.", promise.sentence)


@promises
def test_promise_has_its_place_in_the_docs(promise: Promise) -> None:
    lines = (FOLDER / promise.page).read_text(encoding="utf-8").splitlines()

    assert promise.heading in {line.lstrip("# ") for line in lines if line.startswith("#")}


@promises
def test_promise_is_judged_by_an_engine(promise: Promise) -> None:
    files = [path for path in ENGINES.rglob("*.py") if path.parent.name not in ("histories",) and path.name != "__init__.py"]
    callers = [path for path in files if re.search(rf"(?<!def )\b{promise.name}\(", path.read_text(encoding="utf-8"))]

    assert callers


@mutants
def test_mutant_is_killed_by_a_promise_or_a_model(name: str) -> None:
    assert MUTANTS[name].killed_by in PROMISES.keys() | MODELS.keys()


@mutants
def test_mutant_is_where_the_list_says(name: str) -> None:
    assert isinstance(getattr(importlib.import_module(MUTANTS[name].place), name), type)


def test_mutants_of_the_engines_are_all_on_the_list() -> None:
    from engines.file_tables.table_mutants import STORMY
    from engines.properties.broken_backends import BROKEN
    from engines.properties.wrong_backends import WRONG
    from engines.simulation.simulated_mutants import SIMULATED

    tried = {make.__name__ for make in (*BROKEN.values(), *WRONG.values(), *SIMULATED, *STORMY)}  # type: ignore[attr-defined]

    assert tried == MUTANTS.keys()


def test_models_that_kill_mutants_are_there() -> None:
    assert [file for file in MODELS.values() if not (FOLDER / file).is_file()] == []


def note(key: str, told: Told, time: int = 0, step: Step = Step.PUT) -> KeyNote:
    return KeyNote(key, step, told, time)


@pytest.mark.parametrize(
    ("told", "there", "fault"),
    [
        (Told.DONE, False, "is lost"),
        (Told.DONE, True, ""),
        (Told.NOT_DONE, True, "was told that it is not"),
        (Told.NOT_DONE, False, ""),
        (Told.OPEN, True, ""),
        (Told.OPEN, False, ""),
        (Told.CALLED, True, ""),
    ],
)
def test_key_holds_what_its_writer_was_told_last(told: Told, there: bool, fault: str) -> None:
    faults = keys_hold_what_was_told([note("a", Told.CALLED), note("a", told)], {"a"} if there else set(), "acme")

    assert [one.endswith(fault) for one in faults] == [True] * bool(fault)


def test_key_that_was_deleted_is_gone() -> None:
    notes = [note("a", Told.DONE), note("a", Told.DONE, step=Step.DELETE)]

    assert keys_hold_what_was_told(notes, set(), "acme") == []
    assert keys_hold_what_was_told(notes, {"a"}, "acme") != []


@pytest.mark.parametrize(("pointer", "is_kept"), [(1, False), (2, True), (3, False), (None, False)])
def test_archive_has_the_newest_head_not_after_its_moment(pointer: int | None, is_kept: bool) -> None:
    heads = [(ObjectId(number), 10 * number, False) for number in (1, 2, 3)]

    assert (archive_has_the_head("main", 25, pointer and ObjectId(pointer), heads) == []) == is_kept


@pytest.mark.parametrize("pointer", [1, 2])
def test_archive_may_lack_a_head_of_long_after_its_time(pointer: int) -> None:
    assert archive_has_the_head("main", 25, ObjectId(pointer), [(ObjectId(1), 10, False), (ObjectId(2), 20, True)]) == []


@pytest.mark.parametrize(
    ("called", "done", "there", "fault"),
    [(1, 2, False, "lacks"), (1, 2, True, ""), (60, 61, True, "put after"), (48, 49, False, ""), (48, 49, True, "")],
)
def test_archive_has_the_keys_of_its_moment(called: int, done: int, there: bool, fault: str) -> None:
    notes = [note("a", Told.CALLED, called), note("a", Told.DONE, done)]
    faults = archive_has_the_keys("archive", 50, 5, notes, {"a"} if there else set())

    assert [fault in one for one in faults] == [True] * bool(fault)


def test_archive_with_a_key_that_nobody_put_is_found() -> None:
    assert archive_has_the_keys("archive", 50, 5, [], {"a"}) == ["archive has a, which nobody put"]


def test_head_without_its_commit_is_not_whole() -> None:
    [fault] = recent_heads_are_whole(RowWalk(MemoryBackend()), [HeadSpan(RealmKey(1), "main", ObjectId(2), 0)], 5)

    assert "is gone" in fault


@pytest.mark.parametrize(("before", "is_kept"), [(6, True), (7, False), (8, False)])
def test_version_of_a_reference_goes_up(before: int, is_kept: bool) -> None:
    row = ReferenceRow(realm=RealmKey(1), name="main", pointer=None, version=7, created=0, recent=(), moves=(), deleted=None)  # type: ignore[arg-type]

    assert (versions_go_up(row, before) == []) == is_kept


@pytest.mark.parametrize(
    ("error", "after", "fault"),
    [
        (None, "end", ""),
        (None, "before", "it is not there"),
        (RefusedError("no"), "before", ""),
        (RefusedError("no"), "end", "something happened"),
        (UnknownOutcomeError("lost"), "end", ""),
        (UnknownOutcomeError("lost"), "before", ""),
        (CorruptionError("torn"), "before", "no kind of error"),
    ],
)
def test_outcome_is_as_its_caller_was_told(error: Exception | None, after: str, fault: str) -> None:
    faults = outcome_is_as_told(error, "before", after, "end", plain=str, is_resumable=False)

    assert [fault in one for one in faults] == [True] * bool(fault)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (UnavailableError("away"), Outcome.REFUSED),
        (CommitTimeoutError("late"), Outcome.REFUSED),
        (FencedError("taken over"), Outcome.BEATEN),
        (UnknownOutcomeError("lost"), Outcome.UNKNOWN),
        (CorruptionError("torn"), Outcome.BROKEN),
        (HeadwaterError("of no kind"), Outcome.BROKEN),
        (ValueError("none of ours"), Outcome.BROKEN),
    ],
)
def test_error_says_one_outcome(error: Exception, outcome: Outcome) -> None:
    assert outcome_of(error) is outcome


def test_mutant_says_what_it_breaks() -> None:
    assert [name for name, mutant in MUTANTS.items() if not is_described(mutant)] == []


def is_described(mutant: Mutant) -> bool:
    return len(mutant.breaks.split()) > 3
