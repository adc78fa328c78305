"""Filters in CEL: what they may say, how they refuse, and what an evaluation may cost."""

from __future__ import annotations

import time
from uuid import UUID

import pytest

from headwater.catalogs import (
    CommitMeta,
    CommittedOperation,
    ContentEntry,
    ContentKey,
    ContentType,
    ContentValue,
    EntryExpression,
    LogEntry,
    LogExpression,
)
from headwater.catalogs.filter_text import ascii_pattern, named_fields, read_tokens
from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.store import ObjectId

ID = UUID(int=7)


def entry(*elements: str, kind: ContentType = ContentType.ICEBERG_TABLE) -> ContentEntry:
    return ContentEntry(ContentKey(elements), ContentValue(kind, ID, bytes(16), ObjectId(1)))


def commit(*operations: CommittedOperation, **meta: object) -> LogEntry:
    made = CommitMeta(**meta)  # type: ignore[arg-type]
    return LogEntry(ObjectId(0xABC), 3, Micros(1_600_000_000_000_000), made, ObjectId(0xAB), operations)


MANY_PATTERNS = "') || entry.name.matches(r'".join(["a" * 60] * 20)
ENTRY = entry("a", "b.c", "t")


@pytest.mark.parametrize(
    "text",
    [
        "entry.namespace.startsWith('a')",
        "entry.namespace.matches('a(\\\\.|$)')",
        r"entry.namespace.matches(r'a(\.|$)')",
        "entry.name.startsWith('t') && entry.name.endsWith('t')",
        "entry.key == 'a.b.c.t'",
        r"entry.encodedKey.startsWith('a.b\u001dc.')",
        "entry.contentType == 'ICEBERG_TABLE'",
        "entry.contentType != 'NAMESPACE'",
        "entry.contentType in ['ICEBERG_TABLE', 'ICEBERG_VIEW']",
        "size(entry.keyElements) == 3 && entry.keyElements[1] == 'b.c'",
        "entry.keyElements.exists(e, e == 't')",
        "!entry.namespaceElements.exists(e, e == 't')",
        f"entry.contentId == '{ID}'",
        "entry['name'] == 't' && entry.name.contains('t')",
        "entry.name > 's' ? true : false",
    ],
)
def test_filter_is_true_for_an_entry(text: str) -> None:
    assert EntryExpression.parse(text).chooses(ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "commit.author == 'ann'",
        "commit.author != 'bob' && 'bob' in commit.authors",
        "commit.author in ['ann', 'x']",
        "commit.author.matches('^an+$')",
        "commit.committer == 'carl'",
        "timestamp(commit.commitTime) > timestamp('2020-09-01T00:00:00Z')",
        "commit.commitTime < timestamp('2020-10-01T00:00:00Z')",
        "commit.authorTime == timestamp('1970-01-01T00:00:05Z')",
        "commit.properties['p'] == 'v' && commit.allProperties['p'] == ['v', 'w']",
        "commit.signedOffBy == 'dora' && size(commit.allSignedOffBy) == 1",
        "commit.hash == '0000000000000abc' && commit.parentCommitHashes == ['00000000000000ab']",
        "operations.exists(op, op.type == 'PUT')",
        "operations.exists(op, op.key.startsWith('a.') && op.content.type == 'NAMESPACE')",
        f"operations.exists(op, op.content.id == '{ID}')",
        "operations.exists_one(op, op.name == 'gone')",
        "operations.all(op, op.keyElements.exists(e, e == 'a'))",
    ],
)
def test_filter_is_true_for_a_commit(text: str) -> None:
    put = CommittedOperation("PUT", ContentKey.of("a", "n"), ContentType.NAMESPACE, ID)
    told = commit(
        put,
        CommittedOperation("DELETE", ContentKey.of("a", "gone")),
        authors=("ann", "bob"),
        committer="carl",
        signed_off_by=("dora",),
        properties={"p": ("v", "w")},
        author_time=Micros(5_000_000),
    )

    assert LogExpression.parse(text).chooses(told)


