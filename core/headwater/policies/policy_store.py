"""The policies of a realm, as they are stored and changed: the index ``policies`` of the reference ``policy-mappings``.

16 hex digits catalog id, 0x00, kind, 0x00, 16 bytes content id of a table, or nothing for the whole catalog -> object ``policy``
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from headwater.catalogs import CatalogDefinition
from headwater.commits import Head, Transaction, commit_change, read_head
from headwater.errors import NotFoundError
from headwater.index import IndexValue
from headwater.policies.policy_values import PolicyKind, SnapshotRule, StoredPolicy, changed_kinds, check_policy
from headwater.store import RealmStore

MAPPINGS = "policy-mappings"
POLICIES = "policies"


def policy_key(catalog_id: str, kind: PolicyKind, content_id: UUID | None) -> bytes:
    return f"{catalog_id}\0{kind}\0".encode() + (b"" if content_id is None else content_id.bytes)


def list_policies(rows: RealmStore, catalog_id: str) -> list[StoredPolicy]:
    """The policies of a catalog and of its tables, by kind, the catalog's own first."""
    return _policies_in(read_head(rows, MAPPINGS, fresh=True), catalog_id)


def find_policy(rows: RealmStore, catalog_id: str, kind: PolicyKind, content_id: UUID | None = None) -> StoredPolicy | None:
    """One policy."""
    head = read_head(rows, MAPPINGS, fresh=True)
    value = None if head is None else head.index(POLICIES).get(policy_key(catalog_id, kind, content_id))
    return None if value is None or value.object_id is None else rows.read_object(value.object_id, StoredPolicy)


def set_policy(rows: RealmStore, definition: CatalogDefinition, policy: StoredPolicy) -> StoredPolicy:
    """Set a policy of a catalog or of a table; returns it as it is stored. One that says the same is left as it is.

    raises        RefusedError for what no policy can say
    """
    check_policy(policy)
    wanted = msgspec.structs.replace(policy, catalog_id=definition.id)

    def change(tx: Transaction) -> StoredPolicy:
        return _put(tx, wanted)

    return commit_change(rows, MAPPINGS, change, message=f"policy {policy.kind} of catalog {definition.name}").result


def set_snapshot_rule(
    rows: RealmStore, definition: CatalogDefinition, rule: SnapshotRule, *, content_id: UUID | None = None, by: str = ""
) -> StoredPolicy:
    """Set one rule of a policy of snapshots: in place of the one for the same branches; a new one stands before that for all others.

    raises        RefusedError for what no policy can say
    """

    def change(tx: Transaction) -> StoredPolicy:
        before = _get(tx, empty) or empty
        wanted = msgspec.structs.replace(before, snapshots=_with_rule(before.snapshots, rule), by=by, declared=False)
        check_policy(wanted)
        return _put(tx, wanted)

    empty = StoredPolicy(kind=PolicyKind.SNAPSHOTS, catalog_id=definition.id, content_id=content_id)
    return commit_change(rows, MAPPINGS, change, message=f"rule for {rule.branches!r} of catalog {definition.name}").result


def unset_snapshot_rule(
    rows: RealmStore, definition: CatalogDefinition, branches: str, *, content_id: UUID | None = None, by: str = ""
) -> StoredPolicy | None:
    """Remove the rule for these branches; returns what is left of the policy, which goes with its last rule.

    raises        NotFoundError where there is none
    """

    def change(tx: Transaction) -> StoredPolicy | None:
        before = _get(tx, empty) or empty
        left = tuple(rule for rule in before.snapshots if rule.branches != branches)
        if len(left) == len(before.snapshots):
            whose = f"catalog {definition.name!r} of realm {rows.realm!r}"
            if content_id is not None:
                whose = f"table {content_id} of {whose}"
            raise NotFoundError(f"{whose} has no rule of snapshots for the branches {branches!r}: see `headwater policy show`")
        if left:
            return _put(tx, msgspec.structs.replace(before, snapshots=left, by=by, declared=False))
        tx.index(POLICIES).remove(policy_key(definition.id, PolicyKind.SNAPSHOTS, content_id))
        return None

    empty = StoredPolicy(kind=PolicyKind.SNAPSHOTS, catalog_id=definition.id, content_id=content_id)
    return commit_change(rows, MAPPINGS, change, message=f"no rule for {branches!r} of catalog {definition.name}").result


def unset_policy(rows: RealmStore, definition: CatalogDefinition, kind: PolicyKind, content_id: UUID | None = None) -> None:
    """Remove a policy.

    raises        NotFoundError where there is none
    """

    def change(tx: Transaction) -> bool:
        return tx.index(POLICIES).remove(policy_key(definition.id, kind, content_id))

    if not commit_change(rows, MAPPINGS, change, message=f"no policy {kind} of catalog {definition.name}").result:
        whose = "it" if content_id is None else f"its table {content_id}"
        raise NotFoundError(f"catalog {definition.name!r} of realm {rows.realm!r} has no policy {kind} for {whose}")


def declare_policies(rows: RealmStore, definition: CatalogDefinition, declared: Sequence[StoredPolicy]) -> bool:
    """Make the catalog's own policies what its resource declares; those of tables, and kinds set by hand, stay. Returns whether any
    changed.
    """
    for policy in declared:
        check_policy(policy)
    wanted = {policy.kind: msgspec.structs.replace(policy, catalog_id=definition.id, declared=True) for policy in declared}

    def change(tx: Transaction) -> bool:
        kinds = changed_kinds(_policies_in(tx, definition.id), declared)
        for kind in kinds:
            if kind in wanted:
                _put(tx, wanted[kind])
            else:
                tx.index(POLICIES).remove(policy_key(definition.id, kind, None))
        return bool(kinds)

    return commit_change(rows, MAPPINGS, change, message=f"policies of catalog {definition.name}").result


def _with_rule(rules: Sequence[SnapshotRule], rule: SnapshotRule) -> tuple[SnapshotRule, ...]:
    """The rules with one more, or with another for the same branches. The rule for all branches is the last that anything meets."""
    patterns = [each.branches for each in rules]
    if rule.branches in patterns:
        return tuple(rule if each.branches == rule.branches else each for each in rules)
    at = patterns.index("*") if "*" in patterns else len(rules)
    return (*rules[:at], rule, *rules[at:])


def _policies_in(state: Head | Transaction | None, catalog_id: str) -> list[StoredPolicy]:
    if state is None:
        return []
    ids = [
        value.object_id for _, value in state.index(POLICIES).prefix(f"{catalog_id}\0".encode()) if value.object_id is not None
    ]
    reader = state.reader if isinstance(state, Transaction) else state.rows
    return [
        reader.read_object(object_id, StoredPolicy) if found is None else found  # which says what is missing
        for object_id, found in zip(ids, reader.read_many(ids, StoredPolicy), strict=True)
    ]


def _get(tx: Transaction, policy: StoredPolicy) -> StoredPolicy | None:
    value = tx.index(POLICIES).get(policy_key(policy.catalog_id, policy.kind, policy.content_id))
    return None if value is None or value.object_id is None else tx.reader.read_object(value.object_id, StoredPolicy)


def _put(tx: Transaction, policy: StoredPolicy) -> StoredPolicy:
    before = _get(tx, policy)
    if before is not None and before.says() == policy.says() and before.declared == policy.declared:
        return before
    stored = msgspec.structs.replace(policy, updated=tx.time)
    key = policy_key(policy.catalog_id, policy.kind, policy.content_id)
    tx.index(POLICIES).put(key, IndexValue(tx.add_object(stored)))
    return stored
