"""What decides: questions about one caller, answered by its rules or by a plug-in, one at a time or many at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

from headwater.access.access_rules import AccessQuestion, ReferenceName, Securable
from headwater.access.privileges import Privilege


class AccessDecisions(Protocol):
    """The answers for one caller in one catalog. ``AccessRules`` gives them by grants; a plug-in may give them otherwise."""

    def allows(self, privilege: Privilege, on: Securable, reference: ReferenceName) -> bool:
        """Whether a privilege is held on something, seen through a reference."""
        ...

    def allows_each(self, questions: Sequence[AccessQuestion]) -> Sequence[bool]:
        """The answers to many questions, in their order."""
        ...

    def holds_wide(self, privilege: Privilege, reference: ReferenceName) -> bool:
        """Whether a privilege is certainly held on everything in the catalog, so that nothing in it need be asked about."""
        ...

    def reaches(self, reference: ReferenceName) -> bool:
        """Whether anything may be done that is seen through a reference."""
        ...

    def widens(self, source: ReferenceName, to: ReferenceName) -> bool:
        """Whether something may be done through one reference that may not be done through the source that it is made of."""
        ...

    def seen_paths(self, reference: ReferenceName) -> Iterable[tuple[str, ...]]:
        """The keys at or below which something may be seen, as far as they are known beforehand."""
        ...

    @property
    def content_ids(self) -> Iterable[UUID] | None:
        """The tables and views that are decided about by their content ids; None: all may be."""
        ...