@pytest.mark.parametrize(
    "text",
    [
        "commit.properties['p'] == 'v'",
        "!(commit.properties['p'] == 'v')",
        "int(commit.author) == 1",
        "1 / size(operations) > 0",
    ],
)
def test_commit_that_cannot_be_evaluated_is_not_chosen(text: str) -> None:
    assert not LogExpression.parse(text).chooses(commit())


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("entr.name == 'x'", "'entr' is not declared"),
        ("entry.nam == 'x'", "'entry.nam' is not declared"),
        ("entry.name.nam == 'x'", "'entry.name.nam' is not declared"),
        ("entry.name.foo() == 'x'", "'foo' is not declared"),
        ("foo(entry.name) == 'x'", "'foo' is not declared"),
        ("entry.keyElements.exists(e, f == 'x')", "'f' is not declared"),
        ("entry.keyElements.exists(e, e == 'x') && e == 'x'", "'e' is not declared"),
        ("entry.keyElements.map(e, e)", "'map' is not declared"),
        ("entry.keyElements.exists(e == 'x')", "is given a name for an element and a condition"),
        ("entry.name == ", "malformed at character"),
        ("(entry.name == 'x'", "malformed at character"),
        ("entry.name == 'x", "at character 15"),
        ("entry.name == '''x'''", "at character 15"),
        ("entry.name == b'x'", "at character 15"),
        ("entry.name == 'x' // true", "at character 19"),
        (".entry.name == 'x'", "the dot at character 1"),
        (r"entry.name == '\ud800'", "stands for no character"),
        (r"entry.name == '\q'", "stands for no character"),
        ("entry.name", "neither true nor false"),
        ("", "it is empty"),
        (" || ".join(["entry.name == 'x'"] * 200), "4000 are allowed"),
        ("entry.name.matches('(a')", "is not a regular expression: error: unclosed group"),
        ("entry.name.matches(entry.key)", "in quotes"),
    ],
)
def test_filter_is_refused_with_what_is_wrong(text: str, named: str) -> None:
    with pytest.raises(RefusedError) as refused:
        EntryExpression.parse(text)

    assert named in str(refused.value) and "the filter '" in str(refused.value).replace('"', "'")


@pytest.mark.parametrize(
    "text",
    [
        "operations.exists(a, operations.exists(b, a.key == b.key))",
        "operations.exists(a, [1, 2].exists(b, b == 1))",
        "operations.exists(a, a.keyElements.exists(b, a.keyElements.exists(c, b == c)))",
    ],
)
def test_comprehensions_that_multiply_are_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="another one ranges over"):
        LogExpression.parse(text)


ONES = ",".join(["1"] * 900)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("operations.filter(op, true).size() == 0", "'filter' is not declared"),
        ("operations.exists(op, operations + operations == [])", "is not one value"),
        ("operations.exists(op, op in operations)", "is not one value"),
        ("operations.exists(op, operations == operations)", "is not one value"),
        ("operations.exists(op, commit.allAuthors == commit.allAuthors)", "is not one value"),
        ("operations.exists(op, commit.properties == commit.allProperties)", "is not one value"),
        ("operations.exists(op, (operations) == [])", "is not one value"),
        ("operations.exists(a, (a.keyElements).exists(b, b == 'x'))", "is not one value"),
        ("(operations) + (operations) == []", "is not one value"),
        ("dyn(operations) + dyn(operations) == []", "is not one value"),
        ("[commit, commit] == []", "is not one value"),
        ("(true ? operations : operations) == []", "is not one value"),
        ("commit.allProperties['p'] + commit.allProperties['p'] == []", "the sum at character 27"),
        ("commit.allProperties.p + commit.allProperties.p == []", "the sum at"),
        ("[1] + [2] == []", "the sum at"),
        ("dyn('a') + dyn('b') == 'ab'", "the sum at"),
        ("'' + ''" + " + ''" * 20 + " == ''", "up to 20 times"),
        (f"[{ONES}].exists(x, {' || '.join(['x == 2'] * 90)})", "a long list is gone through with a long condition"),
        (f"([{ONES}]).all(x, x == 1 || x == 3 || x == 4)", "a long list"),
        ("operations.exists(operations, true)", "has a meaning already"),
        ("operations.exists(x, x.keyElements.exists(x, true))", "has a meaning already"),
    ],
)
def test_use_that_takes_long_is_refused(text: str, why: str) -> None:
    with pytest.raises(RefusedError) as refused:
        LogExpression.parse(text)

    assert why in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "'a' in entry.keyElements && entry.keyElements == ['a', 'n'] && ['a'] == entry.namespaceElements",
        "size(entry.keyElements) == 2 && entry.keyElements.size() == 2 && entry.keyElements[0] == 'a'",
        "entry.keyElements.exists(e, size(entry.keyElements) == 2 && entry.keyElements[1] == e)",
        "['a', 'b'].exists(x, entry.key.startsWith(x + '.'))",
        "entry.namespace + '.' + entry.name == 'a.n' && string(size(entry.name)) + 'x' == '1x'",
        "has(entry.name) && (entry['name'] == 'n' || 'b' in entry.keyElements)",
    ],
)
def test_lists_and_sums_are_used_where_they_are_cheap(text: str) -> None:
    assert EntryExpression.parse(text).chooses(entry("a", "n"))


