"""Policies of a catalog and of its tables as resources, and what they come to.

Whoever reads them sees keys and properties of tables. Whoever changes them decides about the snapshots of tables, which are their data.
"""

from __future__ import annotations

from uuid import UUID

from headwater.access import Privilege
from headwater.catalogs import Catalog, ContentKey
from headwater.clock import as_text
from headwater.errors import NotFoundError, RefusedError
from headwater.policies import (
    KIND_FIELDS,
    FileRule,
    MetadataFileRule,
    PolicyKind,
    SnapshotRule,
    StoredPolicy,
    find_policy,
    find_policy_table,
    list_policies,
    read_table_policies,
    set_policy,
    unset_policy,
)
from headwater.settings import duration_text, parse_duration
from headwater_server.call import Answer, Call
from headwater_server.management.listed_pages import page_by_name
from headwater_server.management.managed_realm import ManagedRealm, managed_realm
from headwater_server.management.policy_shapes import (
    PoliciesQuery,
    PolicyList,
    PolicyResource,
    PolicyTableQuery,
    PolicyValue,
    PolicyValues,
    PolicyValuesQuery,
    PolicyWish,
    RuleOfFiles,
    RuleOfMetadataFiles,
    RuleOfSnapshots,
)
from headwater_server.management.route_parts import CATALOG_PATH, CHANGE_ERRORS, NO_BODY, READ_ERRORS
from headwater_server.route_table import Route

_POLICIES_PATH = f"{CATALOG_PATH}/policies"
_POLICY_PATH = f"{_POLICIES_PATH}/{{kind}}"
_READS, _CHANGES = Privilege.CATALOG_MANAGE_METADATA, Privilege.CATALOG_MANAGE_CONTENT


