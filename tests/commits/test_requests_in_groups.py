"""A repeat that meets its request in the same group of commits: it answers when the group has been published, and not before."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from lineup import lined_up

from faulty_backend import FaultyBackend
from headwater.catalogs import REQUESTS, AppliedRequest
from headwater.catalogs.request_log import find_request, note_request
from headwater.commits import CommitResult, Transaction, commit_change, read_head, read_log
from headwater.errors import UnknownOutcomeError
from headwater.index import IndexValue
from headwater.store import RealmStore
from request_keys import make_request

LOST_ON_ITS_WAY: dict[str, Any] = {"before": True, "fault": UnknownOutcomeError("lost on its way")}


def send(rows: RealmStore, attempt: int, *, number: int = 1) -> CommitResult[AppliedRequest | None]:
    """What a catalog's commit does with a key: the result says who has applied it before."""

    def change(tx: Transaction) -> AppliedRequest | None:
        applied = find_request(tx.index(REQUESTS), tx.reader.key, tx.reference, make_request(number))
        if applied is None:
            tx.index("things").put(b"by", IndexValue(None, str(attempt).encode()))
            note_request(tx, make_request(number))
        return applied

    return commit_change(rows, "main", change)


def commit_ids(rows: RealmStore) -> list[int]:
    return [] if read_head(rows, "main", fresh=True) is None else [head.id for head in read_log(rows, "main")]


def told(answers: list[CommitResult[AppliedRequest | None]]) -> list[int | None]:
    """The commit that each answer names."""
    return [answer.commit_id if answer.result is None else answer.result.commit_id for answer in answers]


def test_repeats_in_one_group_answer_with_one_commit(faulty: RealmStore, faults: FaultyBackend) -> None:
    works = [partial(send, faulty, attempt) for attempt in range(3)] + [partial(send, faulty, 3, number=2)]
    with lined_up(faulty, faults, works) as line:
        pass
    answers = [done.result() for done in line.commits]
    newest, oldest = commit_ids(faulty)

    assert told(answers) == [oldest, oldest, oldest, newest]
    assert [answer.changed for answer in answers] == [True, False, False, True]


def test_repeats_in_a_beaten_group_answer_with_the_winning_commit(
    faulty: RealmStore, faults: FaultyBackend, elsewhere: RealmStore
) -> None:
    faults.intervene("swap_reference", lambda: send(elsewhere, 9))
    with lined_up(faulty, faults, [partial(send, faulty, attempt) for attempt in range(3)]) as line:
        pass
    [made] = commit_ids(faulty)

    assert told([done.result() for done in line.commits]) == [made] * 3


@pytest.mark.parametrize("fault", [LOST_ON_ITS_WAY, {"before": False}], ids=["not applied", "applied"])
def test_repeats_in_a_group_whose_answer_is_lost_are_applied_once(
    faulty: RealmStore, faults: FaultyBackend, fault: dict[str, Any]
) -> None:
    faults.fail("swap_reference", **fault)
    with lined_up(faulty, faults, [partial(send, faulty, attempt) for attempt in range(3)]) as line:
        pass
    [made] = commit_ids(faulty)

    assert told([done.result() for done in line.commits]) == [made] * 3
