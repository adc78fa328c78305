"""What one caller may do with the branches and tags of a catalog themselves, and what it may see of their logs and differences.

A merge, and a transplant, needs for every key that it brings the right to read it at the source and to create, change or drop it at the
target. It is asked on the very state that it is applied to, before any conflict is told.

A branch or tag is made of what its maker sees: by the name of the new one no rule may give more than holds for the source. To point an
existing one anywhere is administration: ``REFERENCE_ASSIGN``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from uuid import UUID

from headwater.access import (
    AccessDecisions,
    AccessQuestion,
    ForbiddenError,
    Privilege,
    ReferenceName,
    Securable,
    SecurableKind,
    reference_of,
)
from headwater.catalogs import (
    CatalogDefinition,
    CommittedOperation,
    ContentChange,
    ContentKey,
    ContentValue,
    LogEntry,
    MergeGuard,
)
from headwater.errors import NotFoundError
from headwater.iceberg_catalog.lake_privileges import (
    CREATE_PRIVILEGES,
    DROP_PRIVILEGES,
    LIST_PRIVILEGES,
    READ_PRIVILEGES,
    REPLACE_PRIVILEGES,
    SHOW_PRIVILEGES,
    needs_history,
    securable_kind,
)


class ReferenceAccess:
    """A caller's rights on the references of one catalog, as its rules are now."""

    def __init__(self, definition: CatalogDefinition, decisions: AccessDecisions) -> None:
        self._definition = definition
        self._decisions = decisions

    def filter_listed(self, names: Sequence[str]) -> list[str]:
        """Those of some branches or tags that may be listed."""
        asked = [self._question(Privilege.REFERENCE_LIST, name) for name in names]
        return [name for name, answer in zip(names, self._decisions.allows_each(asked), strict=True) if answer]

    def filter_histories(self, names: Sequence[str]) -> list[str]:
        """Those of some branches or tags whose log may be read; see ``check_read``."""
        reached = [name for name in names if self._decisions.reaches(reference_of(name, self._definition))]
        asked = [self._question(Privilege.REFERENCE_READ_HISTORY, name) for name in reached]
        return [name for name, answer in zip(reached, self._decisions.allows_each(asked), strict=True) if answer]

    def check_read(self, text: str | None) -> None:
        """Check that the log and the differences of a reference may be read.

        text          as a caller names it, perhaps with a commit or steps back
        raises        NotFoundError for one that may not be seen; ForbiddenError without the right to read history
        """
        reference = reference_of(text, self._definition)
        if not self._decisions.reaches(reference):
            raise NotFoundError(f"catalog {self._definition.name!r} has no reference {text!r}")
        self._check(Privilege.REFERENCE_READ_HISTORY, reference)

    def check_creation(self, name: str, source: str | None) -> None:
        """Check that a branch or tag may be made.

        source        what it is made of, as a caller names it; None: the default branch
        raises        ForbiddenError; NotFoundError for a source that may not be seen
        """
        start, new = reference_of(source, self._definition), reference_of(name, self._definition)
        if not self._decisions.reaches(start):
            raise NotFoundError(f"catalog {self._definition.name!r} has no reference {source!r}")
        self._check(Privilege.REFERENCE_CREATE, new)
        if needs_history(source):
            self._check(Privilege.REFERENCE_READ_HISTORY, start)
        if self._decisions.widens(start, new) and not self._allows(Privilege.REFERENCE_ASSIGN, new):
            raise ForbiddenError(
                f"{name!r} of catalog {self._definition.name!r} would show you what you may not see of {source or 'its source'!r}:"
                f" this needs {Privilege.REFERENCE_ASSIGN} on reference {name}, or the same rights on both"
            )

    def check_drop(self, name: str) -> None:
        """Check that a branch or tag may be deleted, or taken back; raises ForbiddenError, or NotFoundError where it may not be seen."""
        self._check_known(Privilege.REFERENCE_DROP, name)

    def check_assignment(self, name: str) -> None:
        """Check that a branch or tag may be pointed anywhere; raises ForbiddenError, or NotFoundError where it may not be seen."""
        self._check_known(Privilege.REFERENCE_ASSIGN, name)

    def merge_guard(self, source: str, into: str | None) -> MergeGuard:
        """Make the guard of a merge or a transplant.

        raises        what ``check_read`` raises for the source
        """
        origin, target = reference_of(source, self._definition), reference_of(into, self._definition)
        if not self._decisions.reaches(origin):
            raise NotFoundError(f"catalog {self._definition.name!r} has no reference {source!r}")
        if needs_history(source):
            self._check(Privilege.REFERENCE_READ_HISTORY, origin)

        def guard(changes: Sequence[ContentChange], present: Mapping[ContentKey, ContentValue]) -> None:
            questions = [
                question
                for change in changes
                for question in self._merge_questions(change, present.get(change.key), origin, target)
            ]
            for question, answer in zip(questions, self._decisions.allows_each(questions), strict=True):
                if not answer:
                    self._refuse(question)

        return guard

    def filter_contents(self, contents: Iterable[tuple[ContentKey, ContentValue]], text: str | None) -> list[ContentKey]:
        """Those keys of some contents that may be listed on a reference."""
        reference, held = reference_of(text, self._definition), list(contents)
        answers = self._decisions.allows_each([self._listed(key, value, reference) for key, value in held])
        return [key for (key, _), answer in zip(held, answers, strict=True) if answer]

    def filter_changes(self, changes: Sequence[ContentChange], before: str | None, after: str | None) -> list[ContentChange]:
        """Those differences of two references whose both sides may be listed, without the names of what may not."""
        first, second = reference_of(before, self._definition), reference_of(after, self._definition)
        asked = [self._sides(change, first, second) for change in changes]
        shown = [change for change, is_shown in zip(changes, self._allow_all(asked), strict=True) if is_shown]
        keys = {change.key for change in shown}
        return [
            replace(
                change,
                renamed_to=change.renamed_to if change.renamed_to in keys else None,
                renamed_from=change.renamed_from if change.renamed_from in keys else None,
            )
            for change in shown
        ]

    def filter_entry(self, entry: LogEntry, text: str | None) -> LogEntry:
        """A commit as a caller may see it: without operations on what it may not list, and then without its message, which names them."""
        return self.filter_entries([entry], text)[0]

    def filter_entries(self, entries: Sequence[LogEntry], text: str | None) -> list[LogEntry]:
        """Some commits, each as ``filter_entry`` shows it; the caller's rights are sought once for all."""
        reference = reference_of(text, self._definition)
        asked = [self._listed_operation(operation, reference) for entry in entries for operation in entry.operations]
        answers = iter(self._allow_all(asked))
        return [self._shown_entry(entry, [next(answers) for _ in entry.operations]) for entry in entries]

    def shows_each(self, contents: Sequence[tuple[ContentKey, ContentValue]], text: str | None) -> list[bool]:
        """Whether some contents may themselves be shown on a reference, and not only that they are there."""
        reference = reference_of(text, self._definition)
        asked = [self._content(SHOW_PRIVILEGES, key, value, reference) for key, value in contents]
        return list(self._decisions.allows_each(asked))

    def _merge_questions(
        self, change: ContentChange, present: ContentValue | None, origin: ReferenceName, target: ReferenceName
    ) -> Iterable[AccessQuestion]:
        key, brought = change.key, change.after
        if brought is None:
            if present is not None:
                yield self._content(DROP_PRIVILEGES, key, present, target)
            elif change.before is not None:  # nothing is to be done, and the result names the key all the same
                yield self._content(LIST_PRIVILEGES, key, change.before, origin)
            return
        yield self._content(READ_PRIVILEGES, key, brought, origin)
        if present is not None and present.content_id == brought.content_id:
            yield self._content(REPLACE_PRIVILEGES, key, present, target)
            return
        if present is not None:
            yield self._content(DROP_PRIVILEGES, key, present, target)
        kind = securable_kind(brought.type)
        yield AccessQuestion(CREATE_PRIVILEGES[kind], self._securable(kind, key, None), target)

    def _content(
        self,
        privileges: dict[SecurableKind, Privilege],
        key: ContentKey,
        value: ContentValue,
        reference: ReferenceName,
    ) -> AccessQuestion:
        kind = securable_kind(value.type)
        return AccessQuestion(privileges[kind], self._securable(kind, key, value.content_id), reference)

    def _listed(self, key: ContentKey, value: ContentValue, reference: ReferenceName) -> AccessQuestion:
        return self._content(LIST_PRIVILEGES, key, value, reference)

    def _sides(self, change: ContentChange, first: ReferenceName, second: ReferenceName) -> list[AccessQuestion]:
        """What has to be allowed for a difference to be shown."""
        sides = ((change.before, first), (change.after, second))
        return [self._listed(change.key, value, reference) for value, reference in sides if value is not None]

    def _listed_operation(self, operation: CommittedOperation, reference: ReferenceName) -> list[AccessQuestion]:
        """What has to be allowed for an operation to be shown. One whose type is not known any more needs the right to list everything."""
        kinds = tuple(LIST_PRIVILEGES) if operation.type is None else (securable_kind(operation.type),)
        return [
            AccessQuestion(LIST_PRIVILEGES[kind], self._securable(kind, operation.key, operation.content_id), reference)
            for kind in kinds
        ]

    def _shown_entry(self, entry: LogEntry, answers: Sequence[bool]) -> LogEntry:
        if all(answers):
            return entry
        shown = tuple(operation for operation, is_shown in zip(entry.operations, answers, strict=True) if is_shown)
        return replace(entry, operations=shown, meta=replace(entry.meta, message="", properties={}))

    def _allow_all(self, groups: Sequence[Sequence[AccessQuestion]]) -> list[bool]:
        """For each group whether everything in it is allowed; all are asked at once."""
        answers = iter(self._decisions.allows_each([question for group in groups for question in group]))
        return [all(list(islice(answers, len(group)))) for group in groups]

    def _securable(self, kind: SecurableKind, key: ContentKey, content_id: UUID | None) -> Securable:
        return Securable(kind=kind, catalog=self._definition.name, path=key.elements, content_id=content_id)

    def _question(self, privilege: Privilege, name: str) -> AccessQuestion:
        reference = reference_of(name, self._definition)
        return AccessQuestion(privilege, self._reference(reference), reference)

    def _reference(self, reference: ReferenceName) -> Securable:
        return Securable(kind=SecurableKind.REFERENCE, catalog=self._definition.name, pattern=reference.name or "*")

    def _allows(self, privilege: Privilege, reference: ReferenceName) -> bool:
        return self._decisions.allows(privilege, self._reference(reference), reference)

    def _check(self, privilege: Privilege, reference: ReferenceName) -> None:
        if not self._allows(privilege, reference):
            raise ForbiddenError.lacking(privilege, self._reference(reference), reference)

    def _check_known(self, privilege: Privilege, name: str) -> None:
        reference = reference_of(name, self._definition)
        if self._allows(privilege, reference):
            return
        if not self._allows(Privilege.REFERENCE_LIST, reference) and not self._decisions.reaches(reference):
            raise NotFoundError(f"catalog {self._definition.name!r} has no reference {name!r}")
        raise ForbiddenError.lacking(privilege, self._reference(reference), reference)

    def _refuse(self, question: AccessQuestion) -> None:
        """raises ForbiddenError, which names what may be listed and nothing else"""
        on = question.on
        if self._decisions.allows(LIST_PRIVILEGES[on.kind], on, question.reference):
            raise ForbiddenError.lacking(question.privilege, on, question.reference)
        raise ForbiddenError(
            f"this changes something in catalog {self._definition.name!r} that you may not see: ask whoever manages its grants"
        )
