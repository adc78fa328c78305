"""For each rule in the schemas, specs that keep it, and specs that do not, with the line that a person is told of those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from defined_kinds import placed


class Sample(NamedTuple):
    """One rule: the path at which it stands, and the line that is told of each broken spec, with ``...`` for the value."""

    kind: str
    path: str
    says: str
    kept: Sequence[Any]
    broken: Sequence[Any]
    name: str = "acme"
    before: Any = None


def _at(kind: str, path: str, says: str, kept: Sequence[Any], broken: Sequence[Any]) -> Sample:
    """A rule about the value at the path, which is told."""
    parts = tuple(path.split("."))
    where = "spec." + path.replace(".[]", "[0]").replace(".*", "[x]")
    specs = [[placed(kind, parts, value) for value in values] for values in (kept, broken)]
    return Sample(kind, f"spec.{path}", f"{where}: {says}", *specs)


def _durations(path: str, kind: str = "Realm") -> list[Sample]:
    kept = ["30d", "24h", "1h30m", "90s", "75000ms", "2d3h4m5s6ms", "036500d"[-5:]]
    shape = "must be a duration such as 30d, 24h, 1h30m or 90s: whole numbers, each unit at most once, the largest first"
    wrong = ["soon", "30 days", "30", "d", "1.5h", "-1h", "30m1h", "1h1h", "30D", "1w", " 30d", "30d\n", "999999d"]
    too_long = ["36501d", "36500d1ms", "99999d", "3153600001s"]
    return [
        _at(kind, path, f"Invalid value: ...: {shape}", kept, wrong),
        _at(kind, path, "Invalid value: ...: must not be longer than a hundred years", [*kept, "36500d"], too_long),
    ]


def _schedules(kind: str, path: str) -> list[Sample]:
    def sample(says: str, kept: Sequence[str], broken: Sequence[str]) -> Sample:
        return _at(kind, path, f"Invalid value: ...: {says}", kept, broken)

    def field(place: str, says: str, kept: str, broken: str) -> Sample:
        """Words for one of the fields, where the others are stars."""
        return sample(says, *([place.replace("_", word) for word in words.split()] for words in (kept, broken)))

    numbers = "must be *, or numbers from {}, ranges and steps of them"
    return [
        sample(
            'must have five fields: minute, hour, day of month, month and day of week, for example "0 3 * * 0"',
            ["0 3 * * 0", "0  3 * * 0"],
            ["weekly", "@daily", "0 3 * *", "0 3 * * 0 2026", " 0 3 * * 0", "0 3 * * 0 "],
        ),
        field(
            "_ * * * *",
            "the first field, the minute, " + numbers.format("0 to 59"),
            "0 59 05 */15 0,30 5-10 5-50/10 5/15 *,3",
            "60 */0 a -1 1- 1,,2 5-60 1.5 MON",
        ),
        field(
            "* _ * * *",
            "the second field, the hour, " + numbers.format("0 to 23"),
            "0 23 */6 8-18 8,12,18 08",
            "24 25 */0 8-24 1,25 L",
        ),
        field(
            "* * _ * *",
            "the third field, the day of month, " + numbers.format("1 to 31") + ", or L or LW",
            "1 31 */2 1,15 1-15 L lw",
            "0 32 1-32 W JAN",
        ),
        field(
            "* * * _ *",
            "the fourth field, the month, must be *, or numbers from 1 to 12 or names such as JAN, ranges and steps of them",
            "1 12 */3 JAN jan-mar JAN,JUL 2-10/2",
            "0 13 MON 1-13 January",
        ),
        field(
            "* * * * _",
            "the fifth field, the day of week, must be *, or numbers from 0 to 7 or names such as SUN, ranges and steps of them",
            "0 7 mon-fri MON,WED 1-5/2 5L MON#2 */2",
            "8 0-8 JAN Sunday MON#6 L",
        ),
    ]


def _locations(path: str, field: str, *, is_list: bool) -> list[Sample]:
    """Rules about texts that stand in their parents, so that what may be a password is not told."""
    above = path.rpartition(".")[0]
    where = f"spec.{path.replace('.[]', '[0]')}"

    def sample(says: str, kept: Sequence[str], broken: Sequence[str]) -> Sample:
        specs = [
            [placed("Catalog", tuple(path.split(".")), ["s3://first/", one] if is_list else one) for one in ones]
            for ones in (kept, broken)
        ]
        return Sample("Catalog", f"spec.{above}", f"{where}: {says}", *specs)

    assert path.endswith(field)
    return [
        sample(
            "Forbidden: must not carry a password: give the process that reads it credentials of its own",
            ["s3://user@bucket/", "s3://bucket/a:b@c", "hdfs://host:8020/"],
            ["s3://user:secret@bucket/", "s3://:secret@bucket/x", "abfs://a:b:c@d/"],
        ),
        sample(
            "Invalid value: must be a URL such as s3://bucket/folder/ or file:///folder/, without spaces, variables, query and fragment; "
            "./ works in files only",
            [
                "s3://b",
                "s3://bucket/folder/",
                "file:///folder/",
                "gs://b/c",
                "abfss://c@a.dfs.core.windows.net/x",
                "s3://b/f%20r",
            ],
            [
                *("./tables", "/tables", "tables", "s3:/b", "s3://", "s3:///b", "S3://b", "file://tables", "file:/tables"),
                *("s3://b/a b", "s3://b/a\tb", "s3://b/\u00a0", "s3://b/\u2003", "s3://b/\x01", "s3://b/a?v=1", "s3://b/#a"),
                *("s3://${BUCKET}/", "s3://b/$X", "s3://b/{x}"),
            ],
        ),
        sample(
            "Invalid value: must not have the segments . and .., doubled slashes, backslashes or encoded slashes: write where it leads",
            ["s3://b/...", "s3://b/.a/b./c..d", "s3://b/%2e%2e%2e", "s3://b/c//", "s3://b/%252f"],
            [
                *("s3://b/../c", "s3://b/./c", "s3://b/..", "s3://b/.", "file:///../etc"),
                *("s3://b/%2e%2E/c", "s3://b/.%2e", "s3://b/%2e", "s3://b/a%2Fb", "s3://b/a\\b", "s3://b//c", "file:////x"),
            ],
        ),
        sample("Invalid value: must not have more than 500 bytes", ["s3://b/" + "ä" * 246], ["s3://b/" + "ä" * 247]),
    ]


def _properties(kind: str) -> list[Sample]:
    kept = [{"owner": "me"}, {"empty": ""}, {"n" * 253: "x"}, {"a/b.c": " x "}]
    return [
        _at(kind, "properties", "Invalid value: names must have 1 to 253 characters", kept, [{"": "x"}, {"n" * 254: "x"}]),
        _at(kind, "properties.*", "Invalid value: ...: must not be made of spaces alone", ["", "x"], [" ", "\t\n", "\u00a0"]),
    ]


def _patterns(path: str) -> Sample:
    return _at("Catalog", path, "Invalid value: ...: must not be made of spaces alone", ["a.*"], [" ", "\u2003"])


_BRANCH = "use the characters A-Z a-z 0-9 . _ / -, with a letter, a digit or _ first, no . or / last, and no two of . and / side by side"
_LAKE = placed("Catalog", ("name",), "lake")
_NAMELESS = placed("Catalog", (), {})
_CANNOT = "leave it as it was, and give the other"


def _names(kind: str, path: str) -> list[Sample]:
    """The rules of the name of a principal or a role."""
    is_role = not path.startswith("principals")
    first, broken = ("a letter, a digit or _", []) if is_role else ("a letter or digit", ["_a"])
    own = ["service_admin", "catalog_admin"] if is_role else ["root"]
    told = (
        "this role is Headwater's own, and no manifest changes it: declare a role of another name"
        if is_role
        else "root is every realm's own, and no manifest changes it: declare a principal of another name"
    )
    return [
        _at(
            *(kind, path, f"Invalid value: ...: use letters, digits and . _ @ -, with {first} first"),
            ["etl", "a@b.c", "9-_", *(["_a"] if is_role else [])],
            [".a", "-a", "@a", "a b", "a/b", "é", "a\n", *broken],
        ),
        _at(kind, path, f"Forbidden: {told}", ["Root", "admin"], own),
        _at(
            *(kind, path, "Forbidden: names that begin with connection. belong to the connections of Catalogs"),
            ["connection", "my.connection.a"],
            ["connection.", "connection.lake"],
        ),
    ]


def _granted(grant: dict[str, Any]) -> dict[str, Any]:
    return placed("Catalog", ("roles", "[]", "grants", "[]"), grant)


def _policies() -> list[Sample]:
    rules, log, files = "policies.snapshots.[]", "policies.metadataFiles", "policies.fileCollection"
    fields = [f"{rules}.maxAge", f"{rules}.maxRefAge", f"{log}.maxAge", f"{files}.delay", f"{files}.hold"]
    floor = ["24h", "1d", "23h60m", "86400000ms", "7d"]
    low = ["0s", "23h59m59s999ms", "86399s"]
    return [
        *(sample for field in fields for sample in _durations(field, "Catalog")),
        *(sample._replace(kept=sample.kept[:2]) for sample in _durations(f"{files}.grace", "Catalog")),
        _at(
            *("Catalog", f"{files}.grace"),
            "Invalid value: ...: must be at least 24h: no file goes sooner after its first listing",
            *(floor, low),
        ),
        _at(
            *("Catalog", rules, "Invalid value: says nothing: give maxAge, minToKeep or maxRefAge"),
            *([{"maxAge": "5d"}, {"minToKeep": 1}, {"maxRefAge": "5d"}], [{}, {"branches": "main"}]),
        ),
        _at(
            *("Catalog", log, "Invalid value: says nothing: give keep or maxAge"),
            *([{"keep": 1}, {"maxAge": "5d"}], [{}]),
        ),
        _at(
            *("Catalog", files, "Invalid value: says nothing: give grace, delay, hold or mode"),
            *([{"grace": "1d"}, {"delay": "0s"}, {"hold": "1d"}, {"mode": "off"}], [{}]),
        ),
        _at(
            *("Catalog", f"{rules}.branches", "Invalid value: ...: must not be made of spaces alone"),
            *(["main", "etl/*", "*", " é"], [" ", "\u2003"]),
        ),
        _at(
            *("Catalog", f"{rules}.branches", "Invalid value: ...: must not have control characters"),
            *(["a b"], ["a\tb", "a\n", "a\x1f"]),
        ),
    ]


SAMPLES: list[Sample] = [
    Sample(
        *("Realm", ""),
        "spec.realmId: Required value: the name of this resource is no realm id, which has 1 to 128 of the characters A-Z a-z 0-9 _ -: "
        "write the id here",
        [{"realmId": "acme_eu"}],
        [{}, None],
        name="acme.eu",
    ),
    Sample(
        *("Realm", ""),
        f"spec.realmId: Forbidden: the realm id cannot change: {_CANNOT} realm a resource of its own",
        [{}, {"realmId": "acme"}, {"state": "Inactive"}],
        [{"realmId": "other"}, {"realmId": "Acme"}],
        before={},
    ),
    Sample(
        *("Realm", ""),
        f"spec.realmId: Forbidden: the realm id cannot change: {_CANNOT} realm a resource of its own",
        [{"realmId": "Other"}],
        [{}, {"realmId": "acme"}],
        before={"realmId": "Other"},
    ),
    _at(
        "Realm", "realmId", "Forbidden: ids with '::' belong to Headwater itself", ["system", "a-b_C9"], ["::system::", "a::b"]
    ),
    _at(
        "Realm",
        "realmId",
        "Invalid value: ...: use the characters A-Z a-z 0-9 _ -",
        ["acme"],
        ["a b", "a.b", "a:b", "é", "a\n"],
    ),
    *_durations("purgeHold"),
    _at(
        *(
            "Realm",
            "purgeHold",
            "Invalid value: ...: must be at least 75s: a realm handle's time to live plus a commit's time-out",
        ),
        ["75s", "1m15s", "1m15s1ms", "75000ms", "74s1000ms", "2m", "1h", "1d"],
        ["74s", "1m14s", "74999ms", "74s999ms", "0d", "1m", "0d0h0m0s0ms"],
    ),
    *_durations("retention.content.age"),
    _at(
        *("Realm", "retention.patterns.[].pattern", "Invalid value: ...: must not be made of spaces alone"),
        ["lake/release-*", "*/main", "grants", "a b"],
        [" ", "\u2003"],
    ),
    *_durations("retention.patterns.[].age"),
    *_schedules("Realm", "maintenance.schedule"),
    _at(
        *(
            "Realm",
            "maintenance.timeZone",
            "Invalid value: ...: must be the name of a time zone, for example UTC or Europe/Berlin",
        ),
        ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3", "GMT-0", "America/Port-au-Prince"],
        ["+02:00", "Europe/ Berlin", "Europe/", "/UTC", "Europe\\Berlin", "a/b/c/d", "../UTC"],
    ),
    *_properties("Realm"),
    Sample(
        *("Catalog", ""),
        "spec.name: Required value: the name of this resource is no catalog name, which has at most 128 characters: write the name here",
        [_LAKE],
        [_NAMELESS],
        name="n" * 129,
    ),
    Sample(
        *("Catalog", ""),
        f"spec.name: Forbidden: the name of the catalog cannot change: {_CANNOT} catalog a resource of its own",
        [_NAMELESS, {**_LAKE, "name": "acme"}],
        [_LAKE],
        before=_NAMELESS,
    ),
    Sample(
        *("Catalog", ""),
        f"spec.name: Forbidden: the name of the catalog cannot change: {_CANNOT} catalog a resource of its own",
        [_LAKE],
        [_NAMELESS],
        before=_LAKE,
    ),
    Sample(
        *("Catalog", "spec.realm", "spec.realm: Forbidden: a catalog cannot move to another realm"),
        [{**_LAKE, "storage": {"baseLocation": "s3://other/"}}],
        [{**_LAKE, "realm": "other"}],
        before=_LAKE,
    ),
    _at(
        *("Catalog", "name", "Invalid value: ...: use the characters A-Z a-z 0-9 _ . -, with a letter, a digit or _ first"),
        ["lake", "Lake_1.2-x", "_x", "9"],
        [".x", "-x", "a b", "a/b", "a::b", "é"],
    ),
    *_locations("storage.baseLocation", "baseLocation", is_list=False),
    *_locations("storage.allowedLocations", "allowedLocations", is_list=True),
    _at(
        *("Catalog", "defaultBranch", f"Invalid value: ...: {_BRANCH}"),
        ["main", "feature/x-1", "_a", "v1.2", "a-"],
        [".a", "/a", "-a", "a/", "a.", "a//b", "a..b", "a/.b", "a b", "é"],
    ),
    _at(
        *("Catalog", "defaultBranch", "Invalid value: ...: HEAD, DETACHED and 16 hex digits are no names of branches"),
        ["heads", "0123456789abcde", "0123456789abcdeg"],
        ["HEAD", "head", "Detached", "0123456789abcdef", "0123456789ABCDEF"],
    ),
    Sample(
        *("Catalog", "spec.imports.[]"),
        "spec.imports[0].schedule: Forbidden: an import of mode once has no schedule: write mode: sync, or take the schedule away",
        [placed("Catalog", ("imports", "[]", "schedule"), "0 3 * * *")],
        [
            placed("Catalog", ("imports", "[]"), {"mode": "once", "schedule": "0 3 * * *"}),
            {**_LAKE, "imports": [{"name": "one", "locations": ["s3://lake/"], "schedule": "0 3 * * *"}]},
        ],
    ),
    Sample(
        *("Catalog", "spec.imports.[]"),
        "spec.imports[0].gone: Forbidden: an import of mode once drops nothing: write mode: sync, or gone: report",
        [placed("Catalog", ("imports", "[]"), {"mode": "sync", "gone": "drop"})],
        [
            placed("Catalog", ("imports", "[]"), {"mode": "once", "gone": "drop"}),
            {**_LAKE, "imports": [{"name": "one", "locations": ["s3://lake/"], "gone": "drop"}]},
        ],
    ),
    *_locations("imports.[].locations", "locations", is_list=True),
    *_schedules("Catalog", "imports.[].schedule"),
    *_locations("files.places", "places", is_list=True),
    *_schedules("Catalog", "maintenance.expireSnapshots.schedule"),
    *_schedules("Catalog", "maintenance.reportFiles.schedule"),
    *_policies(),
    _patterns("imports.[].include.[]"),
    _patterns("imports.[].exclude.[]"),
    _at(
        *("Catalog", "imports.[].path", "Invalid value: ...: must have names in its braces, such as {namespace}.db/{table}"),
        ["{namespace}.db/{table}", "{table}", "lake/{level_1/}/*/{Table}/**/{table}_v2", "a b/{table}\n"],
        ["{}/{table}", "{table", "table}", "{a b}/{table}", "{{table}}", "{1st}/{table}", "{/}/{table}"],
    ),
    _at(
        *("Catalog", "imports.[].path", "Invalid value: ...: must have {table} once, as the last of its names in braces"),
        ["{table}", "{tables}/{table}"],
        ["{namespace}", "tables", "{table}/{table}", "{table}/{partition}", "{table/}", "{table/}/{table}"],
    ),
    _at(
        *("Catalog", "imports.[].path"),
        "Invalid value: ...: must not begin or end with a slash, nor double one: it is matched below the location",
        ["a/.b/{table}", "./{table}", "{namespace}/{table}/tables"],
        ["/{table}", "{table}/", "a//{table}"],
    ),
    _at(
        *("Catalog", "imports.[].namespace.[]", "Invalid value: ...: must not be made of spaces alone"),
        ["lake", "a b"],
        [" ", "\u2003"],
    ),
    _at(
        *("Catalog", "imports.[].namespace.[]", "Invalid value: ...: must be no single dot, and have no control characters"),
        ["lake.eu", "..", "a/b"],
        [".", "a\tb", "a\x7f"],
    ),
    *_locations("imports.[].inventory", "inventory", is_list=False),
    *_properties("Catalog"),
    *_names("Realm", "principals.[].name"),
    *_names("Realm", "roles.[].name"),
    *_names("Catalog", "roles.[].name"),
    Sample(
        *("Catalog", "spec.roles.[].grants.[]"),
        "spec.roles[0].grants[0]: Invalid value: a grant is on one of namespace, table, view, reference, or on the whole catalog "
        "without any",
        [_granted({}), *(_granted({place: ["a"]}) for place in ("namespace", "table", "view")), _granted({"reference": "*"})],
        [_granted({"table": ["a"], "view": ["a"]}), _granted({"namespace": ["a"], "reference": "*"})],
    ),
    Sample(
        *("Catalog", "spec.roles.[].grants.[]"),
        "spec.roles[0].grants[0].references: Forbidden: is for grants on content: the pattern of this one is in reference",
        [_granted({"references": "*"}), _granted({"table": ["a"], "references": "dev/*"})],
        [_granted({"reference": "*", "references": "*"})],
    ),
    _at(
        *(
            "Catalog",
            "connection.uri",
            "Invalid value: ...: must be the URL of a server, for example https://headwater.example.org",
        ),
        ["https://headwater.example.org", "http://10.0.0.1:8181/iceberg", "http://[::1]:80/", "https://a/b-c_d~e.f/"],
        ["headwater.example.org", "ftp://a", "https://", "https://a b", "https://a?b=c", "https://u:p@a/", "https://a/\n"],
    ),
]
