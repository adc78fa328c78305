from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest

from headwater.iceberg import ChoiceRule, FileInfo, QuarantineCode
from headwater.iceberg.latest_metadata import (
    MetadataChoice,
    MetadataLineage,
    check_one_table,
    lineage_of,
    narrow_by_name,
    possible_strangers,
    settle_by_log,
)
from headwater.iceberg.survey_outcomes import RejectedTable

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
DIRECTORY = "s3://lake/t/metadata"


def m(number: int, uuid: str = A) -> str:
    return f"{number:05}-{uuid}.metadata.json"


def v(number: int) -> str:
    return f"v{number}.metadata.json"


@dataclass
class Case:
    """Files of a directory; ``logs`` gives the ancestors of some, ``later`` a file with a later time than the others."""

    names: list[str]
    latest: str | QuarantineCode
    rule: ChoiceRule | None = None
    hint: bytes | None = None
    logs: dict[str, set[str]] = field(default_factory=dict)
    uuids: dict[str, str | None] = field(default_factory=dict)
    later: str = ""

    def choose(self) -> MetadataChoice:
        files = [FileInfo(f"{DIRECTORY}/{name}", 1, 2_000 if name == self.later else 1_000) for name in self.names]
        contest = narrow_by_name(files, self.hint)
        if isinstance(contest, MetadataChoice):
            return contest
        read = {
            file.path: MetadataLineage(self.uuids.get(file.name, A), frozenset(self.logs.get(file.name, ())))
            for file in (*contest.contenders, *contest.rivals)
        }
        return settle_by_log(contest, read)


CHOSEN = {
    "a single file": Case([m(0)], m(0), ChoiceRule.ONLY_FILE),
    "a single file without a number": Case([f"{A}.metadata.json"], f"{A}.metadata.json", ChoiceRule.ONLY_FILE),
    "the highest number of a metastore": Case([m(9), m(10, B), m(2)], m(10, B), ChoiceRule.HIGHEST_NUMBER),
    "numbers count, not digits": Case([m(99999), m(100000, B)], m(100000, B), ChoiceRule.HIGHEST_NUMBER),
    "the highest number of Hadoop": Case([v(9), v(10)], v(10), ChoiceRule.HIGHEST_NUMBER),
    "a packed file in the middle": Case([v(1), "v2.gz.metadata.json"], "v2.gz.metadata.json", ChoiceRule.HIGHEST_NUMBER),
    "the older suffix": Case([v(1), "v2.metadata.json.gz"], "v2.metadata.json.gz", ChoiceRule.HIGHEST_NUMBER),
    "a timestamp as number": Case([v(1749025517), v(1749025400)], v(1749025517), ChoiceRule.HIGHEST_NUMBER),
    "a leftover of an uncommitted write": Case([v(1), v(2), f"{A}.metadata.json"], v(2), ChoiceRule.HIGHEST_NUMBER),
    "a fraction and a word": Case([v(3), "v3.1.metadata.json", "vfinal.metadata.json"], v(3), ChoiceRule.HIGHEST_NUMBER),
    "a hint that agrees": Case([v(1), v(2)], v(2), ChoiceRule.VERSION_HINT, hint=b"2"),
    "a hint with CRLF": Case([v(1), v(2)], v(2), ChoiceRule.VERSION_HINT, hint=b"2\r\n"),
    "a hint with a byte order mark": Case([v(1), v(2)], v(2), ChoiceRule.VERSION_HINT, hint=b"\xef\xbb\xbf2"),
    "a hint that is a stem": Case([m(1), m(2)], m(2), ChoiceRule.VERSION_HINT, hint=f"00002-{A}".encode()),
    "a hint that is a file name": Case([m(1), m(2)], m(2), ChoiceRule.VERSION_HINT, hint=m(2).encode()),
    "a hint that is a stem decides a tie": Case(
        [m(2, A), m(2, B)], m(2, B), ChoiceRule.VERSION_HINT, hint=f"00002-{B}".encode()
    ),
    "an empty hint": Case([v(1), v(2)], v(2), ChoiceRule.HIGHEST_NUMBER, hint=b"\r\n"),
    "a hint that says nothing": Case([v(1), v(2)], v(2), ChoiceRule.HIGHEST_NUMBER, hint=b"\xff\xfe!"),
    "a hint with too many digits": Case([v(1), v(2)], v(2), ChoiceRule.HIGHEST_NUMBER, hint=b"9" * 5000),
    "a hint that is behind": Case([v(1), v(2), v(3), v(4)], v(4), ChoiceRule.ROLLED_FORWARD, hint=b"2"),
    "a hint of a file that was cleaned up": Case([v(3), v(4)], v(4), ChoiceRule.HIGHEST_NUMBER, hint=b"2"),
    "a hint before a gap, told by the log": Case([v(2), v(9)], v(9), ChoiceRule.METADATA_LOG, hint=b"2", logs={v(9): {v(2)}}),
    "a number behind among metastore names": Case([m(1), m(2)], m(2), ChoiceRule.METADATA_LOG, hint=b"1", logs={m(2): {m(1)}}),
    "a tie that the log decides": Case([m(2, A), m(2, B)], m(2, B), ChoiceRule.METADATA_LOG, logs={m(2, B): {m(2, A)}}),
    "two schemes, told by the log": Case([v(7), m(3)], m(3), ChoiceRule.METADATA_LOG, logs={m(3): {v(7)}}),
    "unnumbered files, told by the log": Case(
        [f"{A}.metadata.json", f"{B}.metadata.json"],
        f"{A}.metadata.json",
        ChoiceRule.METADATA_LOG,
        logs={f"{A}.metadata.json": {f"{B}.metadata.json"}},
    ),
    "a hint of nineteen digits": Case(
        [v(1749025517000000001), v(1749025517000000000)],
        v(1749025517000000001),
        ChoiceRule.VERSION_HINT,
        hint=b"1749025517000000001",
    ),
    "an older version without a uuid, copied last": Case(
        [v(1), v(2)], v(2), ChoiceRule.HIGHEST_NUMBER, later=v(1), uuids={v(1): None}
    ),
    "an older version copied last": Case([v(1), v(2)], v(2), ChoiceRule.HIGHEST_NUMBER, later=v(1)),
}

