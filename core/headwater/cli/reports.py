"""What the results of maintenance look like from outside: collections, imports, runs, explanations and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.cli.fields import Field, View, identifier, time, time_after
from headwater.maintenance import Explanation, Finding, Run, Step

__all__ = ["COLLECTION", "EXPLANATION", "FINDING", "IMPORT", "RUN", "RUN_TYPE", "STEP", "RunType", "types_of"]


def _of(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda outcome: outcome.get(name)


COLLECTION: View[Mapping[str, Any]] = View(
    "collection",
    "collections",
    (
        Field("realm", "the realm's id", _of("realm")),
        Field("dryRun", "nothing was deleted", _of("dryRun")),
        Field("writerCutoff", "rows younger than this were not touched", _of("writerCutoff")),
        Field("readerCutoff", "what was HEAD after this stays", _of("readerCutoff")),
        Field("references", "living references that were read", _of("references")),
        Field("scanned", "rows", _of("scanned")),
        Field("kept", "rows, by reason: head, grace, retention, record, filter, young, fixed, unknown type", _of("kept")),
        Field("garbage", "rows that nothing keeps", _of("garbage")),
        Field("garbageBytes", "their bytes", _of("garbageBytes")),
        Field("leftoverParts", "of the garbage: parts that an interrupted rewriting left of an object", _of("leftoverParts")),
        Field("deleted", "rows that the database confirmed gone", _of("deleted")),
        Field("deletedBytes", "at least so many bytes", _of("deletedBytes")),
        Field("types", "rows by object type and reason", _of("types")),
        Field("garbageTypes", "garbage by object type: rows and bytes", _of("garbageTypes")),
        Field("deletedTypes", "of the deleted rows, those whose type is certain: rows and bytes", _of("deletedTypes")),
        Field("tombstonesRemoved", "deleted references that nobody can read from any more", _of("tombstonesRemoved")),
        Field("claimsReleased", "uuids and locations of tables that are gone", _of("claimsReleased")),
        Field("pinsReleased", "pins of tasks that have ended", _of("pinsReleased")),
        Field("lateRowsDeleted", "rows that late writers left under purged keys", _of("lateRowsDeleted")),
        Field("marks", "objects that were marked", _of("marks")),
        Field("filterBytes", "size of the filter; 0: the marks were exact", _of("filterBytes")),
        Field("filterFpp", "share of the garbage that the filter keeps by mistake", _of("filterFpp")),
        Field("seconds", "by phase: note, mark, plan, raise, save, sweep, and of the sweep delete", _of("seconds")),
        Field("resumed", "how often an interrupted sweep was gone on with", _of("resumed")),
        Field("notes", "what a person should know", _of("notes")),
    ),
)

IMPORT: View[Mapping[str, Any]] = View(
    "import",
    "imports",
    (
        Field("dryRun", "nothing was written", _of("dryRun")),
        Field("surveyed", "table folders: imported + updated + unchanged + quarantined", _of("surveyed")),
        Field("imported", "tables that are new in the catalog", _of("imported")),
        Field("updated", "tables that were moved forward", _of("updated")),
        Field("unchanged", "tables that were there already", _of("unchanged")),
        Field(
            "known",
            "of these, where the latest metadata is another one that the catalog knows or its clients wrote",
            _of("known"),
        ),
        Field("gone", "tables of the catalog whose metadata is gone, and that stay", _of("gone")),
        Field("dropped", "the same, and dropped from the catalog", _of("dropped")),
        Field("namespaces", "namespaces that were created", _of("namespaces")),
        Field("rules", "how many tables' latest metadata was told by which rule", _of("rules")),
        Field(
            "commits",
            "what it wrote on the default branch",
            _of("commits"),
            inside={".total": "how many", ".shown[]": "hashes, oldest first: the last 100"},
        ),
        Field(
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
    """One line: the error, or the counts that are not zero; of the quarantined tables, how many."""
    if run.error:
        return run.error
    counts = {
        name: value for name, value in run.counts.items() if isinstance(value, int) and not isinstance(value, bool) and value
    }
    quarantined = run.counts.get("quarantined")
    if isinstance(quarantined, Mapping) and quarantined.get("total"):
        counts["quarantined"] = quarantined["total"]
    return ", ".join(f"{name} {value}" for name, value in counts.items()) or "nothing to do"


RUN: View[Run] = View(
    "run",
    "runs",
    (
        Field("started", "when it began", lambda r: time(r.started), "STARTED"),
        Field("finished", "when it ended", lambda r: time(r.finished)),
        Field("kind", "gc, purge, purge-table, import, export, load or restore", lambda r: r.kind, "KIND"),
        Field("realm", "the realm's id", lambda r: r.realm, "REALM"),
        Field("subject", "what within the realm, such as a catalog", lambda r: r.subject, "SUBJECT"),
        Field("seconds", "how long it took", _seconds, "SECONDS"),
        Field("result", "the error, or the counts that are not zero", _result, "RESULT"),
        Field("error", "empty when it did what it was for", lambda r: r.error),
        Field("counts", "all that it counted, as its task's outcome has it", lambda r: dict(r.counts)),
        Field("notes", "what a person should know", lambda r: list(r.notes)),
        Field("task", "the task's id", lambda r: identifier(r.task)),
        Field("attempt", "of the task", lambda r: r.attempt),
    ),
)


@dataclass(frozen=True, slots=True)
class RunType:
    """What one run counted of one type of object, in rows."""

    run: Run
    type: str
    kept: Mapping[str, int]
    garbage: int
    deleted: int
    deleted_bytes: int


def types_of(runs: Sequence[Run]) -> list[RunType]:
    """The types that runs counted, those with the most rows first."""
    return [one for run in runs for one in sorted(_types_of(run), key=lambda t: (-sum(t.kept.values()) - t.garbage, t.type))]


def _types_of(run: Run) -> Iterator[RunType]:
    deleted = run.counts.get("deletedTypes") or {}
    for name, reasons in (run.counts.get("types") or {}).items():
        if not isinstance(reasons, Mapping):
            return  # an archive counts objects by type, and gives no reasons
        gone = deleted.get(name) or {}
        kept = {reason: rows for reason, rows in reasons.items() if reason != "garbage"}
        yield RunType(run, name, kept, reasons.get("garbage", 0), gone.get("rows", 0), gone.get("bytes", 0))


RUN_TYPE: View[RunType] = View(
    "type of a run",
    "types",
    (
        Field("started", "when the run began", lambda t: time(t.run.started), "STARTED"),
        Field("realm", "the realm's id", lambda t: t.run.realm, "REALM"),
        Field("type", "the type of object", lambda t: t.type, "TYPE"),
        Field("scanned", "rows", lambda t: sum(t.kept.values()) + t.garbage, "SCANNED"),
        Field("kept", "rows, by reason", lambda t: dict(t.kept), "KEPT"),
        Field("garbage", "rows that nothing keeps", lambda t: t.garbage, "GARBAGE"),
        Field("deleted", "rows of which it is certain that they went", lambda t: t.deleted, "DELETED"),
        Field("deletedBytes", "at least so many bytes", lambda t: t.deleted_bytes, "BYTES"),
    ),
)

EXPLANATION: View[Explanation] = View(
    "explanation",
    "explanations",
    (
        Field("realm", "the realm's id", lambda e: e.realm),
        Field("id", "the object's id", lambda e: e.object_id),
        Field("type", "the object's type", lambda e: e.type),
        Field("kept", "whether a collection that starts now would keep it", lambda e: e.is_kept),
        Field(
            "why", "head, grace, retention, record, young, fixed or unknown type; null: it is garbage", lambda e: e.why or None
        ),
        Field("reason", "why, or when it goes", lambda e: e.sentence),
        Field(
            "goes", "the first time at which a collection deletes it; null: that cannot be told", lambda e: time_after(e.goes)
        ),
        Field("chain", "type and id, from the commit that keeps it down to the object", lambda e: list(e.chain)),
        Field("path", "the same in words, from the reference on: commits, indexes, keys", lambda e: list(e.path)),
    ),
)

FINDING: View[Finding] = View(
    "finding",
    "findings",
    (
        Field("code", "what kind it is; a contract", lambda f: f.code.value),
        Field(
            "weight",
            "DAMAGE, TROUBLE or LEFTOVER; the last alone is no reason to wake anybody",
            lambda f: f.weight.value,
        ),
        Field("realm", "the realm's id", lambda f: f.realm),
        Field("subject", "the reference, object, catalog or task", lambda f: f.subject),
        Field(
            "keys", "of what cannot be read: the keys under which the reference holds it, the first few", lambda f: list(f.keys)
        ),
        Field("message", "what is wrong", lambda f: f.message),
        Field("repair", "what would mend it", lambda f: f.repair),
    ),
)

STEP: View[Step] = View(
    "step",
    "steps",
    (
        Field(
            "action",
            "GO_BACK, COMPLETE_CATALOG, SET_ASIDE, SETTLE_TASKS, WITHDRAW_FLAG, BY_HAND or COLLECT",
            lambda s: s.action.value,
        ),
        Field("safe", "whether `headwater fsck --repair` does it", lambda s: s.is_safe),
        Field("realm", "the realm's id", lambda s: s.realm),
        Field("subject", "what it is done to", lambda s: s.subject),
        Field("does", "what it does, or what a person has to do", lambda s: s.does),
        Field("loses", "what is gone after it", lambda s: s.loses),
        Field("because", "codes of the [findings](#finding) that it mends", lambda s: [code.value for code in s.because]),
        Field("target", "the commit that it goes back to", lambda s: s.target or None),
        Field("result", "what came of it; null: not done", lambda s: s.result or None),
    ),
)