def test_estimate_grows_with_what_is_written_out() -> None:
    short, long = (EntryExpression.parse(f"[{','.join(['1'] * count)}].exists(x, x == 2)") for count in (3, 900))

    assert short.program.micros < 20 < 200 < long.program.micros


def test_names_may_cross_in_two_comprehensions() -> None:
    text = "operations.exists(x, x.exists(y, true)) && operations.exists(y, y.exists(x, true))"

    assert named_fields(read_tokens(text), "operations") is None
    assert not LogExpression.parse(text).chooses(commit())


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{1,100}){1,100}){1,100}",
        r"\pL{10}",
        "." * 150,
        "(?i)" + "a" * 400,
        "') || entry.name.matches(r'".join(["a" * 60] * 20),
        r"[\W\S]{9}",
        "a{5000}",
    ],
)
def test_pattern_that_takes_long_is_refused(pattern: str) -> None:
    with pytest.raises(RefusedError, match="takes too long"):
        EntryExpression.parse(f"entry.name.matches(r'{pattern}')")


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(\w|\w\w)*!$", r".*.*.*.*x", r"(\s*\d*\w*)*-"])
def test_pattern_takes_no_longer_for_an_adverse_name(pattern: str) -> None:
    expression, name = EntryExpression.parse(f"entry.name.matches(r'{pattern}')"), entry("a" * 490 + "-")
    started = time.process_time()

    expression.chooses(name)

    assert time.process_time() - started < 0.5  # a backtracking engine needs years


@pytest.mark.parametrize(
    ("pattern", "spelled"),
    [
        (r"\w+\.", r"[0-9A-Za-z_]+\."),
        (r"[\w-]\D", r"[0-9A-Za-z_-][^0-9]"),
        (r"\\w[]\w]", r"\\w[]0-9A-Za-z_]"),
        (r"[^\W]", r"[^\W]"),
    ],
)
def test_classes_of_a_pattern_mean_ascii(pattern: str, spelled: str) -> None:
    assert ascii_pattern(pattern) == spelled


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("entry.name == 'x' && entry.namespaceElements.exists(e, e == entry.key)", {"name", "namespaceElements", "key"}),
        ("entry['name'] == 'x' || entry.key == 'y'", None),
        ("[entry].exists(e, e.name == 'x')", None),
        ("true", set()),
    ],
)
def test_library_is_given_the_fields_that_a_filter_names(text: str, fields: set[str] | None) -> None:
    named = named_fields(read_tokens(text), "entry")

    assert named == (None if fields is None else frozenset(fields))


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("operations.exists(op, op.type == 'x') && operations.all(op, op.keyElements.exists(e, e == op.name))", "type keyElements name"),
        ("operations.exists(op, op.content.type == 'x') && operations.size() == 1", "content size"),
        ("operations.exists(op, op['type'] == 'x')", None),
        ("operations.exists(op, [op].exists(o, o.type == 'x'))", None),
        ("operations[0].type == 'x'", None),
        ("size(operations) == 1", None),
    ],
)  # fmt: skip
def test_elements_are_cut_to_what_a_filter_names(text: str, fields: str | None) -> None:
    assert named_fields(read_tokens(text), "operations") == (None if fields is None else frozenset(fields.split()))
