"""The views of maintenance runs, findings, archives and restorations: their JSON fields and table columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.cli.result_output import ResultView, ViewField, identifier, time_after, time_field
from headwater.fsck import FsckFinding, RepairStep
from headwater.fsck.explanation import Explanation
from headwater.jobs.run_record import Run


def _of(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda outcome: outcome.get(name)


COLLECTION: ResultView[Mapping[str, Any]] = ResultView(
    "collection",
    "collections",
    (
        ViewField("realm", "the realm's id", _of("realm")),
        ViewField("dryRun", "nothing was deleted", _of("dryRun")),
        ViewField("writerCutoff", "rows younger than this were not touched", _of("writerCutoff")),
        ViewField("readerCutoff", "what was HEAD after this stays", _of("readerCutoff")),
        ViewField("references", "living references that were read", _of("references")),
        ViewField("scanned", "rows", _of("scanned")),
        ViewField("kept", "rows, by reason: head, grace, retention, record, filter, young, fixed, unknown type", _of("kept")),
        ViewField("garbage", "rows that nothing keeps", _of("garbage")),
        ViewField("garbageBytes", "their bytes", _of("garbageBytes")),
        ViewField(
            "leftoverParts", "of the garbage: parts that an interrupted rewriting left of an object", _of("leftoverParts")
        ),
        ViewField("deleted", "rows that the database confirmed gone", _of("deleted")),
        ViewField("deletedBytes", "at least so many bytes", _of("deletedBytes")),
        ViewField("types", "rows by object type and reason", _of("types")),
        ViewField("garbageTypes", "garbage by object type: rows and bytes", _of("garbageTypes")),
        ViewField("deletedTypes", "of the deleted rows, those whose type is certain: rows and bytes", _of("deletedTypes")),
        ViewField("tombstonesRemoved", "deleted references that nobody can read from any more", _of("tombstonesRemoved")),
        ViewField("claimsReleased", "uuids and locations of tables that are gone", _of("claimsReleased")),
        ViewField("pinsReleased", "pins of tasks that have ended", _of("pinsReleased")),
        ViewField("lateRowsDeleted", "rows that late writers left under purged keys", _of("lateRowsDeleted")),
        ViewField("marks", "objects that were marked", _of("marks")),
        ViewField("filterBytes", "size of the filter; 0: the marks were exact", _of("filterBytes")),
        ViewField("filterFpp", "share of the garbage that the filter keeps by mistake", _of("filterFpp")),
        ViewField("seconds", "by phase: note, mark, plan, raise, save, sweep, and of the sweep delete", _of("seconds")),
        ViewField("resumed", "how often an interrupted sweep was gone on with", _of("resumed")),
        ViewField("notes", "what a person should know", _of("notes")),
    ),
)

IMPORT: ResultView[Mapping[str, Any]] = ResultView(
    "import",
    "imports",
    (
        ViewField("dryRun", "nothing was written", _of("dryRun")),
        ViewField("surveyed", "table folders: imported + updated + unchanged + quarantined", _of("surveyed")),
        ViewField("imported", "tables that are new in the catalog", _of("imported")),
        ViewField("updated", "tables that were moved forward", _of("updated")),
        ViewField("unchanged", "tables that were there already", _of("unchanged")),
        ViewField(
            "known",
            "of these, where the latest metadata is another one that the catalog knows or its clients wrote",
            _of("known"),
        ),
        ViewField("gone", "tables of the catalog whose metadata is gone, and that stay", _of("gone")),
        ViewField("dropped", "the same, and dropped from the catalog", _of("dropped")),
        ViewField("namespaces", "namespaces that were created", _of("namespaces")),
        ViewField("rules", "how many tables' latest metadata was chosen by which rule", _of("rules")),
        ViewField(
            "commits",
            "what it wrote on the default branch",
            _of("commits"),
            inside={".total": "how many", ".shown[]": "hashes, oldest first: the last 100"},
        ),
        ViewField(
            "quarantined",
            "tables that were left out, because something about them is wrong",
            _of("quarantined"),
            inside={
                ".total": "how many",
                ".codes": "how many for which reason",
                ".shown[].table": "the first of them: key",
                ".shown[].code": "one word for the reason",
                ".shown[].message": "the reason, and what to do",
            },
        ),
    ),
)


def _seconds(run: Run) -> float:
    return round((run.finished - run.started) / 1_000_000, 1)


def _result(run: Run) -> str:
    """Returns one line for a run: its error, or its counts that are not zero."""
    if run.error:
        return run.error
    counts = {
        name: value for name, value in run.counts.items() if isinstance(value, int) and not isinstance(value, bool) and value
    }
    quarantined = run.counts.get("quarantined")
    if isinstance(quarantined, Mapping) and quarantined.get("total"):
        counts["quarantined"] = quarantined["total"]
    return ", ".join(f"{name} {value}" for name, value in counts.items()) or "nothing to do"


RUN: ResultView[Run] = ResultView(
    "run",
    "runs",
    (
        ViewField("started", "when it began", lambda r: time_field(r.started), "STARTED"),
        ViewField("finished", "when it ended", lambda r: time_field(r.finished)),
        ViewField("kind", "gc, purge, purge-table, import, export, load or restore", lambda r: r.kind, "KIND"),
        ViewField("realm", "the realm's id", lambda r: r.realm, "REALM"),
        ViewField("subject", "what within the realm, such as a catalog", lambda r: r.subject, "SUBJECT"),
        ViewField("seconds", "how long it took", _seconds, "SECONDS"),
        ViewField("result", "the error, or the counts that are not zero", _result, "RESULT"),
        ViewField("error", "empty when it did what it was for", lambda r: r.error),
        ViewField("counts", "all that it counted, as its task's outcome has it", lambda r: dict(r.counts)),
        ViewField("notes", "what a person should know", lambda r: list(r.notes)),
        ViewField("task", "the task's id", lambda r: identifier(r.task)),
        ViewField("attempt", "of the task", lambda r: r.attempt),
    ),
)


@dataclass(frozen=True, slots=True)
class RunType:
    """The rows of one object type that one run counted."""

    run: Run
    type: str
    kept: Mapping[str, int]
    garbage: int
    deleted: int
    deleted_bytes: int


def types_of(runs: Sequence[Run]) -> list[RunType]:
    """Returns the object types that runs counted, the most rows first."""
    return [one for run in runs for one in sorted(_types_of(run), key=lambda t: (-sum(t.kept.values()) - t.garbage, t.type))]


def _types_of(run: Run) -> Iterator[RunType]:
    deleted = run.counts.get("deletedTypes") or {}
    for name, reasons in (run.counts.get("types") or {}).items():
        if not isinstance(reasons, Mapping):
            return  # an archive counts objects by type, and gives no reasons
        gone = deleted.get(name) or {}
        kept = {reason: rows for reason, rows in reasons.items() if reason != "garbage"}
        yield RunType(run, name, kept, reasons.get("garbage", 0), gone.get("rows", 0), gone.get("bytes", 0))


RUN_TYPE: ResultView[RunType] = ResultView(
    "type of a run",
    "types",
    (
        ViewField("started", "when the run began", lambda t: time_field(t.run.started), "STARTED"),
        ViewField("realm", "the realm's id", lambda t: t.run.realm, "REALM"),
        ViewField("type", "the type of object", lambda t: t.type, "TYPE"),
        ViewField("scanned", "rows", lambda t: sum(t.kept.values()) + t.garbage, "SCANNED"),
        ViewField("kept", "rows, by reason", lambda t: dict(t.kept), "KEPT"),
        ViewField("garbage", "rows that nothing keeps", lambda t: t.garbage, "GARBAGE"),
        ViewField("deleted", "rows of which it is certain that they went", lambda t: t.deleted, "DELETED"),
        ViewField("deletedBytes", "at least so many bytes", lambda t: t.deleted_bytes, "BYTES"),
    ),
)

EXPLANATION: ResultView[Explanation] = ResultView(
    "explanation",
    "explanations",
    (
        ViewField("realm", "the realm's id", lambda e: e.realm),
        ViewField("id", "the object's id", lambda e: e.object_id),
        ViewField("type", "the object's type", lambda e: e.type),
        ViewField("kept", "whether a collection that starts now would keep it", lambda e: e.is_kept),
        ViewField(
            "why", "head, grace, retention, record, young, fixed or unknown type; null: it is garbage", lambda e: e.why or None
        ),
        ViewField("reason", "why, or when it goes", lambda e: e.sentence),
        ViewField("goes", "the first time at which a collection deletes it; null: unknown", lambda e: time_after(e.goes)),
        ViewField("chain", "type and id, from the commit that keeps it down to the object", lambda e: list(e.chain)),
        ViewField("path", "the same in words, from the reference on: commits, indexes, keys", lambda e: list(e.path)),
    ),
)

FINDING: ResultView[FsckFinding] = ResultView(
    "finding",
    "findings",
    (
        ViewField("code", "what kind it is; a contract", lambda f: f.code.value),
        ViewField(
            "weight",
            "DAMAGE, TROUBLE or LEFTOVER; the last alone is no reason to wake anybody",
            lambda f: f.weight.value,
        ),
        ViewField("realm", "the realm's id", lambda f: f.realm),
        ViewField("subject", "the reference, object, catalog or task", lambda f: f.subject),
        ViewField(
            "keys", "of what cannot be read: the keys under which the reference holds it, the first few", lambda f: list(f.keys)
        ),
        ViewField("message", "what is wrong", lambda f: f.message),
        ViewField("repair", "what would mend it", lambda f: f.repair),
    ),
)

STEP: ResultView[RepairStep] = ResultView(
    "step",
    "steps",
    (
        ViewField(
            "action",
            "GO_BACK, COMPLETE_CATALOG, SET_ASIDE, SETTLE_TASKS, WITHDRAW_FLAG, BY_HAND or COLLECT",
            lambda s: s.action.value,
        ),
        ViewField("safe", "whether `headwater fsck --repair` does it", lambda s: s.is_safe),
        ViewField("realm", "the realm's id", lambda s: s.realm),
        ViewField("subject", "what it is done to", lambda s: s.subject),
        ViewField("does", "what it does, or what a person has to do", lambda s: s.does),
        ViewField("loses", "what is gone after it", lambda s: s.loses),
        ViewField("because", "codes of the [findings](#finding) that it mends", lambda s: [code.value for code in s.because]),
        ViewField("target", "the commit that it goes back to", lambda s: s.target or None),
        ViewField("result", "what came of it; null: not done", lambda s: s.result or None),
    ),
)


_HELD: tuple[ViewField[dict[str, Any]], ...] = (
    ViewField("references", "references that it has", lambda a: a["references"]),
    ViewField("objects", "objects that it has", lambda a: a["objects"]),
    ViewField(
        "types",
        "the same by type",
        lambda a: a["types"],
        inside={".<type>": "objects of this type"},
    ),
    ViewField("objectBytes", "bytes of these objects as they lie in a store", lambda a: a["objectBytes"]),
    ViewField("digest", "of all that; equal for equal realms, whatever their ids and wherever they lie", lambda a: a["digest"]),
)

ARCHIVE: ResultView[dict[str, Any]] = ResultView(
    "archive",
    "archives",
    (
        ViewField("file", "where it was written to", lambda a: a["file"]),
        ViewField("realm", "the realm's id", lambda a: a["realm"]),
        ViewField("asOf", "the moment that it shows", lambda a: a["asOf"]),
        *_HELD,
        ViewField("fileBytes", "size of the file", lambda a: a["fileBytes"]),
    ),
)

LOADED: ResultView[dict[str, Any]] = ResultView(
    "imported realm",
    "imported realms",
    (
        ViewField("realm", "the realm that was made", lambda a: a["realm"]),
        ViewField("state", "ACTIVE or INACTIVE", lambda a: a["state"]),
        ViewField("file", "the archive", lambda a: a["file"]),
        ViewField("exportedRealm", "the realm that it was made of", lambda a: a["exportedRealm"]),
        ViewField("asOf", "the moment that it shows", lambda a: a["asOf"]),
        *_HELD,
    ),
)


def _sum(step: Mapping[str, Any], what: str) -> int:
    return sum(counts[what] for counts in step["changes"].values())


RESTORATION: ResultView[Mapping[str, Any]] = ResultView(
    "step of a restoration",
    "steps",
    (
        ViewField(
            "reference", "a branch or tag, a catalog, or a reference of the realm", lambda s: s["reference"], "REFERENCE"
        ),
        ViewField(
            "act",
            "restore: a commit on top · revive: it comes back · move: a tag is put where it was · update: a catalog's definition"
            " · delete: it was made later · keep: so, and it stays · lose: it cannot come back",
            lambda s: s["act"],
            "ACT",
        ),
        ViewField("target", "the commit whose state is wanted; null: it held nothing", lambda s: s["target"], "TARGET"),
        ViewField("put", "keys that come back", lambda s: _sum(s, "put"), "PUT"),
        ViewField("changed", "keys that change", lambda s: _sum(s, "changed"), "CHANGED"),
        ViewField("removed", "keys that go", lambda s: _sum(s, "removed"), "REMOVED"),
        ViewField(
            "changes",
            "the same by type of content, or by index",
            lambda s: s["changes"],
        ),
        ViewField("commit", "the new commit; null: none, or not yet", lambda s: s.get("commit")),
        ViewField("note", "why, where that is not plain", lambda s: s["note"], "NOTE"),
    ),
)
