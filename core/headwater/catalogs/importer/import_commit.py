"""Imports the tables of a survey into a catalog: in batches, each claimed and then committed.

A committed batch is found unchanged the next time, and a claim taken for a batch that was not committed is used again with its
content id. So an interrupted import ends as if it had run once, and a repeated one writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from typing import Literal
from uuid import UUID, uuid4

from headwater.catalogs.catalog import Catalog
from headwater.catalogs.catalog_definition import CatalogDefinition, CatalogState, ImportSpec
from headwater.catalogs.content import Content, ContentKey, Namespace, with_id
from headwater.catalogs.content_operations import Conflict, Delete, Put
from headwater.catalogs.importer.gone_tables import GoneTable, GoneTables, gone_row
from headwater.catalogs.importer.import_news import SiftedOutcomes, SurveyNews
from headwater.catalogs.importer.import_plan import (
    LentPlaces,
    WantedTable,
    check_import_keys,
    find_intrusions,
    missing_namespaces,
    plan_import,
    quarantine_table,
)
from headwater.catalogs.importer.import_report import (
    ROWS_SHOWN,
    ImportReport,
    ReportRow,
    outcome_key,
    quarantined_row,
    report_row,
)
from headwater.catalogs.known_metadata import KnownMetadata
from headwater.catalogs.place_releases import conflicts_beside_history, take_over_history
from headwater.catalogs.table_claims import PURGING, ClaimConflict, ClaimOwner, TableClaim, TableClaims
from headwater.clock import Micros
from headwater.commits import Head
from headwater.errors import ConflictError, RefusedError
from headwater.iceberg import (
    AcceptedTable,
    QuarantineCode,
    QuarantinedTable,
    SurveyOutcome,
    SurveyProgress,
    SurveyScope,
    comparable_location,
)
from headwater.iceberg.metadata_json import split_metadata
from headwater.store import ObjectId, id_text

_TRIES = 5
_ROWS_PER_TABLE = 4
_CHANGED = "it changed while the import ran"
_SETTLED_MICROS = 600 * 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options of an import.

    mode          ``once``: a table that exists with other metadata is reported; ``sync``: it is moved, but only forward
    batch         tables per commit
    dry_run       the same report, and nothing is written
    name          of the import, noted in its commits
    authors       of its commits
    task          the task that runs the import, noted in its commits
    scope         of the survey: a ``sync`` uses it to look again at folders into which branches of the catalog have written, and for
                  tables that are gone
    drops_gone    a ``sync`` drops tables whose metadata is gone, if nothing speaks against it; otherwise it reports them
    """

    mode: Literal["once", "sync"] = "once"
    batch: int = 500
    dry_run: bool = False
    name: str = ""
    authors: tuple[str, ...] = ()
    task: str = ""
    scope: SurveyScope | None = None
    drops_gone: bool = False


def survey_scope(definition: CatalogDefinition, spec: ImportSpec, *, now: Micros | None = None) -> SurveyScope:
    """The scope that an import of a catalog surveys.

    now           tables with metadata of the last ten minutes before ``now`` are listed twice; None: all are

    A table's files may lie in the catalog's base location, in its allowed locations, and in those of the import itself: its author
    included what lies there.

    raises        RefusedError for a malformed location, or one that overlaps another
    """
    places = (definition.base_location, *definition.allowed_locations, *spec.locations)
    return SurveyScope(
        locations=spec.locations,
        allowed=tuple(place for place in places if place),
        include=spec.include,
        exclude=spec.exclude,
        path=spec.path,
        namespace=spec.namespace,
        inventory=spec.inventory,
        verify=spec.verify,
        tolerate=spec.tolerate,
        settled=0 if now is None else now - _SETTLED_MICROS,
    ).checked()


def import_tables(
    catalog: Catalog,
    claims: TableClaims,
    outcomes: Iterable[SurveyOutcome],
    *,
    options: ImportOptions | None = None,
    fence: Callable[[], None] | None = None,
    progress: SurveyProgress | None = None,
    write: Callable[[ReportRow], None] | None = None,
) -> ImportReport:
    """Put the tables of a survey on the catalog's default branch.

    claims        of the catalog's realm
    outcomes      judged together, one per directory, sorted by it; read once, a batch at a time, and never held as a whole
    write         called with a row for every outcome, in order, once its batch is done
    fence         called in every run of every commit; raises FencedError when another attempt took over
    progress      called after each batch; may raise to stop there, and committed batches stay
    raises        ConflictError when others keep changing the same keys; what ``Catalog.commit`` and ``TableClaims.take_claims`` raise
    """
    options = options or ImportOptions()
    importer = _Importer(catalog, claims, options, fence)
    tally = _ImportTally(options.dry_run)
    total = length_hint(outcomes)
    write = write or _unwritten
    for batch in _batches(outcomes, options.batch):
        for row, verdict in importer.import_batch(batch, tally):
            tally.count(row, verdict)
            write(row)
        if progress:
            progress(tally.surveyed, max(total, tally.surveyed), "tables imported")
    for rows in importer.gone(tally):
        for row in rows:
            tally.count(row, None)
            write(row)
        if progress:
            progress(tally.surveyed, max(total, tally.surveyed), "tables imported")
    return tally.report()