REFUSED = {
    "a lost race": Case([m(1), m(2, A), m(2, B)], QuarantineCode.AMBIGUOUS, logs={m(2, A): {m(1)}, m(2, B): {m(1)}}),
    "the same version packed and plain": Case([v(2), "v2.gz.metadata.json"], QuarantineCode.AMBIGUOUS, hint=b"2"),
    "a hint before a gap": Case([v(2), v(9)], QuarantineCode.AMBIGUOUS, hint=b"2"),
    "two schemes": Case([v(7), m(3)], QuarantineCode.AMBIGUOUS),
    "files in each other's log": Case([v(7), m(3)], QuarantineCode.AMBIGUOUS, logs={v(7): {m(3)}, m(3): {v(7)}}),
    "unnumbered strangers": Case([f"{A}.metadata.json", f"{B}.metadata.json"], QuarantineCode.AMBIGUOUS),
    "a hint ahead of all files": Case([v(1), v(2)], QuarantineCode.HINT_AHEAD, hint=b"3"),
    "a stem ahead of all files": Case([m(1)], QuarantineCode.HINT_AHEAD, hint=f"00002-{B}".encode()),
    "a hint of nineteen digits ahead of all files": Case([v(1)], QuarantineCode.HINT_AHEAD, hint=b"1749025517000000001"),
    "a table without a uuid that was created again with one": Case(
        [v(5), v(1)], QuarantineCode.TWO_TABLES, later=v(1), uuids={v(5): None}
    ),
    "a table created again in its old folder": Case(
        [m(5, A), m(1, B)], QuarantineCode.TWO_TABLES, later=m(1, B), uuids={m(1, B): B}
    ),
}


@pytest.mark.parametrize("case", CHOSEN.values(), ids=CHOSEN.keys())
def test_latest_is_chosen_by_a_named_rule(case: Case) -> None:
    choice = case.choose()

    assert (choice.file.name, choice.rule) == (case.latest, case.rule)
    assert choice.evidence


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_latest_that_cannot_be_told_is_refused(case: Case) -> None:
    with pytest.raises(RejectedTable) as refusal:
        case.choose()

    assert refusal.value.code == case.latest


def test_gap_between_numbers_without_a_hint_is_no_matter() -> None:
    assert Case([v(1), v(5)], v(5)).choose().file.name == v(5)


def test_evidence_names_what_the_hint_said() -> None:
    assert "version-hint.text says 2" in Case([v(2), v(3)], v(3), hint=b"2").choose().evidence


def test_evidence_names_a_lower_number_that_was_written_last() -> None:
    evidence = Case([v(1), v(2)], v(2), later=v(1)).choose().evidence

    assert any("v1.metadata.json was written later" in line for line in evidence)


