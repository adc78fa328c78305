"""The one catalogue of words that a status or an event may carry: condition types, and reasons with their meaning and advice.

Tools may rely on these words. Everything that the planners say maps to one of them; the tables of the documentation are made from here.

Tables of the documentation that are made from the catalogue of conditions and reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

EventType = Literal["Normal", "Warning"]
Standing = Literal["True", "False", "Unknown"]
"""The status of a condition."""
Good = Standing | Literal["absent"]


@dataclass(frozen=True, slots=True)
class ConditionType:
    """A statement about a resource.

    kinds         which resources it is made about
    good          the status that needs nobody's attention; None where neither is bad; "absent" for one that only repeats, for tools,
                  what Ready says
    """

    name: str
    kinds: tuple[str, ...]
    good: Good | None
    meaning: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a condition is as it is, or what an event tells.

    conditions    the condition types that it may stand in
    event         the type of event that tells of it; None when it comes without one
    action        what a person does about it; empty when there is nothing to do
    """

    name: str
    conditions: tuple[str, ...]
    event: EventType | None
    meaning: str
    action: str = ""


_BOTH = ("Realm", "Catalog")

CONDITIONS: tuple[ConditionType, ...] = (
    ConditionType(
        "Ready",
        _BOTH,
        "True",
        "The store is as this resource declares. A Realm with `state: Inactive` is ready once its realm is INACTIVE. "
        "Unknown while the store cannot be asked.",
    ),
    ConditionType(
        "Reconciling",
        _BOTH,
        "absent",
        "Only while the resource is not Ready and the operator goes on by itself: it works, waits, or tries again. "
        "`helm --wait`, Flux and others that judge by kstatus wait.",
    ),
    ConditionType(
        "Stalled",
        _BOTH,
        "absent",
        "Only while the resource is not Ready and nothing will change until a person changes something. "
        "`helm --wait`, Flux and others that judge by kstatus fail at once.",
    ),
    ConditionType(
        "Accepted", _BOTH, "True", "The resource is valid, and the realm or catalog that it names is its own to manage."
    ),
    ConditionType("StoreReachable", _BOTH, "True", "The store answered when this resource was looked at last."),
    ConditionType(
        "RealmReady",
        ("Catalog",),
        "True",
        "The realm of the catalog is there, ACTIVE, and managed by the Realm that the Catalog names.",
    ),
    ConditionType(
        "MaintenanceHealthy",
        _BOTH,
        "True",
        "Garbage is collected on schedule and purges get on: no task of the realm's upkeep failed, or waits for a worker in vain. "
        "Imports have a condition of their own on their Catalog. On a Catalog only once there was work on its lake: the same of the "
        "expiry of its snapshots and of reports of its files.",
    ),
    ConditionType("ImportsHealthy", ("Catalog",), "True", "Every import has run, runs, or waits for its time."),
    ConditionType(
        "CredentialsAvailable",
        _BOTH,
        "True",
        "The Secrets with the credentials of the realm's root and of the declared principals are there. "
        "On a Catalog only while it has a `connection`: the Secret of that is there.",
    ),
    ConditionType(
        "Drifted", ("Realm",), "False", "Somebody changed the realm past its Realm, and `driftPolicy: Report` leaves it so."
    ),
    ConditionType(
        "Purging",
        ("Realm",),
        None,
        "Only while a Realm with `deletionPolicy: Purge` is deleted: whether its rows are being deleted yet.",
    ),
    ConditionType("Deleting", _BOTH, None, "Only while the resource is deleted: the reason says what its end waits for."),
)

_WAITS = ("Ready", "Reconciling", "Deleting", "Purging")
_STALLS = ("Ready", "Stalled", "Deleting", "Purging")
_UNSURE = ("Accepted", "StoreReachable", "RealmReady")
_HEALTH = ("MaintenanceHealthy", "ImportsHealthy")

