"""Which files a journey through the codebase opens: every file of which a function is called, from its entry point to its end."""

from __future__ import annotations

import gc
import inspect
import json
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

import msgspec
from click.testing import CliRunner

from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, ImportSpec, Put
from headwater.cli import main
from headwater.jobs import COLLECT, IMPORT, SPARK
from headwater.realms import RealmRegistry
from headwater.reconcile import FileCredentials, ManagerIdentity, RealmManifest, reconcile_realm
from headwater.reconcile.manifests import ManifestMetadata, RealmSpec
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, Store, open_store
from headwater.tasks import LeaseExpiry, TaskQueue, TaskState
from headwater_operator.kube import KubeApi
from headwater_operator.metrics.operator_metrics import OperatorMetrics
from headwater_operator.resource.reconciler import Reconciler
from headwater_operator.runtime.informer_cache import ResourceCache, ResourceKey
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.runtime.workqueue import WorkQueue
from headwater_workers.dispatcher import Dispatcher
from headwater_workers.task_executor import TASK_BODIES, execute_task
from kubetest import Namespace

__all__ = [
    "Journey",
    "collection",
    "commit",
    "import_in_own_process",
    "import_task",
    "make_catalog",
    "merge",
    "realm_resource",
    "record_journey",
]

FOLDER = Path(__file__).parents[1]
LAYERS = tuple(f"{FOLDER / layer}/" for layer in ("core", "operator", "server", "workers"))
REALM = RealmId("acme")
GRACE_SECONDS = 3600.0


class Journey:
    """Notes the files of the codebase whose functions are called, in all threads that begin within ``traced``.

    What runs while a module is imported does not count: an import only makes the functions.
    """

    def __init__(self) -> None:
        self._codes: set[object] = set()
        self.files: set[str] = set()

    @contextmanager
    def traced(self) -> Iterator[None]:
        before = sys.getprofile()
        gc.collect()
        gc.disable()  # what earlier tests left is taken down here, not as a part of the journey
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)
            gc.enable()

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or frame.f_code in self._codes:
            return
        code = frame.f_code
        self._codes.add(code)
        if code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(LAYERS):
            self.files.add(code.co_filename.removeprefix(f"{FOLDER}/"))


def record_journey(name: str, journey: Journey) -> None:
    """Add a line to the file that HEADWATER_JOURNEYS names: the journey, and how many files it opens."""
    with Path(os.environ["HEADWATER_JOURNEYS"]).open("a", encoding="utf-8") as found:
        found.write(f"{json.dumps([name, len(journey.files)])}\n")


def commit(catalog: Catalog) -> Journey:
    """One Put of a new table on a catalog that is open, and was committed to before."""
    journey = Journey()
    put(catalog, "main", "orders")
    customers = Put(ContentKey.of("customers"), IcebergTable(metadata_location="s3://lake/customers/v1.json"))
    with journey.traced():
        catalog.commit("main", [customers])
    return journey


def put(catalog: Catalog, branch: str, table: str, version: int = 1) -> None:
    key, location = ContentKey.of(table), f"s3://lake/{table}/v{version}.json"
    content = catalog.get_content(branch, key)
    content_id = None if content is None else content.id
    catalog.commit(branch, [Put(key, IcebergTable(id=content_id, metadata_location=location))])


def make_catalog(store: Store, folder: Path) -> Catalog:
    """The catalog ``lake`` of an ACTIVE realm."""
    reconcile(store, folder)
    realm_store = RealmRegistry(store).open_realm(REALM)
    Catalogs(realm_store).create_catalog("lake", base_location="s3://lake/")
    return Catalogs(realm_store).open_catalog("lake")


def reconcile(store: Store, folder: Path) -> None:
    manifest = RealmManifest(metadata=ManifestMetadata(name=REALM), spec=RealmSpec(realm_id=REALM))
    reconcile_realm(
        store, manifest, credentials=FileCredentials(folder / "credentials"), manager=ManagerIdentity(cluster="here")
    )


def merge(url: str, folder: Path) -> Journey:
    """``headwater catalog merge``, as a process does it from its beginning, but for what it imports."""
    journey = Journey()
    with open_store(url) as store:
        catalog = make_catalog(store, folder)
        put(catalog, "main", "orders")
        for branch in ("first", "second"):
            catalog.create_branch(branch)
            put(catalog, branch, f"customers-{branch}")
        put(catalog, "main", "orders", version=2)
    run_command(url, "catalog", "merge", f"{REALM}/lake", "first")
    with journey.traced():
        run_command(url, "catalog", "merge", f"{REALM}/lake", "second")
    return journey


def run_command(url: str, *arguments: str) -> None:
    result = CliRunner().invoke(main, ["--store", url, *arguments], prog_name="headwater")
    assert result.exit_code == 0, result.output


