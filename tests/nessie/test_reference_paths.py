"""References in paths: Nessie's grammar, its names, its hashes, and the revision texts that they become."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.catalogs import RefKind, parse_revspec
from headwater.errors import NotFoundError, RefusedError
from headwater.store import ObjectId
from headwater_server.nessie.reference_paths import (
    NO_ANCESTOR_HASH,
    ReferencePath,
    UnknownHashError,
    check_new_name,
    hash_text,
    parse_diff_path,
    parse_hash,
    parse_reference_path,
    reference_from_query,
)

OWN = "0123456789abcdef"
FOREIGN = "1122334455667788112233445566778811223344556677881122334455667788"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("-", ("-", None, "")),
        ("main", ("main", None, "")),
        ("main@", ("main", None, "")),
        ("test/branch/name1@", ("test/branch/name1", None, "")),
        ("a~10", ("a", None, "~10")),
        ("test@~1", ("test", None, "~1")),
        ("a@12345678~10", ("a", "12345678", "~10")),
        (f"@{OWN}", (None, OWN, "")),
        (f"DETACHED@{OWN}^2", (None, OWN, "^2")),
        (f"main@{FOREIGN.upper()}", ("main", FOREIGN, "")),
        (f"main@{OWN}~1^2*2023-01-31T12:00:00.123456789Z", ("main", OWN, "~1^2*2023-01-31T12:00:00.123456789Z")),
        ("main*1680000000000", ("main", None, "*1680000000000")),
        ("-*2023-01-31T12:00:00Z~1", ("-", None, "*2023-01-31T12:00:00Z~1")),
        ("1_release", ("1_release", None, "")),
    ],
)
def test_reference_is_taken_apart(text, parts):
    assert parse_reference_path(text) == ReferencePath(*parts)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "at character 1: neither"),
        ("@", "neither"),
        ("@~1", "neither"),
        ("~1", "neither"),
        ("DETACHED", "reserved"),
        ("HEAD", "reserved"),
        ("foo bar", "at character 4"),
        ("main@1234567", "at character 6"),
        ("main@xyz", "at character 6"),
        (f"main@{FOREIGN}0", "at character 6"),
        ("foo@bar@boo", "at character 5"),
        (f"main@{OWN}@", "at character 22"),
        ("main~1@", "at character 7"),
        ("main~0", "at character 5"),
        ("main^0", "at character 5"),
        ("main~-1", "at character 5"),
        ("main~", "at character 5"),
        ("main~1~", "at character 7"),
        ("main*yesterday", "at character 5"),
        ("main*2023-02-30T00:00:00Z", "at character 5"),
        ("main*2023-01-31", "at character 5"),
        ("abc/", "no . or / at the end"),
        (".foo", "at the start"),
        ("abc/def/../blah", "side by side"),
        ("abc/de@{blah", "at character 8"),
        (OWN, "hash of a commit"),
    ],
)
def test_malformed_reference_is_refused_with_its_place(text, where):
    with pytest.raises(RefusedError) as refusal:
        parse_reference_path(text)

    assert where in str(refusal.value)


@pytest.mark.parametrize("text", ["main", "-", f"main@{OWN}", f"@{OWN}~2", "main^2*2026-01-31T12:00:00Z"])
def test_revision_text_is_one_that_catalogs_read(text):
    reference = parse_reference_path(text)

    spec = parse_revspec(reference.to_revspec())
    assert (spec.name, spec.is_ambiguous) == (reference.name, reference.is_ambiguous)
    assert "".join(step.text for step in spec.steps) == reference.steps
    assert hash_text(spec.commit) == (reference.hash or NO_ANCESTOR_HASH)


@pytest.mark.parametrize("commit", [FOREIGN, "12345678", "8123456789abcdef", NO_ANCESTOR_HASH])
def test_hash_of_no_commit_here_is_not_found(commit):
    with pytest.raises(UnknownHashError, match=commit):
        parse_reference_path(f"main@{commit}").to_revspec()

    assert issubclass(UnknownHashError, NotFoundError)


def test_relative_reference_without_a_hash_is_ambiguous():
    assert parse_reference_path("main~1").is_ambiguous
    assert not parse_reference_path(f"main@{OWN}~1").is_ambiguous
    assert not parse_reference_path("main@").is_ambiguous


def test_bare_name_has_neither_hash_nor_steps():
    assert parse_reference_path("a/b@").is_bare
    assert not parse_reference_path("main~1").is_bare
    assert not parse_reference_path(f"main@{OWN}").is_bare


def test_state_before_the_first_commit_has_its_hash():
    assert hashlib.sha256(b"empty").hexdigest() == NO_ANCESTOR_HASH
    assert parse_reference_path(f"main@{NO_ANCESTOR_HASH}").is_no_ancestor
    assert not parse_reference_path(f"main@{NO_ANCESTOR_HASH}~1").is_no_ancestor
    assert hash_text(None) == NO_ANCESTOR_HASH
    assert parse_hash(NO_ANCESTOR_HASH) is None


@given(st.integers(1, (1 << 63) - 1))
def test_hash_of_a_commit_comes_back(number):
    assert parse_hash(hash_text(ObjectId(number))) == number


def test_hash_is_read_in_either_case():
    assert parse_hash(OWN.upper()) == parse_hash(OWN) == int(OWN, 16)


def test_text_that_is_no_hash_is_refused():
    for text in ("", "1234567", "0123456789abcdeg", OWN + " "):
        with pytest.raises(RefusedError):
            parse_hash(text)
    with pytest.raises(UnknownHashError):
        parse_hash(FOREIGN)


@pytest.mark.parametrize("name", ["main", "coffee20", "a_b-", "abc/def", "v1.2"])
def test_name_in_nessies_grammar_may_be_created(name):
    assert check_new_name(RefKind.TAG, name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "HEAD",
        "detached",
        "cafebabedeadbeef",
        "CAFEBABE",
        "caffee20",
        "20caff22",
        "abc/",
        ".foo",
        "abc/def/../blah",
        "abc/de..blah",
        "abc/de@{blah",
        "1abc",
        "_abc",
        "a" * 600,
        "a.",
        "-",
    ],
)
def test_name_outside_nessies_grammar_is_refused(name):
    with pytest.raises(RefusedError, match="is not a name for a branch"):
        check_new_name(RefKind.BRANCH, name)


def test_reference_of_two_parameters_is_one_path():
    assert reference_from_query(None) == reference_from_query("") == ReferencePath("-")
    assert reference_from_query("main", OWN) == parse_reference_path(f"main@{OWN}")
    assert reference_from_query("DETACHED", OWN) == reference_from_query("DETACHED", OWN.upper()) == ReferencePath(None, OWN)
    assert reference_from_query("main", f"{OWN}~1") == ReferencePath("main", OWN, "~1")
    assert reference_from_query("main", "~1").is_ambiguous


@pytest.mark.parametrize("parts", [("main", "x"), ("a b", None), ("DETACHED", None), ("main", f"{OWN}@")])
def test_malformed_parameters_are_refused(parts):
    with pytest.raises(RefusedError):
        reference_from_query(*parts)


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ("main...dev", ("main", "dev")),
        (f"main*{OWN}...dev", (f"main@{OWN}", "dev")),
        (f"a/b.c...d*{FOREIGN}", ("a/b.c", f"d@{FOREIGN}")),
        (f"*{OWN}...-", (f"@{OWN}", "-")),
        (f"DETACHED*{OWN}...main", (f"@{OWN}", "main")),
    ],
)
def test_comparison_names_two_references(text, sides):
    assert parse_diff_path(text) == tuple(map(parse_reference_path, sides))


@pytest.mark.parametrize(
    "text", ["main", "main..dev", "...dev", "main...", "main*...dev", "main*xyz...dev", "a...b...c", "a....b"]
)
def test_malformed_comparison_is_refused(text):
    with pytest.raises(RefusedError):
        parse_diff_path(text)
