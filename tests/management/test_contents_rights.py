"""What is hidden from a caller is told nowhere: not by names, counts, tokens or texts; and is told as what is not there.

The oracle tries grants in the plainest way, and says what lists have to show.
"""

from __future__ import annotations

import base64
import itertools
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from lake_caller import LakeCaller
from managed_office import ManagedOffice
from stocked_lake import appended, delta, put, put_orders

from headwater.access import Privilege
from headwater.catalogs import CatalogGrant, ContentKey, ContentType, ReportRow
from headwater.clock import Micros
from headwater.jobs import IMPORT, Run, record_run
from headwater.jobs.task_runs import ReportWriter
from headwater.store import id_text
from naive_access import GRANTED, NaiveAccess

MAIN = "/references/main"
READER = (
    CatalogGrant(privilege="TABLE_READ_DATA", on="namespace", path=("sales",)),
    CatalogGrant(privilege="REFERENCE_READ_HISTORY", on="reference", references="main"),
)
"""Of tables in sales on main, and of its history: no view, nothing in vault, no other branch."""
HIDDEN = ("vault", "secrets", "top", "returns", "dev", "gone")
_TOKEN = re.compile(r'"nextPageToken": ?"([^"]+)"')
READS = (
    "/references",
    "/references?deleted=true",
    "/references?pageSize=1",
    MAIN,
    f"{MAIN}/log",
    f"{MAIN}/log?pageSize=1",
    f"{MAIN}/log?key=vault.secrets",
    "/graph",
    "/graph?pageSize=1",
    f"{MAIN}/entries",
    f"{MAIN}/entries?pageSize=1",
    f"{MAIN}/entries?parent=sales&pageSize=1",
    f"{MAIN}/search?q=s&match=substring",
    f"{MAIN}/search?q=s&match=substring&pageSize=1",
    f"{MAIN}/search?q=v",
    "/diff?before=main&after=main~1",
    "/diff?before=main~2&after=main&pageSize=1&details=true&merge=true",
    f"{MAIN}/tables/sales.orders/history",
    f"{MAIN}/commits/{{secrets}}",
    "/me",
)


@pytest.fixture(scope="module")
def calm(calm_office: ManagedOffice) -> ManagedOffice:
    return calm_office.stock()


@pytest.fixture(scope="module")
def reader(calm: ManagedOffice) -> LakeCaller:
    return LakeCaller(calm, calm.make_holder("reader", lake=READER))


def told(text: str) -> str:
    """A text with what its tokens tell whoever takes them apart: behind their seals, and from piece to piece."""
    pieces = [piece for token in _TOKEN.findall(text) for at in (0, 24) for piece in token[at:].split(".")]
    opened = [base64.urlsafe_b64decode(piece + "=" * (-len(piece) % 4)) for piece in pieces if len(piece) % 4 != 1]
    return text + " ".join(each.decode("latin-1") for each in opened)


@pytest.mark.parametrize("path", READS)
def test_hidden_things_are_told_nowhere(calm: ManagedOffice, reader: LakeCaller, path: str) -> None:
    answer = reader.ask("GET", path.replace("{secrets}", calm.lake.secrets))
    text = told(answer.content.decode()).replace(path, "")

    assert answer.status in (200, 403), answer.content
    assert not [word for word in (*HIDDEN, calm.lake.dev) if word in text]


def test_merge_is_not_previewed_for_who_sees_a_part(calm: ManagedOffice, reader: LakeCaller) -> None:
    path, root = "/diff?before=main~2&after=main&merge=true", LakeCaller(calm, calm.token("root"))
    pages = [caller.get(path) for caller in (reader, root)]

    assert [page["mergeGap"] for page in pages] == ["HIDDEN_CONTENTS", None]
    assert [{each["merge"] for each in page["differences"]} for page in pages] == [{None}, {"PUT"}]