_ALL: tuple[Reason, ...] = (
    # As it should be
    Reason(
        "Reconciled",
        ("Ready", "Drifted"),
        "Normal",
        "The store matches the resource. The event says that it matches again.",
    ),
    Reason("Accepted", ("Accepted",), None, "The resource is valid, and the operator manages it."),
    Reason("StoreAnswered", ("StoreReachable",), None, "The store answers."),
    Reason("RealmActive", ("RealmReady",), None, "The realm is ACTIVE."),
    Reason("AsScheduled", _HEALTH, None, "Every task has run, runs, or waits for its time."),
    Reason(
        "NothingScheduled", _HEALTH, None, "There is nothing to run: the realm is not ACTIVE, or the catalog has no imports."
    ),
    Reason(
        "Suspended",
        ("MaintenanceHealthy",),
        "Normal",
        "`spec.maintenance.suspend` is true: no garbage is collected.",
        "Set it to false when the reason for it is gone; what was missed is made up for.",
    ),
    Reason(
        "SecretPresent",
        ("CredentialsAvailable",),
        None,
        "The Secrets are there; `status.credentialsSecret` names that of the realm's root.",
    ),
    Reason(
        "Progressing", (*_WAITS, *_UNSURE), None, "A pass over the resource has not come to its end yet; it goes on by itself."
    ),
    # Not as asked: a person decides
    Reason(
        "SpecInvalid",
        ("Accepted", *_STALLS),
        "Warning",
        "The resource breaks a rule that the API server could not check.",
        "Correct the fields that the message names.",
    ),
    Reason(
        "Refused",
        ("Accepted", *_STALLS),
        "Warning",
        "What is asked for will never work as asked, for example a location that belongs to another catalog.",
        "Change what the message names, or put right what it contradicts. A Secret in the way is looked for every 20 seconds.",
    ),
    Reason(
        "SchemaOlder",
        ("Accepted", *_STALLS),
        "Warning",
        "An older custom resource definition in the cluster drops fields of the resource, or has dropped some. Nothing is done, so that "
        "nothing is removed only because a field is missing. While such a definition is served, nothing is written to the resource "
        "either, and only the event, the operator's `/readyz`, the metric `headwater_operator_schema_older` and `helm test` report it.",
        "Apply the definitions of the operator's chart, then the manifest of the resource.",
    ),
    Reason(
        "ManagedByAnother",
        ("Ready", "Stalled", "Accepted", "Deleting"),
        "Warning",
        "The realm or catalog belongs to another resource, perhaps of another cluster or namespace, or of the command line; "
        "or a person made the catalog, elsewhere than its Catalog says.",
        "Delete one of the two with `deletionPolicy: Retain`; annotate a Realm `headwater.dev/adopt: <realm id>` to take the realm "
        "over, or a Catalog `headwater.dev/adopt: <realm id>/<catalog>` to take a catalog that another Catalog has left, or that a "
        "person made. Where two clusters share a store, give each a name of its own (`cluster`).",
    ),
    Reason(
        "RealmManagedByAnother",
        ("Ready", "Stalled", "Accepted", "RealmReady", "Deleting"),
        "Warning",
        "The catalog is in a realm that does not belong to the Realm which the Catalog names.",
        "See which resource manages the realm; have the right Realm adopt it, or name the right one.",
    ),
    Reason(
        "DeletionProtected",
        _STALLS,
        "Warning",
        "It was deleted while `spec.deletionProtection` is true; nothing is deleted.",
        "Set `deletionProtection: false` to let the deletion go on.",
    ),
    Reason(
        "PurgeUnconfirmed",
        _STALLS,
        "Warning",
        "It is deleted with `deletionPolicy: Purge`, and the purge is not confirmed. Nothing is deleted yet.",
        "Annotate `headwater.dev/confirm-purge` as the message says, or set `deletionPolicy: Retain` to keep everything.",
    ),
    Reason(
        "DriftReported",
        ("Ready", "Stalled", "Drifted"),
        "Warning",
        "Somebody changed the realm past its Realm, and `driftPolicy: Report` leaves it so. "
        "Ready is False only if the realm is in another state than declared.",
        "Change the resource or the realm so that they agree, or set `driftPolicy: Correct`.",
    ),
    # Waiting: goes on by itself
    Reason(
        "PurgeHold",
        _WAITS,
        "Normal",
        "The purge is confirmed and waits for the end of the hold; `status.purge.holdUntil` says when.",
        "Nothing; set `deletionPolicy: Retain` before the hold ends to keep the realm after all.",
    ),
    Reason(
        "Purging",
        _WAITS,
        "Normal",
        "A worker deletes every row of the realm; this cannot be called off any more. `status.purge` counts.",
    ),
    Reason(
        "Purged",
        _STALLS,
        "Normal",
        "A scan found no row of the realm any more. Only its entry is left.",
        "If the Realm is not being deleted, somebody purged the realm by hand: delete the Realm, and create it again if you still need it.",
    ),
    Reason("Loading", _WAITS, "Normal", "The realm is being loaded by an import of a whole realm."),
    Reason(
        "RealmMissing",
        ("Ready", "Reconciling", "RealmReady", "Deleting"),
        "Normal",
        "The realm of the catalog is not there yet.",
        "Nothing if its Realm is about to come; otherwise see whether `spec.realm` names the right one.",
    ),
    Reason(
        "RealmNotActive",
        ("Ready", "Reconciling", "RealmReady", "Deleting"),
        "Normal",
        "The realm of the catalog is not ACTIVE, and only an ACTIVE realm can be changed.",
        "See the condition Ready of the Realm; set `state: Active` there if that was switched.",
    ),
    Reason(
        "RealmDeleting",
        ("Ready", "Reconciling", "RealmReady", "Deleting"),
        "Normal",
        "The Realm of the catalog is being deleted.",
        "Delete the Catalog too, or call the deletion off as the Realm's condition Deleting says.",
    ),
    # Faults: tried again by themselves
    Reason(
        "StoreUnavailable",
        (*_WAITS, *_UNSURE),
        None,
        "The store does not answer. Counts, state and tasks are those seen last; nothing is lost. It is asked every few seconds, "
        "and when it is back, everything is looked at. "
        "It comes without events: all resources would report the same.",
        "See whether the database runs and whether the operator reaches it; the metric `headwater_store_up` shows when it does.",
    ),
    Reason(
        "Unavailable",
        _WAITS,
        "Warning",
        "A step needed something that did not answer: the database under load, or the Kubernetes API. Nothing happened; it is tried again.",
        "See the message if it lasts for minutes.",
    ),
    Reason(
        "OutcomeUnknown",
        (*_WAITS, *_UNSURE),
        "Warning",
        "The answer to a change was lost: it may have happened. The next pass looks before it does anything.",
        "Nothing, unless it comes back: then the connection to the database is bad.",
    ),
    Reason(
        "Conflict",
        _WAITS,
        "Warning",
        "Somebody else changed the same at the same time, or keeps what contradicts this. It is looked at again.",
        "If it stays, see what the message names.",
    ),
    Reason(
        "Unreadable",
        (*_STALLS, *_UNSURE),
        "Warning",
        "Something in the store or in a Secret is there and cannot be read. Nothing is guessed and nothing changed.",
        "Run `headwater fsck` on the realm, and look at what the message names.",
    ),
    Reason(
        "InternalError",
        (*_WAITS, *_UNSURE),
        "Warning",
        "A bug in Headwater. The resource is tried again with growing pauses; others are not affected.",
        "Report it with the operator's log around that time: `kubectl headwater report` collects what is needed, without secrets.",
    ),
    # Tasks
    Reason(
        "TaskOverdue",
        _HEALTH,
        "Warning",
        "A task has been due for more than five minutes, and no worker took it. It waits; nothing is lost.",
        "See whether workers run, whether they reach the broker and the store, and whether they are all busy: `headwater task list`.",
    ),
    Reason(
        "TaskRetrying",
        _HEALTH,
        "Warning",
        "The last attempt of a task failed; it is tried again with growing pauses.",
        "See the message; nothing, if the cause is known to pass.",
    ),
    Reason(
        "TaskDeadLettered",
        (*_STALLS, *_HEALTH),
        "Warning",
        "A task failed as often as it may, and is not tried again by itself.",
        "Remove the cause that the message names, then `headwater task retry <id>`.",
    ),
    Reason(
        "TaskCancelled",
        (*_STALLS, *_HEALTH),
        "Normal",
        "A task was cancelled: by the operator because nothing asks for it any more, or by a person; then it is not asked for again.",
        "To run it after all: `headwater task retry <id>`.",
    ),
    Reason(
        "CollectionOverdue",
        ("MaintenanceHealthy",),
        "Warning",
        "A collection of garbage was due more than a day ago, and has not ended yet.",
        "Look at its progress in `status.tasks`; if that stands still, at the log of its worker.",
    ),
    Reason(
        "TablesQuarantined",
        ("ImportsHealthy",),
        "Warning",
        "Imports ran, and left tables alone that are broken. The condition stays True: the others are there.",
        "`headwater import-report <realm>/<catalog> report.html` writes them all, each with its reason.",
    ),
    # Credentials
    Reason(
        "SecretMissing",
        ("CredentialsAvailable",),
        "Warning",
        "A Secret with credentials is not there: of the realm's root, of a principal, or of a connection. The realm works; the store "
        "holds only a hash, so what was in the Secret is lost with it.",
        "Annotate the Realm `headwater.dev/rotate-credentials: <any word>` to have new ones made and written for its root, or "
        "`headwater.dev/rotate-principal: <principal>:<any word>` for a principal; for a connection annotate its Catalog "
        "`headwater.dev/rotate-credentials: <any word>`.",
    ),
    Reason(
        "CredentialsElsewhere",
        ("CredentialsAvailable",),
        "Warning",
        "A declared principal was made by somebody else, who has its credentials; there is no Secret for it. Its roles are as declared.",
        "Leave it so, or annotate the Realm `headwater.dev/rotate-principal: <principal>:<any word>` to have new credentials made and "
        "written; the former ones end then.",
    ),
    Reason(
        "CredentialsRotated",
        (),
        "Normal",
        "The credentials of the realm's root, or of the principal that the message names, are new ones; the Secret has them.",
    ),
    Reason(
        "RotationWaits",
        ("CredentialsAvailable",),
        "Normal",
        "New credentials are asked for, and made once the realm is ACTIVE.",
        "Set `state: Active` to have them made now.",
    ),
    Reason(
        "AccessWaits",
        ("CredentialsAvailable",),
        "Normal",
        "Principals and roles are declared, and made once the realm is ACTIVE.",
        "Set `state: Active` to have them made now.",
    ),
    # Access
    Reason(
        "RoleMissing",
        ("Ready", "Reconciling"),
        "Normal",
        "The Catalog grants a role to principal roles that its realm does not have yet. Everything else is as declared.",
        "Declare them in `spec.roles` of the Realm, or correct `grantedTo`.",
    ),
    Reason(
        "ServerUnknown",
        ("Ready", "Stalled"),
        "Warning",
        "The Catalog asks for a connection, and nobody has said where catalogs are served. There is no Secret.",
        "Write `spec.connection.uri`, or set `HEADWATER_OPERATOR_SERVER_URL`; the chart does that where it has a server.",
    ),
    Reason(
        "ConnectionTaken",
        ("Ready", "Stalled"),
        "Warning",
        "The realm has a principal of the name that the connection would have, and somebody else made it.",
        "Find out who uses it. Once nobody does, `headwater principal drop` makes room.",
    ),
    # Steps
    Reason("PrincipalProvided", (), "Normal", "A principal was created, and a Secret with its credentials."),
    Reason(
        "PrincipalRetired",
        (),
        "Normal",
        "A principal that is not declared any more was disabled. Its Secret is kept for the hold.",
    ),
    Reason("PrincipalDisabled", (), "Normal", "A principal was disabled as declared."),
    Reason("PrincipalEnabled", (), "Normal", "A principal was enabled as declared."),
    Reason("ConnectionProvided", (), "Normal", "The Secret of the connection was written, for a principal of its own."),
    Reason("ConnectionRetired", (), "Normal", "The principal of the connection was disabled. Its Secret is kept for the hold."),
    Reason(
        "CredentialsRemoved",
        (),
        "Normal",
        "A Secret was removed that nothing has declared since the purge hold of its realm began to count.",
    ),
    Reason("AccessUpdated", (), "Normal", "Roles and grants were changed as the resource declares."),
    Reason("RealmCreated", (), "Normal", "The realm was created."),
    Reason("RealmBootstrapped", (), "Normal", "The realm was filled with its root principal and the first grants."),
    Reason("RealmMoved", (), "Normal", "The realm was switched to another state."),
    Reason("RealmUpdated", (), "Normal", "The definition of the realm was changed as the resource declares."),
    Reason(
        "RealmAdopted",
        (),
        "Normal",
        "The realm was taken over from another manager as an annotation asked for, or back by the resource that had it before.",
    ),
    Reason("RealmDetached", (), "Normal", "The resource is gone. The realm is kept, and has no manager."),
    Reason("RealmDeleted", (), "Normal", "The entry of the purged realm was deleted, and with it the Secret of its root."),
    Reason("CatalogCreated", (), "Normal", "The catalog was created."),
    Reason("CatalogUpdated", (), "Normal", "The definition of the catalog was changed as the resource declares."),
    Reason("CatalogDeleted", (), "Normal", "The catalog was deleted; what only it held is garbage once its hold is over."),
    Reason("TaskRequested", (), "Normal", "A task was asked for: a collection, a purge, an import, or work on a lake."),
    Reason("TaskRescheduled", (), "Normal", "The due time of a waiting task was brought forward to now."),
    Reason("ImportDone", (), "Normal", "An import has run to its end."),
    Reason("CollectionDone", (), "Normal", "A collection of garbage has run to its end."),
    Reason(
        "LakeWorkDone",
        (),
        "Normal",
        "Expiry of a catalog's snapshots, or a report of its files, has run to its end.",
        "`headwater runs list --realm <realm>` has its counts.",
    ),
    Reason("Recorded", (), None, "The operator recorded in the store what it has acted on."),
    Reason(
        "DriftCorrected",
        (),
        "Warning",
        "Somebody changed the realm or catalog past its resource, and it was changed back.",
        "Change the resource instead; set `driftPolicy: Report` to keep changes made by hand.",
    ),
    Reason(
        "Detached", (), "Normal", "The resource is gone under `deletionPolicy: Retain`; what it declared stays in the store."
    ),
    Reason(
        "ReleasedByHand",
        (),
        "Warning",
        "Somebody else removed the operator's finalizer: the resource was deleted without its deletion policy being followed.",
        "The store is as it was; see what is left there with `headwater realm list`.",
    ),
)

