"""Manifests against what is stored: what they would do, what differs, what is done, and the deletion of what they describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headwater.reconcile import (
    CredentialsSink,
    FieldDifference,
    FileCredentials,
    ManagerIdentity,
    Manifest,
    ManifestComparison,
    ManifestText,
    ReconcileOutcome,
    UnwrittenCredentials,
    as_deletion,
    compare_manifest,
    in_turn,
    known_realms,
    load_manifests,
    reconcile,
)
from headwater.store import Store
from headwater.store.overlay import open_dry_copy

_FIELD_STEPS = (
    "Recorded",
    "RealmUpdated",
    "RealmMoved",
    "RealmBootstrapped",
    "TaskRequested",
    "TaskRescheduled",
    "TaskCancelled",
)
"""Steps that follow from differing fields, or from none: tasks are what is done, not what is declared."""


@dataclass(frozen=True, slots=True)
class ManifestDifference:
    """What is stored, compared with one manifest.

    is_missing    there is no such realm or catalog
    fields        those that differ
    steps         what else would be done: creation, deletion, credentials
    refused       why nothing, or not all of it, would be done
    """

    subject: str
    is_missing: bool
    fields: tuple[FieldDifference, ...]
    steps: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def is_different(self) -> bool:
        return self.is_missing or bool(self.fields or self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestInfo:
    """What came of a manifest, or would.

    subject       kind and name
    steps         a sentence for each step
    waits         what cannot be done yet
    refused       what will not be done as asked
    reports       what a person should know
    error         why it could not be finished; empty: it could
    """

    subject: str
    steps: tuple[str, ...]
    waits: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    error: str = ""

    @classmethod
    def of(cls, outcome: ReconcileOutcome, *, is_dry_run: bool = False) -> ManifestInfo:
        """The values of an outcome; of a dry run, with the steps that would be taken."""
        return cls(
            subject=outcome.subject,
            steps=tuple(planned_sentences(outcome) if is_dry_run else map(str, outcome.done)),
            waits=tuple(wait.message for wait in outcome.waits),
            refused=tuple(refusal.message for refusal in outcome.refused),
            reports=tuple(report.message for report in outcome.reports),
            error=outcome.error_text or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifferenceInfo:
    """A field of a realm or catalog that is stored with another value than its manifest declares.

    field         in the words of the manifest, such as ``retention.content.age`` or ``roles.analysts.privileges``
    stored, declared  as JSON; None: nothing
    """

    field: str
    stored: str | None
    declared: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDifferenceInfo:
    """What is stored, compared with one manifest.

    subject       kind and name
    missing       there is no such realm or catalog
    fields        fields that differ
    steps         what else would be done: creation, deletion, credentials, a sentence each
    refused       why something of it would not be done
    """

    subject: str
    different: bool
    missing: bool
    fields: tuple[FieldDifferenceInfo, ...]
    steps: tuple[str, ...]
    refused: tuple[str, ...]

    @classmethod
    def of(cls, difference: ManifestDifference) -> ManifestDifferenceInfo:
        """The values of a comparison."""
        fields = (
            FieldDifferenceInfo(field=each.field, stored=each.stored, declared=each.declared) for each in difference.fields
        )
        return cls(
            subject=difference.subject,
            different=difference.is_different,
            missing=difference.is_missing,
            fields=tuple(fields),
            steps=difference.steps,
            refused=difference.refused,
        )


def read_manifests(store: Store, paths: Sequence[str | Path | ManifestText]) -> tuple[Manifest, ...]:
    """The manifests of files and folders, checked with the realms that a store has; raises ManifestError with every fault."""
    return load_manifests(paths, settings=store.settings, known_realms=known_realms(store))


def apply_manifests(store: Store, manifests: Sequence[Manifest], folder: Path, *, is_dry_run: bool) -> list[ManifestInfo]:
    """Bring what is stored to what manifests say, as far as that is possible now; a dry run does it on a copy that is forgotten.

    folder        where the credentials of new realms and principals are written
    """
    if not is_dry_run:
        return [ManifestInfo.of(each) for each in _reconciled(store, manifests, FileCredentials(folder))]
    with open_dry_copy(store) as dry:
        made = _reconciled(dry, manifests, UnwrittenCredentials(folder))
        return [ManifestInfo.of(each, is_dry_run=True) for each in made]


def delete_described(store: Store, manifests: Sequence[Manifest], folder: Path, *, is_dry_run: bool) -> list[ManifestInfo]:
    """Delete what manifests describe, as their deletionPolicy says."""
    return apply_manifests(store, list(map(as_deletion, manifests)), folder, is_dry_run=is_dry_run)


def compare_manifests(dry: Store, manifests: Sequence[Manifest]) -> list[ManifestDifference]:
    """Compare manifests with what is stored: fields first; then carry them out, for what stands in no field.

    dry           a store that forgets what is written to it
    """
    me, ordered = ManagerIdentity(), in_turn(manifests)
    nothing = ManifestComparison(())
    compared = [
        nothing if manifest.metadata.is_deletion else compare_manifest(dry, manifest, manager=me) for manifest in ordered
    ]
    outcomes = _reconciled(dry, ordered, UnwrittenCredentials("credentials"))
    return [
        ManifestDifference(
            subject=outcome.subject,
            is_missing=comparison is None,
            fields=(comparison or nothing).fields,
            steps=_steps(outcome, told=(comparison or nothing).told),
            refused=(*(each.message for each in outcome.refused), *map(str, outcome.errors)),
        )
        for comparison, outcome in zip(compared, outcomes, strict=True)
    ]


def planned_sentences(outcome: ReconcileOutcome) -> list[str]:
    """What would be done, where it was done on a store that forgets it; without bookkeeping."""
    return [step.future for step in outcome.steps if step.future]


def _reconciled(store: Store, manifests: Sequence[Manifest], credentials: CredentialsSink) -> list[ReconcileOutcome]:
    return reconcile(store, manifests, credentials=credentials, manager=ManagerIdentity())


def _steps(outcome: ReconcileOutcome, *, told: frozenset[str]) -> tuple[str, ...]:
    """The steps beyond those that fields tell of."""
    return tuple(
        step.future
        for step in outcome.steps
        if step.future
        and step.future not in told
        and step.reason not in _FIELD_STEPS
        and (step.reason != "CatalogUpdated" or ": policies." in step.message)
    )
