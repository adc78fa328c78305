"""A bundle for support: an index page, and every file after its secrets were taken out. Pure, but for the archive's bytes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from headwater.console import count_text, yaml_text
from headwater_operator.plugin.age_text import time_text
from headwater_operator.plugin.gathering import Gathered
from headwater_operator.plugin.naming import realm_name_of
from headwater_operator.plugin.pages import realm_page
from headwater_operator.plugin.redaction import REDACTED, Redactor
from headwater_operator.plugin.rendering import page_lines

__all__ = ["archive", "files_of"]

INDEX = "index.md"
_WITHHELD = "This file was withheld: something in it was as secret as something elsewhere.\n"


def files_of(gathered: Gathered, now: datetime) -> dict[str, str]:
    """The texts of the bundle by name, redacted; the index is the first."""
    redactor = Redactor()
    everything = {**gathered.files, "missing": gathered.missing}
    for value in everything.values():
        redactor.learn(value)
    pages = _pages(gathered, redactor, now)
    texts: dict[str, str] = {}
    for name, value in sorted(gathered.files.items()):
        cleaned = redactor.clean(value)
        texts[redactor.name(name)] = _log(redactor, value) if isinstance(value, str) else yaml_text(cleaned)
    missing = {redactor.name(what): redactor.text(why) for what, why in gathered.missing.items()}
    texts |= {redactor.name(name): redactor.text(text) for name, text in pages.items()}
    whole = {INDEX: _index(texts, pages, missing, redactor.count, now), **texts}
    return {name: _WITHHELD if redactor.has_secret(text) else text for name, text in whole.items()}


def archive(files: Mapping[str, str], folder: str, now: datetime) -> bytes:
    """A compressed archive in which everything lies in one folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(now.timestamp()), 0o600
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def _pages(gathered: Gathered, redactor: Redactor, now: datetime) -> dict[str, str]:
    """For each realm what `kubectl headwater status` shows, made from what is redacted already."""
    pages = {}
    for realm in gathered.realms:
        namespace, name = realm["metadata"]["namespace"], realm["metadata"]["name"]
        catalogs = [c for c in gathered.catalogs if c["metadata"]["namespace"] == namespace and realm_name_of(c) == name]
        uids = {thing["metadata"].get("uid") for thing in (realm, *catalogs)}
        events = [event for event in gathered.events if (event.get("involvedObject") or {}).get("uid") in uids]
        page = realm_page(redactor.clean(realm), redactor.clean(catalogs), redactor.clean(events), now)
        pages[f"pages/{namespace}/{name}.txt"] = "\n".join(page_lines(page, now)) + "\n"
    return pages


def _log(redactor: Redactor, text: str) -> str:
    """Line by line: a line of JSON is cleaned as what it says."""
    return "".join(f"{redactor.text(line)}\n" for line in redactor.text(text).splitlines())


def _index(texts: Mapping[str, str], pages: Mapping[str, str], missing: Mapping[str, str], count: int, now: datetime) -> str:
    lines = [
        "# Headwater: bundle for support",
        "",
        f"Made {time_text(now)} by `kubectl headwater report`.",
        f"Secrets were never read. What looked like a secret elsewhere is {REDACTED}: {count_text(count, 'place')}.",
        "",
        *_chapter("Realms at a glance", list(pages)),
        *_chapter("Files", [name for name in texts if name not in pages]),
        *_chapter("What could not be read", [f"{what}: {why}" for what, why in missing.items()]),
    ]
    return "\n".join(lines)


def _chapter(title: str, entries: Sequence[Any]) -> list[str]:
    return [f"## {title}", "", *(f"- {entry}" for entry in entries), ""] if entries else []
