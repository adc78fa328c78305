"""What policies say: values as people write them, checked; and as the store keeps them.

A field that is None says nothing: then another policy, a property of the table, or a default decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal
from uuid import UUID

import msgspec

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.settings import duration_text
from headwater.store import StoredObject, StoredPart, object_type

DAY_SECONDS = 24 * 3600.0
GRACE_FLOOR_SECONDS = DAY_SECONDS
"""No file goes sooner after our first listing of it as dead, whatever a policy says."""
LONGEST_SECONDS = 100 * 365 * DAY_SECONDS
MOST_RULES = 50
MOST_TO_KEEP = 1_000_000
_PATTERN = re.compile(r"[^\x00-\x1f]{1,200}")
FileMode = Literal["off", "report"]


class PolicyKind(StrEnum):
    SNAPSHOTS = "snapshots"
    METADATA_FILES = "metadata-files"
    FILE_COLLECTION = "file-collection"


class SnapshotRule(StoredPart, frozen=True, kw_only=True):
    """What tables keep on branches of the catalog.

    branches      a pattern of branch names, in which ``*`` is any text
    max_age_seconds      snapshots that are younger stay
    min_to_keep          so many of each of a table's own branches stay, whatever their age
    max_ref_age_seconds  a table's own branches and tags whose snapshot is older go
    """

    known_by = ("branches",)

    branches: str = "*"
    max_age_seconds: float | None = None
    min_to_keep: int | None = None
    max_ref_age_seconds: float | None = None

    def covers(self, branch: str) -> bool:
        pattern = ".*".join(re.escape(text) for text in self.branches.split("*"))
        return re.fullmatch(pattern, branch, re.DOTALL) is not None


class MetadataFileRule(StoredPart, frozen=True, kw_only=True):
    """What a table's log of earlier metadata files keeps.

    keep          so many stay in the log
    max_age_seconds  those that are older go
    """

    keep: int | None = None
    max_age_seconds: float | None = None


class FileRule(StoredPart, frozen=True, kw_only=True):
    """How files that nobody refers to are treated.

    grace_seconds   counted from our first listing of the file as one that nobody refers to
    delay_seconds   between the end of the grace and the first plan that has the file
    hold_seconds    how long a deleted file can be restored; nothing is deleted yet
    mode            ``off``: files are not looked at; ``report``: marked, planned and reported
    """

    grace_seconds: float | None = None
    delay_seconds: float | None = None
    hold_seconds: float | None = None
    mode: FileMode | None = None


@object_type("policy")
class StoredPolicy(StoredObject, frozen=True, kw_only=True):
    """One policy of a catalog, or of one of its tables. It has what its kind says, and nothing else.

    content_id    the table; None: all of the catalog's
    declared      it comes from the catalog's resource, which changes it again
    """

    kind: PolicyKind
    catalog_id: str
    content_id: UUID | None = None
    snapshots: tuple[SnapshotRule, ...] = ()
    metadata_files: MetadataFileRule | None = None
    files: FileRule | None = None
    updated: Micros = Micros(0)
    by: str = ""
    declared: bool = False

    def says(self) -> tuple[object, ...]:
        """What it says, without who said it when."""
        return self.kind, self.content_id, self.snapshots, self.metadata_files, self.files


def changed_kinds(stored: Sequence[StoredPolicy], declared: Sequence[StoredPolicy]) -> tuple[PolicyKind, ...]:
    """The kinds whose policy of the catalog itself is another one than its resource declares, in their order.

    What was declared and is not any more, changes; what is set by hand and not declared, stays.
    """
    own = {policy.kind: policy for policy in stored if policy.content_id is None}
    wanted = {policy.kind: policy for policy in declared}
    return tuple(kind for kind in PolicyKind if _is_changed(own.get(kind), wanted.get(kind)))


def _is_changed(own: StoredPolicy | None, wanted: StoredPolicy | None) -> bool:
    if wanted is None:
        return own is not None and own.declared
    return own is None or not own.declared or own.says() != wanted.says()


def check_policy(policy: StoredPolicy) -> None:
    """Check what a policy says; raises RefusedError with the value and what would be right."""
    if policy.kind is PolicyKind.SNAPSHOTS:
        _check_rules(policy.snapshots)
    elif policy.kind is PolicyKind.METADATA_FILES:
        rule = policy.metadata_files or MetadataFileRule()
        _check_says(rule, "keep or max age")
        _check_number("keep", rule.keep, least=1)
        _check_seconds("max age", rule.max_age_seconds)
    else:
        files = policy.files or FileRule()
        _check_says(files, "grace, delay, hold or mode")
        _check_seconds("grace", files.grace_seconds, least=GRACE_FLOOR_SECONDS)
        _check_seconds("delay", files.delay_seconds)
        _check_seconds("hold", files.hold_seconds)


def _check_rules(rules: Sequence[SnapshotRule]) -> None:
    if not rules or len(rules) > MOST_RULES:
        raise RefusedError(f"a policy of snapshots with {len(rules)} rules: give one to {MOST_RULES}")
    patterns = [rule.branches for rule in rules]
    if len(set(patterns)) < len(patterns):
        raise RefusedError(f"two rules for the branches {max(patterns, key=patterns.count)!r}: put them together")
    for rule in rules:
        if not _PATTERN.fullmatch(rule.branches):
            raise RefusedError(f"{rule.branches!r} is no pattern of branch names: 1 to 200 characters, * for any text")
        if {rule.max_age_seconds, rule.min_to_keep, rule.max_ref_age_seconds} == {None}:
            raise RefusedError(
                f"the rule for the branches {rule.branches!r} says nothing: give an age, a number to keep or a ref age"
            )
        _check_seconds("max age", rule.max_age_seconds)
        _check_number("min to keep", rule.min_to_keep, least=1)
        _check_seconds("max ref age", rule.max_ref_age_seconds)


def _check_says(rule: msgspec.Struct, what: str) -> None:
    if all(getattr(rule, name) is None for name in rule.__struct_fields__):
        raise RefusedError(f"the policy says nothing: give {what}, or unset it")


def _check_number(what: str, value: int | None, *, least: int) -> None:
    if value is not None and not least <= value <= MOST_TO_KEEP:
        raise RefusedError(f"{what} is {value}: it may be from {least} to {MOST_TO_KEEP}")


def _check_seconds(what: str, value: float | None, *, least: float = 0.0) -> None:
    if value is not None and not least <= value <= LONGEST_SECONDS:
        shown = duration_text(value) if value >= 0 else f"{value} s"
        raise RefusedError(f"{what} is {shown}: it may be from {duration_text(least)} to {duration_text(LONGEST_SECONDS)}")