def test_lineage_is_the_file_names_of_the_log() -> None:
    document = {"table-uuid": A, "metadata-log": [{"metadata-file": "s3://x/metadata/v1.metadata.json"}, "rubbish", {}]}

    assert lineage_of(document) == MetadataLineage(A, frozenset({"v1.metadata.json"}))


def test_lineage_of_a_view_has_its_uuid() -> None:
    assert lineage_of({"view-uuid": A.upper(), "last-updated-ms": "soon"}) == MetadataLineage(A, frozenset())


def test_evidence_names_a_file_that_says_it_was_updated_later() -> None:
    files = [FileInfo(f"{DIRECTORY}/{m(2, uuid)}", 1) for uuid in (A, B)]
    read = {
        files[0].path: MetadataLineage(A, frozenset(), 2_000),
        files[1].path: MetadataLineage(A, frozenset({m(2, A)}), 1_000),
    }
    contest = narrow_by_name(files)
    assert not isinstance(contest, MetadataChoice)

    choice = settle_by_log(contest, read)

    assert (choice.file, choice.evidence[-1]) == (files[1], f"{m(2, A)} has a later last-updated-ms")


@dataclass
class Beside:
    """Files beside the latest one, ``m(9)``, which was written at 1,000, by when they were; and which of them may be strangers."""

    files: dict[str, int]
    log: set[str] = field(default_factory=set)
    expected: set[str] = field(default_factory=set)
    written: int = 1_000

    def strangers(self) -> set[str]:
        latest = FileInfo(f"{DIRECTORY}/{m(9)}", 1, self.written)
        files = [latest, *(FileInfo(f"{DIRECTORY}/{name}", 1, mtime) for name, mtime in self.files.items())]
        return {
            file.name
            for file in possible_strangers(
                MetadataChoice(latest, ChoiceRule.HIGHEST_NUMBER, ()), MetadataLineage(A, frozenset(self.log)), files
            )
        }


BESIDE = {
    "a table as it mostly lies there": Beside({m(7): 800, m(8): 900}),
    "a lost race that is older": Beside({m(8): 900, m(8, B): 900}, {m(8)}),
    "the same without times": Beside({m(8): 0, m(8, B): 0}, {m(8)}, {m(8, B)}),
    "the same with one time for all": Beside({m(8): 1_000, m(8, B): 1_000}, {m(8)}, {m(8, B)}),
    "the same where only the latest has no time": Beside({m(8): 900, m(8, B): 900}, {m(8)}, {m(8, B)}, written=0),
    "versions from before the log begins": Beside({m(6): 0, m(7): 0, m(8): 0}, {m(8)}),
    "a number from before the log begins that two have": Beside({m(6): 0, m(6, B): 0, m(8): 0}, {m(8)}, {m(6), m(6, B)}),
    "a version that the log has not between others": Beside({m(7): 0, m(8): 0}, {m(6), m(8)}, {m(7)}),
    "no log, and a number that two have": Beside({m(0): 0, m(0, B): 0, m(8): 0}, set(), {m(0), m(0, B)}),
    "no log": Beside({m(0): 0, m(8): 0}),
    "a lower version that was written later": Beside({m(8): 2_000, m(8, B): 2_000}, {m(8)}, {m(8, B)}),
    "other schemes": Beside({v(9): 0, "vfinal.metadata.json": 0, f"{B}.metadata.json": 0}),
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE.keys())
def test_stranger_is_given_by_neither_times_nor_the_log(beside: Beside) -> None:
    assert beside.strangers() == beside.expected


@pytest.mark.parametrize(("own", "other", "is_alone"), [(A, A, True), (A, None, True), (None, A, True), (A, B, False)])
def test_stranger_of_another_table_is_refused(own: str | None, other: str | None, is_alone: bool) -> None:
    latest, stranger = FileInfo(f"{DIRECTORY}/{m(2)}", 1), FileInfo(f"{DIRECTORY}/{m(0)}", 1)
    choice = MetadataChoice(latest, ChoiceRule.HIGHEST_NUMBER, ())

    with nullcontext() if is_alone else pytest.raises(RejectedTable, match="no time tells") as refusal:
        check_one_table(choice, MetadataLineage(own, frozenset()), stranger, MetadataLineage(other, frozenset()))

    assert is_alone or (refusal and refusal.value.code is QuarantineCode.TWO_TABLES)
