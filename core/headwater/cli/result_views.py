"""The views of realms, catalogs and references: JSON field names, table columns and their meaning.

Everything here is pure. The names are a contract: ``docs/cli.md`` is made from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.catalogs import CatalogDefinition, CatalogManager, ImportSpec, NamedRef
from headwater.cli.content_views import CHANGE, COMMIT, CONTENT, ENTRY, KEY_CHANGE, MERGE
from headwater.cli.credentials_commands import ROOT
from headwater.cli.report_views import (
    ARCHIVE,
    COLLECTION,
    EXPLANATION,
    FINDING,
    IMPORT,
    LOADED,
    RESTORATION,
    RUN,
    RUN_TYPE,
    STEP,
)
from headwater.cli.result_output import ResultView, ViewField, duration_field, identifier, time_after, time_field
from headwater.cli.task_views import TASK, TASK_FIGURES
from headwater.clock import Micros
from headwater.realms import HistoryRetention, MaintenanceSchedule, Realm, RealmManager
from headwater.reconcile import ReconcileOutcome, RefuseManifest, ReportDrift, WaitUntil


@dataclass(frozen=True, slots=True)
class Versions:
    headwater: str
    python: str


VERSION: ResultView[Versions] = ResultView(
    "version",
    "versions",
    (
        ViewField("headwater", "version of Headwater", lambda v: v.headwater, "HEADWATER"),
        ViewField("python", "version of Python", lambda v: v.python, "PYTHON"),
    ),
)


@dataclass(frozen=True, slots=True)
class StoreRow:
    url: str
    created: bool


STORE: ResultView[StoreRow] = ResultView(
    "store",
    "stores",
    (
        ViewField("url", "URL of the store, without its password", lambda s: s.url, "URL"),
        ViewField("created", "whether it was set up by this command", lambda s: s.created, "CREATED"),
    ),
)


@dataclass(frozen=True, slots=True)
class RealmRow:
    """A realm with the end of its hold."""

    realm: Realm
    held_until: Micros | None


def _retention(retention: HistoryRetention) -> dict[str, Any]:
    return {
        "content": {"age": duration_field(retention.content_age_seconds), "commits": retention.content_commits},
        "references": {"commits": retention.reference_commits},
        "patterns": [
            {"pattern": kept.pattern, "commits": kept.commits, "age": duration_field(kept.age_seconds)}
            for kept in retention.references
        ],
    }


def _maintenance(maintenance: MaintenanceSchedule) -> dict[str, Any]:
    return {"schedule": maintenance.schedule or None, "timeZone": maintenance.time_zone, "suspend": maintenance.suspend}


MANAGER = {
    ".cluster": "empty: manifests in files",
    ".namespace": "of the resource",
    ".name": "of the resource",
    ".uid": "of the resource; empty: manifests in files",
}


def _manager(manager: RealmManager | CatalogManager | None) -> dict[str, Any] | None:
    if manager is None:
        return None
    return {"cluster": manager.cluster, "namespace": manager.namespace, "name": manager.name, "uid": manager.uid}


REALM: ResultView[RealmRow] = ResultView(
    "realm",
    "realms",
    (
        ViewField("id", "what users call the realm", lambda r: r.realm.id, "REALM"),
        ViewField("state", "where it stands in its life", lambda r: r.realm.state.value, "STATE"),
        ViewField("key", "the number that its rows carry", lambda r: identifier(r.realm.key)),
        ViewField("created", "when it was created", lambda r: time_field(r.realm.created), "CREATED"),
        ViewField("updated", "when its definition was last changed", lambda r: time_field(r.realm.updated), "UPDATED"),
        ViewField(
            "entered", "when each state was last entered", lambda r: {s: time_field(t) for s, t in r.realm.entered.items()}
        ),
        ViewField("heldUntil", "an INACTIVE realm cannot be purged before", lambda r: time_after(r.held_until), "HELD UNTIL"),
        ViewField(
            "deletionPolicy", "Retain or Purge, when its resource is deleted", lambda r: r.realm.deletion_policy, "DELETION"
        ),
        ViewField("deletionProtection", "it cannot be purged", lambda r: r.realm.deletion_protection, "PROTECTED"),
        ViewField("driftPolicy", "Correct or Report", lambda r: r.realm.drift_policy),
        ViewField(
            "purgeHold",
            "wait between INACTIVE and PURGING; null is the setting",
            lambda r: duration_field(r.realm.purge_hold_seconds),
        ),
        ViewField(
            "retention",
            "history that it keeps; null is the setting",
            lambda r: _retention(r.realm.retention),
            inside={
                ".content.age": "of content, at least so long",
                ".content.commits": "of content, at least so many commits",
                ".references.commits": "of other references, so many commits",
                ".patterns": "exceptions by the name of the reference: the first that matches decides",
            },
        ),
        ViewField(
            "maintenance",
            "when it is maintained",
            lambda r: _maintenance(r.realm.maintenance),
            inside={
                ".schedule": "a cron expression; null is weekly, spread by realm",
                ".timeZone": "that the schedule is meant in",
                ".suspend": "nothing is done by itself",
            },
        ),
        ViewField("properties", "free names and values", lambda r: dict(r.realm.properties)),
        ViewField(
            "manager", "the resource that looks after it; null: nobody", lambda r: _manager(r.realm.manager), inside=MANAGER
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The rows that a purge would delete."""

    realm: Realm
    held_until: Micros | None
    catalogs: list[str]


