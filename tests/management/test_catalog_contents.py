"""What is in a catalog, as management tells it: references, commits, the graph, entries, tables, differences and merges."""

from __future__ import annotations

from typing import Any

import pytest
from lake_caller import LakeCaller
from managed_office import ManagedOffice
from stocked_lake import ORDERS, appended, delta, put, put_orders

from headwater.catalogs import CommitMeta, ContentKey, Delete, DeltaLakeTable, Namespace, Put, RefKind
from headwater.realms import RealmRegistry
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import id_of
from headwater_server.management.contents.content_shapes import MOST_PREVIEWED_CHANGES

MAIN = "/references/main"
RETURNS = ContentKey.of("sales", "returns")


@pytest.fixture
def lake(open_office: ManagedOffice) -> LakeCaller:
    return LakeCaller(open_office.stock())


def hashes(commits: list[Any]) -> list[str]:
    return [commit["hash"] for commit in commits]


def open_lake(lake: LakeCaller) -> Any:
    return lake.office.catalogs().open_catalog("lake")


def test_references_tell_where_they_are(lake: LakeCaller) -> None:
    stock = lake.office.lake
    dev, main = lake.get("/references")["references"]

    assert (dev["name"], dev["head"], dev["ahead"], dev["behind"]) == ("dev", stock.dev, 1, 1)
    assert (dev["commonAncestor"], dev["isDefault"], dev["kind"]) == (stock.orders, False, "branch")
    assert (main["name"], main["head"], main["ahead"], main["commits"]) == ("main", stock.secrets, None, 3)
    assert main["lastCommit"]["message"] == "hide secrets" and main["lastCommit"]["hidden"] is False
    assert lake.get("/references/-") == main and lake.get(MAIN) == main


def test_references_come_in_pages_of_a_kind(lake: LakeCaller) -> None:
    lake.post("/references", {"name": "v1", "kind": "tag"}, status=201)

    assert lake.names("/references", of="references", size=1) == ["dev", "main", "v1"]
    assert lake.names("/references?kind=tag", of="references", size=1) == ["v1"]


def test_deleted_reference_comes_back(lake: LakeCaller) -> None:
    stock = lake.office.lake
    [gone] = lake.get("/references?deleted=true")["references"]
    back = lake.post("/references/gone/undelete", None)

    assert (gone["name"], gone["head"]) == ("gone", stock.secrets) and gone["deletedAt"]
    assert (back["head"], back["deletedAt"]) == (stock.secrets, None)
    assert lake.get("/references?deleted=true")["references"] == []


def test_reference_is_put_at_another_commit(lake: LakeCaller) -> None:
    stock = lake.office.lake
    wrong = lake.ask("PUT", "/references/dev", {"target": "main", "expected": stock.orders})
    moved = lake.ask("PUT", "/references/dev", {"target": f"main@{stock.orders}", "expected": stock.dev})

    assert wrong.error == (409, "ConflictException")
    assert moved.data["head"] == stock.orders


def test_default_branch_is_not_deleted(lake: LakeCaller) -> None:
    assert lake.ask("DELETE", MAIN).error == (400, "BadRequestException")
    assert lake.ask("DELETE", f"/references/dev?expected={lake.office.lake.orders}").error[0] == 409
    assert lake.ask("DELETE", "/references/dev").data["head"] == lake.office.lake.dev
    assert lake.names("/references", of="references") == ["main"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/references/nope", 404),
        ("/references/main~1", 400),
        ("/references/main/log?pageToken=x", 400),
        ("/references/main/commits/zz", 400),
        ("/references/main/entries?parent=nope", 404),
        ("/references/main/entries?parent=sales.orders", 404),
        ("/references/main/search?q=a..b", 400),
        ("/references/main/search", 400),
        ("/references/main/tables/nope", 404),
        ("/references/main/tables/sales.orders/files?snapshot=5", 404),
        ("/references/main/tables/sales.orders/files?snapshot=x", 400),
        ("/graph?ref=nope", 404),
        ("/graph?pageToken=x", 400),
        ("/diff?before=main", 400),
        ("/diff?before=main&after=nope", 404),
        ("/files?code=Nope", 400),
    ],
)
def test_wrong_request_is_refused(lake: LakeCaller, path: str, status: int) -> None:
    assert lake.ask("GET", path).error[0] == status


def test_log_comes_in_pages_to_its_beginning(lake: LakeCaller) -> None:
    stock, pages = lake.office.lake, lake.pages(f"{MAIN}/log", size=2)

    assert [hashes(page["commits"]) for page in pages] == [[stock.secrets, stock.orders], [stock.namespaces]]
    assert [page["end"] for page in pages] == [None, "BEGINNING"]
    assert [each["name"] for each in pages[0]["commits"][1]["operations"]] == ["sales.orders", "sales.top"]


