"""The actions that a planner may return, each idempotent, and their descriptions in the words of a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec

from headwater.catalogs import CatalogChanges, CatalogFields
from headwater.clock import Micros
from headwater.policies import KIND_FIELDS, PolicyKind, StoredPolicy
from headwater.realms import RealmFields, RealmManager, RealmState
from headwater.reconcile.access_actions import (
    AccessAction,
    DisablePrincipal,
    EnablePrincipal,
    ProvideConnection,
    ProvidePrincipal,
    RecordAccess,
    RemoveConnection,
    RemoveCredentials,
    RetireConnection,
    RetirePrincipal,
    RotatePrincipal,
)
from headwater.reconcile.manifests import CONFIRM_PURGE
from headwater.settings import duration_text
from headwater.store import ObjectId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CreateRealm:
    fields: RealmFields


@dataclass(frozen=True, slots=True)
class BootstrapRealm:
    """Keep the credentials where a person finds them, then store their hash in the realm."""


@dataclass(frozen=True, slots=True)
class RotateCredentials:
    """Give the root new credentials: kept where a person finds them under this token, then hashed into the realm."""

    token: str


@dataclass(frozen=True, slots=True)
class MoveRealm:
    to: RealmState


@dataclass(frozen=True, slots=True)
class UpdateRealm:
    """Update fields of a realm's definition. ``digest`` is that of the spec that holds once this is done."""

    changes: RealmFields
    digest: str


@dataclass(frozen=True, slots=True)
class AdoptRealm:
    """Take the realm over from its manager, and record in ``annotation`` the ``value`` that requested it.

    annotation    None without a request: the realm belonged to this resource before it was created anew
    """

    manager: RealmManager
    annotation: str | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class DetachRealm:
    """Leave the realm unchanged, without a manager."""


@dataclass(frozen=True, slots=True)
class RemoveRealm:
    """Delete the credentials and the entry of a PURGED realm."""


@dataclass(frozen=True, slots=True)
class RecordHandled:
    """Record that an annotation with this value was acted on; None: the annotation is gone, and may act again."""

    annotation: str
    value: str | None


@dataclass(frozen=True, slots=True)
class SubmitTask:
    kind: str
    due: Micros
    subject: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunTaskNow:
    task: ObjectId
    kind: str


@dataclass(frozen=True, slots=True)
class CancelTask:
    task: ObjectId
    kind: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class CreateCatalog:
    fields: CatalogFields


@dataclass(frozen=True, slots=True)
class CompleteCatalog:
    """Finish an interrupted creation."""


@dataclass(frozen=True, slots=True)
class UpdateCatalog:
    changes: CatalogChanges


@dataclass(frozen=True, slots=True)
class RecordImported:
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class DeclarePolicies:
    """Make the catalog's policies those that are declared; ``kinds`` are the ones that differ."""

    policies: tuple[StoredPolicy, ...]
    kinds: tuple[PolicyKind, ...]


@dataclass(frozen=True, slots=True)
class DeleteCatalog:
    pass


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing more can be done now. ``reason`` is one word for a condition; ``until`` is None unless only time is needed."""

    reason: str
    message: str
    until: Micros | None = None


@dataclass(frozen=True, slots=True)
class RefuseManifest:
    """The request of the manifest is refused."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ReportDrift:
    """A deviation that a person should know, and that is left as it is."""

    reason: str
    message: str


