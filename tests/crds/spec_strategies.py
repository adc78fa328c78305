"""Specs that are right, nearly right and wrong, as people and generators write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

Anything = st.SearchStrategy[Any]

WRONG_TYPES = st.sampled_from([None, True, 0, 7, -1, 1.5, 3.0, "", " ", "text", [], ["text"], [None], {}, {"name": "text"}])
"""What stands where something else belongs. Null is nothing at all in both readers."""


def _mostly(right: Anything) -> Anything:
    return st.integers(0, 11).flatmap(lambda number: WRONG_TYPES if number == 0 else right)


def _texts(alphabet: str, most: int = 8) -> Anything:
    return st.text(alphabet, max_size=most)


def _joined(pieces: Iterable[str], *, most: int = 6, by: str = "") -> Anything:
    return st.lists(st.sampled_from(list(pieces)), max_size=most).map(by.join)


def _a_few(base: dict[str, Any], **fields: Anything) -> Anything:
    """The base with up to two of the fields, so that one fault does not hide what is made of the others."""
    names = st.sets(st.sampled_from(sorted(fields)), max_size=2)
    drawn = names.flatmap(lambda chosen: st.fixed_dictionaries({name: _mostly(fields[name]) for name in sorted(chosen)}))
    return drawn.map(lambda some: {**base, **some})


def _block(**fields: Anything) -> Anything:
    return st.fixed_dictionaries({}, optional={name: _mostly(value) for name, value in fields.items()})


DURATIONS = st.one_of(
    _joined(["0", "1", "30", "75", "074", "1000", "99999", "d", "h", "m", "s", "ms", ".", " "]),
    st.tuples(
        *(st.sampled_from(["", f"0{unit}", f"1{unit}", f"75{unit}", f"36500{unit}", f"99999{unit}"]) for unit in "dhms"),
        st.sampled_from(["", "1ms", "75000ms", "3153600000001ms"]),
    ).map("".join),
)
_NUMBERS = ["*", "0", "1", "05", "7", "12", "23", "24", "28", "59", "60", "L", "jan", "MON", "-1", "x", ""]
_TERMS = st.builds(
    lambda first, second, step: first + (f"-{second}" if second else "") + (f"/{step}" if step else ""),
    st.sampled_from(_NUMBERS),
    st.sampled_from(["", "", "2", "30", "FRI", "dec"]),
    st.sampled_from(["", "", "2", "0", "15"]),
)
_FIELDS = st.lists(_TERMS, min_size=1, max_size=2).map(",".join)
SCHEDULES = st.one_of(
    st.lists(_FIELDS, min_size=5, max_size=5).map(" ".join),
    st.lists(st.sampled_from(["*", "0", "1", "3-5", "*/2"]), min_size=4, max_size=6).map(" ".join),
    st.sampled_from(["@daily", "weekly", "0 3 * * 5L", "0 3 * * MON#2", "0 3 LW * *", "0 0 31 2 *", "* * * * 5-1"]),
)
ZONES = st.one_of(
    st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3", "Berlin", "Europe/Atlantis"]),
    _joined(["Europe", "UTC", "/", "Berlin", " ", "+", "..", "é"]),
)
LOCATIONS = st.builds(
    lambda scheme, rest: scheme + rest,
    st.sampled_from(
        ["s3://", "s3://", "gs://bucket/", "file:///", "file://", "S3://", "hdfs://host:80/", "./", "/", "", "s3:/"]
    ),
    _joined(["bucket", "/", ".", "..", "a", "user", ":", "@", "?", "#", "$", "{", " ", "\u00a0", "%20", "é" * 120, "x" * 240]),
)
BRANCHES = st.one_of(
    _texts("ab9_-./ é", 6), st.sampled_from(["main", "HEAD", "head", "Detached", "0123456789abcdef", "b" * 201])
)
_COMMITS = st.sampled_from([0, 1, 100, 1_000_000, 1_000_001, -5])
_PROPERTIES = st.dictionaries(
    st.sampled_from(["owner", "a/b.c", "é", " ", "n" * 253]), _mostly(_texts("ab \t\u00a0é", 4)), max_size=3
)
_FLAGS = st.booleans()
_POLICIES = st.sampled_from(["Retain", "Purge", "Purge", "Delete"])

_NAMED = st.sampled_from(["reader", "root", "service_admin", "connection.lake", "a@b", "_a", "-a", "é", "r" * 129, "writer"])
_REALM_ROLE = _block(name=_NAMED, privileges=st.lists(st.sampled_from(["TASK_READ", "TABLE_LIST", "REFERENCE_LIST", "TASK"])))
_PRINCIPAL = _block(name=_NAMED, roles=st.lists(_NAMED, max_size=2), disabled=_FLAGS)
REALM_SPECS = _a_few(
    {},
    realmId=_texts("aB9_-:. é", 5) | st.sampled_from(["acme", "::system::", "a" * 128, "a" * 129]),
    state=st.sampled_from(["Active", "Inactive", "active"]),
    deletionPolicy=_POLICIES,
    deletionProtection=_FLAGS,
    driftPolicy=st.sampled_from(["Correct", "Report", "Ignore"]),
    purgeHold=DURATIONS,
    retention=_block(
        content=_block(age=DURATIONS, commits=_COMMITS),
        references=_block(commits=_COMMITS),
        patterns=st.lists(_mostly(_block(pattern=_texts("ab*/ [é", 4), commits=_COMMITS, age=DURATIONS)), max_size=2),
    ),
    maintenance=_block(schedule=SCHEDULES, timeZone=ZONES, suspend=_FLAGS),
    properties=_PROPERTIES,
    principals=st.lists(_mostly(_PRINCIPAL), max_size=2),
    roles=st.lists(_mostly(_REALM_ROLE), max_size=2),
)
_PATTERNS = st.lists(_mostly(_texts("ab.* \u2003", 4)), max_size=2)
_PATHS = st.one_of(
    _joined(["{table}", "{table}", "{namespace}", "{table/}", ".db", "/", "a", "**", "*", "{", "}", "{X/}", "\n", " "]),
    st.sampled_from(["{namespace}.db/{table}", "{table}", "**/{b_1/}/{table}", "{table}" + "p" * 494]),
)
_IMPORT = _a_few(
    {"name": "first", "locations": ["s3://lake/"]},
    name=_texts("ab9-A", 3),
    locations=st.lists(_mostly(LOCATIONS), max_size=2),
    mode=st.sampled_from(["once", "sync", "sync", "always"]),
    include=_PATTERNS,
    exclude=_PATTERNS,
    path=_PATHS,
    namespace=st.lists(_mostly(_joined(["a", "b c", ".", " ", "\t", "é" * 300])), max_size=3),
    inventory=LOCATIONS,
    verify=st.sampled_from(["metadata", "manifests", "files", "all"]),
    tolerate=st.lists(st.sampled_from(["Invalid", "BadManifest", "Corrupt"]), max_size=4),
    gone=st.sampled_from(["report", "drop", "keep"]),
)
_FOLLOWING = _a_few({"name": "second", "locations": ["s3://lake/"], "mode": "sync"}, schedule=SCHEDULES, include=_PATTERNS)
_KEYS = st.lists(_mostly(_joined(["a", "b c", ".", " ", "\t", "é" * 300])), max_size=3)
_REFERENCES = st.sampled_from(["*", "main", "dev/*", "a b", "/", "é", "x" * 201])
_GRANT = _a_few(
    {"privileges": ["CATALOG_LIST"]},
    privileges=st.lists(
        st.sampled_from(["TABLE_LIST", "VIEW_LIST", "REFERENCE_LIST", "CATALOG_DROP", "TASK_READ"]), max_size=2
    ),
    namespace=_KEYS,
    table=_KEYS,
    view=_KEYS,
    reference=_REFERENCES,
    references=_REFERENCES,
)
_CATALOG_ROLE = _a_few(
    {"name": "reader"}, name=_NAMED, grantedTo=st.lists(_NAMED, max_size=2), grants=st.lists(_mostly(_GRANT), max_size=2)
)
_CONNECTION = _a_few(
    {"roles": ["reader"]},
    roles=st.lists(_NAMED, max_size=2),
    uri=st.sampled_from(["http://a:80", "https://a.b/c", "ftp://a", "https://", "http://a b", "https://a?b"]),
    secretName=_texts("ab9-.A", 4),
)
_SNAPSHOT_RULE = _block(
    branches=_texts("ab*/ \té", 3) | st.sampled_from(["*", "b" * 201]),
    maxAge=DURATIONS,
    minToKeep=_COMMITS,
    maxRefAge=DURATIONS,
)
_WORK = _a_few({}, schedule=SCHEDULES, suspend=_FLAGS)
CATALOG_SPECS = _a_few(
    {"realm": "acme", "storage": {"baseLocation": "s3://lake/"}},
    realm=st.sampled_from(["acme.eu", "Acme", "a b", "r" * 254]),
    storage=st.fixed_dictionaries({"baseLocation": _mostly(LOCATIONS)})
    | st.lists(LOCATIONS, max_size=2).map(lambda some: {"baseLocation": "s3://lake/", "allowedLocations": some}),
    name=_texts("aB9_-. /é", 5) | st.sampled_from(["lake", "n" * 128, "n" * 129]),
    defaultBranch=BRANCHES,
    imports=st.lists(_mostly(_IMPORT | _FOLLOWING), max_size=2),
    files=st.lists(LOCATIONS, max_size=2).map(lambda some: {"places": some}),
    maintenance=_a_few({}, expireSnapshots=_WORK, reportFiles=_WORK),
    policies=_a_few(
        {},
        snapshots=st.lists(_mostly(_SNAPSHOT_RULE), max_size=2),
        metadataFiles=_block(keep=_COMMITS, maxAge=DURATIONS),
        fileCollection=_block(
            grace=DURATIONS | st.just("23h60m"),
            delay=DURATIONS,
            hold=DURATIONS,
            mode=st.sampled_from(["off", "report", "delete"]),
        ),
    ),
    roles=st.lists(_mostly(_CATALOG_ROLE), max_size=2),
    connection=_CONNECTION,
    deletionPolicy=_POLICIES,
    deletionProtection=_FLAGS,
    properties=_PROPERTIES,
)
NAMES = st.sampled_from(["acme", "acme", "acme", "acme.eu", "n" * 128, "n" * 129])
