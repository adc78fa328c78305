"""For each bound in the schemas, a value that keeps it and one that does not, with what is said of that one."""

from __future__ import annotations

from typing import Any, NamedTuple


class Bound(NamedTuple):
    """``kept`` and ``broken`` stand at ``path``; ``says`` is the beginning of what is told, without the path."""

    kind: str
    path: str
    keyword: str
    kept: Any
    broken: Any
    says: str


def _short(text: str) -> str:
    return f'Invalid value: "{text}": '


_EMPTY = _short("")
_ONE_CHARACTER = "in body should be at least 1 chars long"
_LONGEST_DURATION = "00001d000001h00000001m0000000001s0000000000001ms"
_LONGEST_CRON = "0 3 * *" + " " * 92 + "0"
_PADDED_CRON = "0 3 * *" + " " * 93 + "0"


def _text(kind: str, path: str, most: int, kept: str, broken: str) -> list[Bound]:
    """A text that must not be empty, and has a longest form."""
    return [
        Bound(kind, path, "minLength", kept, "", _EMPTY),
        Bound(kind, path, "maxLength", kept, broken, f"Too long: may not be more than {most} bytes"),
    ]


def _choice(kind: str, path: str, words: tuple[str, ...]) -> Bound:
    shown = ", ".join(f'"{word}"' for word in words)
    return Bound(kind, path, "enum", words[1], "Other", f'Unsupported value: "Other": supported values: {shown}')


def _count(kind: str, path: str) -> list[Bound]:
    told = path.replace(".[]", "[0]")
    return [
        Bound(kind, path, "minimum", 1, 0, f"Invalid value: 0: spec.{told} in body should be greater than or equal to 1"),
        Bound(
            kind,
            path,
            "maximum",
            1_000_000,
            1_000_001,
            f"Invalid value: 1000001: spec.{told} in body should be less than or equal to 1000000",
        ),
    ]


def _properties(kind: str) -> list[Bound]:
    many = {f"name{number}": "" for number in range(65)}
    kept = dict(list(many.items())[:64])
    return [
        Bound(kind, "properties", "maxProperties", kept, many, "Too many: 65: must have at most 64 items"),
        Bound(kind, "properties.*", "maxLength", "v" * 1024, "v" * 1025, "Too long: may not be more than 1024 bytes"),
    ]


def _patterns(path: str) -> list[Bound]:
    return [
        Bound("Catalog", path, "maxItems", ["a.*"] * 50, ["a.*"] * 51, "Too many: 51: must have at most 50 items"),
        *_text("Catalog", f"{path}.[]", 500, "p" * 500, "p" * 501),
    ]


def _locations(path: str) -> list[Bound]:
    return _text("Catalog", path, 500, "s3://lake/" + "x" * 490, "s3://lake/" + "x" * 491)


_ONE = {"name": "one", "locations": ["s3://lake/"]}
_RULE = {"maxAge": "5d"}
_KEPT = {"pattern": "*/main", "commits": 1}
_NO_SUBDOMAIN = "spec.{} in body should match '{}'"

_UNKNOWN = 'Unsupported value: "Other": supported values: '


def _many(kind: str, path: str, items: list[Any]) -> list[Bound]:
    """A list of which the last item is too many."""
    told = f"Too many: {len(items)}: must have at most {len(items) - 1} items"
    return [Bound(kind, path, "maxItems", items[:-1], items, told)]


def _named(kind: str, path: str, most: int) -> list[Bound]:
    """A list of blocks that have names."""
    blocks = [{"name": f"n{number}"} for number in range(most + 1)]
    return [*_many(kind, path, blocks), *_text(kind, f"{path}.[].name", 128, "n" * 128, "n" * 129)]


def _key(place: str, most: int) -> list[Bound]:
    """The elements of a key that something is granted on."""
    path, pattern = f"roles.[].grants.[].{place}", r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
    told = f"spec.roles[0].grants[0].{place}"
    return [
        Bound("Catalog", path, "minItems", ["n"], [], f"Invalid value: []: {told} in body should have at least 1 items"),
        *_many("Catalog", path, ["n"] * (most + 1)),
        *_text("Catalog", f"{path}.[]", 498, "n" * 498, "n" * 499),
        Bound("Catalog", f"{path}.[]", "pattern", "a b", "  ", _short("  ") + f"{told}[0] in body should match '{pattern}'"),
    ]


