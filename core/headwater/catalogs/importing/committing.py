"""Importing the tables of a survey into a catalog: in batches, each claimed and then committed.

A batch that was committed is found unchanged the next time, and a claim taken for a batch that was not committed is taken up again
with its content id; so an import that was interrupted anywhere ends as if it had run once, and one that is run again writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID, uuid4

from headwater.catalogs.catalog import Catalog
from headwater.catalogs.claims import Claim, Claims, Owner
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.operations import Put
from headwater.catalogs.content.types import Content, Namespace, with_id
from headwater.catalogs.definitions import CatalogDefinition, ImportSpec
from headwater.catalogs.iceberg import Found, Outcome, Progress, QuarantineCode, Quarantined, Scope
from headwater.catalogs.importing.planning import Wanted, check_keys, missing_namespaces, plan_import, quarantine
from headwater.catalogs.importing.reports import ImportReport
from headwater.clock import Micros
from headwater.commits import Head
from headwater.errors import ConflictError, RefusedError
from headwater.store import id_text

__all__ = ["ImportOptions", "import_tables", "scope_of"]

_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """How to import.

    mode          ``once``: a table that is there with other metadata is reported; ``sync``: it is moved, but only forward
    batch         tables per commit
    dry_run       the same report, and nothing is written
    name          of the import, noted in its commits
    """

    mode: Literal["once", "sync"] = "once"
    batch: int = 500
    dry_run: bool = False
    name: str = ""


def scope_of(definition: CatalogDefinition, spec: ImportSpec) -> Scope:
    """What an import of a catalog surveys.

    A table's files may lie in the catalog's base location, in its allowed locations, and in those that the import itself names:
    whoever wrote the import meant what lies there.

    raises        RefusedError for a location that is none, or overlaps another
    """
    allowed = [location for location in (definition.base_location, *definition.allowed_locations, *spec.locations) if location]
    return Scope.of(spec.locations, allowed=allowed, include=spec.include, exclude=spec.exclude)


def import_tables(
    catalog: Catalog,
    claims: Claims,
    outcomes: Iterable[Outcome],
    *,
    options: ImportOptions | None = None,
    fence: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Put what a survey found on the catalog's default branch.

    claims        of the catalog's realm
    fence         called in every run of every commit; raises FencedError when another attempt took over
    progress      called after each batch; may raise to stop there, and what was committed stays
    raises        ConflictError when others keep changing the same keys; what ``Catalog.commit`` and ``Claims.take`` raise
    """
    options = options or ImportOptions()
    outcomes = list(outcomes)
    wanted, refused = check_keys(outcomes)
    importer = _Importer(catalog, claims, options, fence)
    batches: list[_Batch] = []
    for start in range(0, len(wanted), options.batch):
        batches.append(importer.run(wanted[start : start + options.batch]))
        if progress:
            progress(min(start + options.batch, len(wanted)), len(wanted), "tables")
    quarantined = [*refused, *(row for batch in batches for row in batch.quarantined)]
    return ImportReport(
        dry_run=options.dry_run,
        surveyed=len(outcomes),
        imported=sum(batch.imported for batch in batches),
        updated=sum(batch.updated for batch in batches),
        unchanged=sum(batch.unchanged for batch in batches),
        namespaces=len({key for batch in batches for key in batch.namespaces}),
        rules=dict(sorted(Counter(str(found.rule) for found in outcomes if isinstance(found, Found)).items())),
        commits=tuple(batch.commit for batch in batches if batch.commit),
        quarantined=tuple(sorted(quarantined, key=lambda row: row.directory)),
    )


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one batch did."""

    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    namespaces: tuple[ContentKey, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    commit: str = ""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A table about to be put: under which content id, and over which content (None: it is new)."""

    wanted: Wanted
    content_id: UUID
    over: Content | None = None

    def claim(self, catalog_id: str) -> Claim:
        table = self.wanted.table
        return Claim(catalog_id, self.content_id, table.directory, UUID(table.uuid) if table.uuid else None)

    def put(self) -> Put:
        content = self.wanted.content()
        return Put(self.wanted.key, with_id(content, self.content_id) if self.over else content, self.over)


