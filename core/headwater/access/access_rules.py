"""The decision: whether some rules allow a question, and which of them. Pure, and fast: a few look-ups, however many rules there are.

    question                    is answered by a rule on
    about the realm             the realm
    about a catalog             the realm, the catalog
    about a reference           the realm, the catalog, a pattern that its name matches
    about a table or view       the realm, the catalog, a namespace above it, its content id, its key
    about a namespace           the realm, the catalog, itself, a namespace above it

Nothing is allowed that no rule allows, and no rule forbids. A rule on content holds on some references: the default branch, or those
that its pattern matches. A commit that is named by its bare hash is on none, so only the pattern ``*`` holds there.

A table is sought by its content id and by its key on the reference that is read. So a table that is renamed keeps what was granted on
its content id, and loses what was granted on its key or on its namespace; one that is dropped and made anew has another id, and gets
what was granted on its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from uuid import UUID

from headwater.access.privileges import EVERYWHERE, INCLUDED, Privilege, SecurableKind

ANY_REFERENCE = "*"


@dataclass(frozen=True, slots=True)
class ReferenceName:
    """The reference through which something is read or written.

    name          of a branch or tag; None for a commit that is named by its hash alone
    is_default    it is the catalog's default branch
    """

    name: str | None
    is_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Securable:
    """What a question is about, or a grant is on, in a realm.

    catalog       its name; None: the realm itself
    path          the elements of a namespace's, table's or view's key; empty for others, and for a grant by content id
    content_id    of a table or view
    pattern       of a grant on references: names, with ``*`` for any characters; of a question, the name itself
    """

    kind: SecurableKind
    catalog: str | None = None
    path: tuple[str, ...] = ()
    content_id: UUID | None = None
    pattern: str = ""

    def __str__(self) -> str:
        below = ".".join(element.replace("\\", "\\\\").replace(".", "\\.") for element in self.path)
        if self.kind is SecurableKind.REALM:
            return "the realm"
        if self.kind is SecurableKind.CATALOG:
            return f"catalog {self.catalog}"
        if self.kind is SecurableKind.REFERENCE:
            return f"reference {self.pattern} of catalog {self.catalog}"
        return f"{self.kind} {below or self.content_id} of catalog {self.catalog}"


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """Whether a caller holds a privilege on something, seen through a reference."""

    privilege: Privilege
    on: Securable
    reference: ReferenceName


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """A grant that reaches a caller.

    references    where a rule on content holds: empty for the default branch, else a pattern of names
    roles         the roles through which it reaches the caller, for explanations: principal role, and catalog role
    """

    privilege: Privilege
    on: Securable
    references: str = ""
    roles: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The pattern of references; empty: the default branch."""
        return self.references or (ANY_REFERENCE if self.privilege in EVERYWHERE else "")

    def __str__(self) -> str:
        through = " through " + " and ".join(self.roles) if self.roles else ""
        where = (
            ""
            if self.on.kind in (SecurableKind.REALM, SecurableKind.REFERENCE)
            else f" on {self.where or 'the default branch'}"
        )
        return f"{self.privilege} on {self.on}{where}{through}"


_Rules = dict[Privilege, list[AccessRule]]