PURGE_PLAN: ResultView[PurgePlan] = ResultView(
    "purge plan",
    "purge plans",
    (
        ViewField("id", "the realm", lambda p: p.realm.id),
        ViewField("state", "where it stands in its life", lambda p: p.realm.state.value),
        ViewField("heldUntil", "it cannot be purged before", lambda p: time_after(p.held_until)),
        ViewField("deletionProtection", "it cannot be purged", lambda p: p.realm.deletion_protection),
        ViewField("catalogs", "everything in these goes", lambda p: p.catalogs),
    ),
)


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """A catalog of a realm."""

    realm: str
    definition: CatalogDefinition


def _import(spec: ImportSpec, imported: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": spec.name,
        "locations": list(spec.locations),
        "mode": spec.mode,
        "schedule": spec.schedule,
        "include": list(spec.include),
        "exclude": list(spec.exclude),
        "done": imported.get(spec.name) == spec.digest(),
    }


def _imports(definition: CatalogDefinition) -> list[dict[str, Any]]:
    return [_import(spec, definition.imported) for spec in definition.imports]


CATALOG: ResultView[CatalogRow] = ResultView(
    "catalog",
    "catalogs",
    (
        ViewField("realm", "the realm's id", lambda c: c.realm, "REALM"),
        ViewField("name", "unique in its realm", lambda c: c.definition.name, "CATALOG"),
        ViewField("id", "never used again, also not by a later catalog of the same name", lambda c: c.definition.id),
        ViewField("state", "ACTIVE or DELETED", lambda c: c.definition.state.value),
        ViewField("baseLocation", "where its tables are kept", lambda c: c.definition.base_location, "BASE LOCATION"),
        ViewField("allowedLocations", "other places that tables may lie in", lambda c: list(c.definition.allowed_locations)),
        ViewField(
            "defaultBranch", "the branch that is meant where none is named", lambda c: c.definition.default_branch, "BRANCH"
        ),
        ViewField(
            "imports",
            "tables that lie somewhere already",
            lambda c: _imports(c.definition),
            inside={
                "[].name": "unique in its catalog",
                "[].locations": "where tables are looked for",
                "[].mode": "once or sync",
                "[].schedule": "a cron expression; null: daily, if its mode is sync",
                "[].include": "patterns of the keys that are wanted; empty: all",
                "[].exclude": "patterns of the keys that are not",
                "[].done": "it has been carried out as it stands here",
            },
        ),
        ViewField("properties", "free names and values", lambda c: dict(c.definition.properties)),
        ViewField("created", "when it was created", lambda c: time_field(c.definition.created), "CREATED"),
        ViewField("updated", "when its definition was last changed", lambda c: time_field(c.definition.updated)),
        ViewField("deletionPolicy", "Retain or Purge, when its resource is deleted", lambda c: c.definition.deletion_policy),
        ViewField("deletionProtection", "it cannot be deleted", lambda c: c.definition.deletion_protection),
        ViewField(
            "hold",
            "how long it can come back once deleted; null is the setting",
            lambda c: duration_field(c.definition.hold_seconds),
        ),
        ViewField(
            "heldUntil",
            "a deleted one: it is purged after that; null: being purged",
            lambda c: time_after(c.definition.held_until),
        ),
        ViewField(
            "manager",
            "the resource that looks after it; null: nobody",
            lambda c: _manager(c.definition.manager),
            inside=MANAGER,
        ),
    ),
)


