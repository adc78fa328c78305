"""What realms and catalogs declare: who manages them, what history they keep, and what is done by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headwater.catalogs import CatalogDefinition, CatalogManager
from headwater.realms import HistoryRetention, MaintenanceSchedule, RealmManager


def told_duration(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerInfo:
    """The resource that manages a realm or a catalog.

    cluster       empty: manifests in files; then ``uid`` is empty, too
    """

    cluster: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, manager: RealmManager | CatalogManager) -> ManagerInfo:
        """The values of a stored manager."""
        return cls(cluster=manager.cluster, namespace=manager.namespace, name=manager.name, uid=manager.uid)


def told_manager(manager: RealmManager | CatalogManager | None) -> ManagerInfo | None:
    return None if manager is None else ManagerInfo.of(manager)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRetentionInfo:
    """The history of references whose names match a pattern: so many commits, and what is younger."""

    pattern: str
    commits: int | None
    age: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionInfo:
    """The history that a realm keeps. None: as the settings say.

    content_age, content_commits  of content, at least so long and so many commits
    reference_commits  of other references, so many commits
    patterns      exceptions by the name of the reference: the first that matches decides
    """

    content_age: timedelta | None
    content_commits: int | None
    reference_commits: int | None
    patterns: tuple[ReferenceRetentionInfo, ...]

    @classmethod
    def of(cls, retention: HistoryRetention) -> RetentionInfo:
        """The values of a realm's retention."""
        return cls(
            content_age=told_duration(retention.content_age_seconds),
            content_commits=retention.content_commits,
            reference_commits=retention.reference_commits,
            patterns=tuple(
                ReferenceRetentionInfo(pattern=kept.pattern, commits=kept.commits, age=told_duration(kept.age_seconds))
                for kept in retention.references
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInfo:
    """When something is done by itself.

    schedule      a cron expression; None: at a time spread by realm or catalog
    time_zone     that the schedule is meant in; of a catalog's work it is the realm's, and None here
    suspend       nothing is done by itself
    """

    schedule: str | None
    suspend: bool
    time_zone: str | None = None

    @classmethod
    def of_realm(cls, maintenance: MaintenanceSchedule) -> ScheduleInfo:
        """When a realm is maintained."""
        return cls(schedule=maintenance.schedule or None, suspend=maintenance.suspend, time_zone=maintenance.time_zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportInfo:
    """An import that a catalog's resource declares.

    mode          ``once`` or ``sync``
    schedule      a cron expression; None: daily, if its mode is sync
    include, exclude  patterns of the keys that are wanted, none being all, and of those that are not
    done          it has been carried out as it stands here
    """

    name: str
    locations: tuple[str, ...]
    mode: str
    schedule: str | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    done: bool


def declared_imports(definition: CatalogDefinition) -> tuple[ImportInfo, ...]:
    """The imports of a catalog."""
    return tuple(
        ImportInfo(
            name=spec.name,
            locations=spec.locations,
            mode=spec.mode,
            schedule=spec.schedule,
            include=spec.include,
            exclude=spec.exclude,
            done=definition.imported.get(spec.name) == spec.digest(),
        )
        for spec in definition.imports
    )


def declared_schedules(definition: CatalogDefinition) -> dict[str, ScheduleInfo]:
    """The schedules that a catalog says, by what they are of."""
    said = {
        "expire_snapshots": definition.maintenance.expire_snapshots,
        "report_files": definition.maintenance.report_files,
    }
    return {
        work: ScheduleInfo(schedule=each.schedule or None, suspend=each.suspend)
        for work, each in said.items()
        if each is not None
    }
