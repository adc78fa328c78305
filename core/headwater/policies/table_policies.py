"""What policies come to for one table of a branch: with its own properties, and for each of its own branches and tags.

The table's document is read where the store has it. Where only the table's file has it, its properties are not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headwater.catalogs import Catalog, ContentKey, ContentType, find_homes
from headwater.errors import CorruptionError, NotFoundError, RefusedError
from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg.snapshot_expiry import MAIN, ExpiryFacts, ExpiryRefusal, RefLimits, limits_of_ref, read_expiry_facts
from headwater.policies.effective_policies import FOREVER, EffectiveSnapshots, Sourced
from headwater.policies.policy_reader import PolicyReader
from headwater.policies.policy_values import PolicyKind
from headwater.settings import duration_text
from headwater.store import RealmStore

NOBODY = "no policy says anything: nothing expires"
_REFUSALS = {
    ExpiryRefusal.GC_DISABLED: "its property gc.enabled is not true",
    ExpiryRefusal.ENCRYPTED: "it is encrypted",
    ExpiryRefusal.TOO_NEW: "its format version is later than this release knows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveValue:
    """One value that holds, in words.

    ref           the table's own branch or tag that it holds for; None: for the table
    value         None: nothing goes by it
    """

    kind: PolicyKind
    ref: str | None = None
    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePolicies:
    """What holds for a table, or for whatever of a catalog says nothing itself.

    key           None: all of the catalog
    notes         why something else than ``values`` may happen
    """

    branch: str
    key: ContentKey | None
    content_id: UUID | None
    notes: tuple[str, ...]
    values: tuple[EffectiveValue, ...]


def find_policy_table(catalog: Catalog, key: ContentKey, *, ref: str | None = None) -> UUID:
    """Find the content id of the table that a policy is for.

    raises        NotFoundError where nothing stands at the key; RefusedError where it is no Iceberg table
    """
    found = next(iter(catalog.find_entries(ref, [key])), None)
    if found is None:
        raise NotFoundError(f"{catalog.label} has no table {key} on {ref or 'its default branch'}")
    if found.type is not ContentType.ICEBERG_TABLE:
        raise RefusedError(f"{key} of {catalog.label} is no Iceberg table: policies are for these")
    return found.content_id


def read_table_policies(
    rows: RealmStore, catalog: Catalog, key: ContentKey | None = None, *, branch: str | None = None
) -> TablePolicies:
    """Read what holds for a table on a branch, the default one where none is named; without a key, for all of the catalog.

    raises        NotFoundError for no such branch or table; RefusedError for what is no Iceberg table
    """
    name = catalog.branch(branch or catalog.definition.default_branch).name
    reader = PolicyReader(rows, catalog.definition)
    content_id = None if key is None else find_policy_table(catalog, key, ref=name)
    facts, notes = (None, []) if key is None else _facts_of(catalog, name, key)
    if content_id is not None and content_id not in find_homes(rows, catalog.definition.id):
        notes.append("it is a guest of the catalog, of which nothing goes: headwater table adopt makes it at home")
    return TablePolicies(
        branch=name,
        key=key,
        content_id=content_id,
        notes=tuple(notes),
        values=tuple(_values(reader, name, content_id, facts)),
    )


def effective_for_ref(effective: EffectiveSnapshots, own: RefLimits) -> EffectiveSnapshots:
    """What holds for one of the table's own branches or tags: its own limits stand before the table's, and not before policies that ask
    for more.
    """
    held = limits_of_ref(own, effective.limits())
    least = effective.least
    return EffectiveSnapshots(
        max_snapshot_age_ms=_sourced(
            held.max_snapshot_age_ms, own.max_snapshot_age_ms, least.max_snapshot_age_ms, effective.max_snapshot_age_ms
        ),
        min_snapshots_to_keep=_sourced(
            held.min_snapshots_to_keep, own.min_snapshots_to_keep, least.min_snapshots_to_keep, effective.min_snapshots_to_keep
        ),
        max_ref_age_ms=_sourced(held.max_ref_age_ms, own.max_ref_age_ms, least.max_ref_age_ms, effective.max_ref_age_ms),
        least=least,
    )


def _sourced(held: int | None, own: int | None, least: int | None, table: Sourced[Any]) -> Sourced[Any]:
    if own is None:
        return table
    if held == own:
        return Sourced(held, "its own limit")
    return Sourced(held, table.source if table.value == least else "a policy that asks for more than its own limit")


def _facts_of(catalog: Catalog, branch: str, key: ContentKey) -> tuple[ExpiryFacts | None, list[str]]:
    text = catalog.metadata(branch, key)
    if text is None:
        return None, [
            "its metadata is only in its file: what its properties and its own branches and tags ask for is not shown"
        ]
    try:
        facts = read_expiry_facts(split_metadata(text))
    except (CorruptionError, RefusedError) as fault:
        return None, [f"its metadata cannot be read, and nothing of it goes: {fault}"]
    return facts, [] if facts.refusal is None else [f"nothing of it goes: {_REFUSALS[facts.refusal]}"]


def _values(reader: PolicyReader, branch: str, content_id: UUID | None, facts: ExpiryFacts | None) -> Iterator[EffectiveValue]:
    properties = {} if facts is None else facts.properties
    snapshots = reader.snapshots(branch, content_id, properties)
    if snapshots is None:
        yield EffectiveValue(kind=PolicyKind.SNAPSHOTS, name="maxAge", value=None, source=NOBODY)
    else:
        yield from _snapshot_values(snapshots)
        for name, ref in sorted({} if facts is None else facts.refs.items()):
            is_tag = str(ref.type).lower() == "tag"
            yield from _snapshot_values(effective_for_ref(snapshots, ref.limits()), name, is_tag=is_tag)
    log = reader.metadata_files(content_id, properties)
    kind = PolicyKind.METADATA_FILES
    if log is None:
        yield EffectiveValue(kind=kind, name="keep", value=None, source=NOBODY)
    else:
        yield EffectiveValue(kind=kind, name="keep", value=_number(log.keep.value), source=log.keep.source)
        yield EffectiveValue(kind=kind, name="maxAge", value=_milliseconds(log.max_age_ms.value), source=log.max_age_ms.source)
    files, kind = reader.files(content_id), PolicyKind.FILE_COLLECTION
    for name, told in (("grace", files.grace_seconds), ("delay", files.delay_seconds), ("hold", files.hold_seconds)):
        yield EffectiveValue(kind=kind, name=name, value=duration_text(told.value), source=told.source)
    yield EffectiveValue(kind=kind, name="mode", value=files.mode.value, source=files.mode.source)


def _snapshot_values(
    snapshots: EffectiveSnapshots, ref: str | None = None, *, is_tag: bool = False
) -> Iterator[EffectiveValue]:
    age, number, ref_age = snapshots.max_snapshot_age_ms, snapshots.min_snapshots_to_keep, snapshots.max_ref_age_ms
    kind = PolicyKind.SNAPSHOTS
    if not is_tag:
        yield EffectiveValue(kind=kind, ref=ref, name="maxAge", value=_milliseconds(age.value), source=age.source)
        yield EffectiveValue(kind=kind, ref=ref, name="minToKeep", value=_number(number.value), source=number.source)
    if ref != MAIN:
        yield EffectiveValue(kind=kind, ref=ref, name="maxRefAge", value=_milliseconds(ref_age.value), source=ref_age.source)


def _number(value: int) -> str:
    return "all" if value >= FOREVER else str(value)


def _milliseconds(value: int | None) -> str:
    return "forever" if value is None or value >= FOREVER else duration_text(value / 1000)
