"""The shapes of management: what requests bring and what answers say, under the names that the command line shows.

A field that a request does not know is refused: one that is misspelled could widen a grant. Times are RFC 3339 in UTC, durations are
written as in manifests (``24h``), ids are 16 hex digits.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

PAGE_LIMIT = 1000
"""The entries of a page, at most."""
Time = Annotated[str, Meta(description="RFC 3339, in UTC")]
Duration = Annotated[str, Meta(description="Such as 90s, 24h or 30d")]
Name = Annotated[str, Meta(min_length=1)]
Id = Annotated[str, Meta(description="16 hex digits")]
NextPage = Annotated[str | None, Meta(description="The pageToken of the next page; null: this was the last one")]
PROPERTIES_LIMIT = 64
"""The properties of a realm or catalog, at most, as of their resources: whatever opens one reads all of them."""
_PropertyName = Annotated[str, Meta(min_length=1, max_length=253)]
_PropertyValue = Annotated[str, Meta(max_length=1024)]
Properties = Annotated[dict[_PropertyName, _PropertyValue], Meta(max_length=PROPERTIES_LIMIT)]
PropertyChanges = Annotated[
    dict[_PropertyName, _PropertyValue | None],
    Meta(
        max_length=2 * PROPERTIES_LIMIT,
        description=f"Properties to set, {PROPERTIES_LIMIT} in all; those that are null are removed, all others stay",
    ),
]
Locations = Annotated[list[Annotated[str, Meta(max_length=500)]], Meta(max_length=50)]


class ListQuery(Struct, frozen=True, rename="camel"):
    """Which page of a list."""

    page_token: Annotated[str, Meta(description="The nextPageToken of the page before")] | None = None
    page_size: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 100


class ManagerName(Struct, frozen=True):
    """The Kubernetes resource that manages something; ``cluster`` and ``uid`` are empty for manifests in files."""

    cluster: str
    namespace: str
    name: str
    uid: str


class MaintenancePlan(Struct, frozen=True, rename="camel"):
    """When a realm is maintained; without a schedule weekly, spread by realm."""

    schedule: str | None
    time_zone: str
    suspend: bool


class RealmResource(Struct, frozen=True, rename="camel"):
    """A realm."""

    id: str
    state: str
    key: Id
    created: Time
    updated: Time
    properties: dict[str, str]
    deletion_policy: str
    deletion_protection: bool
    drift_policy: str
    purge_hold: Duration | None
    maintenance: MaintenancePlan
    manager: ManagerName | None


class RealmList(Struct, frozen=True, rename="camel"):
    """A page of realms, by id."""

    realms: list[RealmResource]
    next_page_token: NextPage


class RealmPatch(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to change in a realm. What its resource manages is put back by that."""

    properties: PropertyChanges | UnsetType = UNSET


class ImportOfCatalog(Struct, frozen=True):
    """Tables that lie somewhere already; ``done`` once they were taken in as it stands here."""

    name: str
    locations: list[str]
    mode: str
    schedule: str | None
    include: list[str]
    exclude: list[str]
    done: bool


class ScheduleOfWork(Struct, frozen=True):
    """A cron expression in the time zone of the realm; null: at a time spread by catalog."""

    schedule: str | None
    suspend: bool


class MaintenanceOfCatalog(Struct, frozen=True, rename="camel"):
    """The schedules that the catalog's resource gives to the work on its lake; null: none is given."""

    expire_snapshots: ScheduleOfWork | None
    report_files: ScheduleOfWork | None


class CatalogResource(Struct, frozen=True, rename="camel"):
    """A catalog. A later one of the same name has another id."""

    realm: str
    name: str
    id: Id
    state: str
    base_location: str
    allowed_locations: list[str]
    default_branch: str
    file_places: list[str]
    maintenance: MaintenanceOfCatalog
    properties: dict[str, str]
    imports: list[ImportOfCatalog]
    created: Time
    updated: Time
    deletion_policy: str
    deletion_protection: bool
    hold: Duration | None
    held_until: Annotated[str | None, Meta(description="Of a deleted one: until when it can come back for certain")]
    manager: ManagerName | None


