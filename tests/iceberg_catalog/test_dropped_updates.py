"""Of two different requests never are both reported as done while an update of one was dropped."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from commits_of_engines import SALES, SCHEMA, added, on, put_on
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.iceberg_catalog import IcebergCatalog, TableCommit, TableCreation

UPDATES = {
    "add 1": lambda table: added(table, 1),
    "add 1 by another list": lambda table: _listed(added(table, 1), "other"),
    "add 2 on 1": lambda table: added(table, 2, parent=1, number=2),
    "main at 1": lambda table: put_on("main", 1),
    "main at 2": lambda table: put_on("main", 2),
    "dev at 1": lambda table: put_on("dev", 1),
    "main at 1, kept": lambda table: put_on("main", 1) | {"min-snapshots-to-keep": 5},
    "owner ann": lambda table: {"action": "set-properties", "updates": {"owner": "ann"}},
    "owner bob": lambda table: {"action": "set-properties", "updates": {"owner": "bob"}},
    "no owner": lambda table: {"action": "remove-properties", "removals": ["owner"]},
    "no dev": lambda table: {"action": "remove-snapshot-ref", "ref-name": "dev"},
}
REQUIREMENTS = {"main is new": on("main", None), "main is at 1": on("main", 1), "dev is new": on("dev", None)}


def in_order(names: Iterable[str]) -> list[str]:
    """Snapshots first, as every engine sends them."""
    return sorted(names, key=lambda name: (not name.startswith("add"), name))


words = st.lists(st.sampled_from(sorted(UPDATES)), min_size=1, max_size=4, unique=True).map(in_order)
requests = st.tuples(st.lists(st.sampled_from(sorted(REQUIREMENTS)), max_size=1), words)
_numbers = itertools.count(1)


def _listed(update: dict[str, Any], name: str) -> dict[str, Any]:
    snapshot = update["snapshot"]
    return update | {"snapshot": snapshot | {"manifest-list": f"{snapshot['manifest-list']}.{name}"}}


def held(document: Mapping[str, Any], update: Mapping[str, Any]) -> bool:
    """Whether a table shows an update; a ref may be further on by now."""
    properties, refs = document.get("properties", {}), document.get("refs", {})
    snapshots = {entry["snapshot-id"]: entry for entry in document.get("snapshots", [])}
    match update["action"]:
        case "add-snapshot":
            return snapshots.get(update["snapshot"]["snapshot-id"]) == update["snapshot"]
        case "set-properties":
            return update["updates"].items() <= properties.items()
        case "remove-properties":
            return "owner" not in properties
        case "remove-snapshot-ref":
            return update["ref-name"] not in refs
    ref = refs.get(update["ref-name"], {})
    line, at = [], ref.get("snapshot-id")
    while at in snapshots:
        line.append(at)
        at = snapshots[at].get("parent-snapshot-id")
    return update["snapshot-id"] in line and ref.get("min-snapshots-to-keep") == update.get("min-snapshots-to-keep")


def final_updates(commit: TableCommit) -> list[Mapping[str, Any]]:
    """Of several updates of the same thing the last one."""
    return list({_subject(update): update for update in commit.updates}.values())


def _subject(update: Mapping[str, Any]) -> str:
    if "snapshot" in update:
        return str(update["snapshot"]["snapshot-id"])
    return str(update.get("ref-name", "properties"))


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)
@given(first=requests, more=st.one_of(requests, words.map(lambda added: (None, added))))
def test_no_update_of_a_request_that_is_reported_as_done_is_dropped(lake: IcebergCatalog, first: Any, more: Any) -> None:
    """The second request is another one, or the first with updates more."""
    table = lake.tables.create(TableCreation(key=SALES.child(f"t{next(_numbers)}"), schema=SCHEMA))
    second = more if more[0] is not None else (first[0], in_order({*first[1], *more[1]}))

    for names, updates in (first, second):
        commit = TableCommit(table.key, [REQUIREMENTS[name] for name in names], [UPDATES[each](table) for each in updates])
        before = lake.tables.load(table.key).document
        try:
            lake.tables.commit(commit)
        except HeadwaterError:
            assert lake.tables.load(table.key).document == before
        else:
            after = lake.tables.load(table.key).document
            assert [update for update in final_updates(commit) if not held(after, update)] == []