def _blocks(tables: Iterable[GoneTable], size: int) -> Iterator[list[GoneTable]]:
    rest = iter(tables)
    while block := list(islice(rest, size)):
        yield block


def _unwritten(row: ReportRow) -> None:
    """Discard a report row."""


def _batches(outcomes: Iterable[SurveyOutcome], tables: int) -> Iterator[list[SurveyOutcome]]:
    """Split the outcomes in order: at most so many tables to a batch, with a bounded number of quarantined ones among them."""
    batch: list[SurveyOutcome] = []
    accepted = 0
    for outcome in outcomes:
        batch.append(outcome)
        accepted += isinstance(outcome, AcceptedTable)
        if accepted == tables or len(batch) == _ROWS_PER_TABLE * tables:
            yield batch
            batch, accepted = [], 0
    if batch:
        yield batch


class _ImportTally:
    """Counts what is done, in little memory."""

    def __init__(self, dry_run: bool) -> None:
        self.namespaces: set[ContentKey] = set()
        self.commits: list[str] = []
        self._dry_run = dry_run
        self._done: Counter[str] = Counter()
        self._known = 0
        self._rules: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._shown: list[QuarantinedTable] = []

    @property
    def surveyed(self) -> int:
        return self._done.total() - self._done["gone"] - self._done["dropped"]

    def count(self, row: ReportRow, verdict: QuarantinedTable | None) -> None:
        self._done[row.outcome] += 1
        self._known += row.outcome == "unchanged" and row.message != ""
        if row.rule:
            self._rules[row.rule] += 1
        if verdict is not None:
            self._codes[str(verdict.code)] += 1
            if len(self._shown) < ROWS_SHOWN:
                self._shown.append(verdict)

    def report(self) -> ImportReport:
        return ImportReport(
            dry_run=self._dry_run,
            surveyed=self.surveyed,
            imported=self._done["imported"],
            updated=self._done["updated"],
            unchanged=self._done["unchanged"],
            known=self._known,
            gone=self._done["gone"],
            dropped=self._done["dropped"],
            namespaces=len(self.namespaces),
            rules=dict(sorted(self._rules.items())),
            commits=tuple(self.commits),
            quarantined=tuple(self._shown),
            reasons=dict(sorted(self._codes.items())),
        )


@dataclass(frozen=True, slots=True)
class _DoneBatch:
    """The results of one batch, by directory.

    outcomes      in their order, as they were planned with
    known         why tables were left unchanged although their latest metadata is not the branch's
    left          directories in which only data is left
    """

    outcomes: Sequence[SurveyOutcome]
    known: Mapping[str, str]
    left: Container[str]
    put: Mapping[str, str]
    quarantined: Mapping[str, QuarantinedTable]
    namespaces: Sequence[ContentKey]
    commit: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A table to be put: its content id, and the content that it replaces (None: it is new)."""

    wanted: WantedTable
    content_id: UUID
    over: Content | None = None

    def as_claim(self, catalog_id: str) -> TableClaim:
        table = self.wanted.table
        return TableClaim(catalog_id, self.content_id, table.directory, UUID(table.uuid) if table.uuid else None, table.paths)

    def as_put(self) -> Put:
        content = self.wanted.as_content()
        document = self.wanted.table.document
        return Put(
            self.wanted.key,
            with_id(content, self.content_id) if self.over else content,
            self.over,
            split_metadata(document) if document else None,
        )


def _message(candidates: Sequence[_Candidate]) -> str:
    """The message of a batch's commit, such as ``import 2 tables, update 1 table``."""
    new = sum(candidate.over is None for candidate in candidates)
    counts = (("import", new), ("update", len(candidates) - new))
    return ", ".join(f"{verb} {count} table{'s' * (count != 1)}" for verb, count in counts if count)


