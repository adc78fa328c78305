"""Policies of a catalog and its tables: how much of the lake they keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from headwater.api.api_values import seconds_of
from headwater.api.catalog_values import Key, content_key
from headwater.api.declared_values import told_duration
from headwater.api.store_session import StoreSession
from headwater.catalogs import Catalog, ContentKey
from headwater.clock import as_datetime
from headwater.errors import NotFoundError, RefusedError
from headwater.policies import (
    FileMode,
    FileRule,
    MetadataFileRule,
    PolicyKind,
    SnapshotRule,
    StoredPolicy,
    TablePolicies,
    find_policy,
    find_policy_table,
    list_policies,
    policy_text,
    set_policy,
    set_snapshot_rule,
    unset_policy,
    unset_snapshot_rule,
)
from headwater.store import RealmStore

PolicyName = Literal["snapshots", "metadata-files", "file-collection"]

_SAID: Mapping[PolicyKind, frozenset[str]] = {
    PolicyKind.SNAPSHOTS: frozenset({"branch", "max_age", "min_to_keep", "max_ref_age"}),
    PolicyKind.METADATA_FILES: frozenset({"keep", "max_age"}),
    PolicyKind.FILE_COLLECTION: frozenset({"grace", "delay", "hold", "mode"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRuleInfo:
    """What a policy for snapshots says of some branches. None: it does not say.

    branches      a pattern of branch names
    max_age       younger snapshots stay
    min_to_keep   so many of each of a table's own branches stay
    max_ref_age   a table's own branches and tags whose snapshot is older go
    """

    branches: str
    max_age: timedelta | None
    min_to_keep: int | None
    max_ref_age: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInfo:
    """A policy of a catalog, or of one of its tables. None: it does not say.

    kind          ``snapshots``, ``metadata-files`` or ``file-collection``
    table         its key where it was looked up; None: the policy is the catalog's, or the table is not there
    content_id    of the table; None: the policy is the catalog's
    text          what it says, in one line
    snapshots     of such a policy: its rules, of which the first counts that covers a branch
    keep, max_age of ``metadata-files``: so many stay in a table's log, and older ones go
    grace, delay, hold, mode  of ``file-collection``
    declared      it comes from the catalog's resource, which puts it back
    """

    kind: str
    table: str | None
    content_id: str | None
    text: str
    snapshots: tuple[SnapshotRuleInfo, ...]
    keep: int | None
    max_age: timedelta | None
    grace: timedelta | None
    delay: timedelta | None
    hold: timedelta | None
    mode: str | None
    declared: bool
    by: str
    updated: datetime

    @classmethod
    def of(cls, policy: StoredPolicy, table: ContentKey | None) -> PolicyInfo:
        """The values of a stored policy, and the key of its table."""
        metadata, files = policy.metadata_files or MetadataFileRule(), policy.files or FileRule()
        return cls(
            kind=policy.kind.value,
            table=None if table is None else str(table),
            content_id=None if policy.content_id is None else str(policy.content_id),
            text=policy_text(policy),
            snapshots=tuple(
                SnapshotRuleInfo(
                    branches=rule.branches,
                    max_age=told_duration(rule.max_age_seconds),
                    min_to_keep=rule.min_to_keep,
                    max_ref_age=told_duration(rule.max_ref_age_seconds),
                )
                for rule in policy.snapshots
            ),
            keep=metadata.keep,
            max_age=told_duration(metadata.max_age_seconds),
            grace=told_duration(files.grace_seconds),
            delay=told_duration(files.delay_seconds),
            hold=told_duration(files.hold_seconds),
            mode=files.mode,
            declared=policy.declared,
            by=policy.by,
            updated=as_datetime(policy.updated),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValueInfo:
    """One value that holds for a table.

    kind          of the policy that says it, or would
    ref           the table's own branch or tag; None: the table
    value         None: nothing goes by it
    source        a policy, a property of the table, the limit of the branch or tag itself, or a default
    """

    kind: str
    ref: str | None
    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePoliciesInfo:
    """What holds for a table on a branch of its catalog, and where each value comes from.

    key           None: what holds where a table says nothing itself; ``content_id`` is None then, too
    notes         why something else happens all the same
    """

    branch: str
    key: str | None
    content_id: str | None
    notes: tuple[str, ...]
    values: tuple[PolicyValueInfo, ...]

    @classmethod
    def of(cls, held: TablePolicies) -> EffectivePoliciesInfo:
        """What was read of a table."""
        return cls(
            branch=held.branch,
            key=None if held.key is None else str(held.key),
            content_id=None if held.content_id is None else str(held.content_id),
            notes=tuple(held.notes),
            values=tuple(
                PolicyValueInfo(kind=str(each.kind), ref=each.ref, name=each.name, value=each.value, source=str(each.source))
                for each in held.values
            ),
        )


class CatalogPolicies:
    """What a catalog's object does with policies."""

    _session: StoreSession
    realm: str
    name: str

    def policies(self, *, ref: str | None = None) -> list[PolicyInfo]:
        """The policies of the catalog and of its tables.

        ref           where tables are looked up; None: the default branch
        """
        rows, catalog = self._policies_of()
        listed = list_policies(rows, catalog.definition.id)
        entries = catalog.find_by_id(ref, dict.fromkeys(each.content_id for each in listed if each.content_id is not None))
        keys = {content_id: entry.key for content_id, entry in entries.items()}
        return [PolicyInfo.of(each, None if each.content_id is None else keys.get(each.content_id)) for each in listed]

    def policy(self, kind: PolicyName, *, table: Key | None = None, ref: str | None = None) -> PolicyInfo:
        """One policy; raises NotFoundError where the catalog or table has none of that kind.

        table         None: the catalog's policy
        ref           where the table is looked up; None: the default branch
        """
        rows, catalog = self._policies_of()
        found = find_policy(rows, catalog.definition.id, _kind(kind), _table_id(catalog, table, ref))
        if found is None:
            whose = catalog.label if table is None else f"table {content_key(table)} of {catalog.label}"
            raise NotFoundError(f"{whose} has no policy {kind}")
        return PolicyInfo.of(found, _table_key(table))

    def set_policy(
        self,
        kind: PolicyName,
        *,
        table: Key | None = None,
        ref: str | None = None,
        branch: str | None = None,
        max_age: timedelta | None = None,
        min_to_keep: int | None = None,
        max_ref_age: timedelta | None = None,
        keep: int | None = None,
        grace: timedelta | None = None,
        delay: timedelta | None = None,
        hold: timedelta | None = None,
        mode: Literal["off", "report"] | None = None,
    ) -> PolicyInfo:
        """Set a policy of the catalog, or of a table. It replaces the one before; of snapshots, the rule for the same branches.

        snapshots     says branch, a pattern, None: all; max_age, min_to_keep, max_ref_age
        metadata-files  says keep, max_age
        file-collection  says grace, of at least a day; delay, hold, mode
        raises        RefusedError for what another kind says, and for values that no policy can have

        What is not given, the policy does not say: then the catalog's, the table's properties or a default decide.
        """
        said = {
            "branch": branch,
            "max_age": seconds_of(max_age),
            "min_to_keep": min_to_keep,
            "max_ref_age": seconds_of(max_ref_age),
            "keep": keep,
            "grace": seconds_of(grace),
            "delay": seconds_of(delay),
            "hold": seconds_of(hold),
            "mode": mode,
        }
        chosen, given = _kind(kind), {name: value for name, value in said.items() if value is not None}
        _check_said(chosen, given)
        rows, catalog = self._policies_of()
        made = put_policy(rows, catalog, chosen, _table_id(catalog, table, ref), given, self._session.author)
        return PolicyInfo.of(made, _table_key(table))

    def unset_policy(
        self, kind: PolicyName, *, table: Key | None = None, ref: str | None = None, branch: str | None = None
    ) -> PolicyInfo | None:
        """Remove a policy, or of snapshots the rule for a pattern of branches; returns what is left of it, None: nothing."""
        chosen = _kind(kind)
        _check_said(chosen, {} if branch is None else {"branch": branch})
        rows, catalog = self._policies_of()
        content_id = _table_id(catalog, table, ref)
        if branch is None:
            unset_policy(rows, catalog.definition, chosen, content_id)
            return None
        left = unset_snapshot_rule(rows, catalog.definition, branch, content_id=content_id, by=self._session.author)
        return None if left is None else PolicyInfo.of(left, _table_key(table))

    def _policies_of(self) -> tuple[RealmStore, Catalog]:
        rows = self._session.open_rows(self.realm)
        return rows, Catalog.open(rows, self.name)


