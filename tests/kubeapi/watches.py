"""Watches: what happens to the objects of a resource, as it happens, or again from a version that is still remembered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from kubeapi.causes import Cause
from kubeapi.conversion import from_stored
from kubeapi.failures import Failure, status_of
from kubeapi.parameters import read_flag, read_number
from kubeapi.reads import View
from kubeapi.requests import Asked
from kubeapi.selectors import read_selector
from kubeapi.store import Change, Record, Shelf, Store

__all__ = ["Watch", "Watches"]

Body = dict[str, Any]
_encode = msgspec.json.encode

INITIAL_END = "k8s.io/initial-events-end"
SECONDS_BEFORE_END = 2
"""So long before its end a watch tells once more how far it is."""
MOST_WAITING = 50_000
"""A client that is this many lines behind is cut off."""


class Watch:
    """One client's stream of lines. It is fed from the store, and drained by the client's connection."""

    def __init__(self, asked: Asked, shelf: Shelf, store: Store, view: View) -> None:
        self.asked = asked
        self._shelf = shelf
        self._store = store
        self._view = view
        self._selector = read_selector(asked.kind, asked.query)
        self._namespace = asked.namespace or None
        self._lines: list[bytes] = []
        self._news = asyncio.Event()
        self._from = 0
        self._is_headed = True
        self._was_told = False
        self.is_cut = False

    def start(self) -> None:
        """Take up what is there, or what happened since; from here on nothing is missed."""
        query = self.asked.query
        version, starts_with_all = _start(query)
        if starts_with_all:
            for record in self._shelf.scan(self._namespace):
                if self._selector.matches(record):
                    self._tell("ADDED", record)
        elif version and version < self._shelf.oldest:
            message = f"too old resource version: {version} ({self._shelf.oldest})"
            self._put(b'{"type":"ERROR","object":' + _encode(status_of(410, "Expired", message)) + b"}\n")
            self.is_cut = True
            return
        elif version:
            self._from = version
            for change in self._shelf.changes_after(version):
                self.feed(change)
        if _has_initial_events(query) and read_flag(query, "allowWatchBookmarks"):
            self.bookmark({INITIAL_END: "true"})
            self._was_told = False
        self._shelf.watchers.add(self.feed)

    def stop(self) -> None:
        self._shelf.watchers.discard(self.feed)

    def cut(self) -> None:
        self.is_cut = True
        self._news.set()

    def feed(self, change: Change) -> None:
        if change.version <= self._from or (self._namespace is not None and change.key[0] != self._namespace):
            return
        was = change.before is not None and self._selector.matches(change.before)
        if change.after is not None and self._selector.matches(change.after):
            self._tell("MODIFIED" if was else "ADDED", change.after)
        elif was:
            self._tell("DELETED", change.last or self._last_seen(change))

    def bookmark(self, annotations: dict[str, str] | None = None) -> None:
        kind = self.asked.kind
        metadata: Body = {"annotations": annotations} if annotations else {}
        metadata["resourceVersion"] = str(self._store.version)
        if not kind.is_custom:
            metadata["creationTimestamp"] = None
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        raw = _encode(body) if self._view.shape != "Table" else self._table_of_bookmark(body)
        self._put(b'{"type":"BOOKMARK","object":' + raw + b"}\n")

    async def drain(self, clock: Callable[[], float], bookmark_seconds: float) -> AsyncIterator[bytes]:
        """Lines as they come, until the watch ends."""
        seconds = read_number(self.asked.query, "timeoutSeconds") or random.uniform(1800, 3600)
        has_bookmarks = read_flag(self.asked.query, "allowWatchBookmarks")
        end = clock() + seconds
        next_bookmark = clock() + bookmark_seconds
        last_bookmark = end - SECONDS_BEFORE_END
        while True:
            if self._lines:
                lines, self._lines = self._lines, []
                yield b"".join(lines)
            now = clock()
            if self.is_cut or now >= end:
                return
            if has_bookmarks and (now >= next_bookmark or (now >= last_bookmark and self._was_told)):
                next_bookmark = now + bookmark_seconds
                self.bookmark()
                self._was_told = False
                continue
            due = min(end, next_bookmark, *([last_bookmark] if self._was_told and last_bookmark > now else []))
            self._news.clear()
            if not has_bookmarks:
                due = end
            try:
                async with asyncio.timeout(max(due - now, 0)):
                    await self._news.wait()
            except TimeoutError:
                continue

    def _tell(self, event: str, record: Record) -> None:
        if self._view.shape == "Table":
            raw = self._view.body(from_stored(self.asked.kind, record.load()), headed=self._is_headed)
            self._is_headed = False
        else:
            raw = self._view.one(record)
        self._put(b'{"type":"' + event.encode() + b'","object":' + raw + b"}\n")
        self._was_told = True

    def _last_seen(self, change: Change) -> Record:
        """An object that left the selection: as it was in it, with the version at which it left."""
        assert change.before is not None
        body = change.before.load()
        body["metadata"]["resourceVersion"] = str(change.version)
        return Record.of(change.key, change.version, body)

    def _table_of_bookmark(self, body: Body) -> bytes:
        metadata = {"resourceVersion": body["metadata"]["resourceVersion"]}
        row = {
            "cells": [],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": body["metadata"]},
        }
        table = {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": None,
            "rows": [row],
        }
        return _encode(table)

    def _put(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) > MOST_WAITING:
            self.is_cut = True
        self._news.set()


class Watches:
    """All open watches."""

    def __init__(self) -> None:
        self._open: set[Watch] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, watch: Watch) -> None:
        self._open.add(watch)

    def remove(self, watch: Watch) -> None:
        watch.stop()
        self._open.discard(watch)

    def cut(self, shelf: str | None = None) -> int:
        """Close them all, or those of one resource. Returns how many were closed."""
        cut = [watch for watch in self._open if shelf in (None, watch.asked.kind.shelf)]
        for watch in cut:
            watch.cut()
        return len(cut)


def _start(query: Any) -> tuple[int, bool]:
    """From which version on, and whether all that is there comes first."""
    text, initial = query.get("resourceVersion", ""), query.get("sendInitialEvents")
    if text and not text.isdigit():
        raise Failure.internal(f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    if initial is not None and query.get("resourceVersionMatch") != "NotOlderThan":
        _refuse("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    if initial is None and query.get("resourceVersionMatch"):
        _refuse("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    version = int(text or 0)
    return version, read_flag(query, "sendInitialEvents") or (initial is None and not version)


def _has_initial_events(query: Any) -> bool:
    """Asked for, or by itself where a watch begins with all that is there."""
    is_open = "sendInitialEvents" not in query and not query.get("resourceVersionMatch")
    return read_flag(query, "sendInitialEvents") or (is_open and query.get("resourceVersion", "") in ("", "0"))


def _refuse(why: str) -> None:
    raise Failure.of_options("ListOptions", Cause.forbidden("resourceVersionMatch", why))