DELETED_CATALOG = CATALOG.with_columns(
    realm="REALM", name="CATALOG", id="ID", baseLocation="BASE LOCATION", updated="DELETED", heldUntil="HELD UNTIL"
)
"""Deleted catalogs, perhaps several of one name: the id identifies the one to undelete."""


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """The content that the deletion of a catalog would remove."""

    realm: str
    definition: CatalogDefinition
    branches: list[str]
    tags: list[str]
    keys: int


DELETION_PLAN: ResultView[DeletionPlan] = ResultView(
    "deletion plan",
    "deletion plans",
    (
        ViewField("realm", "the realm's id", lambda p: p.realm),
        ViewField("name", "the catalog", lambda p: p.definition.name),
        ViewField("deletionProtection", "it cannot be deleted", lambda p: p.definition.deletion_protection),
        ViewField(
            "hold", "how long it can come back; null is the setting", lambda p: duration_field(p.definition.hold_seconds)
        ),
        ViewField("branches", "all these go", lambda p: p.branches),
        ViewField("tags", "all these go", lambda p: p.tags),
        ViewField("keys", "keys on the default branch", lambda p: p.keys),
    ),
)


NAMED_REFERENCE: ResultView[NamedRef] = ResultView(
    "branch or tag",
    "tags",  # a catalog always has a branch
    (
        ViewField("kind", "branch or tag", lambda r: r.kind.value, "KIND"),
        ViewField("name", "unique in its catalog", lambda r: r.name, "NAME"),
        ViewField("hash", "the commit that it points to; null: none yet", lambda r: r.hash, "COMMIT"),
        ViewField("created", "when it was created", lambda r: time_field(r.created), "CREATED"),
    ),
)


@dataclass(frozen=True, slots=True)
class DeletedReference:
    """A branch or tag that can be undeleted. From ``until`` on a collection may remove it."""

    named: NamedRef
    deleted: Micros
    until: Micros


DELETED_REFERENCE: ResultView[DeletedReference] = ResultView(
    "deleted branch or tag",
    "deleted branches or tags",
    (
        ViewField("kind", "branch or tag", lambda r: r.named.kind.value, "KIND"),
        ViewField("name", "unique in its catalog", lambda r: r.named.name, "NAME"),
        ViewField("hash", "the commit that it pointed to; null: none", lambda r: r.named.hash, "COMMIT"),
        ViewField("created", "when it was created", lambda r: time_field(r.named.created), "CREATED"),
        ViewField("deleted", "when it was deleted", lambda r: time_field(r.deleted), "DELETED"),
        ViewField(
            "heldUntil",
            "it can be undeleted until then, and until a collection after that",
            lambda r: time_field(r.until),
            "HELD UNTIL",
        ),
    ),
)


def _wait(wait: WaitUntil) -> dict[str, Any]:
    return {"reason": wait.reason, "message": wait.message, "until": time_after(wait.until)}


NOTICE = {"[].reason": "one word for programs", "[].message": "a sentence for people"}


def _notice(notice: RefuseManifest | ReportDrift) -> dict[str, Any]:
    return {"reason": notice.reason, "message": notice.message}


APPLIED: ResultView[ReconcileOutcome] = ResultView(
    "outcome of a manifest",
    "manifests",
    (
        ViewField("subject", "kind and name of the manifest", lambda o: o.subject),
        ViewField("done", "a sentence for each step that was taken", lambda o: list(o.done)),
        ViewField(
            "waits",
            "what cannot be done yet",
            lambda o: list(map(_wait, o.waits)),
            inside=NOTICE | {"[].until": "then it can be done; null when it is not a matter of time alone"},
        ),
        ViewField("refused", "what will not be done as asked", lambda o: list(map(_notice, o.refused)), inside=NOTICE),
        ViewField(
            "reports", "what a person should know, and is left as it is", lambda o: list(map(_notice, o.reports)), inside=NOTICE
        ),
        ViewField("error", "why it could not be finished", lambda o: None if o.error is None else str(o.error)),
    ),
)


ALL: tuple[ResultView[Any], ...] = (
    APPLIED,
    REALM,
    ROOT,
    PURGE_PLAN,
    ARCHIVE,
    LOADED,
    RESTORATION,
    CATALOG,
    DELETION_PLAN,
    ENTRY,
    CONTENT,
    COMMIT,
    KEY_CHANGE,
    CHANGE,
    MERGE,
    NAMED_REFERENCE,
    DELETED_REFERENCE,
    IMPORT,
    COLLECTION,
    RUN,
    RUN_TYPE,
    EXPLANATION,
    FINDING,
    STEP,
    TASK,
    TASK_FIGURES,
    STORE,
    VERSION,
)
"""Every kind of result, as it is documented."""