def test_counts_are_of_what_is_shown(reader: LakeCaller) -> None:
    second = reader.get(f"{MAIN}/log")["commits"][1]
    found = reader.get(f"{MAIN}/search?q=s&match=substring")

    assert (second["changes"], second["hidden"], second["message"]) == (1, True, "")
    assert ([each["name"] for each in found["entries"]], found["looked"], found["total"]) == (
        ["sales", "sales.orders"],
        None,
        None,
    )
    assert [commit["changes"] for commit in reader.get("/graph")["commits"]] == [0, 1, 0]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/references/{dev}", None),
        ("GET", "/references/{dev}/log", None),
        ("GET", "/references/{dev}/entries", None),
        ("GET", "/references/{dev}/search?q=s", None),
        ("GET", "/references/{dev}/tables/sales.orders", None),
        ("GET", "/graph?ref={dev}", None),
        ("GET", "/diff?before=main&after={dev}", None),
        ("PUT", "/references/{dev}", {"target": "main"}),
        ("DELETE", "/references/{dev}", None),
        ("POST", "/references/{dev}/undelete", None),
        ("POST", "/references/{dev}/merge", {"source": "main"}),
        ("POST", "/references/main/merge", {"source": "{dev}"}),
        ("POST", "/references/main/transplant", {"source": "{dev}", "commits": ["00000000000000ff"]}),
        ("POST", "/references", {"name": "mine", "source": "{dev}"}),
        ("GET", "/references/main/tables/{vault}.secrets", None),
        ("GET", "/references/main/tables/{vault}", None),
        ("GET", "/references/main/tables/sales.{top}", None),
        ("GET", "/references/main/tables/sales.{top}/snapshots", None),
        ("GET", "/references/main/tables/sales.{top}/files", None),
        ("GET", "/references/main/tables/sales.{top}/history", None),
        ("GET", "/references/main/entries?parent={vault}", None),
    ],
)
def test_hidden_thing_is_told_as_a_missing_one(reader: LakeCaller, method: str, path: str, body: Any) -> None:
    def asked(**names: str) -> tuple[int, str]:
        shown = {name: text.format(**names) if isinstance(text, str) else text for name, text in (body or {}).items()}
        answer = reader.ask(method, path.format(**names), shown or None)
        return answer.status, answer.message.replace(names["dev"], "D").replace(names["vault"], "V").replace(names["top"], "T")

    hidden, missing = asked(dev="dev", vault="vault", top="top"), asked(dev="xyz", vault="nopes", top="abc")

    assert hidden == missing and hidden[0] in (403, 404)


def test_commit_of_a_hidden_branch_is_not_found(calm: ManagedOffice, reader: LakeCaller) -> None:
    answers = [reader.ask("GET", f"{MAIN}/commits/{commit}") for commit in (calm.lake.dev, "00000000000000ff")]

    assert [answer.error[0] for answer in answers] == [404, 404]
    assert answers[0].message.replace(calm.lake.dev, "") == answers[1].message.replace("00000000000000ff", "")


@pytest.mark.parametrize(
    "path", ["/references", "/graph", f"{MAIN}/log", f"{MAIN}/entries", f"{MAIN}/search?q=s&match=substring"]
)
def test_token_belongs_to_its_caller(calm: ManagedOffice, reader: LakeCaller, path: str) -> None:
    root, separator = LakeCaller(calm, calm.token("root")), "&" if "?" in path else "?"
    token = root.get(f"{path}{separator}pageSize=1")["nextPageToken"]

    assert reader.ask("GET", f"{path}{separator}pageToken={token}").error == (400, "BadRequestException")
    assert root.ask("GET", f"{path}{separator}pageToken={token}").status == 200


def test_merge_needs_rights_on_both_sides(office: ManagedOffice) -> None:
    office.stock()
    wish, path = {"source": "dev"}, f"{MAIN}/merge"
    makes = CatalogGrant(privilege="TABLE_CREATE")
    reads = CatalogGrant(privilege="TABLE_READ_DATA", references="*")
    callers = {
        name: LakeCaller(office, office.make_holder(name, lake=grants))
        for name, grants in {"maker": (makes,), "reader": (reads,), "both": (makes, reads)}.items()
    }

    assert callers["maker"].ask("POST", path, wish).error[0] == 404
    assert callers["reader"].ask("POST", path, wish).error == (403, "ForbiddenException")
    assert callers["reader"].ask("POST", path, {**wish, "dryRun": True}).error == (403, "ForbiddenException")
    assert callers["both"].post(path, wish)["status"] == "MERGED"


def test_conflict_tells_no_history_to_whoever_may_not_read_it(office: ManagedOffice) -> None:
    office.stock()
    catalog = office.catalogs().open_catalog("lake")
    put_orders(catalog, "main", "hand over", properties={"owner": "bob"})
    put_orders(catalog, "dev", "load", **appended(7))
    grants = (CatalogGrant(privilege="TABLE_WRITE_DATA", references="*"), CatalogGrant(privilege="TABLE_CREATE"))
    history = CatalogGrant(privilege="REFERENCE_READ_HISTORY", on="reference", references="main")
    writer, knower = (
        LakeCaller(office, office.make_holder(name, lake=held))
        for name, held in (("writer", grants), ("knower", (*grants, history)))
    )
    [[blind], [told]] = (
        caller.post(f"{MAIN}/merge", {"source": "dev", "dryRun": True})["conflicts"] for caller in (writer, knower)
    )

    assert [len(side["changes"]) for side in (blind["ours"], blind["theirs"])] == [0, 0]
    assert [len(side["changes"]) for side in (told["ours"], told["theirs"])] == [1, 0]
    assert blind["ours"]["commit"] is None and blind["ours"]["isComplete"] is False
    assert blind["theirs"]["summary"]["added-records"] == "7"