def _pattern(field: str) -> list[Bound]:
    """Names of references, with stars."""
    path, pattern = f"roles.[].grants.[].{field}", "^[A-Za-z0-9*_][A-Za-z0-9*._/-]*$"
    return [
        *_text("Catalog", path, 200, "r" * 200, "r" * 201),
        Bound(
            "Catalog",
            path,
            "pattern",
            "dev/*",
            "a b",
            _short("a b") + _NO_SUBDOMAIN.format(path.replace(".[]", "[0]"), pattern),
        ),
    ]


BOUNDS: list[Bound] = [
    *_text("Realm", "realmId", 128, "A" * 128, "A" * 129),
    _choice("Realm", "state", ("Active", "Inactive")),
    _choice("Realm", "deletionPolicy", ("Retain", "Purge")),
    _choice("Realm", "driftPolicy", ("Correct", "Report")),
    *_text("Realm", "purgeHold", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    *_text("Realm", "retention.content.age", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    *_count("Realm", "retention.content.commits"),
    *_count("Realm", "retention.references.commits"),
    Bound(
        *("Realm", "retention.patterns", "maxItems", [_KEPT] * 32, [_KEPT] * 33),
        "Too many: 33: must have at most 32 items",
    ),
    *_text("Realm", "retention.patterns.[].pattern", 330, "p" * 330, "p" * 331),
    *_count("Realm", "retention.patterns.[].commits"),
    *_text("Realm", "retention.patterns.[].age", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    *_text("Realm", "maintenance.schedule", 100, _LONGEST_CRON, _PADDED_CRON),
    *_text("Realm", "maintenance.timeZone", 64, "Z" * 64, "Z" * 65),
    *_properties("Realm"),
    *_text("Catalog", "realm", 253, "r" * 253, "r" * 254),
    Bound(
        *("Catalog", "realm", "pattern", "acme.eu-1", "Acme"),
        _short("Acme") + _NO_SUBDOMAIN.format("realm", "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
    ),
    *_text("Catalog", "name", 128, "N" * 128, "N" * 129),
    *_locations("storage.baseLocation"),
    Bound(
        *("Catalog", "storage.allowedLocations", "maxItems", ["s3://lake/"] * 50, ["s3://lake/"] * 51),
        "Too many: 51: must have at most 50 items",
    ),
    *_locations("storage.allowedLocations.[]"),
    Bound(
        *("Catalog", "files.places", "maxItems", ["s3://lake/"] * 50, ["s3://lake/"] * 51),
        "Too many: 51: must have at most 50 items",
    ),
    *_locations("files.places.[]"),
    *_text("Catalog", "maintenance.expireSnapshots.schedule", 100, _LONGEST_CRON, _PADDED_CRON),
    *_text("Catalog", "maintenance.reportFiles.schedule", 100, _LONGEST_CRON, _PADDED_CRON),
    Bound(
        *("Catalog", "policies.snapshots", "minItems", [_RULE], []),
        "Invalid value: []: spec.policies.snapshots in body should have at least 1 items",
    ),
    *_many("Catalog", "policies.snapshots", [_RULE | {"branches": f"b{number}"} for number in range(51)]),
    *_text("Catalog", "policies.snapshots.[].branches", 200, "b" * 200, "b" * 201),
    *_text("Catalog", "policies.snapshots.[].maxAge", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    *_count("Catalog", "policies.snapshots.[].minToKeep"),
    *_text("Catalog", "policies.snapshots.[].maxRefAge", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    *_count("Catalog", "policies.metadataFiles.keep"),
    *_text("Catalog", "policies.metadataFiles.maxAge", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    *_text("Catalog", "policies.fileCollection.grace", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    *_text("Catalog", "policies.fileCollection.delay", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    *_text("Catalog", "policies.fileCollection.hold", 50, _LONGEST_DURATION, "0" * 50 + "s"),
    _choice("Catalog", "policies.fileCollection.mode", ("off", "report")),
    *_text("Catalog", "defaultBranch", 200, "b" * 200, "b" * 201),
    Bound(
        *("Catalog", "imports", "maxItems"),
        [_ONE | {"name": f"n{number}"} for number in range(20)],
        [_ONE | {"name": f"n{number}"} for number in range(21)],
        "Too many: 21: must have at most 20 items",
    ),
    *_text("Catalog", "imports.[].name", 63, "n" * 63, "n" * 64),
    Bound(
        *("Catalog", "imports.[].name", "pattern", "first-1", "First"),
        _short("First") + _NO_SUBDOMAIN.format("imports[0].name", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    ),
    Bound(
        *("Catalog", "imports.[].locations", "minItems", ["s3://lake/"], []),
        "Invalid value: []: spec.imports[0].locations in body should have at least 1 items",
    ),
    Bound(
        *("Catalog", "imports.[].locations", "maxItems", ["s3://lake/"] * 20, ["s3://lake/"] * 21),
        "Too many: 21: must have at most 20 items",
    ),
    *_locations("imports.[].locations.[]"),
    _choice("Catalog", "imports.[].mode", ("once", "sync")),
    *_text("Catalog", "imports.[].schedule", 100, _LONGEST_CRON, _PADDED_CRON),
    *_patterns("imports.[].include"),
    *_patterns("imports.[].exclude"),
    *_text("Catalog", "imports.[].path", 500, "{table}" + "p" * 493, "{table}" + "p" * 494),
    Bound(
        *("Catalog", "imports.[].namespace", "maxItems", ["n"] * 19, ["n"] * 20),
        "Too many: 20: must have at most 19 items",
    ),
    *_text("Catalog", "imports.[].namespace.[]", 498, "n" * 498, "n" * 499),
    *_locations("imports.[].inventory"),
    _choice("Catalog", "imports.[].verify", ("metadata", "manifests", "files")),
    Bound(
        *("Catalog", "imports.[].tolerate", "maxItems", ["Invalid"] * 3, ["Invalid"] * 4),
        "Too many: 4: must have at most 3 items",
    ),
    _choice("Catalog", "imports.[].tolerate.[]", ("BadManifest", "Inconsistent", "Invalid")),
    _choice("Catalog", "imports.[].gone", ("report", "drop")),
    _choice("Catalog", "deletionPolicy", ("Retain", "Purge")),
    *_properties("Catalog"),
    *_named("Realm", "principals", 100),
    *_many("Realm", "principals.[].roles", [f"r{number}" for number in range(101)]),
    *_text("Realm", "principals.[].roles.[]", 128, "r" * 128, "r" * 129),
    *_named("Realm", "roles", 100),
    Bound("Realm", "roles.[].privileges", "maxItems", [], ["TASK_READ"] * 51, "Too many: 51: must have at most 50 items"),
    Bound("Realm", "roles.[].privileges.[]", "enum", "TASK_READ", "Other", _UNKNOWN),
    *_named("Catalog", "roles", 50),
    *_many("Catalog", "roles.[].grantedTo", [f"r{number}" for number in range(51)]),
    *_text("Catalog", "roles.[].grantedTo.[]", 128, "r" * 128, "r" * 129),
    Bound(
        *("Catalog", "roles.[].grantedTo.[]", "pattern", "a@b", "a b"),
        _short("a b") + _NO_SUBDOMAIN.format("roles[0].grantedTo[0]", "^[A-Za-z0-9_][A-Za-z0-9._@-]*$"),
    ),
    *_many("Catalog", "roles.[].grants", [{"privileges": ["TABLE_LIST"]}] * 51),
    Bound(
        *("Catalog", "roles.[].grants.[].privileges", "minItems", ["TABLE_LIST"], []),
        "Invalid value: []: spec.roles[0].grants[0].privileges in body should have at least 1 items",
    ),
    Bound(
        *("Catalog", "roles.[].grants.[].privileges", "maxItems", ["TABLE_LIST"], ["TABLE_LIST"] * 51),
        "Too many: 51: must have at most 50 items",
    ),
    Bound("Catalog", "roles.[].grants.[].privileges.[]", "enum", "TABLE_LIST", "Other", _UNKNOWN),
    *_key("namespace", 19),
    *_key("table", 20),
    *_key("view", 20),
    *_pattern("reference"),
    *_pattern("references"),
    *_many("Catalog", "connection.roles", [f"r{number}" for number in range(51)]),
    *_text("Catalog", "connection.roles.[]", 128, "r" * 128, "r" * 129),
    *_text("Catalog", "connection.uri", 500, "https://" + "a" * 492, "https://" + "a" * 493),
    *_text("Catalog", "connection.secretName", 253, "s" * 253, "s" * 254),
    Bound(
        *("Catalog", "connection.secretName", "pattern", "lake.eu-1", "Lake"),
        _short("Lake") + _NO_SUBDOMAIN.format("connection.secretName", "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
    ),
]