REASONS: Mapping[str, Reason] = {reason.name: reason for reason in _ALL}


SAID_OTHERWISE: Mapping[str, str] = {"Drifted": "DriftReported"}
"""Reasons of the planners that would only repeat the type of their condition."""


def reason_named(name: str) -> Reason:
    """The entry of a reason, also by the planners' word for it.

    raises        KeyError for a word that is not in the catalogue: add each new reason here
    """
    return REASONS[SAID_OTHERWISE.get(name, name)]


def conditions_table() -> str:
    """What each condition says."""
    rows = [
        (f"`{condition.name}`", ", ".join(condition.kinds), condition.good or "either", condition.meaning)
        for condition in CONDITIONS
    ]
    return _table(("condition", "on", "good when", "what it says"), rows)


def reasons_table() -> str:
    """What each reason of a condition means, and what to do."""
    ordered = sorted((reason for reason in REASONS.values() if reason.conditions), key=lambda reason: reason.name)
    rows = [
        (f"`{reason.name}`", ", ".join(f"`{name}`" for name in reason.conditions), reason.meaning, reason.action or "Nothing.")
        for reason in ordered
    ]
    return _table(("reason", "in", "what it means", "what to do"), rows)


def events_table() -> str:
    """The events, with the warnings first."""
    ordered = sorted(
        (reason for reason in REASONS.values() if reason.event), key=lambda reason: (reason.event != "Warning", reason.name)
    )
    rows = [(f"`{reason.name}`", reason.event or "", reason.meaning, reason.action or "Nothing.") for reason in ordered]
    return _table(("event", "type", "what happened", "what to do"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
