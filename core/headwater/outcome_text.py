"""What came of a task in a few sentences, by its kind: what a command prints that ran it, and `up`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwater.console import bytes_text, count_text
from headwater.redaction import printable


def has_findings(kind: str, outcome: Mapping[str, Any]) -> bool:
    """Whether a task that succeeded left something for a person: the command that ran it ends with ``FINDINGS``, and so does `up`."""
    if kind == "import":
        return bool(outcome.get("quarantined", {}).get("total"))
    if kind == "fsck":
        return bool(outcome.get("damage") or outcome.get("trouble"))
    return bool(outcome.get({"restore": "conflicts", "file-gc": "failed"}.get(kind, "")))


def outcome_lines(kind: str, outcome: Mapping[str, Any]) -> list[str]:
    """The outcome of a task in lines, by its kind."""
    if not outcome:
        return []
    return [printable(line) for line in (*_LINES.get(kind, _no_lines)(outcome), *map(str, outcome.get("notes", [])))]


def outcome_sentence(kind: str, outcome: Mapping[str, Any]) -> str:
    """The outcome of a task for a cell of a table; empty where another release counted otherwise."""
    try:
        lines = outcome_lines(kind, outcome)
    except (AttributeError, IndexError, KeyError, TypeError):
        return ""
    return "; ".join(line for line in lines if not line.startswith(" "))


def _import_lines(outcome: Mapping[str, Any]) -> list[str]:
    found = f"surveyed {count_text(outcome['surveyed'], 'table')}" + (f" by {outcome['engine']}" if "engine" in outcome else "")
    did = ", ".join(
        f"{outcome[name]} {name}" for name in ("imported", "updated", "unchanged", "gone", "dropped") if outcome.get(name)
    )
    quarantined = outcome["quarantined"]
    lines = [f"{found}: {did or 'nothing to import'}"]
    if quarantined["total"]:
        codes = ", ".join(f"{number} {code}" for code, number in quarantined["codes"].items())
        lines.append(f"quarantined {count_text(quarantined['total'], 'table')}: {codes}")
        lines += [f"  {row['table']}: {row['code']}: {row['message']}" for row in quarantined["shown"]]
    return lines


def _purge_lines(outcome: Mapping[str, Any]) -> list[str]:
    return [f"deleted {count_text(outcome['rowsDeleted'], 'row')}; a scan found none left, so the realm was PURGED"]


def _collection_lines(outcome: Mapping[str, Any]) -> list[str]:
    kept, deleted = outcome.get("kept", {}), outcome.get("deleted", 0)
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(kept.items(), key=lambda item: -item[1]))
    lines = [f"scanned {outcome.get('scanned', 0)} rows, kept {sum(kept.values())}" + (f": {why}" if why else "")]
    gone = [f"{kinds['garbage']} {name}" for name, kinds in sorted(outcome.get("types", {}).items()) if kinds.get("garbage")]
    lines.append(
        f"deleted {count_text(deleted, 'row')} ({outcome.get('deletedBytes', 0)} bytes), reached from nothing that is kept"
        + (f": {', '.join(gone)}" if gone else "")
    )
    if left := outcome.get("leftoverParts"):
        lines.append(f"of the garbage, {count_text(left, 'part')} an interrupted rewriting had left")
    others = {"tombstonesRemoved": "tombstone", "claimsReleased": "claim", "lateRowsDeleted": "late row of a purged realm"}
    return lines + [f"removed {count_text(outcome[name], what)}" for name, what in others.items() if outcome.get(name)]


def _export_lines(outcome: Mapping[str, Any]) -> list[str]:
    size = bytes_text(outcome["fileBytes"])
    lines = [f"realm {outcome['realm']} as of {outcome['asOf']} is in {outcome['file']} ({size})"]
    if ahead := outcome.get("importableFrom"):
        lines.append(
            f"it has objects with ids of a clock that was ahead: it can be imported from {ahead} on, and is not a backup before;"
            " until then keep a backup of the database"
        )
    return lines


def _load_lines(outcome: Mapping[str, Any]) -> list[str]:
    return [f"realm {outcome['realm']} is {outcome['state']}, made of {outcome['exportedRealm']} as of {outcome['asOf']}"]


def _expiry_lines(outcome: Mapping[str, Any]) -> list[str]:
    went = ", ".join(count_text(outcome[name], what) for name, what in _EXPIRED.items() if outcome.get(name))
    looked = f"looked at {count_text(outcome['looked'], 'table')}, {outcome['unchanged']} were as they had been"
    return [looked, f"expired {went} of {count_text(outcome['changed'], 'table')}" if went else "nothing was due"]


_EXPIRED = {
    "snapshots": "snapshot",
    "refs": "reference",
    "logEntries": "log entry",
    "logFiles": "metadata file",
}


def _file_lines(outcome: Mapping[str, Any]) -> list[str]:
    lines = [
        f"marked {count_text(outcome['marked'], 'file')} without references, deleted {outcome['deleted']},"
        f" {outcome['waiting']} wait"
    ]
    if failed := outcome["failed"]:
        lines.append(f"{count_text(failed, 'file')} could not be deleted: {outcome['failures'][0]['reason']}")
    return lines


def _check_lines(outcome: Mapping[str, Any]) -> list[str]:
    if not outcome["findings"]:
        return ["nothing was found: all is well"]
    codes = ", ".join(f"{number} {code}" for code, number in outcome["codes"].items())
    first = [f"  {each['weight']} {each['code']}: {each['subject']}: {each['message']}" for each in outcome["first"]]
    return [f"{count_text(outcome['findings'], 'finding')}: {codes}", *first]


def _no_lines(outcome: Mapping[str, Any]) -> list[str]:
    return []


_LINES: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "gc": _collection_lines,
    "import": _import_lines,
    "purge": _purge_lines,
    "export": _export_lines,
    "load": _load_lines,
    "expire-snapshots": _expiry_lines,
    "file-gc": _file_lines,
    "fsck": _check_lines,
}
