"""What a planner may ask for: single steps, each of which can be carried out twice without harm, and words for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.catalogs import CatalogChanges, CatalogFields
from headwater.clock import Micros
from headwater.realms import Manager, RealmFields, RealmState
from headwater.store import ObjectId

__all__ = [
    "REASONS",
    "Action",
    "AdoptRealm",
    "Bootstrap",
    "CancelTask",
    "CompleteCatalog",
    "CreateCatalog",
    "CreateRealm",
    "DeleteCatalog",
    "DetachRealm",
    "Effect",
    "MoveRealm",
    "Notice",
    "RecordActed",
    "RecordImported",
    "Refuse",
    "RemoveRealm",
    "Report",
    "RotateCredentials",
    "RunTaskNow",
    "Step",
    "SubmitTask",
    "UpdateCatalog",
    "UpdateRealm",
    "Wait",
    "step_of",
]


@dataclass(frozen=True, slots=True)
class CreateRealm:
    fields: RealmFields


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Keep the credentials where a person finds them, then fill the realm with their hash."""


@dataclass(frozen=True, slots=True)
class RotateCredentials:
    """Give the root other credentials: kept where a person finds them under this token, then hashed into the realm."""

    token: str


@dataclass(frozen=True, slots=True)
class MoveRealm:
    to: RealmState


@dataclass(frozen=True, slots=True)
class UpdateRealm:
    """``digest`` is that of the spec that holds once this is done."""

    changes: RealmFields
    digest: str


@dataclass(frozen=True, slots=True)
class AdoptRealm:
    """Take the realm over from whoever manages it, and note in ``annotation`` that this was asked for with ``value``.

    annotation    None: nobody asked; it is the resource's own realm, from before it was made again
    """

    manager: Manager
    annotation: str | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class DetachRealm:
    """Leave the realm as it is, managed by nobody."""


@dataclass(frozen=True, slots=True)
class RemoveRealm:
    """Delete the credentials and the entry of a PURGED realm."""


@dataclass(frozen=True, slots=True)
class RecordActed:
    """An annotation was acted on with this value; None: it is gone, and may act again."""

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
    """Make what an interrupted creation has left out."""


@dataclass(frozen=True, slots=True)
class UpdateCatalog:
    changes: CatalogChanges


@dataclass(frozen=True, slots=True)
class RecordImported:
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class DeleteCatalog:
    pass


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing more can be done now. ``reason`` is one word for a condition; ``until`` is None when it is not a matter of time alone."""

    reason: str
    message: str
    until: Micros | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """It will not be done as asked."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """Something that a person should know, and that is left as it is."""

    reason: str
    message: str


Effect = (
    CreateRealm
    | Bootstrap
    | RotateCredentials
    | MoveRealm
    | UpdateRealm
    | AdoptRealm
    | DetachRealm
    | RemoveRealm
    | RecordActed
    | SubmitTask
    | RunTaskNow
    | CancelTask
    | CreateCatalog
    | CompleteCatalog
    | UpdateCatalog
    | RecordImported
    | DeleteCatalog
)
Notice = Wait | Refuse | Report
Action = Effect | Notice


@dataclass(frozen=True, slots=True)
class Step:
    """What was done: one word for programs, and a sentence for people. ``subject``: which import it was about, where it was about one."""

    reason: str
    message: str
    subject: str = ""


REASONS: Mapping[type[Effect], str] = {
    CreateRealm: "RealmCreated",
    Bootstrap: "RealmBootstrapped",
    RotateCredentials: "CredentialsRotated",
    MoveRealm: "RealmMoved",
    UpdateRealm: "RealmUpdated",
    AdoptRealm: "RealmAdopted",
    DetachRealm: "RealmDetached",
    RemoveRealm: "RealmDeleted",
    RecordActed: "Noted",
    SubmitTask: "TaskRequested",
    RunTaskNow: "TaskHurried",
    CancelTask: "TaskCancelled",
    CreateCatalog: "CatalogCreated",
    CompleteCatalog: "CatalogCreated",
    UpdateCatalog: "CatalogUpdated",
    RecordImported: "ImportDone",
    DeleteCatalog: "CatalogDeleted",
}
"""The word of each kind of step."""


def step_of(effect: Effect, message: str) -> Step:
    """What was done, once the effect is carried out. What only keeps account of a spec, or of its manager, is no update."""
    is_note = (isinstance(effect, UpdateRealm) and not effect.changes) or (
        isinstance(effect, UpdateCatalog) and effect.changes.keys() <= {"manager", "former"}
    )
    subject = effect.name if isinstance(effect, RecordImported) else ""
    return Step("Noted" if is_note else REASONS[type(effect)], message, subject)
