"""News of a survey to a catalog: metadata that no branch of it has known. Only news may move a table.

All branches of a catalog write into the folder of a table, so the latest file there may be one that is on no other branch; and
a table that was dropped here, or restored, lies there as before. So from what a folder holds, the files are left out that were
put through the catalog, and the latest of the others counts. Where that is known, there is nothing new:

    put through the catalog     left out, and so is what its clients wrote for commits that did not happen, by its name
    known from outside          nothing new: whatever the branch did since, it did on purpose
    not known                   news: taken where it grew out of what the branch has, and reported where the branch has moved on, too

What is known is looked up after the files were listed; otherwise a file that a branch commits in between would be news.

``find_earlier_version`` and ``prove_by_snapshots`` tell whether a table's metadata grew out of an earlier version: by its log,
by the logs of the versions between, or by its snapshots. Writers cut the log in a document
(``write.metadata.previous-versions-max``), but mostly leave the files that drop out of it. So the oldest file that a log names
has a log that reaches further back, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from headwater.catalogs.catalog import Catalog
from headwater.catalogs.content import Content, ContentKey, IcebergTable, IcebergView
from headwater.catalogs.importer.gone_tables import is_there
from headwater.catalogs.importer.import_report import outcome_key
from headwater.catalogs.known_metadata import KnownFolder, KnownMetadata, MetadataOrigin, is_own_name
from headwater.clock import as_text
from headwater.errors import RefusedError
from headwater.iceberg import (
    AcceptedTable,
    QuarantineCode,
    QuarantinedTable,
    RejectedTable,
    SurveyOutcome,
    SurveyScope,
    canonical_location,
    examine_table_without,
    is_same_place,
    is_within,
)
from headwater.iceberg.filesystem import STORAGE, LakeStorage
from headwater.iceberg.layout import FileInfo, parse_metadata_name
from headwater.iceberg.metadata_json import decode_metadata, logged_files, objects_in, parse_metadata
from headwater.store import ObjectId

_BETWEEN_BRANCHES = (QuarantineCode.AMBIGUOUS, QuarantineCode.TWO_TABLES)
"""What a folder looks like into which several branches write."""


@dataclass(frozen=True, slots=True)
class SiftedOutcomes:
    """Outcomes in their order, with what the sifting found about them.

    known         outcomes that bring nothing new, by directory: where their latest metadata is known from
    left          directories in which only data is left of a table that the branch has, and whose metadata is gone
    verdicts      on outcomes that must not be taken, by directory
    proofs        by key, for tables whose own log does not show whether they follow the catalog's version
    """

    outcomes: list[SurveyOutcome] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    verdicts: dict[str, QuarantinedTable] = field(default_factory=dict)
    proofs: dict[ContentKey, LineageProof] = field(default_factory=dict)


class SurveyNews:
    """Sifts the outcomes of a survey.

    known         the known metadata; it is looked up again when something seems to be news
    own           commits of this import
    ref           the commit in which ``present`` stands
    present       the branch's contents at the outcomes' keys
    scope         of the survey; None: no folder is listed again
    """

    def __init__(
        self,
        catalog: Catalog,
        known: KnownMetadata,
        *,
        own: Collection[ObjectId] = (),
        ref: str | None,
        present: Mapping[ContentKey, Content],
        scope: SurveyScope | None,
        storage: LakeStorage = STORAGE,
    ) -> None:
        self._catalog = catalog
        self._known = known
        self._own = own
        self._is_current = False
        self._ref = ref
        self._present = present
        self._scope = scope
        self._storage = storage
        self._branch = catalog.definition.default_branch
        self._origins: dict[str, MetadataOrigin | None] = {}
        self._outside: dict[str, SurveyOutcome | None] = {}
        self._sifted = SiftedOutcomes()

    def sift(self, outcomes: Sequence[SurveyOutcome]) -> SiftedOutcomes:
        """Sift the outcomes; raises UnavailableError when the storage does not answer."""
        self._ask([outcome.metadata_location for outcome in outcomes if isinstance(outcome, AcceptedTable)])
        for outcome in outcomes:  # all folders first, so that the known metadata is looked up once
            if outcome_key(outcome) is not None and self._hides_others(outcome):
                self._outside[outcome.directory] = self._from_outside(outcome)
        for outcome in outcomes:
            key = outcome_key(outcome)
            self._sifted.outcomes.append(outcome if key is None else self._looked_at(outcome, key))
        return self._sifted

    def _looked_at(self, outcome: SurveyOutcome, key: ContentKey) -> SurveyOutcome:
        if isinstance(outcome, QuarantinedTable) and outcome.code is QuarantineCode.NO_METADATA:
            self._judge_leftovers(outcome, key)
            return outcome
        self._look_again_for(outcome)
        if not self._hides_others(outcome):
            return self._judged(outcome, key) if isinstance(outcome, AcceptedTable) else outcome
        if outcome.directory not in self._outside:  # committed here since it was listed
            self._outside[outcome.directory] = self._from_outside(outcome)
        latest = self._outside[outcome.directory]
        if latest is outcome:
            return outcome
        if latest is None or (isinstance(latest, AcceptedTable) and self._leads_to(latest, outcome, key)):
            self._tell(outcome, key)
            return outcome
        if not isinstance(latest, AcceptedTable):
            return latest
        self._look_again_for(latest)
        if self._origin(latest) is None:
            return self._judged(latest, key)
        return self._judged(outcome if isinstance(outcome, AcceptedTable) else latest, key)

    def _look_again_for(self, outcome: SurveyOutcome) -> None:
        """True if a file seems to be news: it may have been committed since the known metadata was looked up."""
        if (
            self._is_current
            or not isinstance(outcome, AcceptedTable)
            or self._origin(outcome) is not None
            or self._is_own(outcome)
        ):
            return
        self._known.look_again(self._own)
        self._is_current = True
        self._ask(list(self._origins))

    def _ask(self, locations: Sequence[str]) -> None:
        origins = self._known.find_many(locations)
        self._origins |= {location: origins.get(location) for location in locations}

    def _judge_leftovers(self, outcome: QuarantinedTable, key: ContentKey) -> None:
        """Judge data without metadata: the table is gone, or has its metadata elsewhere."""
        present = self._present.get(key)
        if not isinstance(present, IcebergTable | IcebergView):
            return
        if not any(
            is_within(present.metadata_location, place) for place in (() if self._scope is None else self._scope.allowed)
        ):
            return
        if is_there(present, self._storage):
            self._sifted.known[outcome.directory] = (
                f"the catalog has its metadata, which lies elsewhere: {present.metadata_location}"
            )
        else:
            self._sifted.left.add(outcome.directory)

    def _hides_others(self, outcome: SurveyOutcome) -> bool:
        """True if the chosen file was put through the catalog, or the verdict may come from files of several branches."""
        if isinstance(outcome, AcceptedTable):
            return self._is_own(outcome)
        return outcome.code in _BETWEEN_BRANCHES

    def _is_own(self, table: AcceptedTable) -> bool:
        """True if a table's metadata file was put through the catalog, or one of its clients wrote it."""
        return self._is_own_file(table.metadata_location, self._origin(table))

    def _is_own_file(self, location: str, origin: MetadataOrigin | None) -> bool:
        return is_own_name(self._catalog.definition.id, _name(location)) if origin is None else origin.is_own

    def _from_outside(self, outcome: SurveyOutcome) -> SurveyOutcome | None:
        """Judge the files that were not put through the catalog; None: there are none, or the folder cannot be read.

        Where nothing was put through the catalog, a verdict stays as it is.
        """
        folder = self._known.known_folder(_folder_of(outcome))
        passed_over: list[str] = []

        def is_own(location: str) -> bool:
            if self._is_own_file(location, folder.find_origin(location)):
                passed_over.append(location)
                return True
            return False

        if self._scope is None:
            return None if isinstance(outcome, AcceptedTable) or folder.has_own else outcome
        self._is_current = False
        latest = examine_table_without(outcome.directory, outcome.key, self._scope, is_own, storage=self._storage)
        return outcome if isinstance(outcome, QuarantinedTable) and not passed_over else latest

    def _leads_to(self, older: AcceptedTable, outcome: SurveyOutcome, key: ContentKey) -> bool:
        """True if an unknown file is only an earlier version of the files that were put through the catalog."""
        if self._origin(older) is not None:
            return False
        present = self._present.get(key)
        newer = [outcome] if isinstance(outcome, AcceptedTable) else []
        if isinstance(present, IcebergTable) and (document := self._document(key)) is not None:
            newer.append(
                msgspec.structs.replace(older, metadata_location=present.metadata_location, log=tuple(logged_files(document)))
            )
        if older.kind == "view":
            return any(_holds_version(table, older) for table in newer)
        return any(
            find_earlier_version(
                table, lambda location: is_same_place(location, older.metadata_location), self._storage
            ).location
            for table in newer
        )

    def _judged(self, news: AcceptedTable, key: ContentKey) -> AcceptedTable:
        """Judge the latest version: whether it is known or news, and whether the branch may be moved to it."""
        present = self._present.get(key)
        if isinstance(present, IcebergTable | IcebergView) and is_same_place(present.metadata_location, news.metadata_location):
            return news
        if self._origin(news) is not None or self._is_own(news):
            self._tell(news, key)
            return news
        folder = self._folder(news)
        if not folder:
            return news
        if self._was_forgotten(news, folder):
            self._tell(news, key)
        elif present is None:
            self._judge_absent(news, key, folder)
        elif isinstance(present, IcebergTable) and news.kind == "table":
            return self._judged_on_top(news, key, present, folder)
        elif isinstance(present, IcebergView) and news.kind == "view" and not folder.is_last(present.metadata_location):
            self._diverge(news, key, present, folder, "")
        return news

    def _judged_on_top(self, news: AcceptedTable, key: ContentKey, present: IcebergTable, folder: KnownFolder) -> AcceptedTable:
        """Judge news of a table that the branch has, by the nearest earlier version that is known."""
        if present.table_uuid is not None and news.uuid is not None and present.table_uuid.lower() != news.uuid.lower():
            return news
        before = find_earlier_version(news, lambda location: _is_known(location, present, folder), self._storage)
        origin = folder.find_origin(present.metadata_location)
        if before.location is not None and not is_same_place(before.location, present.metadata_location):
            self._diverge(news, key, present, folder, before.location)
        elif before.location is None and not folder.is_last(present.metadata_location):
            self._diverge(news, key, present, folder, "")
        elif origin is not None and origin.is_own:
            self._doubt(news, key, present)
        elif before.location is not None:
            count = f"{before.files} earlier file{'s' * (before.files != 1)}"
            says = f"the logs of {count} lead back to {_name(present.metadata_location)}" if before.files else ""
            return self._proven(news, key, LineageProof(present.metadata_location, True, says))
        else:
            proof = prove_by_snapshots(news, present, self._document(key))
            says = proof.says if proof.is_forward else f"{before.says}; {proof.says}"
            return self._proven(news, key, proof._replace(says=says))
        return news

    def _proven(self, news: AcceptedTable, key: ContentKey, proof: LineageProof) -> AcceptedTable:
        self._sifted.proofs[key] = proof
        is_told = proof.is_forward and proof.says != ""
        return msgspec.structs.replace(news, evidence=(*news.evidence, proof.says)) if is_told else news

    def _judge_absent(self, news: AcceptedTable, key: ContentKey, folder: KnownFolder) -> None:
        """Judge news of a table that is not on the branch, in a folder with known files."""
        before = find_earlier_version(news, lambda location: folder.find_origin(location) is not None, self._storage)
        if before.location is None and reaches_its_beginning(news):
            return  # another table, made in the folder of the one that is known
        fault = (
            f"is not on branch {self._branch}, where it was dropped or renamed, or which it never reached ({_last_text(folder)}), and its"
            f" writer went on to {news.metadata_location}: exclude it, or bring it back by an import with mode once"
        )
        self._refuse(news, key, QuarantineCode.DROPPED, fault)

    def _diverge(
        self, news: AcceptedTable, key: ContentKey, present: IcebergTable | IcebergView, folder: KnownFolder, base: str
    ) -> None:
        origin = folder.find_origin(present.metadata_location)
        who = "which was put through this catalog" if origin is not None and origin.is_own else "an earlier version"
        grown = f", which grew out of {_name(base)}" if base else ""
        fault = (
            f"moved on both here and outside: branch {self._branch} is at {present.metadata_location}, {who}, and its other writer is at"
            f" {news.metadata_location}{grown}. To keep what is here, exclude the table; to take what is there, drop it from branch"
            f" {self._branch} and import it with mode once"
        )
        self._refuse(news, key, QuarantineCode.DIVERGED, fault)

    def _doubt(self, news: AcceptedTable, key: ContentKey, present: IcebergTable) -> None:
        """Judge a file on top of the catalog's own version: its name may be that of a commit that did not happen."""
        fault = (
            f"is at {present.metadata_location} on branch {self._branch}, which was put through this catalog, and {news.metadata_location}"
            " grew out of it: another writer made that, or a client of an earlier release for a commit that did not happen. To keep what is"
            f" here, exclude the table; to take what is there, drop it from branch {self._branch} and import it with mode once"
        )
        self._refuse(news, key, QuarantineCode.DIVERGED, fault)

    def _refuse(self, news: AcceptedTable, key: ContentKey, code: QuarantineCode, fault: str) -> None:
        message = f"{news.directory}: {key} {fault}"
        self._sifted.verdicts[news.directory] = QuarantinedTable(
            directory=news.directory, key=news.key, code=code, message=message
        )

    def _tell(self, outcome: SurveyOutcome, key: ContentKey) -> None:
        """Report nothing new: the table stays as it is, with the reason if the folder holds other metadata."""
        present = self._present.get(key)
        if not isinstance(outcome, AcceptedTable):
            knows = "the catalog already knows all that its branches wrote into the folder"
        elif isinstance(present, IcebergTable | IcebergView) and is_same_place(
            present.metadata_location, outcome.metadata_location
        ):
            return
        elif (origin := self._origin(outcome)) is None and self._is_own(outcome):
            knows = f"a client of the catalog wrote {_name(outcome.metadata_location)}, and no commit names it"
        else:
            knows = f"the catalog already knows {_name(outcome.metadata_location)}{_from_text(origin)}"
        state = "does not have the table" if present is None else "is at another version"
        self._sifted.known[outcome.directory] = f"nothing new: {knows}; branch {self._branch} {state}, and stays as it is"

    def _was_forgotten(self, table: AcceptedTable, folder: KnownFolder) -> bool:
        """True if a file may be one whose note was forgotten, judged by its age."""
        if not folder.forgotten:
            return False
        updated = document_of_table(table).get("last-updated-ms")
        bound = self._catalog.settings.clock_bound_seconds
        return not isinstance(updated, int) or updated * 1000 <= folder.forgotten + bound * 1_000_000

    def _document(self, key: ContentKey) -> Mapping[str, Any] | None:
        """The catalog's metadata document of the table at a key."""
        text = self._catalog.metadata(self._ref, key)
        document: Mapping[str, Any] | None = None if text is None else msgspec.json.decode(text)
        return document

    def _origin(self, table: AcceptedTable) -> MetadataOrigin | None:
        if table.metadata_location not in self._origins:
            self._ask([table.metadata_location])
        return self._origins[table.metadata_location]

    def _folder(self, table: AcceptedTable) -> KnownFolder:
        return self._known.known_folder(table.metadata_location.rpartition("/")[0])