class _Importer:
    def __init__(self, catalog: Catalog, claims: Claims, options: ImportOptions, fence: Callable[[], None] | None) -> None:
        self._catalog = catalog
        self._claims = claims
        self._options = options
        self._fence = fence

    def run(self, wanted: Sequence[Wanted]) -> _Batch:
        """Plan and commit one batch; planned anew when someone else changed the same keys meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return self._attempt(wanted)
            except ConflictError:
                continue
        return self._attempt(wanted)

    def _attempt(self, wanted: Sequence[Wanted]) -> _Batch:
        head = self._catalog.resolve()
        present = self._present(head, wanted)
        plan = plan_import(wanted, present, is_sync=self._options.mode == "sync")
        reserved, taken = self._reserve(plan.new, head)
        candidates = [*reserved, *(_Candidate(one, there.id, there) for one, there in plan.forward if there.id)]
        claimed = self._claims.now()
        candidates, conflicting = self._claim(candidates)
        namespaces = missing_namespaces((candidate.wanted.key for candidate in candidates), present)
        return _Batch(
            imported=sum(candidate.over is None for candidate in candidates),
            updated=sum(candidate.over is not None for candidate in candidates),
            unchanged=len(plan.unchanged),
            namespaces=tuple(namespaces),
            quarantined=(*plan.quarantined, *taken, *conflicting),
            commit=self._commit(head, namespaces, candidates, claimed),
        )

    def _present(self, head: Head | None, wanted: Sequence[Wanted]) -> dict[ContentKey, Content]:
        if head is None:
            return {}
        keys = {key for one in wanted for key in (one.key, *one.key.ancestors())}
        return self._catalog.get_many(id_text(head.id), keys)

    def _reserve(self, new: Sequence[Wanted], head: Head | None) -> tuple[list[_Candidate], list[Quarantined]]:
        """Content ids for new tables: the one under which an interrupted import, or another branch, has the table; else a new one."""
        by_uuid = self._claims.find([UUID(one.table.uuid) for one in new if one.table.uuid])
        living: dict[UUID, ContentKey] | None = None
        candidates: list[_Candidate] = []
        refused: list[Quarantined] = []
        for one in new:
            owner = self._owner(one, by_uuid)
            if owner is None:
                candidates.append(_Candidate(one, uuid4()))
            elif owner.catalog_id != self._catalog.definition.id:
                fault = f"belongs to the catalog with id {owner.catalog_id}: import it into one catalog of the realm"
                refused.append(quarantine(one, QuarantineCode.CLAIMED, fault))
            else:
                living = self._living(head) if living is None else living
                if owner.content_id in living:
                    fault = f"is in this catalog already, as {living[owner.content_id]}: leave it out by exclude"
                    refused.append(quarantine(one, QuarantineCode.CLAIMED, fault))
                else:
                    candidates.append(_Candidate(one, owner.content_id))
        return candidates, refused

    def _owner(self, one: Wanted, by_uuid: dict[UUID, Owner]) -> Owner | None:
        """Who has the table by its uuid; by its location where it has none, or where a dry run takes no claim that would tell."""
        found = by_uuid.get(UUID(one.table.uuid)) if one.table.uuid else None
        if found is None and (one.table.uuid is None or self._options.dry_run):
            return self._claims.find_location(one.table.directory)
        return found

    def _living(self, head: Head | None) -> dict[UUID, ContentKey]:
        if head is None:
            return {}
        return {entry.content_id: entry.key for entry in self._catalog.entries(id_text(head.id)).entries}

    def _claim(self, candidates: Sequence[_Candidate]) -> tuple[list[_Candidate], list[Quarantined]]:
        """Take the claims of all that is to be put, and part with what conflicts."""
        if self._options.dry_run or not candidates:
            return list(candidates), []
        wishes = {candidate.content_id: candidate.claim(self._catalog.definition.id) for candidate in candidates}
        conflicts = self._claims.take(list(wishes.values()), fence=self._fence)
        faults = {conflict.claim.content_id: str(conflict) for conflict in conflicts}
        refused = [
            quarantine(candidate.wanted, QuarantineCode.CLAIMED, f"is claimed: {faults[candidate.content_id]}")
            for candidate in candidates
            if candidate.content_id in faults
        ]
        return [candidate for candidate in candidates if candidate.content_id not in faults], refused

    def _commit(
        self, head: Head | None, namespaces: Sequence[ContentKey], candidates: Sequence[_Candidate], claimed: Micros
    ) -> str:
        """The hash of the batch's commit; empty when nothing was written."""
        if self._options.dry_run or not candidates:
            return ""

        def fence() -> None:
            if self._fence is not None:
                self._fence()
            self._claims.check_held(claimed)  # a process that slept in between has to claim anew

        try:
            done = self._catalog.commit(
                None,
                [*(Put(key, Namespace()) for key in namespaces), *(candidate.put() for candidate in candidates)],
                expected=head.id if head else None,
                message=f"import {len(candidates)} table" + "s" * (len(candidates) != 1),
                properties={"import": self._options.name} if self._options.name else None,
                content_ids={candidate.wanted.key: candidate.content_id for candidate in candidates if candidate.over is None},
                fence=fence,
            )
        except RefusedError as refused:
            # an empty branch cannot be named as expected, so that another's first commit shows as an unsound request
            if head is None and self._catalog.resolve() is not None:
                raise ConflictError(f"another made the first commit of the branch: {refused}") from refused
            raise
        return id_text(done.commit_id) if done.changed and done.commit_id is not None else ""