def test_log_of_a_key_has_its_commits(lake: LakeCaller) -> None:
    page = lake.get(f"{MAIN}/log?key=sales.orders")

    assert (hashes(page["commits"]), page["end"]) == ([lake.office.lake.orders], "BEGINNING")
    assert lake.get(f"{MAIN}/log?key=nope")["commits"] == []


def test_log_graph_and_history_name_the_proven_committer_beside_the_claimed_author(lake: LakeCaller) -> None:
    meta = CommitMeta(message="as somebody else", committer="etl", authors=("root",))
    open_lake(lake).commit("main", [Delete(ORDERS)], meta=meta)
    told = [lake.get(f"{MAIN}/log?pageSize=1")["commits"][0], lake.get("/graph")["commits"][0]]

    assert [(each["committer"], each["authors"]) for each in told] == [("etl", ["root"])] * 2


def test_commit_has_pages_of_operations(lake: LakeCaller) -> None:
    keys = [ContentKey.of("sales", f"t{number:02}") for number in range(12)]
    commit = put(open_lake(lake), "main", dict.fromkeys(keys, delta()), "many")
    pages = lake.pages(f"{MAIN}/commits/{commit}", size=5)
    brief = lake.get(f"{MAIN}/log?pageSize=1")["commits"][0]

    assert [each["key"] for page in pages for each in page["operations"]] == [list(key.elements) for key in keys]
    assert (pages[0]["commit"]["changes"], brief["changes"], len(brief["operations"])) == (12, 12, 10)
    assert lake.ask("GET", f"/references/dev/commits/{commit}").error[0] == 404


def test_graph_has_each_commit_before_its_parents(lake: LakeCaller) -> None:
    stock = lake.office.lake
    merged = lake.post(f"{MAIN}/merge", {"source": "dev"})["head"]
    graph = lake.get("/graph")
    paged = [commit for page in lake.pages("/graph", size=1) for commit in page["commits"]]
    order = hashes(graph["commits"])

    assert sorted(order) == sorted([merged, stock.dev, stock.secrets, stock.orders, stock.namespaces])
    for commit in graph["commits"]:
        assert all(order.index(commit["hash"]) < order.index(parent) for parent in commit["parents"])
    assert graph["commits"][0]["parents"] == [stock.secrets, stock.dev]
    assert [(each["name"], each["head"]) for each in graph["references"]] == [("main", merged), ("dev", stock.dev)]
    assert paged == graph["commits"]


def test_graph_begins_at_the_references_that_are_named(lake: LakeCaller) -> None:
    stock = lake.office.lake

    assert hashes(lake.get("/graph?ref=dev")["commits"]) == [stock.dev, stock.orders, stock.namespaces]
    token = lake.get("/graph?pageSize=1")["nextPageToken"]
    lake.ask("DELETE", "/references/dev")
    assert lake.ask("GET", f"/graph?pageToken={token}").error[0] == 400


def test_entries_are_the_children_of_a_namespace(lake: LakeCaller) -> None:
    assert lake.names(f"{MAIN}/entries", size=1) == ["sales", "vault"]
    assert lake.names(f"{MAIN}/entries?parent=sales", size=1) == ["sales.orders", "sales.top"]
    assert lake.names(f"{MAIN}/entries?parent=sales&type=ICEBERG_VIEW") == ["sales.top"]
    [orders, top] = lake.get(f"{MAIN}/entries?parent=sales&details=true")["entries"]
    assert (orders["snapshotId"], top["snapshotId"]) == ("22", None)
    assert orders["metadataLocation"].endswith("/v2.json")


def test_pages_of_entries_are_of_one_commit(lake: LakeCaller) -> None:
    first = lake.get(f"{MAIN}/entries?parent=sales&pageSize=1")
    put(open_lake(lake), "main", {ContentKey.of("sales", "zebra"): delta()}, "later")
    second = lake.get(f"{MAIN}/entries?parent=sales&pageSize=5&pageToken={first['nextPageToken']}")

    assert [each["name"] for each in second["entries"]] == ["sales.top"]
    assert second["commit"] == first["commit"] == lake.office.lake.secrets


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=sales", ["sales", "sales.orders", "sales.top"]),
        ("q=sales.", ["sales.orders", "sales.top"]),
        ("q=sales.o", ["sales.orders"]),
        ("q=Sales", []),
        ("q=orders", []),
        ("q=ORD&match=substring", ["sales.orders"]),
        ("q=s.o&match=substring", ["sales.orders"]),
        ("q=sales&type=ICEBERG_TABLE", ["sales.orders"]),
        ("q=e&match=substring&type=NAMESPACE", ["sales"]),
    ],
)
def test_search_finds_keys(lake: LakeCaller, query: str, found: list[str]) -> None:
    assert lake.names(f"{MAIN}/search?{query}", size=1) == lake.names(f"{MAIN}/search?{query}") == found