def _folder_of(outcome: SurveyOutcome) -> str:
    return (
        outcome.metadata_location.rpartition("/")[0] if isinstance(outcome, AcceptedTable) else f"{outcome.directory}/metadata"
    )


def _is_known(location: str, present: IcebergTable, folder: KnownFolder) -> bool:
    return folder.find_origin(location) is not None or is_same_place(location, present.metadata_location)


def _holds_version(newer: AcceptedTable, older: AcceptedTable) -> bool:
    """True if a view's document has the current version of another one, unchanged."""
    wanted = [version for version in _versions(older) if version.get("version-id") == older.version_id]
    return bool(wanted) and all(version in _versions(newer) for version in wanted)


def _versions(view: AcceptedTable) -> list[Any]:
    versions = document_of_table(view).get("versions")
    return versions if isinstance(versions, list) else []


def _from_text(origin: MetadataOrigin | None) -> str:
    return "" if origin is None else f" from branch {origin.branch} (since {as_text(origin.time)})"


def _last_text(folder: KnownFolder) -> str:
    origin = max(folder.files.values(), key=lambda origin: origin.time, default=None)
    if origin is None:
        return "what was known of it was forgotten"
    return f"known from branch {origin.branch} since {as_text(origin.time)}"


def _name(location: str) -> str:
    return location.rpartition("/")[2]


