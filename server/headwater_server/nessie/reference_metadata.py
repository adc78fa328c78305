"""What Nessie's API tells of branches and tags beyond where they are: their last commit, and how they stand to the default branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from headwater.catalogs import LogEntry, NamedRef, RefKind, RefRelation
from headwater.catalogs.history.commit_meta import log_entry
from headwater.catalogs.history.ref_relation import relate_heads
from headwater.commits import Commit, Head
from headwater_server.nessie.commit_meta_bodies import commit_meta_body, commit_meta_body_v1
from headwater_server.nessie.content_bodies import ApiVersion
from headwater_server.nessie.nessie_session import NessieSession
from headwater_server.nessie.reference_paths import hash_text
from headwater_server.nessie.reference_shapes import JsonObject, ReferenceMetadata


@dataclass(frozen=True, slots=True)
class RefFacts:
    """What a caller may know of a branch or tag.

    entry         its last commit; None: it has none
    relation      to the default branch; None: the caller may not read the history of that
    total         the commits of its history
    is_hidden     the last commit changed something that the caller may not list
    """

    entry: LogEntry | None
    relation: RefRelation | None
    total: int
    is_hidden: bool = False

    @property
    def judged(self) -> RefRelation:
        """The relation as filters see it."""
        return self.relation or RefRelation(0, 0, None, self.total)


def read_facts(session: NessieSession, refs: Sequence[NamedRef], *, with_relation: bool) -> Mapping[NamedRef, RefFacts]:
    """Read what the caller may know of some branches and tags; those whose history it may not read are left out.

    with_relation  how they stand to the default branch, too
    """
    default = session.definition.default_branch
    known = {ref.name for ref in refs} | {default}
    if session.references is not None:
        known = set(session.references.filter_histories(sorted(known)))
    readable = [ref for ref in refs if ref.name in known]
    heads = _heads_of(session, readable)
    is_related = with_relation and default in known
    base = session.catalog.resolve(default) if is_related else None
    return {ref: _facts(session, ref, heads.get(ref), base, is_related=is_related) for ref in readable}


def _facts(session: NessieSession, ref: NamedRef, head: Head | None, base: Head | None, *, is_related: bool) -> RefFacts:
    whole = entry = None if head is None else log_entry(head)
    if entry is not None and session.references is not None:
        entry = session.references.filter_entry(entry, ref.name)
    is_hidden = whole is not None and entry is not None and len(entry.operations) < len(whole.operations)
    relation = relate_heads(head, base) if is_related else None
    return RefFacts(entry, relation, 0 if head is None else head.commit.seq, is_hidden)


def metadata_body(session: NessieSession, ref: NamedRef, facts: RefFacts, version: ApiVersion) -> ReferenceMetadata:
    """Write what is known of a branch or tag. The default branch, and tags, stand in no relation."""
    meta = None if facts.entry is None else (commit_meta_body if version == 2 else commit_meta_body_v1)(facts.entry)
    body: JsonObject | None = None if meta is None else msgspec.to_builtins(meta)
    relation = facts.relation
    if relation is None or ref.kind is RefKind.TAG or ref.name == session.definition.default_branch:
        return ReferenceMetadata(commit_meta_of_head=body, num_total_commits=facts.total)
    common = relation.common_ancestor
    return ReferenceMetadata(
        num_commits_ahead=relation.ahead,
        num_commits_behind=relation.behind,
        commit_meta_of_head=body,
        common_ancestor_hash=hash_text(common) if common is not None or relation.is_apart else None,
        num_total_commits=facts.total,
    )


def _heads_of(session: NessieSession, refs: Sequence[NamedRef]) -> dict[NamedRef, Head]:
    """The commits of references, in one bulk read; without those that have none."""
    ids = [(ref, ref.head) for ref in refs if ref.head is not None]
    commits = session.rows.read_many([commit_id for _, commit_id in ids], Commit)
    return {
        ref: Head(commit_id, commit, session.rows)
        for (ref, commit_id), commit in zip(ids, commits, strict=True)
        if commit is not None
    }