Effect = (
    CreateRealm
    | BootstrapRealm
    | RotateCredentials
    | MoveRealm
    | UpdateRealm
    | AdoptRealm
    | DetachRealm
    | RemoveRealm
    | RecordHandled
    | SubmitTask
    | RunTaskNow
    | CancelTask
    | CreateCatalog
    | CompleteCatalog
    | UpdateCatalog
    | RecordImported
    | DeclarePolicies
    | DeleteCatalog
    | AccessAction
)
Notice = WaitUntil | RefuseManifest | ReportDrift
Action = Effect | Notice


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step that was taken: one word for programs, and a sentence for people.

    subject       names the import, where there is one
    future        what is said where the step is only planned: "create realm acme"; empty for bookkeeping
    """

    reason: str
    message: str
    subject: str = ""
    future: str = ""


REASONS: Mapping[type[Effect], str] = {
    CreateRealm: "RealmCreated",
    BootstrapRealm: "RealmBootstrapped",
    RotateCredentials: "CredentialsRotated",
    MoveRealm: "RealmMoved",
    UpdateRealm: "RealmUpdated",
    AdoptRealm: "RealmAdopted",
    DetachRealm: "RealmDetached",
    RemoveRealm: "RealmDeleted",
    RecordHandled: "Recorded",
    SubmitTask: "TaskRequested",
    RunTaskNow: "TaskRescheduled",
    CancelTask: "TaskCancelled",
    CreateCatalog: "CatalogCreated",
    CompleteCatalog: "CatalogCreated",
    UpdateCatalog: "CatalogUpdated",
    RecordImported: "ImportDone",
    DeclarePolicies: "CatalogUpdated",
    DeleteCatalog: "CatalogDeleted",
    RecordAccess: "Recorded",
    ProvidePrincipal: "PrincipalProvided",
    RetirePrincipal: "PrincipalRetired",
    EnablePrincipal: "PrincipalEnabled",
    DisablePrincipal: "PrincipalDisabled",
    RotatePrincipal: "CredentialsRotated",
    ProvideConnection: "ConnectionProvided",
    RetireConnection: "ConnectionRetired",
    RemoveCredentials: "CredentialsRemoved",
    RemoveConnection: "CredentialsRemoved",
}
"""The word of each kind of step; those that are not here are changes of roles and grants."""


def planned_step(effect: Effect, message: str, future: str = "") -> PlannedStep:
    """The step as it is reported once the effect was carried out. Bookkeeping of a spec or its manager alone is no update."""
    is_note = (isinstance(effect, UpdateRealm) and not effect.changes) or (
        isinstance(effect, UpdateCatalog) and effect.changes.keys() <= {"manager", "former"}
    )
    subject = effect.name if isinstance(effect, RecordImported) else ""
    return PlannedStep("Recorded" if is_note else REASONS.get(type(effect), "AccessUpdated"), message, subject, future)


def only(plan: Sequence[Action], kind: type[T]) -> tuple[T, ...]:
    """The actions of one kind in a plan."""
    return tuple(action for action in plan if isinstance(action, kind))


def name_in_manifest(field: str) -> str:
    """The field's name in a manifest: ``purge_hold_seconds`` is ``purgeHold``."""
    first, *others = field.removesuffix("_seconds").split("_")
    return first + "".join(word.capitalize() for word in others)


def names_in_manifest(fields: Iterable[str]) -> str:
    return ", ".join(map(name_in_manifest, fields))


class ManifestWords(NamedTuple):
    """The description of a step in the past and in the future tense."""

    past: str
    future: str


def catalog_changes(changes: CatalogChanges, catalog: str) -> ManifestWords:
    """Describe the changes of a catalog's definition in the words of its manifest, which has no manager."""
    names = names_in_manifest(name for name in changes if name not in ("manager", "former"))
    if names:
        return ManifestWords(f"updated {catalog}: {names}", f"update {catalog}: {names}")
    if changes.get("manager") is None:
        return ManifestWords(f"left {catalog} as it is, without a manager", f"leave {catalog} as it is, without a manager")
    return ManifestWords(f"took {catalog} over", f"take {catalog} over")


def policy_changes(kinds: Iterable[PolicyKind], catalog: str) -> ManifestWords:
    """Describe the changes of a catalog's policies in the words of its manifest."""
    names = ", ".join(f"policies.{KIND_FIELDS[kind]}" for kind in kinds)
    return ManifestWords(f"updated {catalog}: {names}", f"update {catalog}: {names}")


def value_in_manifest(field: str, value: object) -> str:
    """The value as JSON, durations as texts such as ``"24h"``."""
    return msgspec.json.encode(_plain(field, msgspec.to_builtins(value))).decode()


def unconfirmed_purge(confirmed: str | None, kind: str, name: str) -> WaitUntil | None:
    """Why a purge waits for confirmation; None if the annotation repeats the name of what is deleted."""
    if confirmed == name:
        return None
    other = f", and not {confirmed}," if confirmed else ""
    advice = (
        f"annotate {CONFIRM_PURGE}: {name}{other} to have everything in it deleted, or set deletionPolicy: Retain to keep it"
    )
    return WaitUntil("PurgeUnconfirmed", f"{kind} {name} is to be deleted with deletionPolicy Purge; {advice}")


def _plain(field: str, value: Any) -> Any:
    if isinstance(value, dict) and field != "properties":
        return {name_in_manifest(name): _plain(name, inner) for name, inner in value.items()}
    if isinstance(value, int | float) and field.endswith("_seconds"):
        return duration_text(value)
    return value