_FILES = 64
"""Files between two versions that are read: with the logs that writers keep as a rule, 6400 versions."""

Document = Mapping[str, Any]


class LineageProof(NamedTuple):
    """The result of comparing a table with the catalog's version at ``metadata_location``.

    says          the proof, or what is missing from it
    """

    metadata_location: str
    is_forward: bool
    says: str


class EarlierVersion(NamedTuple):
    """The first of the wanted earlier locations that was found, and how many files were read to find it.

    location      None: none of them was found
    says          where the way back ended
    """

    location: str | None
    files: int
    says: str


def find_earlier_version(table: AcceptedTable, is_wanted: Callable[[str], bool], storage: LakeStorage) -> EarlierVersion:
    """Find the nearest wanted earlier version. Reads earlier files only where the table's own log is too short.

    raises        UnavailableError when the storage does not answer
    """
    log, met = table.log, {table.metadata_location}
    for number in range(_FILES + 1):
        new = [location for location in log if location not in met]
        wanted = next((location for location in reversed(new) if is_wanted(location)), None)
        if wanted is not None:
            return EarlierVersion(wanted, number, "")
        met.update(new)
        document = next(_readable(table, new, storage), None)
        if document is None:
            oldest = new[0].rpartition("/")[2] if new else ""
            return EarlierVersion(
                None, number, f"its log reaches back to {oldest}, and no file leads further" if new else "no log leads further"
            )
        log = tuple(logged_files(document))
    return EarlierVersion(None, _FILES, f"{_FILES} files of logs do not reach back that far")