class ListedCatalog(Struct, frozen=True, rename="camel"):
    """What whoever may know of a catalog may know of it."""

    name: str
    id: Id
    state: str
    created: Time
    updated: Time
    held_until: Annotated[str | None, Meta(description="Of a deleted one: until when it can come back for certain")]


class CatalogList(Struct, frozen=True, rename="camel"):
    """A page of the catalogs that the caller may see."""

    catalogs: list[ListedCatalog]
    next_page_token: NextPage


class CatalogsQuery(ListQuery, frozen=True, rename="camel"):
    """Which page of the live catalogs, or of the deleted ones that can come back."""

    deleted: bool = False


class CatalogCreation(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A catalog to create."""

    name: Name
    base_location: Annotated[
        str, Meta(min_length=1, max_length=500, description="Where its tables are kept, such as s3://lake/")
    ]
    allowed_locations: Locations = []
    default_branch: Name = "main"
    properties: Properties = {}
    deletion_protection: bool = False
    hold: Duration | None = None


class CatalogPatch(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is to change in a catalog; what is left out stays."""

    base_location: Annotated[str, Meta(min_length=1, max_length=500)] | UnsetType = UNSET
    allowed_locations: Locations | UnsetType = UNSET
    file_places: Locations | UnsetType = UNSET
    default_branch: Name | UnsetType = UNSET
    properties: PropertyChanges | UnsetType = UNSET
    deletion_protection: bool | UnsetType = UNSET
    hold: Duration | UnsetType | None = UNSET


class UndeleteQuery(Struct, frozen=True, rename="camel"):
    """The name that a catalog comes back under; its own where none is given."""

    new_name: Name | None = None


class GuestsQuery(ListQuery, frozen=True, rename="camel"):
    """Which page of a catalog's guests; on the default branch where no reference is given."""

    reference: Name | None = None
    under: Annotated[str, Meta(description="Only below this namespace, such as sales.eu")] | None = None


class GuestTable(Struct, frozen=True, rename="camel"):
    """A table or view that its catalog neither created nor adopted."""

    key: list[str]
    content_id: str


class GuestList(Struct, frozen=True, rename="camel"):
    """A page of guests."""

    guests: list[GuestTable]
    next_page_token: NextPage


class GuestToAdopt(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The keys of guests to adopt; on the default branch where no reference is given."""

    keys: Annotated[list[Annotated[list[Name], Meta(min_length=1)]], Meta(min_length=1, max_length=1000)]
    reference: Name | None = None


class RefusedGuest(Struct, frozen=True, rename="camel"):
    """A guest that stays one."""

    key: list[str]
    reason: str


class AdoptedTables(Struct, frozen=True, rename="camel"):
    """The keys of what is at home from now on, and why others are not."""

    adopted: list[list[str]]
    refused: list[RefusedGuest]


class LocationToRelease(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A location that dropped tables still have."""

    location: Annotated[str, Meta(min_length=1, max_length=500, description="Such as s3://lake/sales/orders")]


class ReleasedLocations(Struct, frozen=True, rename="camel"):
    """The places that were released: the location, and those within it."""

    released: list[str]


class PrincipalResource(Struct, frozen=True, rename="camel"):
    """An account that can log in.

    ``formerClientId`` are credentials from before a rotation, which hold until ``formerUntil``, or until the next rotation where that
    is null.
    """

    name: str
    client_id: str
    created: Time
    renewed: Annotated[str | None, Meta(description="When its credentials last changed; null: they are the first")]
    disabled: Annotated[str | None, Meta(description="Since when it cannot log in; null: it can")]
    former_client_id: str | None
    former_until: Time | None
    roles: Annotated[list[str], Meta(description="Its principal roles")]


class PrincipalList(Struct, frozen=True, rename="camel"):
    """A page of principals, by name."""

    principals: list[PrincipalResource]
    next_page_token: NextPage


class PrincipalCreation(Struct, frozen=True, forbid_unknown_fields=True):
    """A principal to create. It may do nothing yet."""

    name: Name


class NewCredentials(Struct, frozen=True, rename="camel"):
    """Credentials, told this once: the store keeps a hash. ``credential`` is what engines are configured with, and as secret."""

    client_id: str
    client_secret: str
    credential: str


class PrincipalWithCredentials(Struct, frozen=True):
    """A principal and its new credentials, which no other answer shows."""

    principal: PrincipalResource
    credentials: NewCredentials


class RotationQuery(Struct, frozen=True, rename="camel"):
    """For how long the former credentials hold beside the new ones."""

    overlap_seconds: Annotated[float, Meta(ge=0, description="Left out: until the next rotation")] | None = None


class ListedPrincipalRole(Struct, frozen=True):
    """A role of the realm, and its privileges in the whole realm."""

    name: str
    created: Time
    privileges: list[str]


class PrincipalRoleResource(ListedPrincipalRole, frozen=True, rename="camel"):
    """A role of the realm, with the principals that have it."""

    assigned_to: list[str]


class PrincipalRoleList(Struct, frozen=True, rename="camel"):
    """A page of the roles of a realm, by name."""

    principal_roles: list[ListedPrincipalRole]
    next_page_token: NextPage


class RoleCreation(Struct, frozen=True, forbid_unknown_fields=True):
    """A role to create. It may do nothing yet, and nobody has it."""

    name: Name


class CatalogRoleResource(Struct, frozen=True, rename="camel"):
    """A role of a catalog, with the roles of the realm that have it."""

    name: str
    created: Time
    assigned_to: list[str]


class CatalogRoleList(Struct, frozen=True, rename="camel"):
    """A page of the roles of a catalog, by name."""

    catalog_roles: list[CatalogRoleResource]
    next_page_token: NextPage


class GrantBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A privilege, on what it is held, and on which branches and tags.

    ``on`` is ``namespace:KEY``, ``table:KEY``, ``view:KEY``, ``table:id=UUID``, ``view:id=UUID`` or ``reference:PATTERN``, where a key is
    joined by dots; left out: the whole catalog. What is granted on a content id stays when the table is renamed.
    """

    privilege: Name
    on: str = "catalog"
    branches: Annotated[
        str | None, Meta(description="A pattern such as dev*; null: the default branch, or what the privilege is held on")
    ] = None


class GrantResource(Struct, frozen=True):
    """A grant as it is kept; the privilege may be one that only a newer release knows."""

    privilege: str
    on: str
    branches: Annotated[str, Meta(description="A pattern; null: the default branch, or what the grant is on")] | None
    created: Time | None


class GrantList(Struct, frozen=True, rename="camel"):
    """A page of the grants of a role."""

    grants: list[GrantResource]
    next_page_token: NextPage


class GrantChanges(Struct, frozen=True, forbid_unknown_fields=True):
    """Grants to give or to take back, all in one commit."""

    grants: Annotated[list[GrantBody], Meta(min_length=1, max_length=1000)]


class RevokedGrants(Struct, frozen=True):
    """How many of the grants there were."""

    revoked: int


class ProgressOfTask(Struct, frozen=True):
    """So many of so many; ``total`` null: not known yet."""

    done: int
    total: int | None
    unit: str


class AttemptOfTask(Struct, frozen=True):
    """One try at a task."""

    number: int
    owner: str
    started: Time
    ended: Time | None
    outcome: str
    progress: ProgressOfTask | None
    error: str | None


class FollowUp(Struct, frozen=True):
    """The task that is submitted when another one has succeeded."""

    kind: str
    subject: str


class TaskResource(Struct, frozen=True, rename="camel"):
    """A task of a realm. ``attempts`` are the last ones, oldest first; ``error`` is why the last one ended, unless it succeeded."""

    id: Id
    kind: str
    subject: str
    arguments: dict[str, Any]
    state: Literal["WAITING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"]
    stop_requested: bool
    attempt: int
    failures: int
    max_attempts: int
    owner: str
    progress: ProgressOfTask | None
    created: Time
    due: Time
    finished: Time | None
    retried: Time | None
    after: Id | None
    error: str | None
    outcome: dict[str, Any] | None
    follow_up: FollowUp | None
    attempts: list[AttemptOfTask]


class TaskList(Struct, frozen=True, rename="camel"):
    """A page of tasks: the active ones as they are due, then those that ended, the last one first."""

    tasks: list[TaskResource]
    next_page_token: NextPage


class TasksQuery(ListQuery, frozen=True, rename="camel"):
    """Which page of which tasks."""

    state: Literal["WAITING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"] | None = None
    kind: str | None = None


class TaskSubmission(Struct, frozen=True, forbid_unknown_fields=True):
    """A task to submit: ``gc`` collects the garbage of the realm, ``fsck`` checks it and changes nothing."""

    kind: Literal["gc", "fsck"]


class MaintenanceScope(Struct, frozen=True, forbid_unknown_fields=True):
    """A catalog, or all of the realm where none is given."""

    catalog: Name | None = None


class MaintenanceStopWish(Struct, frozen=True, forbid_unknown_fields=True):
    """What to stop, and why."""

    catalog: Name | None = None
    reason: Annotated[str, Meta(max_length=300)] = ""


class StopOfMaintenance(Struct, frozen=True):
    """Who stopped the maintenance of a catalog, of a realm, or of the whole store, where both are null."""

    realm: str | None
    catalog: str | None
    by: str
    at: Time
    reason: str


class StopList(Struct, frozen=True):
    """What is stopped, the widest first."""

    stops: list[StopOfMaintenance]


class RunResource(Struct, frozen=True):
    """What a run of a task counted, and how it ended; ``error`` is empty where it did what it was for."""

    id: Annotated[str, Meta(description="The task's id, a dash, and the number of the attempt")]
    kind: str
    subject: str
    started: Time
    finished: Time
    seconds: float
    error: str
    counts: dict[str, Any]
    notes: list[str]
    task: Id | None
    attempt: int


class RunList(Struct, frozen=True, rename="camel"):
    """A page of runs, newest first."""

    runs: list[RunResource]
    next_page_token: NextPage


class RunsQuery(ListQuery, frozen=True, rename="camel"):
    """Which page of which runs."""

    kind: str | None = None


class AccessQuery(Struct, frozen=True):
    """A question: whether a principal has a privilege on something.

    It is about the realm where no catalog is named, and about the catalog where nothing in it is.
    """

    privilege: Name
    principal: Annotated[str, Meta(min_length=1, description="Left out: the caller")] | None = None
    catalog: Name | None = None
    namespace: Annotated[str, Meta(min_length=1, description="Levels joined by dots")] | None = None
    table: Annotated[str, Meta(min_length=1, description="The levels of its namespace and its name, joined by dots")] | None = (
        None
    )
    view: Annotated[str, Meta(min_length=1, description="The levels of its namespace and its name, joined by dots")] | None = (
        None
    )
    reference: Annotated[str, Meta(min_length=1, description="Left out: the default branch")] | None = None


class AccessExplained(Struct, frozen=True):
    """The answer to a question, and why: the grant that allows it with the roles through which it comes, or grants that come near it.

    Of a principal that is disabled it is ``false``, whatever is granted.
    """

    principal: str
    privilege: str
    on: str
    reference: str | None
    allowed: bool
    disabled: Annotated[str | None, Meta(description="Since when the principal is; null: it is not")]
    rule: str | None
    near: list[str]
    roles: Annotated[list[str], Meta(description="The principal roles that count")]


class PrivilegeResource(Struct, frozen=True):
    """A privilege: what it allows, on what it can be granted, and which others whoever has it has, too."""

    name: str
    summary: str
    on: list[str]
    includes: list[str]


class PrivilegeList(Struct, frozen=True):
    """All privileges."""

    privileges: list[PrivilegeResource]