class _Importer:
    def __init__(self, catalog: Catalog, claims: TableClaims, options: ImportOptions, fence: Callable[[], None] | None) -> None:
        self._catalog = catalog
        self._claims = claims
        self._options = options
        self._fence = fence
        self._known: KnownMetadata | None = None
        self._own: set[ObjectId] = set()
        self._surveyed: set[str] = set()
        self._left: dict[ContentKey, str] = {}
        self._lent = LentPlaces()

    def import_batch(
        self, outcomes: Sequence[SurveyOutcome], tally: _ImportTally
    ) -> Iterator[tuple[ReportRow, QuarantinedTable | None]]:
        """Import one batch; a row for each outcome, in order."""
        batch = self._persist(outcomes)
        tally.namespaces.update(batch.namespaces)
        if batch.commit:
            tally.commits.append(batch.commit)
        for outcome in batch.outcomes:
            key = outcome_key(outcome)
            if outcome.directory in batch.left and key is not None:
                self._left[key] = outcome.directory  # reported together with the tables that the survey did not meet at all
                continue
            self._surveyed.add(comparable_location(outcome.directory))
            verdict = batch.quarantined.get(outcome.directory)
            if verdict is not None:
                yield quarantined_row(outcome, verdict), verdict
            else:
                done, known = batch.put.get(outcome.directory), batch.known.get(outcome.directory, "")
                yield report_row(outcome, done or "unchanged", commit=batch.commit if done else "", message=known), None

    def gone(self, tally: _ImportTally) -> Iterator[list[ReportRow]]:
        """Report the tables that are gone, a page of the branch at a time: a survey of their places did not meet them.

        They are dropped first, if the import asks for that.
        """
        head, scope = self._catalog.resolve(), self._options.scope
        if not self._is_sync or scope is None or head is None:
            return
        tables = GoneTables(catalog=self._catalog, ref=id_text(head.id), scope=scope, surveyed=self._surveyed, left=self._left)
        for page in tables.pages():
            if self._fence is not None:
                self._fence()
            for batch in _blocks(page, self._options.batch) if page else [[]]:
                yield self._gone_rows(batch, tally)

    def _gone_rows(self, batch: Sequence[GoneTable], tally: _ImportTally) -> list[ReportRow]:
        wanted = [table for table in batch if self._options.drops_gone and table.may_go]
        commit, kept = self._drop(wanted)
        if commit:
            tally.commits.append(commit)
        is_done = self._options.drops_gone and (bool(commit) or self._options.dry_run)
        tables = [table._replace(keeps=_CHANGED) if table.key in kept else table for table in batch]
        return [gone_row(table, commit=commit, is_dropping=is_done) for table in tables]

    def _drop(self, tables: Sequence[GoneTable]) -> tuple[str, set[ContentKey]]:
        """Drop tables. Returns the commit's hash (empty: nothing dropped), and the tables changed meanwhile, left to the next import."""
        if self._options.dry_run or not tables:
            return "", set()
        left = {table.key: table.content for table in tables}
        for _ in range(_TRIES):
            head = self._catalog.resolve()
            present = {} if head is None else self._catalog.get_contents(id_text(head.id), left)
            left = {key: content for key, content in left.items() if present.get(key) == content}
            if head is None or not left:
                break
            try:
                return self._dropped(left, head), {table.key for table in tables} - left.keys()
            except ConflictError as fault:
                blamed = {conflict.key for conflict in fault.details if isinstance(conflict, Conflict)}
                left = {key: content for key, content in left.items() if key not in blamed}
        return "", {table.key for table in tables}

    def _dropped(self, keys: Collection[ContentKey], head: Head) -> str:
        done = self._catalog.commit(
            None,
            [Delete(key) for key in keys],
            expected=head.id,
            message=f"drop {len(keys)} table{'s' * (len(keys) != 1)} that are gone at their source",
            authors=self._options.authors,
            properties=self._properties,
            is_import=True,
            fence=self._fence,
        )
        return id_text(done.commit_id) if done.changed and done.commit_id is not None else ""

    @property
    def _properties(self) -> dict[str, str]:
        properties = {"import": self._options.name, "task": self._options.task}
        return {name: value for name, value in properties.items() if value}

    def _persist(self, outcomes: Sequence[SurveyOutcome]) -> _DoneBatch:
        """Plan and commit one batch; plan again when another commit changed the same keys meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return self._attempt(outcomes)
            except ConflictError:
                continue
        return self._attempt(outcomes)

    def _attempt(self, outcomes: Sequence[SurveyOutcome]) -> _DoneBatch:
        head = self._catalog.resolve()
        present = self._present(head, outcomes)
        sifted = self._sift(outcomes, head, present)
        left = [
            outcome
            for outcome in sifted.outcomes
            if outcome.directory not in sifted.known and outcome.directory not in sifted.verdicts
        ]
        wanted, refused = check_import_keys(left)
        plan = plan_import(wanted, present, is_sync=self._is_sync, proofs=sifted.proofs)
        reserved, taken = self._reserve(plan.new, head)
        candidates = [*reserved, *(_Candidate(table, content.id, content) for table, content in plan.forward if content.id)]
        self._lent.note_tables(table.table for table in plan.unchanged)
        claimed = self._claims.claim_time()
        candidates, conflicting = self._claim(candidates)
        self._lent.note_tables(candidate.wanted.table for candidate in candidates)
        namespaces = missing_namespaces((candidate.wanted.key for candidate in candidates), present)
        quarantined = (*refused, *plan.quarantined, *taken, *conflicting)
        return _DoneBatch(
            outcomes=sifted.outcomes,
            known=sifted.known,
            left=sifted.left,
            put={candidate.wanted.table.directory: "updated" if candidate.over else "imported" for candidate in candidates},
            quarantined={row.directory: row for row in quarantined} | sifted.verdicts,
            namespaces=namespaces,
            commit=self._commit(head, namespaces, candidates, claimed),
        )

    @property
    def _is_sync(self) -> bool:
        return self._options.mode == "sync"

    def _sift(
        self, outcomes: Sequence[SurveyOutcome], head: Head | None, present: Mapping[ContentKey, Content]
    ) -> SiftedOutcomes:
        """Choose the outcomes to import: an import ``once`` takes what lies there, while a ``sync`` takes only what is new."""
        if not self._is_sync:
            return SiftedOutcomes(outcomes=list(outcomes))

        if self._known is None:
            self._known = self._catalog.known_metadata(note=not self._options.dry_run, fence=self._fence)
        ref = None if head is None else id_text(head.id)
        news = SurveyNews(self._catalog, self._known, own=self._own, ref=ref, present=present, scope=self._options.scope)
        return news.sift(outcomes)

    def _present(self, head: Head | None, outcomes: Sequence[SurveyOutcome]) -> dict[ContentKey, Content]:
        if head is None:
            return {}
        keys = {above for outcome in outcomes if (key := outcome_key(outcome)) is not None for above in (key, *key.ancestors())}
        return self._catalog.get_contents(id_text(head.id), keys)

    def _reserve(self, new: Sequence[WantedTable], head: Head | None) -> tuple[list[_Candidate], list[QuarantinedTable]]:
        """Content ids for new tables: the id that an interrupted import or another branch used for the table; else a new one."""
        uuids = [UUID(wanted.table.uuid) if wanted.table.uuid else None for wanted in new]
        by_uuid = self._claims.find_by_uuid([uuid for uuid in uuids if uuid is not None])
        # a dry run takes no claim that would show who has the place
        by_place = self._claims.find_locations(
            [wanted.table.directory for wanted in new if self._options.dry_run or not wanted.table.uuid]
        )
        owners = [
            (by_uuid.get(uuid) if uuid else None) or by_place.get(wanted.table.directory)
            for wanted, uuid in zip(new, uuids, strict=True)
        ]
        held = {owner.content_id for owner in owners if owner is not None}
        entries = {} if head is None or not held else self._catalog.find_by_id(id_text(head.id), held)
        candidates: list[_Candidate] = []
        refused: list[QuarantinedTable] = []
        for wanted, owner in zip(new, owners, strict=True):
            if owner is None:
                candidates.append(_Candidate(wanted, uuid4()))
            elif owner.catalog_id != self._catalog.definition.id:
                fault = f"belongs to {self._named(owner)}"
                refused.append(quarantine_table(wanted, QuarantineCode.CLAIMED, fault))
            elif owner.content_id in entries:
                fault = f"is in this catalog already, as {entries[owner.content_id].key}: leave it out by exclude"
                refused.append(quarantine_table(wanted, QuarantineCode.CLAIMED, fault))
            else:
                candidates.append(_Candidate(wanted, owner.content_id))
        return candidates, refused

    def _claim(self, candidates: Sequence[_Candidate]) -> tuple[list[_Candidate], list[QuarantinedTable]]:
        """Take the claims of all tables to put, and remove the tables in conflict."""
        if not candidates:
            return [], []
        wishes = [candidate.as_claim(self._catalog.definition.id) for candidate in candidates]
        faults = self._intrusions(candidates, wishes)
        wishes = [wish for wish in wishes if wish.content_id not in faults]
        conflicts = (
            conflicts_beside_history(self._claims, wishes)
            if self._options.dry_run
            else take_over_history(self._claims, wishes, fence=self._fence)
        )
        faults |= {conflict.claim.content_id: self._conflict_text(conflict) for conflict in conflicts}
        refused = [
            quarantine_table(candidate.wanted, QuarantineCode.CLAIMED, f"is claimed: {faults[candidate.content_id]}")
            for candidate in candidates
            if candidate.content_id in faults
        ]
        return [candidate for candidate in candidates if candidate.content_id not in faults], refused

    def _conflict_text(self, conflict: ClaimConflict) -> str:
        is_foreign = conflict.owner.catalog_id not in (self._catalog.definition.id, PURGING)
        return f"{conflict}, of {self._named(conflict.owner)}" if is_foreign else str(conflict)

    def _named(self, owner: ClaimOwner) -> str:
        """The other catalog that has a claim, with what frees it. An import may name it: its callers administer the realm's catalogs."""
        realm, definition = self._claims.rows.realm, self._claims.find_catalog(owner)
        if definition is None:
            return (
                f"the catalog {owner.catalog_id}, which is gone: a collection frees what it had; run `headwater gc run {realm}`"
            )
        address = f"{realm}/{definition.name}"
        if definition.state is CatalogState.ACTIVE:
            return f"the catalog {address}: import it into one catalog of the realm"
        return (
            f"the deleted catalog {address} (id {definition.id}): `headwater catalog undelete {address}` brings it back, and"
            f" `headwater catalog purge {address} --confirm {address}` with a collection after it frees what it had"
        )

    def _intrusions(self, candidates: Sequence[_Candidate], wishes: Sequence[TableClaim]) -> dict[UUID, str]:
        """Tables that must not be put because a reader of one would read another's rows.

        These are tables whose metadata names manifests or statistics in a place that is claimed by another table or wanted by another
        table of the batch; and new tables in whose place a table imported before has such files.
        """
        named = {candidate.content_id: candidate.wanted.table.elsewhere for candidate in candidates}
        holders = self._claims.find_holders(sorted({folder for folders in named.values() for folder in folders}))
        mine = self._catalog.definition.id
        foreign = {
            content_id: [
                folder
                for folder in folders
                if folder in holders and (holders[folder].catalog_id, holders[folder].content_id) != (mine, content_id)
            ]
            for content_id, folders in named.items()
        }
        places = find_intrusions(wishes, named) | {content_id: folders[0] for content_id, folders in foreign.items() if folders}
        new = {candidate.content_id for candidate in candidates if candidate.over is None}
        lent = {wish.content_id: self._lent.fault(wish) for wish in wishes if wish.content_id in new}
        faults = {content_id: f"it has files in {folder}, a place of another table" for content_id, folder in places.items()}
        return {content_id: fault for content_id, fault in lent.items() if fault} | faults

    def _commit(
        self, head: Head | None, namespaces: Sequence[ContentKey], candidates: Sequence[_Candidate], claimed: Micros
    ) -> str:
        """Commit the batch and return the commit's hash; empty when nothing was written."""
        if self._options.dry_run or not candidates:
            return ""

        def fence() -> None:
            if self._fence is not None:
                self._fence()
            # a process that slept in between has to claim again: its claims may have been released, or taken over
            self._claims.check_held(claimed)
            self._claims.check_own([candidate.as_claim(self._catalog.definition.id) for candidate in candidates])

        try:
            done = self._catalog.commit(
                None,
                [*(Put(key, Namespace()) for key in namespaces), *(candidate.as_put() for candidate in candidates)],
                expected=head.id if head else None,
                message=_message(candidates),
                authors=self._options.authors,
                properties=self._properties,
                is_import=True,
                content_ids={candidate.wanted.key: candidate.content_id for candidate in candidates if candidate.over is None},
                fence=fence,
            )
        except RefusedError as refused:
            # an empty branch has no commit to expect, so a competing first commit shows as an unsound request
            if head is None and self._catalog.resolve() is not None:
                raise ConflictError(f"another made the first commit of the branch: {refused}") from refused
            raise
        if not done.changed or done.commit_id is None:
            return ""
        self._own.add(done.commit_id)
        return id_text(done.commit_id)
