"""The plug-in point: other code decides instead of the grants, in batches.

A plug-in is an entry point of the group ``headwater.access``: a function that is given the file it is configured by (empty for none) and
returns an ``AccessPlugin``. It is asked only about catalogs and what is in them. Management of a realm, of its principals, roles and
grants, stays with the grants, so that no policy locks everybody out.

What it does not answer with ``True`` is refused. If it fails, nothing is allowed and the caller is told to try again later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol
from uuid import UUID

import structlog

from headwater.access.access_rules import AccessQuestion, ReferenceName, Securable
from headwater.access.privileges import Privilege, SecurableKind
from headwater.errors import RefusedError, UnavailableError

log = structlog.get_logger(__name__)

ENTRY_POINTS = "headwater.access"


@dataclass(frozen=True, slots=True)
class AccessSubject:
    """Whom questions are about: a principal of a realm, or somebody whom an identity provider vouches for.

    name          as the audit log has it
    roles         the principal roles that count
    """

    realm: str
    name: str
    roles: tuple[str, ...] = ()


class AccessPlugin(Protocol):
    """Decides. It is called by many threads at once."""

    def decide(self, subject: AccessSubject, questions: Sequence[AccessQuestion]) -> Sequence[bool]:
        """Answer every question, in their order: whether the subject holds the privilege.

        A privilege includes others: ``INCLUDED`` tells which. Every question is asked by its own name, and what includes it is for the
        plug-in to know.
        """
        ...


PluginFactory = Callable[[str], AccessPlugin]


def load_access_plugin(name: str, file: str) -> AccessPlugin:
    """Load the plug-in of a name.

    file          that it is configured by
    raises        RefusedError where none has the name, or it cannot be configured so
    """
    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in points:
        known = ", ".join(sorted(points)) or "none is installed"
        raise RefusedError(
            f"there is no access plug-in {name!r}: install one that has an entry point in {ENTRY_POINTS} ({known})"
        )
    factory: PluginFactory = points[name].load()
    return factory(file)


@dataclass(frozen=True, slots=True)
class PluginDecisions:
    """The answers of a plug-in for one caller in one catalog; an ``AccessDecisions``."""

    plugin: AccessPlugin
    subject: AccessSubject
    catalog: str

    def allows(self, privilege: Privilege, on: Securable, reference: ReferenceName) -> bool:
        """Whether the plug-in allows one thing."""
        return self.allows_each([AccessQuestion(privilege, on, reference)])[0]

    def allows_each(self, questions: Sequence[AccessQuestion]) -> Sequence[bool]:
        """The plug-in's answers to many questions, in their order; raises UnavailableError where it gives none."""
        if not questions:
            return []
        try:
            answers = list(self.plugin.decide(self.subject, questions))
        except Exception as fault:
            log.exception("the access plug-in failed", realm=self.subject.realm, caller=self.subject.name)
            raise UnavailableError("the access plug-in failed, so nothing is allowed now; the server's log says why") from fault
        if len(answers) != len(questions):
            log.error("the access plug-in left questions open", asked=len(questions), answered=len(answers))
            raise UnavailableError("the access plug-in left questions open, so nothing is allowed now")
        return [answer is True for answer in answers]

    def holds_wide(self, privilege: Privilege, reference: ReferenceName) -> bool:
        """False: a policy may except anything, so each thing is asked about."""
        return False

    def reaches(self, reference: ReferenceName) -> bool:
        """Whether the catalog may be listed through the reference: that opens it, and shows nothing in it."""
        return self.allows(Privilege.CATALOG_LIST, Securable(kind=SecurableKind.CATALOG, catalog=self.catalog), reference)

    def widens(self, source: ReferenceName, to: ReferenceName) -> bool:
        """True unless it is one reference: what a policy opens by a name cannot be told beforehand, so REFERENCE_ASSIGN is needed."""
        return source != to

    def seen_paths(self, reference: ReferenceName) -> Iterable[tuple[str, ...]]:
        """None: nothing is known beforehand."""
        return ()

    @property
    def content_ids(self) -> Iterable[UUID] | None:
        """None: a policy may name any."""
        return None
