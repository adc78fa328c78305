from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from headwater.catalogs.iceberg import File, QuarantineCode, Rule
from headwater.catalogs.iceberg.choosing import Choice, Lineage, lineage_of, narrow, settle
from headwater.catalogs.iceberg.outcomes import UnfitError

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
    rule: Rule | None = None
    hint: bytes | None = None
    logs: dict[str, set[str]] = field(default_factory=dict)
    uuids: dict[str, str] = field(default_factory=dict)
    later: str = ""

    def choose(self) -> Choice:
        files = [File(f"{DIRECTORY}/{name}", 1, 2_000 if name == self.later else 1_000) for name in self.names]
        contest = narrow(files, self.hint)
        if isinstance(contest, Choice):
            return contest
        read = {
            file.path: Lineage(self.uuids.get(file.name, A), frozenset(self.logs.get(file.name, ())))
            for file in (*contest.contenders, *contest.rivals)
        }
        return settle(contest, read)


CHOSEN = {
    "a single file": Case([m(0)], m(0), Rule.ONLY_FILE),
    "a single file without a number": Case([f"{A}.metadata.json"], f"{A}.metadata.json", Rule.ONLY_FILE),
    "the highest number of a metastore": Case([m(9), m(10, B), m(2)], m(10, B), Rule.HIGHEST_NUMBER),
    "numbers count, not digits": Case([m(99999), m(100000, B)], m(100000, B), Rule.HIGHEST_NUMBER),
    "the highest number of Hadoop": Case([v(9), v(10)], v(10), Rule.HIGHEST_NUMBER),
    "a packed file in the middle": Case([v(1), "v2.gz.metadata.json"], "v2.gz.metadata.json", Rule.HIGHEST_NUMBER),
    "the older suffix": Case([v(1), "v2.metadata.json.gz"], "v2.metadata.json.gz", Rule.HIGHEST_NUMBER),
    "a timestamp as number": Case([v(1749025517), v(1749025400)], v(1749025517), Rule.HIGHEST_NUMBER),
    "a leftover of an uncommitted write": Case([v(1), v(2), f"{A}.metadata.json"], v(2), Rule.HIGHEST_NUMBER),
    "a fraction and a word": Case([v(3), "v3.1.metadata.json", "vfinal.metadata.json"], v(3), Rule.HIGHEST_NUMBER),
    "a hint that agrees": Case([v(1), v(2)], v(2), Rule.VERSION_HINT, hint=b"2"),
    "a hint with CRLF": Case([v(1), v(2)], v(2), Rule.VERSION_HINT, hint=b"2\r\n"),
    "a hint with a byte order mark": Case([v(1), v(2)], v(2), Rule.VERSION_HINT, hint=b"\xef\xbb\xbf2"),
    "a hint that is a stem": Case([m(1), m(2)], m(2), Rule.VERSION_HINT, hint=f"00002-{A}".encode()),
    "a hint that is a file name": Case([m(1), m(2)], m(2), Rule.VERSION_HINT, hint=m(2).encode()),
    "a hint that is a stem decides a tie": Case([m(2, A), m(2, B)], m(2, B), Rule.VERSION_HINT, hint=f"00002-{B}".encode()),
    "an empty hint": Case([v(1), v(2)], v(2), Rule.HIGHEST_NUMBER, hint=b"\r\n"),
    "a hint that says nothing": Case([v(1), v(2)], v(2), Rule.HIGHEST_NUMBER, hint=b"\xff\xfe!"),
    "a hint with too many digits": Case([v(1), v(2)], v(2), Rule.HIGHEST_NUMBER, hint=b"9" * 5000),
    "a hint that is behind": Case([v(1), v(2), v(3), v(4)], v(4), Rule.ROLLED_FORWARD, hint=b"2"),
    "a hint of a file that was cleaned up": Case([v(3), v(4)], v(4), Rule.HIGHEST_NUMBER, hint=b"2"),
    "a hint before a gap, told by the log": Case([v(2), v(9)], v(9), Rule.METADATA_LOG, hint=b"2", logs={v(9): {v(2)}}),
    "a number behind among metastore names": Case([m(1), m(2)], m(2), Rule.METADATA_LOG, hint=b"1", logs={m(2): {m(1)}}),
    "a tie that the log decides": Case([m(2, A), m(2, B)], m(2, B), Rule.METADATA_LOG, logs={m(2, B): {m(2, A)}}),
    "two schemes, told by the log": Case([v(7), m(3)], m(3), Rule.METADATA_LOG, logs={m(3): {v(7)}}),
    "unnumbered files, told by the log": Case(
        [f"{A}.metadata.json", f"{B}.metadata.json"],
        f"{A}.metadata.json",
        Rule.METADATA_LOG,
        logs={f"{A}.metadata.json": {f"{B}.metadata.json"}},
    ),
    "an older version copied last": Case([v(1), v(2)], v(2), Rule.HIGHEST_NUMBER, later=v(1)),
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
    "a table created again in its old folder": Case(
        [m(5, A), m(1, B)], QuarantineCode.TWO_TABLES, later=m(1, B), uuids={m(1, B): B}
    ),
}


@pytest.mark.parametrize("case", CHOSEN.values(), ids=CHOSEN.keys())
def test_the_latest_is_chosen_by_a_named_rule(case: Case) -> None:
    choice = case.choose()

    assert (choice.file.name, choice.rule) == (case.latest, case.rule)
    assert choice.evidence


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_told_is_refused(case: Case) -> None:
    with pytest.raises(UnfitError) as refusal:
        case.choose()

    assert refusal.value.code == case.latest


def test_a_gap_between_numbers_without_a_hint_is_no_matter() -> None:
    assert Case([v(1), v(5)], v(5)).choose().file.name == v(5)


def test_evidence_names_what_the_hint_said() -> None:
    assert "version-hint.text says 2" in Case([v(2), v(3)], v(3), hint=b"2").choose().evidence


def test_evidence_names_a_lower_number_that_was_written_last() -> None:
    evidence = Case([v(1), v(2)], v(2), later=v(1)).choose().evidence

    assert any("v1.metadata.json was written later" in line for line in evidence)


def test_a_lineage_is_the_file_names_of_the_log() -> None:
    document = {"table-uuid": A, "metadata-log": [{"metadata-file": "s3://x/metadata/v1.metadata.json"}, "rubbish", {}]}

    assert lineage_of(document) == Lineage(A, frozenset({"v1.metadata.json"}))