def test_search_says_how_far_it_came(lake: LakeCaller) -> None:
    first, second = lake.pages(f"{MAIN}/search?q=s&match=substring", size=2)

    assert (first["isComplete"], first["searchedTo"], first["looked"], first["total"]) == (False, "sales.orders", 2, 5)
    assert (second["isComplete"], second["searchedTo"], second["looked"]) == (True, None, 3)


def test_search_goes_on_where_nothing_was_found(lake: LakeCaller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater_server.management.contents.entry_resources.LOOKED_AT", 2)
    pages = lake.pages(f"{MAIN}/search?q=secrets&match=substring", size=10)

    assert [len(page["entries"]) for page in pages] == [0, 0, 1]
    assert [page["searchedTo"] for page in pages] == ["sales.orders", "vault", None]
    assert sum(page["looked"] for page in pages) == pages[0]["total"]


@pytest.mark.parametrize("name", ["a.b", "<script>alert(1)</script>", "\u202eevil", "x" * 400, "50%"])
def test_names_of_any_kind_are_found_again(lake: LakeCaller, name: str) -> None:
    put(open_lake(lake), "main", {ContentKey.of("vault", name): delta()}, "odd")
    [entry] = [each for each in lake.get(f"{MAIN}/entries?parent=vault")["entries"] if each["key"] == ["vault", name]]
    path = "".join(f"%{byte:02X}" for byte in entry["name"].encode())

    assert lake.get(f"{MAIN}/tables/{path}")["key"] == ["vault", name]
    assert lake.names(f"{MAIN}/search?q={path}") == [entry["name"]]


def test_table_tells_its_metadata(lake: LakeCaller) -> None:
    table = lake.get(f"{MAIN}/tables/sales.orders")

    assert (table["type"], table["formatVersion"], table["properties"]) == ("ICEBERG_TABLE", 2, {"owner": "ada"})
    assert [each["schema-id"] for each in table["schemas"]] == [table["currentSchemaId"]] == [0]
    assert table["partitionSpecs"][0]["fields"][0]["transform"] == "month"
    assert (table["defaultSortOrderId"], len(table["sortOrders"])) == (1, 2)
    assert (table["currentSnapshotId"], table["snapshots"]) == ("22", 2)
    assert [(ref["name"], ref["type"], ref["snapshotId"]) for ref in table["refs"]] == [
        ("main", "branch", "22"),
        ("old", "tag", "11"),
    ]


def test_view_and_namespace_tell_what_they_have(lake: LakeCaller) -> None:
    view, space = (lake.get(f"{MAIN}/tables/{name}") for name in ("sales.top", "sales"))

    assert (view["currentVersionId"], view["currentSchemaId"]) == (2, 0)
    assert view["versions"][1]["representations"][0]["dialect"] == "trino"
    assert (space["type"], space["properties"], space["schemas"]) == ("NAMESPACE", {}, [])


def test_snapshots_come_newest_first(lake: LakeCaller) -> None:
    pages = lake.pages(f"{MAIN}/tables/sales.orders/snapshots", size=1)
    [new], [old] = (page["snapshots"] for page in pages)

    assert (new["snapshotId"], new["parentId"], new["operation"], new["isCurrent"]) == ("22", "11", "append", True)
    assert (old["snapshotId"], old["refs"], old["isCurrent"]) == ("11", ["old"], False)


def test_history_follows_a_table_through_its_names(lake: LakeCaller) -> None:
    catalog = open_lake(lake)
    moved = ContentKey.of("vault", "orders")
    catalog.commit("main", [Delete(ORDERS), Put(moved, catalog.get_content("main", ORDERS))], message="move")
    pages = lake.pages(f"{MAIN}/tables/vault.orders/history", size=1)
    changes = [change for page in pages for change in page["changes"]]

    assert [(each["action"], each["name"], each["renamedFrom"]) for each in changes] == [
        ("RENAMED", "vault.orders", "sales.orders"),
        ("CREATED", "sales.orders", None),
    ]
    assert pages[-1]["end"] == "BEGINNING"


def test_files_that_cannot_be_read_are_told(lake: LakeCaller) -> None:
    files = lake.get(f"{MAIN}/tables/sales.orders/files")

    assert (files["isComplete"], files["data"]) == (False, {"files": 0, "bytes": 0, "records": 0})
    assert files["why"].endswith("snap-22.avro is missing")
    assert (files["sizes"][0]["fromBytes"], files["sizes"][-1]["belowBytes"]) == (0, None)


def test_differences_have_both_sides(lake: LakeCaller) -> None:
    pages = lake.pages("/diff?before=main&after=dev&details=true", size=1)
    added, removed = (change for page in pages for change in page["differences"])

    assert (added["name"], added["change"], added["before"]) == ("sales.returns", "ADDED", None)
    assert (removed["name"], removed["change"], removed["after"]) == ("vault.secrets", "REMOVED", None)
    assert removed["before"]["type"] == "DELTA_LAKE_TABLE"
    assert pages[0]["beforeCommit"] == lake.office.lake.secrets


def merge_effects(lake: LakeCaller, path: str) -> dict[str, str | None]:
    return {each["name"]: each["merge"] for page in lake.pages(path, size=1) for each in page["differences"]}


def test_differences_report_what_a_merge_would_do(lake: LakeCaller) -> None:
    catalog, clicks = open_lake(lake), ContentKey.of("sales", "clicks")
    catalog.create_branch("trial", "main")
    catalog.commit("main", [Delete(ORDERS)], message="drop orders")
    put(catalog, "main", {RETURNS: DeltaLakeTable(last_checkpoint="z")}, "other returns")
    catalog.commit("trial", [Delete(ContentKey.of("sales", "top")), Put(clicks, delta()), Put(RETURNS, delta())])
    path = "/diff?before=main&after=trial&merge=true"

    assert merge_effects(lake, path) == {
        "sales.clicks": "PUT",
        "sales.orders": "LEFT",
        "sales.returns": "CONFLICT",
        "sales.top": "REMOVED",
    }
    assert lake.get(path)["mergeGap"] is None
    assert set(merge_effects(lake, "/diff?before=main&after=trial").values()) == {None}
    assert lake.get("/diff?before=main&after=trial")["mergeGap"] == "NOT_REQUESTED"


def test_differences_report_why_no_merge_is_previewed(lake: LakeCaller) -> None:
    catalog = open_lake(lake)
    catalog.create_branch("other")
    catalog.refs.assign_ref(RefKind.BRANCH, "other", None)
    put(catalog, "other", {ContentKey.of("a"): Namespace()}, "a history of its own")
    catalog.create_branch("full", "main")
    keys = (ContentKey.of("sales", f"t{number:04}") for number in range(MOST_PREVIEWED_CHANGES + 1))
    put(catalog, "full", dict.fromkeys(keys, delta()), "many")
    pages = {name: lake.get(f"/diff?before=main&after={name}&merge=true&pageSize=1") for name in ("other", "full")}

    assert {name: page["mergeGap"] for name, page in pages.items()} == {
        "other": "NO_COMMON_ANCESTOR",
        "full": "TOO_MANY_CHANGES",
    }
    assert [page["differences"][0]["merge"] for page in pages.values()] == [None, None]


def test_merge_is_simulated_and_made(lake: LakeCaller) -> None:
    stock, path = lake.office.lake, f"{MAIN}/merge"
    tried = lake.post(path, {"source": "dev", "dryRun": True})
    assert lake.get(MAIN)["head"] == stock.secrets
    made = lake.post(path, {"source": "dev", "message": "take returns"})
    again = lake.post(path, {"source": "dev"})

    assert [each["status"] for each in (tried, made, again)] == ["WOULD_MERGE", "MERGED", "UP_TO_DATE"]
    assert (made["base"], made["onto"], made["commits"]) == (stock.orders, stock.secrets, [made["head"]])
    assert made["keys"] == [{"key": ["sales", "returns"], "name": "sales.returns", "mode": "NORMAL", "outcome": "PUT"}]
    assert lake.get(MAIN)["lastCommit"]["message"] == "take returns"


def test_conflict_tells_both_sides(lake: LakeCaller) -> None:
    ours = put(open_lake(lake), "main", {RETURNS: DeltaLakeTable(last_checkpoint="z")}, "other returns")
    told = lake.post(f"{MAIN}/merge", {"source": "dev"})
    [conflict] = told["conflicts"]

    assert (told["status"], told["head"], conflict["kind"]) == ("CONFLICTS", ours, "KEY_EXISTS")
    assert (conflict["ours"]["commit"]["hash"], conflict["theirs"]["commit"]["hash"]) == (ours, lake.office.lake.dev)
    assert conflict["ours"]["entry"]["contentId"] != conflict["theirs"]["entry"]["contentId"]
    assert lake.get(MAIN)["head"] == ours


def test_conflict_tells_what_each_side_did(lake: LakeCaller) -> None:
    catalog = open_lake(lake)
    renamed = put_orders(catalog, "main", "hand over", properties={"owner": "bob"})
    first, second = (
        put_orders(catalog, "dev", word, **appended(*rows)) for word, rows in (("load", [7]), ("load again", [7, 9]))
    )
    [conflict] = lake.post(f"{MAIN}/merge", {"source": "dev", "dryRun": True})["conflicts"]
    ours, theirs = conflict["ours"], conflict["theirs"]

    assert [each["commit"]["hash"] for each in ours["changes"]] == [renamed] == [ours["commit"]["hash"]]
    assert [(each["before"], each["after"]) for each in ours["differences"]] == [("owner=ada", "owner=bob")]
    assert [each["commit"]["hash"] for each in theirs["changes"]] == [second, first]
    assert (theirs["changeCount"], theirs["isComplete"], theirs["summary"]["added-records"]) == (2, True, "9")
    assert [[each["addedRows"] for each in change["snapshots"]] for change in theirs["changes"]] == [[9], [7]]


def test_conflict_is_decided_by_a_mode(lake: LakeCaller) -> None:
    put(open_lake(lake), "main", {RETURNS: DeltaLakeTable(last_checkpoint="z")}, "other returns")
    dropped = lake.post(f"{MAIN}/merge", {"source": "dev", "keys": {"sales.returns": "DROP"}})
    forced = lake.post(f"{MAIN}/merge", {"source": "dev", "keys": {"sales.returns": "FORCE"}})

    assert (dropped["status"], dropped["keys"][0]["outcome"]) == ("UP_TO_DATE", "DROPPED")
    assert (forced["status"], forced["keys"][0]["outcome"]) == ("MERGED", "PUT")


def test_history_goes_through_a_drop_and_its_restore_page_by_page(lake: LakeCaller) -> None:
    catalog, before = open_lake(lake), lake.office.lake.secrets
    catalog.commit("main", [Delete(ORDERS)], message="drop orders")
    rows = RealmRegistry(lake.office.store).open_realm("acme")
    restore_state(rows, id_of(before), RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=id_of(before))))
    pages = lake.pages(f"{MAIN}/tables/sales.orders/history", size=1)
    changes = [each for page in pages for each in page["changes"]]

    assert [each["action"] for each in changes] == ["RESTORED", "DELETED", "CREATED"]
    assert changes[1]["commit"]["message"] == "drop orders"


