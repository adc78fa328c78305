"""Every screen of the console, and what stands on it when the furnished realm is shown."""

from __future__ import annotations

from typing import NamedTuple

from shown_lake import LAKE, REALM, ShownLake

from headwater.store import id_text
from headwater.tasks import TaskQueue, TaskState

IN_LAKE = ("realms", REALM, "catalogs", LAKE)
TABLE = (*IN_LAKE, "table", "-", "sales.orders")


class Screen(NamedTuple):
    """
    segments      of its place
    shows         texts that stand on it
    """

    segments: tuple[str, ...]
    shows: tuple[str, ...]
    query: dict[str, str] = {}


def all_screens(lake: ShownLake) -> dict[str, Screen]:
    """By name."""
    tasks, in_realm = TaskQueue(lake.store), ("realms", REALM)
    [collection], [check] = (tasks.list_tasks(kind=kind, state=TaskState.SUCCEEDED, limit=1) for kind in ("gc", "fsck"))
    head = lake.catalogs.open_catalog(LAKE).resolve()
    assert head is not None
    orphan = lake.orphan.as_uri()
    return {
        "catalogs": Screen(in_realm, (LAKE, "Active", "New catalog")),
        "tree": Screen(IN_LAKE, ("people", "sales", "web")),
        "search": Screen((*IN_LAKE, "tree", "-"), ("sales.orders", "1 found"), {"q": "ORD", "match": "substring"}),
        "schema": Screen(TABLE, ("customer", "long", "required", "not partitioned")),
        "snapshots": Screen(TABLE, ("+2,000", "Append", "current"), {"tab": "snapshots"}),
        "branches of a table": Screen(TABLE, ("main", "always"), {"tab": "refs"}),
        "files by size": Screen(TABLE, ("4 files", "2,080 rows"), {"tab": "files"}),
        "history": Screen(TABLE, ("create table sales.orders", "Created", "ada"), {"tab": "history"}),
        "references": Screen((*IN_LAKE, "refs"), ("dev", "hotfix", "v1", "default", "4 ahead, 4 behind")),
        "commits": Screen((*IN_LAKE, "commits"), ("append table web.clicks", "experiment", "merge")),
        "commit": Screen((*IN_LAKE, "commit", "@", id_text(head.id)), ("sales.returns", "1 change", "Put")),
        "differences": Screen(
            (*IN_LAKE, "compare"),
            ("sales.eu.vat", "Added", "Merging dev into main", "brings it", "Conflict"),
            {"before": "main", "after": "dev"},
        ),
        "merge": Screen(
            (*IN_LAKE, "merge"), ("2 conflicts", "50 rows added", "40 rows added"), {"source": "dev", "into": "main"}
        ),
        "policies": Screen((*IN_LAKE, "policies"), ("snapshots", "default"), {"key": "sales.orders"}),
        "unused files": Screen((*IN_LAKE, "files"), ("forgotten.parquet", "Could be freed")),
        "file explained": Screen((*IN_LAKE, "files"), ("the file is there", "sales.orders"), {"url": orphan}),
        "catalog roles": Screen((*IN_LAKE, "roles"), ("analyst", "analysts")),
        "grants": Screen((*IN_LAKE, "roles", "analyst"), ("TABLE_READ_DATA", "Revoke")),
        "definition": Screen((*IN_LAKE, "definition"), ("Base location", "Default branch")),
        "tasks": Screen((*in_realm, "tasks"), ("gc", "Succeeded", "Waiting")),
        "task": Screen((*in_realm, "tasks", id_text(collection.id)), ("worker-1", "1 try")),
        "runs": Screen((*in_realm, "runs"), ("gc", "fsck", "Succeeded")),
        "collection": Screen(
            (*in_realm, "runs", f"{id_text(collection.id)}-1"), ("Report", "Save as a file", "What it counted")
        ),
        "check": Screen((*in_realm, "runs", f"{id_text(check.id)}-1"), ("Damage", "Trouble")),
        "checks": Screen((*in_realm, "checks"), ("Check the realm", "The last check")),
        "maintenance": Screen((*in_realm, "maintenance"), ("Nothing is stopped", "Stop maintenance")),
        "principals": Screen((*in_realm, "principals"), ("ann", "root", "Enabled")),
        "principal": Screen((*in_realm, "principals", "ann"), ("analysts", "Rotate credentials")),
        "roles": Screen((*in_realm, "roles"), ("service_admin", "TASK_READ")),
        "role": Screen((*in_realm, "roles", "analysts"), ("TASK_READ", "ann")),
        "access": Screen(
            (*in_realm, "access"),
            ("may not", "TABLE_WRITE_DATA", "analysts"),
            {"principal": "ann", "privilege": "TABLE_WRITE_DATA", "catalog": LAKE, "key": "sales.orders"},
        ),
    }
