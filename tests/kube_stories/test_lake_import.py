"""A lake that exists already is taken into a catalog, from a manifest to the command line, though a worker dies on the way."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from stories import Story, catalog_body, realm_body

from headwater.store import ObjectId, Store
from headwater.tasks import AttemptEnd, TaskQueue
from kube_fixtures import Installation
from kubetest import Namespace, Operator, Worker, wait_for

pytestmark = pytest.mark.long
WAREHOUSE = Path(__file__).parents[2] / "examples" / "warehouse.py"
COPIES = 300
"""Of one table, so that there is a middle to be hit."""


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """The example's tables, one of them broken, the remains of a dropped one, and many copies of the metadata of another."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    list(runpy.run_path(str(WAREHOUSE))["make_warehouse"](folder))
    first = folder / "sales" / "orders"
    text = max((first / "metadata").glob("*.metadata.json")).read_text()
    for number in range(COPIES):
        copy = folder / "copies" / f"orders_{number}"
        (copy / "metadata").mkdir(parents=True)
        named = text.replace(first.as_uri(), copy.as_uri()).replace(json.loads(text)["table-uuid"], str(uuid4()))
        (copy / "metadata" / "v1.metadata.json").write_text(named)
    return folder


@pytest.fixture
def store(installation: Installation) -> Iterator[Store]:
    with installation.open_store() as opened:
        yield opened


def headwater(installation: Installation, *arguments: str) -> Any:
    """What `headwater` prints, as a value."""
    command = [sys.executable, "-m", "headwater", "-o", "json", *arguments]
    done = subprocess.run(command, env=installation.environment, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def of_import(body: dict[str, Any]) -> dict[str, Any]:
    """How the only import of a Catalog gets on."""
    (one,) = body.get("status", {}).get("imports") or [{}]
    return dict(one)


@pytest.mark.rare(2)
def test_lake_is_imported_though_its_worker_is_killed(
    *,
    installation: Installation,
    namespace: Namespace,
    store: Store,
    warehouse: Path,
    operator: Callable[..., Operator],
    worker: Callable[..., Worker],
) -> None:
    story = Story(namespace, store, "acme")
    operator()
    doomed = worker(IMPORT_BATCH="1")
    imports = [{"name": "initial", "locations": [warehouse.as_uri()]}]
    storage = {"baseLocation": warehouse.as_uri()}
    namespace.apply(realm_body("acme"), catalog_body("lake", "acme", storage=storage, imports=imports))
    asked = namespace.wait_until("Catalog", "lake", lambda body: of_import(body).get("task"))
    task = ObjectId(int(of_import(asked)["task"], 16))
    wait_for(lambda: (done := TaskQueue(store).read_task(task).value.progress) is not None and done.done > 0)
    doomed.kill()
    worker()

    ended = of_import(namespace.wait_until("Catalog", "lake", lambda body: of_import(body).get("lastResult"), seconds=60))
    listed = headwater(installation, "catalog", "tables", "acme/lake")["items"]
    tables = [entry for entry in listed if entry["type"] == "ICEBERG_TABLE"]
    assert [attempt.outcome for attempt in TaskQueue(store).read_task(task).value.attempts] == [
        AttemptEnd.LOST,
        AttemptEnd.SUCCEEDED,
    ]
    assert (ended["lastResult"], ended["surveyed"], ended["quarantined"]) == ("Succeeded", COPIES + 13, 2)
    assert ended["imported"] + ended["unchanged"] == len(tables) == COPIES + 11
    assert sum(code["tables"] for code in ended["quarantineCodes"]) == 2
    assert story.wait("Catalog", "ImportsHealthy", name="lake")["reason"] == "TablesQuarantined"
    told = dict(namespace.events("lake", kind="Catalog"))
    assert "TablesQuarantined" in told
    assert told["ImportDone"].startswith(f"import initial has run: {len(tables)} tables (")