def test_conflict_with_a_restore_is_marked_and_decided(lake: LakeCaller) -> None:
    before = lake.office.lake.secrets
    lake.post(f"{MAIN}/merge", {"source": "dev"})
    rows = RealmRegistry(lake.office.store).open_realm("acme")
    restore_state(rows, id_of(before), RestoreRequest(reference="lake/main", aim=RestoreTarget(commit=id_of(before))))
    told = lake.post(f"{MAIN}/merge", {"source": "dev"})
    forced = lake.post(f"{MAIN}/merge", {"source": "dev", "keys": {"sales.returns": "FORCE"}})

    assert (told["status"], [each["undone"] for each in told["conflicts"]]) == ("CONFLICTS", [True])
    assert forced["status"] == "MERGED"


def test_transplant_repeats_commits_of_the_source(lake: LakeCaller) -> None:
    stock, path = lake.office.lake, f"{MAIN}/transplant"
    tried = lake.post(path, {"source": "dev", "commits": [stock.dev], "dryRun": True})
    made = lake.post(path, {"source": "dev", "commits": [stock.dev]})

    assert (tried["status"], made["status"], len(made["commits"])) == ("WOULD_MERGE", "MERGED", 1)
    assert lake.get(MAIN)["lastCommit"]["message"] == "try returns"
    assert lake.ask("POST", path, {"source": "dev", "commits": [stock.secrets]}).error[0] == 404


def test_merge_expects_what_its_caller_has_seen(lake: LakeCaller) -> None:
    stock = lake.office.lake

    assert lake.ask("POST", f"{MAIN}/merge", {"source": "dev", "expected": stock.dev}).error[0] == 404
    assert lake.post(f"{MAIN}/merge", {"source": "dev", "expected": stock.orders})["status"] == "MERGED"