def test_page_of_an_import_names_tables_to_who_may_manage_them(office: ManagedOffice) -> None:
    task, now = office.tasks["acme"], office.clock.now()
    run = Run(kind=IMPORT, realm="acme", subject="lake/by hand", started=now, finished=Micros(now + 1), task=task, attempt=2)
    record_run(office.store, run)
    report = ReportWriter(office.store, task, 2)
    report.add_row(
        ReportRow(key=("hush", "table"), directory="s3://x", outcome="quarantined", code="CORRUPT", message="broken")
    )
    report.finish_report()
    path = f"/realms/acme/runs/{id_text(task)}-2/report"
    manager = office.make_holder("manager", Privilege.TASK_READ, lake=(CatalogGrant(privilege="CATALOG_MANAGE_METADATA"),))
    whole, general = (office.call("GET", path, token=token) for token in (manager, office.token("ann")))

    assert (whole.status, general.status) == (200, 200)
    assert b"hush.table" in whole.content and b"hush" not in general.content


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedOffice]:
    """An office whose lake has tables below both of its namespaces, on both branches."""
    office = ManagedOffice.opened(tmp_path_factory.mktemp("crowded") / "keys").stock()
    catalog = office.catalogs().open_catalog("lake")
    keys = [ContentKey.of(*path) for path in itertools.product(("sales", "vault"), ("a", "b", "c"))]
    for branch in ("main", "dev"):
        put(catalog, branch, dict.fromkeys(keys, delta()), "crowd")
    yield office
    office.close()


@pytest.mark.parametrize("seed", range(12))
def test_lists_show_what_the_oracle_says(crowded: ManagedOffice, seed: int) -> None:
    chance = random.Random(seed)
    catalog = crowded.catalogs().open_catalog("lake")
    contents = {
        branch: {entry.key.elements: (kind_of(entry.type), entry.content_id) for entry in catalog.entries(branch).entries}
        for branch in ("main", "dev")
    }
    grants = [random_grant(chance, contents["main"]) for _ in range(3)]
    oracle = NaiveAccess(grants, contents)
    caller = LakeCaller(crowded, crowded.make_holder(f"random-{seed}", lake=tuple(grants)))

    for branch in contents:
        if not oracle.reaches(branch):
            assert caller.ask("GET", f"/references/{branch}/entries").error[0] == 404
            continue
        seen = sorted(path for path, (kind, at) in contents[branch].items() if is_listed(oracle, kind, path, at, branch))
        for size in (1, 100):
            assert shown(caller, f"/references/{branch}/search?q=.&match=substring", size) == [p for p in seen if len(p) > 1]
            assert shown(caller, f"/references/{branch}/entries", size) == [path for path in seen if len(path) == 1]
        for path, (kind, _) in contents[branch].items():
            wanted = oracle.refusal(f"{kind.upper()}_READ_PROPERTIES", kind, path, branch)
            assert caller.ask("GET", f"/references/{branch}/tables/{'.'.join(path)}").status == (wanted or 200), path


def kind_of(content_type: object) -> str:
    return {ContentType.NAMESPACE: "namespace", ContentType.ICEBERG_VIEW: "view"}.get(content_type, "table")  # type: ignore[call-overload]


def is_listed(oracle: NaiveAccess, kind: str, path: tuple[str, ...], content_id: Any, branch: str) -> bool:
    if kind == "namespace":
        return oracle.is_shown(path, branch)
    return oracle.holds(f"{kind.upper()}_LIST", kind, path, branch, content_id=content_id)


def shown(caller: LakeCaller, path: str, size: int) -> list[tuple[str, ...]]:
    return [tuple(each["key"]) for page in caller.pages(path, size=size) for each in page["entries"]]


def random_grant(chance: random.Random, contents: dict[tuple[str, ...], tuple[str, Any]]) -> CatalogGrant:
    privilege, references = chance.choice(GRANTED), chance.choice(("", "*", "dev"))
    kinds = {"TABLE": "table", "VIEW": "view", "NAMESPACE": "namespace"}
    own = kinds.get(privilege.partition("_")[0])
    on = chance.choice(["catalog", *(["namespace"] if own else []), *([own] if own else [])])
    paths = [path for path, (kind, _) in contents.items() if kind == on]
    if on == "catalog" or not paths:
        return CatalogGrant(privilege=privilege, references=references)
    path = chance.choice(paths)
    if on != "namespace" and chance.random() < 0.5:
        return CatalogGrant(privilege=privilege, on=on, content_id=contents[path][1], references=references)
    return CatalogGrant(privilege=privilege, on=on, path=path, references=references)
