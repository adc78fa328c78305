"""What a caller is told of operations that cannot be committed: as if what it may not list were not there.

the rights              asked on the state that the operations were made from; a commit succeeds only where the touched keys are so still
what may not be listed  is taken out of the states, and they are judged again: the answer is that of a missing one
no fault is left        something was to be created where something hidden stands: that the key is taken is all that is told
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headwater.catalogs import (
    CONTENT,
    Conflict,
    ConflictKind,
    Content,
    ContentKey,
    ContentOperation,
    ContentType,
    ContentValue,
    MergeConflictError,
    Put,
)
from headwater.catalogs.content_operations import conflicts_text, content_view, head_view, index_at, plan_commit
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError
from headwater.iceberg_catalog.branch_session import BranchChange, BranchSession, BranchState
from headwater.iceberg_catalog.lake_errors import NoSuchNamespaceError
from headwater.store import id_text


@dataclass(frozen=True, slots=True)
class ListedState(BranchState):
    """A state without what stands at some keys, because its reader may not list that."""

    hidden: frozenset[ContentKey] = frozenset()

    def find_value(self, key: ContentKey) -> ContentValue | None:
        return None if key in self.hidden else BranchState.find_value(self, key)

    def find_content(self, key: ContentKey) -> Content | None:
        return None if key in self.hidden else BranchState.find_content(self, key)

    def find_many(self, keys: list[ContentKey]) -> dict[ContentKey, Content]:
        return BranchState.find_many(self, [key for key in keys if key not in self.hidden])


@dataclass(frozen=True, slots=True)
class CommitStates:
    """The states that operations are judged by.

    base          the one that they were made from
    head          the present one
    is_named      their author has named the base
    """

    base: BranchState
    head: BranchState
    is_named: bool


class ConflictReport:
    """Judges operations on a branch, and says what is wrong with them to a caller who may not list everything."""

    def __init__(self, session: BranchSession) -> None:
        self._session = session

    def check_rights(self, states: CommitStates, change: BranchChange) -> None:
        """Check that the caller may make a change.

        raises        ForbiddenError for what it may list; for what it may not, the error that a missing one gives
        """
        try:
            self._session.check_rights(states.base, change)
        except NotFoundError as fault:
            shown = self._listed(states, change.operations)
            try:
                self._session.check_rights(shown.base, change)
            except NoSuchNamespaceError as absent:
                conflicts = self._absent_namespaces(shown.base, change.operations)
                raise (_lost(conflicts) if conflicts else absent) from None
            _judge(shown, change.operations)
            raise fault

    def check_conflicts(self, states: CommitStates, operations: Sequence[ContentOperation]) -> None:
        """Check that operations are sound, and in no conflict with the present state.

        raises        RefusedError · ConflictError with all conflicts as ``details``
        """
        try:
            _judge(states, operations)
        except (ConflictError, RefusedError) as fault:
            raise self._told(fault, states, operations) from None

    def told_late(self, fault: ConflictError, states: CommitStates, operations: Sequence[ContentOperation]) -> HeadwaterError:
        """The error for a conflict with a state that became the present one only after the operations were judged."""
        try:
            self.check_conflicts(replace(states, head=self._session.state()), operations)
        except (ConflictError, RefusedError) as told:
            return told
        conflicts = [each for each in fault.details if isinstance(each, Conflict)]
        return _lost([replace(each, message="was changed at the same time") for each in conflicts]) if conflicts else fault

    def told_merge(self, fault: MergeConflictError) -> MergeConflictError:
        """The error for a merge in conflict, without the names of keys of the target that nobody asked about and that may not be listed."""
        result, state = fault.result, self._session.state()
        onto = None if result.onto is None else state.catalog.resolve(id_text(result.onto))
        seen = replace(state, head=onto)
        told = tuple(self._without_others(each, seen) for each in result.conflicts)
        return MergeConflictError(fault.what, replace(result, conflicts=told))

    def _without_others(self, conflict: Conflict, state: BranchState) -> Conflict:
        key, kind = conflict.key, conflict.kind
        if kind is ConflictKind.NOT_A_NAMESPACE and key is not None and not self._session.may_list(state, key):
            return Conflict(ConflictKind.NAMESPACE_ABSENT, key, "would be needed as a namespace")
        if all(self._session.may_list(state, other) for other in conflict.others):
            return conflict
        return replace(conflict, message=_WITHOUT_OTHERS.get(kind, "is in conflict"), others=())

    def _told(
        self, fault: ConflictError | RefusedError, states: CommitStates, operations: Sequence[ContentOperation]
    ) -> HeadwaterError:
        shown = self._listed(states, operations)
        try:
            _judge(shown, operations)
        except ConflictError as seen:
            conflicts = [each for each in seen.details if isinstance(each, Conflict)]
            return _lost([self._without_children(each, states.head, operations) for each in conflicts])
        except RefusedError as seen:
            return seen
        hidden = _hidden(shown.base) | _hidden(shown.head)
        taken = [each.key for each in operations if isinstance(each, Put) and each.key in hidden]
        return _lost([Conflict(ConflictKind.KEY_EXISTS, key, "is taken") for key in taken])

    def _listed(self, states: CommitStates, operations: Sequence[ContentOperation]) -> CommitStates:
        base = self._without_hidden(states.base, operations)
        head = base if states.head is states.base else self._without_hidden(states.head, operations)
        return replace(states, base=base, head=head)

    def _without_hidden(self, state: BranchState, operations: Sequence[ContentOperation]) -> BranchState:
        """The state without those touched keys, and those things above them that are no namespaces, that may not be listed."""
        above = {ancestor for each in operations if isinstance(each, Put) for ancestor in each.key.ancestors()}
        touched = {each.key for each in operations}
        held = content_view(index_at(state.head, CONTENT), {*above, *touched})
        asked = (key for key, value in held.items() if key in touched or value.type is not ContentType.NAMESPACE)
        hidden = frozenset(key for key in asked if not self._session.may_list(state, key))
        return ListedState(state.catalog, state.rows, state.head, hidden) if hidden else state

    def _absent_namespaces(self, state: BranchState, operations: Iterable[ContentOperation]) -> list[Conflict]:
        """The namespaces that creations need, and that are not there, or may not be listed."""
        puts = [each.key for each in operations if isinstance(each, Put)]
        parents = dict.fromkeys((key.parent, key) for key in puts if key.parent is not None and state.find_value(key) is None)
        return [
            Conflict(ConflictKind.NAMESPACE_ABSENT, parent, f"would be needed as the namespace of {key}")
            for parent, key in parents
            if parent is not None and not (state.is_namespace(parent) and self._session.may_list(state, parent))
        ]

    def _without_children(self, conflict: Conflict, head: BranchState, operations: Sequence[ContentOperation]) -> Conflict:
        """The conflict without the names of what may not be listed."""
        if conflict.kind is not ConflictKind.NAMESPACE_NOT_EMPTY or conflict.key is None:
            return conflict
        view = head_view(index_at(head.head, CONTENT), operations)
        below = (key for key in view if key.is_below(conflict.key))
        if all(self._session.may_list(head, key) for key in below):
            return conflict
        return replace(conflict, message=_WITHOUT_OTHERS[conflict.kind], others=())


_WITHOUT_OTHERS = {
    ConflictKind.NAMESPACE_NOT_EMPTY: "is not empty",
    ConflictKind.KEY_CONFLICT: "would hold a content that stands elsewhere",
    ConflictKind.KEY_DOES_NOT_EXIST: "was deleted by the source, and the target has moved it",
}


def _judge(states: CommitStates, operations: Sequence[ContentOperation]) -> None:
    """Judge operations as their commit will; raises what ``plan_commit`` raises."""
    base = content_view(index_at(states.base.head, CONTENT), (each.key for each in operations))
    head = head_view(index_at(states.head.head, CONTENT), operations)
    for view, hidden in ((base, _hidden(states.base)), (head, _hidden(states.head))):
        for key in hidden.intersection(view):
            del view[key]
    plan_commit(base if states.is_named else None, head, operations)


def _hidden(state: BranchState) -> frozenset[ContentKey]:
    return state.hidden if isinstance(state, ListedState) else frozenset()


def _lost(conflicts: Iterable[Conflict]) -> ConflictError:
    details = tuple(dict.fromkeys(conflicts))
    return ConflictError(conflicts_text(details), details=details)
