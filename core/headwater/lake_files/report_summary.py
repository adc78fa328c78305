"""A catalog's last report of files in brief, as plain data: what could be freed, where the most lies, and which places yield nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.clock import as_text
from headwater.lake_files.catalog_report import PAGE, ReadReport
from headwater.lake_files.file_reasons import PLACE_SENTENCES, FileReason, PlaceReason
from headwater.lake_files.file_report import LakeFileReport

_WAYS = (FileReason.IN_GRACE, FileReason.MARKED, FileReason.DUE)


def summarize_report(read: ReadReport, *, limit: int) -> dict[str, Any]:
    """A report, with so many of its largest places, and of those that yield nothing."""
    report = read.report
    plan = report.plan
    return {
        "realm": read.realm,
        "catalog": read.catalog,
        "report": report.run,
        "liveAsOf": as_text(report.started),
        "listedFrom": as_text(report.listed),
        "finished": as_text(report.finished),
        "reclaimableFiles": _reclaimable(report.files),
        "reclaimableBytes": _reclaimable(report.sizes),
        "deleteRequests": -(-_reclaimable(report.files) // PAGE),
        "dueFiles": report.files.get(FileReason.DUE, 0),
        "dueBytes": report.sizes.get(FileReason.DUE, 0),
        "files": {
            code: {"files": count, "bytes": report.sizes.get(code, 0)} for code, count in sorted(report.files.items()) if count
        },
        "outside": report.outside,
        "requests": dict(report.requests),
        "tables": _places(read, limit=limit),
        "blockedPlaces": report.blocked_total,
        "blocked": _blocked(report, limit=limit),
        "plan": None
        if plan is None
        else {
            "name": plan.name,
            "files": plan.files,
            "bytes": plan.size_bytes,
            "expires": as_text(plan.expires),
            "document": f"{read.folder}/{plan.document.name}",
            "sha256": plan.document.sha256,
        },
    }


def _reclaimable(counts: Mapping[str, int]) -> int:
    return sum(counts.get(code, 0) for code in _WAYS)


def _places(read: ReadReport, *, limit: int) -> list[dict[str, Any]]:
    """The places with the most bytes that may go one day."""
    lines = [line for line in read.places if line.get("files")]
    lines.sort(key=lambda line: (-_reclaimable(line["bytes"]), line["place"]))
    return [
        {
            "table": line["key"],
            "place": line["place"],
            "files": _reclaimable(line["files"]),
            "bytes": _reclaimable(line["bytes"]),
            "reported": sum(line["files"].values()) - _reclaimable(line["files"]),
        }
        for line in lines[:limit]
    ]


def _blocked(report: LakeFileReport, *, limit: int) -> list[dict[str, Any]]:
    return [
        {
            "place": each.location,
            "code": each.code,
            "why": "; ".join(filter(None, (PLACE_SENTENCES[PlaceReason(each.code)], each.detail))),
        }
        for each in report.blocked[:limit]
    ]