def prove_by_snapshots(table: AcceptedTable, present: IcebergTable, before: Document | None) -> LineageProof:
    """Prove the lineage by the table's uuid, and by the parts of the old document that the new one has.

    before        the document of ``present``, if it is known
    """
    lacks = _lacks(document_of_table(table), present, before)
    if lacks:
        return LineageProof(present.metadata_location, False, lacks)
    what = (
        "no snapshot was there before"
        if present.snapshot_id == -1
        else f"snapshot {present.snapshot_id} is an ancestor of its current one"
    )
    return LineageProof(present.metadata_location, True, f"of the same uuid and written later; {what}")


def _lacks(now: Document, present: IcebergTable, before: Document | None) -> str:
    """Say why the new document is not proven to follow the old one; an empty text: it is proven."""
    uuid = now.get("table-uuid")
    if present.table_uuid is None or not isinstance(uuid, str) or uuid.lower() != present.table_uuid.lower():
        return "no uuid tells that it is the same table"
    if before is None:
        return "the catalog holds no metadata of its version to compare"
    for name in ("last-updated-ms", "last-sequence-number", "last-column-id"):
        if _number(now, name) < _number(before, name):
            return f"its {name} is {_number(now, name)}, and was {_number(before, name)} before"
    if present.snapshot_id == -1:
        return ""
    ancestors = list(_ancestors(now))
    if present.snapshot_id in ancestors:
        return ""
    if present.snapshot_id in _snapshots(now):
        return f"snapshot {present.snapshot_id} is none of the ancestors of its current one: it was rolled back, or the way there expired"
    return f"snapshot {present.snapshot_id} is not among its {len(_snapshots(now))} snapshots: it expired, or never was there"