def unknown_words(kind: PolicyKind, given: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What is given that a policy of this kind does not say, and what it says."""
    return [name for name in given if name not in _SAID[kind]], sorted(_SAID[kind])


def put_policy(
    rows: RealmStore, catalog: Catalog, kind: PolicyKind, content_id: UUID | None, given: Mapping[str, Any], by: str
) -> StoredPolicy:
    """Store what is given as a policy of a catalog or a table, durations in seconds; of snapshots, as the rule for a branch pattern."""
    definition = catalog.definition
    if kind is PolicyKind.SNAPSHOTS:
        rule = SnapshotRule(
            branches=given.get("branch", "*"),
            max_age_seconds=given.get("max_age"),
            min_to_keep=given.get("min_to_keep"),
            max_ref_age_seconds=given.get("max_ref_age"),
        )
        return set_snapshot_rule(rows, definition, rule, content_id=content_id, by=by)
    policy = StoredPolicy(
        kind=kind,
        catalog_id=definition.id,
        content_id=content_id,
        metadata_files=_metadata_files(given) if kind is PolicyKind.METADATA_FILES else None,
        files=_files(given) if kind is PolicyKind.FILE_COLLECTION else None,
        by=by,
    )
    return set_policy(rows, definition, policy)


def _metadata_files(given: Mapping[str, Any]) -> MetadataFileRule:
    return MetadataFileRule(keep=given.get("keep"), max_age_seconds=given.get("max_age"))


def _files(given: Mapping[str, Any]) -> FileRule:
    mode: FileMode | None = given.get("mode")
    return FileRule(
        grace_seconds=given.get("grace"), delay_seconds=given.get("delay"), hold_seconds=given.get("hold"), mode=mode
    )


def _kind(kind: str) -> PolicyKind:
    try:
        return PolicyKind(kind)
    except ValueError:
        raise RefusedError(f"{kind!r} is no kind of policy: it is one of {', '.join(PolicyKind)}") from None


def _check_said(kind: PolicyKind, given: Mapping[str, Any]) -> None:
    wrong, known = unknown_words(kind, given)
    if wrong:
        raise RefusedError(f"a policy {kind} says nothing of {', '.join(wrong)}: it says {', '.join(known)}")


def _table_id(catalog: Catalog, table: Key | None, ref: str | None) -> UUID | None:
    return None if table is None else find_policy_table(catalog, content_key(table), ref=ref)


def _table_key(table: Key | None) -> ContentKey | None:
    return None if table is None else content_key(table)