def policy_routes() -> list[Route]:
    """Make the routes of policies."""
    return [
        Route(
            method="GET",
            template=_POLICIES_PATH,
            handler=answer_policies,
            name="listPolicies",
            needs=f"{_READS} on the catalog",
            summary="List the policies of a catalog and of its tables.",
            query=PoliciesQuery,
            answers={200: PolicyList},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=_POLICY_PATH,
            handler=answer_policy,
            name="getPolicy",
            needs=f"{_READS} on the catalog",
            summary="Read a policy of a catalog or of one of its tables.",
            query=PolicyTableQuery,
            answers={200: PolicyResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="PUT",
            template=_POLICY_PATH,
            handler=answer_policy_change,
            name="putPolicy",
            needs=f"{_CHANGES} on the catalog",
            summary="Set a policy of a catalog or of one of its tables, in place of the one before.",
            writes=True,
            query=PolicyTableQuery,
            body=PolicyWish,
            answers={200: PolicyResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="DELETE",
            template=_POLICY_PATH,
            handler=answer_policy_removal,
            name="deletePolicy",
            needs=f"{_CHANGES} on the catalog",
            summary="Remove a policy of a catalog or of one of its tables.",
            writes=True,
            query=PolicyTableQuery,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{CATALOG_PATH}/effective-policies",
            handler=answer_effective_policies,
            name="getEffectivePolicies",
            needs=f"{_READS} on the catalog",
            summary="Read what holds for a table on a branch, and where each value comes from.",
            query=PolicyValuesQuery,
            answers={200: PolicyValues},
            errors=READ_ERRORS,
        ),
    ]


def answer_policies(call: Call[PoliciesQuery, None]) -> Answer:
    """List policies, by kind."""
    realm, query = managed_realm(call), call.query
    catalog = _open_catalog(realm, call.path["catalog"], _READS)
    listed = sorted(list_policies(realm.rows, catalog.definition.id), key=_place)
    page, token = page_by_name(listed, query, name=_place)
    ids = dict.fromkeys(policy.content_id for policy in page if policy.content_id is not None)
    keys = {content_id: entry.key for content_id, entry in catalog.find_by_id(query.reference, ids).items()}
    shown = [_shown(each, None if each.content_id is None else keys.get(each.content_id)) for each in page]
    return Answer(body=PolicyList(shown, token))


def answer_policy(call: Call[PolicyTableQuery, None]) -> Answer:
    """Read one policy; raises NotFoundError where there is none."""
    realm = managed_realm(call)
    catalog = _open_catalog(realm, call.path["catalog"], _READS)
    kind, (key, content_id) = _kind(call.path["kind"]), _table(catalog, call.query)
    policy = find_policy(realm.rows, catalog.definition.id, kind, content_id)
    if policy is None:
        whose = catalog.label if key is None else f"table {key} of {catalog.label}"
        raise NotFoundError(f"{whose} has no policy {kind}")
    return Answer(body=_shown(policy, key))


def answer_policy_change(call: Call[PolicyTableQuery, PolicyWish]) -> Answer:
    """Set a policy; raises RefusedError for what no policy can say."""
    realm = managed_realm(call)
    catalog = _open_catalog(realm, call.path["catalog"], _CHANGES)
    kind, (key, content_id) = _kind(call.path["kind"]), _table(catalog, call.query)
    wished = _wished(kind, call.body)
    policy = StoredPolicy(
        kind=kind,
        catalog_id=catalog.definition.id,
        content_id=content_id,
        snapshots=tuple(map(_snapshot_rule, wished.snapshots or ())),
        metadata_files=None if wished.metadata_files is None else _metadata_rule(wished.metadata_files),
        files=None if wished.file_collection is None else _file_rule(wished.file_collection),
        by=realm.changed_by,
    )
    return Answer(body=_shown(set_policy(realm.rows, catalog.definition, policy), key))


def answer_policy_removal(call: Call[PolicyTableQuery, None]) -> Answer:
    """Remove a policy; raises NotFoundError where there is none."""
    realm = managed_realm(call)
    catalog = _open_catalog(realm, call.path["catalog"], _CHANGES)
    kind, (_, content_id) = _kind(call.path["kind"]), _table(catalog, call.query)
    unset_policy(realm.rows, catalog.definition, kind, content_id)
    return Answer(204)


def answer_effective_policies(call: Call[PolicyValuesQuery, None]) -> Answer:
    """Read what holds for a table, or for all of a catalog."""
    realm, query = managed_realm(call), call.query
    catalog = _open_catalog(realm, call.path["catalog"], _READS)
    key = None if query.key is None else ContentKey.parse(query.key)
    held = read_table_policies(realm.rows, catalog, key, branch=query.branch)
    return Answer(
        body=PolicyValues(
            branch=held.branch,
            key=None if held.key is None else list(held.key.elements),
            content_id=None if held.content_id is None else str(held.content_id),
            notes=list(held.notes),
            values=[PolicyValue(str(each.kind), each.ref, each.name, each.value, each.source) for each in held.values],
        )
    )


def _open_catalog(realm: ManagedRealm, name: str, privilege: Privilege) -> Catalog:
    return Catalog(realm.rows, realm.allowed_catalog(name, privilege))


def _kind(text: str) -> PolicyKind:
    try:
        return PolicyKind(text)
    except ValueError:
        raise NotFoundError(f"there is no kind of policy {text[:100]!r}: there is {', '.join(PolicyKind)}") from None


def _table(catalog: Catalog, query: PolicyTableQuery) -> tuple[ContentKey | None, UUID | None]:
    if query.key is None:
        return None, None
    key = ContentKey.parse(query.key)
    return key, find_policy_table(catalog, key, ref=query.reference)


def _wished(kind: PolicyKind, wish: PolicyWish) -> PolicyWish:
    """What is asked for; raises RefusedError unless that is a policy of this kind alone."""
    given = {
        PolicyKind.SNAPSHOTS: wish.snapshots,
        PolicyKind.METADATA_FILES: wish.metadata_files,
        PolicyKind.FILE_COLLECTION: wish.file_collection,
    }
    if {each for each, said in given.items() if said is not None} != {kind}:
        raise RefusedError(f"a policy {kind} says something in the field {KIND_FIELDS[kind]}, and in no other")
    return wish


def _snapshot_rule(rule: RuleOfSnapshots) -> SnapshotRule:
    return SnapshotRule(
        branches=rule.branches,
        max_age_seconds=_seconds("maxAge", rule.max_age),
        min_to_keep=rule.min_to_keep,
        max_ref_age_seconds=_seconds("maxRefAge", rule.max_ref_age),
    )


def _metadata_rule(rule: RuleOfMetadataFiles) -> MetadataFileRule:
    return MetadataFileRule(keep=rule.keep, max_age_seconds=_seconds("maxAge", rule.max_age))


def _file_rule(rule: RuleOfFiles) -> FileRule:
    return FileRule(
        grace_seconds=_seconds("grace", rule.grace),
        delay_seconds=_seconds("delay", rule.delay),
        hold_seconds=_seconds("hold", rule.hold),
        mode=rule.mode,
    )


def _seconds(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except RefusedError as wrong:
        raise RefusedError(f"{name}: {wrong}") from None


def _place(policy: StoredPolicy) -> str:
    return f"{policy.kind} {policy.content_id or ''}"


def _shown(policy: StoredPolicy, key: ContentKey | None) -> PolicyResource:
    of_log, files = policy.metadata_files, policy.files
    return PolicyResource(
        kind=str(policy.kind),
        content_id=None if policy.content_id is None else str(policy.content_id),
        key=None if key is None else list(key.elements),
        snapshots=list(map(_shown_rule, policy.snapshots)) if policy.kind is PolicyKind.SNAPSHOTS else None,
        metadata_files=None if of_log is None else RuleOfMetadataFiles(of_log.keep, _text(of_log.max_age_seconds)),
        file_collection=None
        if files is None
        else RuleOfFiles(_text(files.grace_seconds), _text(files.delay_seconds), _text(files.hold_seconds), files.mode),
        declared=policy.declared,
        by=policy.by,
        updated=as_text(policy.updated),
    )


def _shown_rule(rule: SnapshotRule) -> RuleOfSnapshots:
    return RuleOfSnapshots(rule.branches, _text(rule.max_age_seconds), rule.min_to_keep, _text(rule.max_ref_age_seconds))


def _text(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)