def _ancestors(document: Document) -> Iterator[int]:
    """The current snapshot and its ancestors, as far as they exist."""
    snapshots = _snapshots(document)
    current, met = document.get("current-snapshot-id"), set[int]()
    while isinstance(current, int) and current in snapshots and current not in met:
        yield current
        met.add(current)
        current = snapshots[current].get("parent-snapshot-id")


def _snapshots(document: Document) -> dict[int, Document]:
    snapshots = objects_in(document, "snapshots")
    return {snapshot["snapshot-id"]: snapshot for snapshot in snapshots if isinstance(snapshot.get("snapshot-id"), int)}


def _readable(table: AcceptedTable, locations: Sequence[str], storage: LakeStorage) -> Iterator[Document]:
    """The documents that can be read and belong to this table, first one first."""
    for location in locations:
        if not is_within(location, table.directory):
            continue
        try:
            document = decode_metadata(storage.read_file(FileInfo(canonical_location(location), 0)), path=location)
        except (RejectedTable, RefusedError):
            continue
        if table.uuid is None or str(document.get("table-uuid")).lower() == table.uuid.lower():
            yield document


def document_of_table(table: AcceptedTable) -> Document:
    """The metadata document of a survey's outcome; empty if it has none."""
    return parse_metadata(table.document, path=table.metadata_location, size=len(table.document)) if table.document else {}


def reaches_its_beginning(table: AcceptedTable) -> bool:
    """True if a table's log names all versions that the table ever had: it was never truncated."""
    first = parse_metadata_name((table.log[0] if table.log else table.metadata_location).rpartition("/")[2])
    return first is not None and first.number in (0, 1)


def _number(document: Document, name: str) -> int:
    value = document.get(name)
    return value if isinstance(value, int) else 0
