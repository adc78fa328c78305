"""A realm for the console to show: made by the library itself, with branches, a merge, conflicts, tasks, runs, people and odd names."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pyarrow as pa
from structlog.testing import capture_logs

from headwater import Store
from headwater.access import Privilege
from headwater.catalogs import (
    CONTENT,
    Catalog,
    CatalogGrant,
    CatalogRoles,
    Catalogs,
    ContentKey,
    ContentType,
    ContentValue,
    DeltaLakeTable,
    Namespace,
    Put,
    RefKind,
)
from headwater.catalogs.registry import content_reference
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.commits import Commit
from headwater.index import IndexLimits, NewIndex
from headwater.jobs import COLLECT, FSCK, REPORT_FILES, submit_catalog_task
from headwater.realms import (
    RealmRegistry,
    assign_principal_role,
    bootstrap,
    create_principal,
    create_principal_role,
    grant_on_realm,
    hash_credentials,
    list_principal_roles,
    new_credentials,
    told_client_id,
)
from headwater.store import ObjectId
from headwater.tasks import LeaseExpiry, TaskQueue
from headwater_workers.task_executor import execute_task

REALM, LAKE, BIG, ODD = "acme", "lake", "big", "odd"
SCRIPT = "<script>window.hacked=1</script>"
RIGHT_TO_LEFT = "\u202eמכירות"
LONG = "n" * 480
EMOJI = "🦆🌊"
ODD_NAMES = (SCRIPT, '"><img src=x onerror=window.hacked=1>', RIGHT_TO_LEFT, LONG, EMOJI, "a.b", "50% off/tax", "..")
READER_PRIVILEGES = (
    Privilege.REFERENCE_READ_HISTORY,
    Privilege.NAMESPACE_READ_PROPERTIES,
    Privilege.TABLE_READ_DATA,
    Privilege.CATALOG_READ_PROPERTIES,
)
UNIQUE = UUID("f0e1d2c3-b4a5-4697-8879-6a5b4c3d2e1f")
_SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("customer", pa.string()), pa.field("note", pa.large_string())]
)


@dataclass
class ShownLake:
    """
    credentials   the client id and the secret of each principal
    """

    store: Store
    folder: Path
    credentials: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def registry(self) -> RealmRegistry:
        return RealmRegistry(self.store)

    @property
    def catalogs(self) -> Catalogs:
        return Catalogs(self.registry.open_realm(REALM))

    def begin(self, realm: str = REALM) -> None:
        """A realm with nobody but root."""
        made = new_credentials()
        self.registry.create_realm(realm)
        bootstrap(self.registry, realm, hash_credentials(made))
        self.credentials["root"] = (told_client_id(realm, made.client_id), made.client_secret)

    def furnish(self) -> None:
        self.begin()
        for name in (LAKE, ODD):
            self.catalogs.create_catalog(name, base_location=(self.folder / name).as_uri())
        self._fill_lake()
        self._fill_odd()
        self._add_administrator("chief")
        self._add_principal("ann", "analyst", READER_PRIVILEGES)
        self._run_tasks()

    def work(self, *tasks: ObjectId) -> None:
        """Do what a worker would."""
        with capture_logs():
            for task in tasks:
                execute_task(self.store, task, LeaseExpiry(None), owner="worker-1", is_stopping=lambda: False)

    def client(self, branch: str = "", *, catalog: str = LAKE) -> HeadwaterCatalog:
        named = {"branch": branch} if branch else {}
        return HeadwaterCatalog.on(self.store, realm=REALM, catalog=catalog, author="ada", **named)

    @property
    def orphan(self) -> Path:
        """A file in the folder of a table that no snapshot refers to."""
        location = self.client().load_table("sales.orders").location()
        return Path(location.removeprefix("file://")) / "data" / "forgotten.parquet"

    def fill_big(self, tables: int) -> Catalog:
        """A catalog of so many tables in a thousand namespaces, written as one commit straight through the index."""
        self.catalogs.create_catalog(BIG, base_location="s3://big/")
        catalog, rows = self.catalogs.open_catalog(BIG), self.registry.open_realm(REALM)
        [object_id] = rows.new_ids(1)
        space, table = (
            bytes(ContentValue(kind, UNIQUE, bytes(16), object_id).to_value().data)
            for kind in (ContentType.NAMESPACE, ContentType.ICEBERG_TABLE)
        )
        before, behind = table.split(
            UNIQUE.bytes
        )  # ids of their own: stripes of the same bytes take ten times as long to divide
        data, each = {}, tables // 1000
        for number in range(1000):
            key = ContentKey.of(f"space_{number:03}")
            data[key.to_index()] = space
            prefix, first = key.child_prefix(), number * each
            data.update(
                (prefix + b"table_%06d" % at, before + at.to_bytes(16, "big") + behind) for at in range(first, first + each)
            )
        limits = IndexLimits(embedded_bytes=rows.settings.index_embedded_bytes, stripe_bytes=rows.settings.index_stripe_bytes)
        stored = NewIndex(data, dict.fromkeys(data, object_id)).stored(rows.new_ids, limits)
        [commit_id] = rows.new_ids(1)
        commit = Commit(
            seq=1, time=rows.clock.now(), properties={"catalog": catalog.definition.id}, indexes={CONTENT: stored.container}
        )
        rows.write_objects([(object_id, Namespace()), *stored.objects, (commit_id, commit)])
        main = content_reference(catalog.definition.id, RefKind.BRANCH, "main")
        rows.advance_reference(rows.read_reference(main, fresh=True), commit_id)
        return catalog

    def _fill_lake(self) -> None:
        main, lake = self.client(), self.catalogs.open_catalog(LAKE)
        for space in ("sales", "people", "web"):
            main.create_namespace(space)
        main.create_namespace("sales.eu")
        orders = main.create_table("sales.orders", _SCHEMA)
        for rows in (10, 2000, 20):
            orders.append(_rows(rows))
        main.create_table("sales.returns", _SCHEMA)
        main.create_table("people.staff", _SCHEMA).append(_rows(5))
        lake.create_tag("v1")
        for branch in ("dev", "hotfix", "experiment"):
            lake.create_branch(branch)
        hotfix = self.client("hotfix")
        hotfix.create_table("web.visits", _SCHEMA).append(_rows(30))
        main.load_table("people.staff").append(_rows(7))
        lake.merge("hotfix")
        dev = self.client("dev")
        dev.load_table("sales.orders").append(_rows(40))
        dev.load_table("sales.returns").append(_rows(2))
        dev.create_table("sales.eu.vat", _SCHEMA).append(_rows(3))
        main.load_table("sales.orders").append(_rows(50))
        main.load_table("sales.returns").append(_rows(1))
        self.client("experiment").create_table("web.clicks", _SCHEMA).append(_rows(100))

    def _fill_odd(self) -> None:
        odd = self.catalogs.open_catalog(ODD)
        spaces = [Put(ContentKey.of(name), Namespace()) for name in ODD_NAMES]
        tables = [Put(ContentKey.of(name, f"t {name[:12]}"), DeltaLakeTable()) for name in ODD_NAMES]
        odd.commit("main", [*spaces, *tables], message=f"add {SCRIPT} and {RIGHT_TO_LEFT} and {LONG}", authors=[SCRIPT])
        odd.create_branch("b-" + LONG[:100])

    def _add_administrator(self, name: str) -> None:
        """Somebody with the role that root has."""
        made = new_credentials()
        create_principal(self.registry, REALM, name, hash_credentials(made))
        assign_principal_role(self.registry, REALM, "service_admin", name)
        self.credentials[name] = (told_client_id(REALM, made.client_id), made.client_secret)

    def _add_principal(self, name: str, role: str, privileges: tuple[Privilege, ...]) -> None:
        """Somebody who may see tasks, and has a role of the lake on all of its branches."""
        made = new_credentials()
        create_principal(self.registry, REALM, name, hash_credentials(made))
        create_principal_role(self.registry, REALM, f"{role}s")
        assign_principal_role(self.registry, REALM, f"{role}s", name)
        grant_on_realm(self.registry, REALM, f"{role}s", Privilege.TASK_READ.value)
        roles = CatalogRoles(self.registry.open_realm(REALM), self.catalogs.read_catalog(LAKE))
        roles.create_role(role)
        roles.put_grants(role, [_grant(privilege) for privilege in privileges])
        principal_role = next(each for each in list_principal_roles(self.registry, REALM) if each.name == f"{role}s")
        roles.assign_role(role, principal_role.entity)
        self.credentials[name] = (told_client_id(REALM, made.client_id), made.client_secret)

    def _run_tasks(self) -> None:
        realm, tasks = self.registry.read_realm(REALM), TaskQueue(self.store)
        self.orphan.write_bytes(b"nobody refers to this")
        submitted = [
            tasks.submit_task(COLLECT, realm=REALM, realm_key=realm.key).id,
            tasks.submit_task(FSCK, realm=REALM, realm_key=realm.key).id,
            submit_catalog_task(self.store, REPORT_FILES, REALM, LAKE).id,
        ]
        self.work(*submitted)
        tasks.submit_task(REPORT_FILES, realm=REALM, realm_key=realm.key, subject="later", due=realm.created + 86_400_000_000)


def _grant(privilege: Privilege) -> CatalogGrant:
    """On all branches, where that can be said."""
    return CatalogGrant(privilege=privilege.value, references="" if privilege.value.startswith("CATALOG") else "*")


def _rows(count: int) -> pa.Table:
    columns = {
        "id": list(range(count)),
        "customer": [f"customer {number % 17}" for number in range(count)],
        "note": [f"{number * 7919:x}" * 40 for number in range(count)],
    }
    return pa.table(columns, schema=_SCHEMA)