def realm_resource(namespace: Namespace, store: Store) -> Journey:
    """A new Realm, from the moment at which the operator's queue hands it out until its status says that it is ready."""
    journey = Journey()
    reconcile_resource(namespace, store, "first", Journey())
    reconcile_resource(namespace, store, "second", journey)
    return journey


def reconcile_resource(namespace: Namespace, store: Store, name: str, journey: Journey) -> None:
    api_version = "headwater.dev/v1alpha1"
    api, cache, queue = KubeApi(namespace.cluster.connection), ResourceCache(), WorkQueue[ResourceKey](store.clock)
    settings = OperatorSettings(cluster="here")
    reconciler = Reconciler(store, api, cache, queue, store.settings, settings, OperatorMetrics(), lambda: None)
    body = {"apiVersion": api_version, "kind": "Realm", "metadata": {"name": name}, "spec": {"realmId": name}}
    namespace.cluster.api.patch_resource(namespace.path("Realm", name), body, kind="apply", manager="a-person")
    while namespace.condition("Realm", name, "Ready").get("status") != "True":
        listed = namespace.cluster.api.list_resources(namespace.path("Realm"))
        for key in cache.replace_all("Realm", [{**one, "apiVersion": api_version, "kind": "Realm"} for one in listed]):
            queue.enqueue(key)
        with journey.traced():
            while (taken := queue.take_key(timeout=0)) is not None:
                reconciler.reconcile(taken)
                queue.mark_done(taken)


def collection(store: Store, clock: FakeClock, folder: Path) -> Journey:
    """A collection that a manifest keeps asking for: its task is made, found to be due, sent, claimed and done, and there is garbage."""
    journey = Journey()
    catalog = make_catalog(store, folder)
    for version, run in enumerate((Journey(), journey), 1):
        make_garbage(catalog, clock, version)
        with run.traced():
            reconcile(store, folder)
        (waiting,) = TaskQueue(store).list_tasks(state=TaskState.WAITING, realm=REALM)
        assert waiting.value.kind == COLLECT
        clock.advance((waiting.value.due - clock.now()) / 1e6 + 1)
        with run.traced():
            Dispatcher(store, DoneAtOnce(store), children=1, kinds=TASK_BODIES).step()
        assert TaskQueue(store).read_task(waiting.id).value.state is TaskState.SUCCEEDED
    return journey


class DoneAtOnce:
    """A broker whose messages are handled as they are sent."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def send(self, task_id: ObjectId, token: str | None) -> None:
        do(self._store, task_id, token)

    def count_waiting(self) -> int:
        return 0


def make_garbage(catalog: Catalog, clock: FakeClock, version: int) -> None:
    put(catalog, "main", "orders", version)
    catalog.create_branch("draft")
    put(catalog, "draft", "drafts", version)
    catalog.delete_branch("draft")
    clock.advance(GRACE_SECONDS)


def do(store: Store, task_id: ObjectId, token: str | None = None) -> None:
    execute_task(store, task_id, LeaseExpiry(token), owner="here", is_stopping=lambda: False)


def import_task(warehouse: Path, folder: Path, *, on_spark: bool) -> Journey:
    """The task of an import of a warehouse, on Spark or in the process; of Spark, the driver's side."""
    import_once(warehouse, folder / "first", Settings(spark_master="off"), Journey())
    journey = Journey()
    import_once(warehouse, folder / "second", Settings() if on_spark else Settings(spark_master="off"), journey)
    return journey


def import_in_own_process(warehouse: Path, folder: Path) -> Journey:
    """An import on Spark. It forks, and each store of a process prepares for a fork: here others may have left some open."""
    journey = Journey()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own_process:
        journey.files = own_process.submit(_import_on_spark, warehouse, folder).result()
    return journey


def _import_on_spark(warehouse: Path, folder: Path) -> set[str]:
    return import_task(warehouse, folder, on_spark=True).files


def import_once(warehouse: Path, folder: Path, settings: Settings, journey: Journey) -> None:
    with open_store("memory://", settings=settings) as store:
        catalog = make_catalog(store, folder)
        arguments = {
            "catalog": "lake",
            "catalogId": catalog.definition.id,
            "spec": msgspec.json.decode(msgspec.json.encode(ImportSpec(name="tables", locations=(warehouse.as_uri(),)))),
            **({"engine": SPARK} if settings.spark_master != "off" else {}),
        }
        task = TaskQueue(store).submit_task(IMPORT, realm=REALM, subject="lake/tables", arguments=arguments)
        with journey.traced():
            do(store, task.id)
        assert TaskQueue(store).read_task(task.id).value.state is TaskState.SUCCEEDED