@dataclass(slots=True)
class AccessRules:
    """The rules of one caller in one realm, or in one catalog of it, arranged for decisions. Made once, and then only read."""

    rules: Sequence[AccessRule] = ()
    _wide: _Rules = field(default_factory=dict)
    _references: _Rules = field(default_factory=dict)
    _paths: dict[tuple[str, ...], _Rules] = field(default_factory=dict)
    _keys: dict[tuple[SecurableKind, tuple[str, ...]], _Rules] = field(default_factory=dict)
    _contents: dict[UUID, _Rules] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rule in self.rules:
            place = self._place_of(rule.on)
            for privilege in INCLUDED[rule.privilege]:
                place.setdefault(privilege, []).append(rule)

    @property
    def content_ids(self) -> Iterable[UUID]:
        """The tables and views that have rules of their own, whatever they are called."""
        return self._contents.keys()

    def find_rule(self, privilege: Privilege, on: Securable, reference: ReferenceName) -> AccessRule | None:
        """The rule by which a privilege is held on something, seen through a reference; None: it is not held."""
        if on.kind is SecurableKind.REALM:
            return next((rule for rule in self._wide.get(privilege, ()) if rule.on.kind is SecurableKind.REALM), None)
        if on.kind is SecurableKind.CATALOG:
            return _first(self._wide.get(privilege), None)
        found = _first(self._wide.get(privilege), reference)
        if on.kind is SecurableKind.REFERENCE:
            return found or _first(self._references.get(privilege), reference)
        if found is None and on.content_id is not None and on.content_id in self._contents:
            found = _first(self._contents[on.content_id].get(privilege), reference)
        if found is None and on.path and (at := self._keys.get((on.kind, on.path))) is not None:
            found = _first(at.get(privilege), reference)
        if found is None and self._paths:
            top = len(on.path) + (on.kind is SecurableKind.NAMESPACE)
            for length in range(1, top):
                at = self._paths.get(on.path[:length])
                if at is not None and (found := _first(at.get(privilege), reference)) is not None:
                    break
        return found

    def allows(self, privilege: Privilege, on: Securable, reference: ReferenceName) -> bool:
        """Whether a privilege is held on something, seen through a reference."""
        return self.find_rule(privilege, on, reference) is not None

    def allows_each(self, questions: Sequence[AccessQuestion]) -> Sequence[bool]:
        """The answers to many questions, in their order."""
        return [self.find_rule(each.privilege, each.on, each.reference) is not None for each in questions]

    def holds_wide(self, privilege: Privilege, reference: ReferenceName) -> bool:
        """Whether a privilege is held on everything in the catalog, seen through a reference."""
        return _first(self._wide.get(privilege), reference) is not None

    def reaches(self, reference: ReferenceName) -> bool:
        """Whether any rule holds on something that is seen through a reference."""
        for rule in self.rules:
            if rule.privilege not in _APART and (rule.on.kind is SecurableKind.REALM or _holds_on(rule, reference)):
                return True
        return False

    def widens(self, source: ReferenceName, to: ReferenceName) -> bool:
        """Whether a rule holds through one reference that does not hold through another.

        Whoever makes a branch of a source would be given by its name what it may not have of the source.
        """
        kept = (SecurableKind.REALM, SecurableKind.REFERENCE)
        content = (rule for rule in self.rules if rule.on.kind not in kept and _holds_on(rule, to))
        return not all(self._holds_through(source, rule) for rule in content)

    def _holds_through(self, reference: ReferenceName, rule: AccessRule) -> bool:
        """Whether everything that a rule allows is allowed through a reference, too."""
        if _holds_on(rule, reference):
            return True
        if rule.on.kind is SecurableKind.CATALOG:
            return self.holds_wide(rule.privilege, reference)
        return self.allows(rule.privilege, rule.on, reference)

    def seen_paths(self, reference: ReferenceName) -> Iterable[tuple[str, ...]]:
        """The keys at or below which a rule lets the caller see something."""
        for rule in self.rules:
            if rule.on.path and _holds_on(rule, reference):
                yield rule.on.path

    def _place_of(self, on: Securable) -> _Rules:
        if on.kind in (SecurableKind.REALM, SecurableKind.CATALOG):
            return self._wide
        if on.kind is SecurableKind.REFERENCE:
            return self._references
        if on.content_id is not None:
            return self._contents.setdefault(on.content_id, {})
        if on.kind is SecurableKind.NAMESPACE:
            return self._paths.setdefault(on.path, {})
        return self._keys.setdefault((on.kind, on.path), {})


_APART = frozenset({Privilege.TASK_READ, Privilege.TASK_MANAGE, Privilege.CATALOG_CREATE})
"""They say nothing of any catalog that is there."""
NO_RULES = AccessRules()


def _first(rules: Sequence[AccessRule] | None, reference: ReferenceName | None) -> AccessRule | None:
    """The first rule that holds on a reference; None for any."""
    if rules is None:
        return None
    if reference is None:
        return rules[0]
    for rule in rules:
        if _holds_on(rule, reference):
            return rule
    return None


def _holds_on(rule: AccessRule, reference: ReferenceName) -> bool:
    pattern = rule.on.pattern if rule.on.kind is SecurableKind.REFERENCE else rule.where
    return is_match(pattern, reference)


def is_match(pattern: str, reference: ReferenceName) -> bool:
    """Whether a pattern of references holds on one: ``*`` on all, an empty one on the default branch alone."""
    if pattern == ANY_REFERENCE:
        return True
    if not pattern or reference.name is None:
        return not pattern and reference.is_default
    return _matches(pattern, reference.name)


@lru_cache(maxsize=4096)
def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))


@dataclass(frozen=True, slots=True)
class AccessExplanation:
    """Why a question is answered as it is.

    rule          by which it is allowed; None: it is not
    near          of a question that is not allowed: rules that would allow it elsewhere, or allow something else here
    """

    rule: AccessRule | None
    near: tuple[AccessRule, ...] = ()


def explain_access(
    rules: AccessRules, privilege: Privilege, on: Securable, reference: ReferenceName, *, limit: int = 5
) -> AccessExplanation:
    """Tell by which rule a privilege is held, or which rules come near it."""
    rule = rules.find_rule(privilege, on, reference)
    if rule is not None:
        return AccessExplanation(rule)
    same = [each for each in rules.rules if privilege in INCLUDED[each.privilege]]
    here = [each for each in rules.rules if each.on == on and each not in same]
    return AccessExplanation(None, tuple([*here, *same][:limit]))
