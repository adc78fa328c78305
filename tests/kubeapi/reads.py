"""Reading objects and lists of them, page by page, each list as of one version."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kubeapi.causes import Cause
from kubeapi.conversion import from_stored
from kubeapi.failures import Failure
from kubeapi.gotexts import first_wrong
from kubeapi.kinds import Kind
from kubeapi.parameters import check_numbers, read_number
from kubeapi.requests import Asked
from kubeapi.selectors import Selector, read_selector
from kubeapi.store import Key, Record, Shelf, Store, in_order
from kubeapi.tables import as_metadata, as_table

__all__ = ["Reading", "View"]

Body = dict[str, Any]
_encode = msgspec.json.encode


class View:
    """How objects are wanted: whole, as the rows of a table, or their metadata only.

    accept       the Accept header
    included     what goes along with each row of a table
    """

    def __init__(self, kind: Kind, accept: str, included: str, clock: Callable[[], float]) -> None:
        self.kind = kind
        self._clock = clock
        self._included = included or "Metadata"
        self.shape = _shape(accept)

    def one(self, record: Record) -> bytes:
        return self.body(from_stored(self.kind, record.load())) if self._is_changed else record.raw

    def body(self, body: Body, *, headed: bool = True) -> bytes:
        if self.shape == "Table":
            metadata = {"resourceVersion": body["metadata"].get("resourceVersion", "")}
            table = as_table(self.kind, [body], metadata, now=self._clock(), included=self._included, headed=headed)
            return _encode(table)
        return _encode(as_metadata(body) if self.shape == "PartialObjectMetadata" else body)

    def list(self, records: Iterable[Record], metadata: Body) -> bytes:
        kind = self.kind
        if self.shape == "Table":
            bodies = (from_stored(kind, record.load()) for record in records)
            shown = {name: value for name, value in metadata.items() if value != ""}
            return _encode(as_table(kind, bodies, shown, now=self._clock(), included=self._included))
        if self.shape == "PartialObjectMetadata":
            items = [as_metadata(record.load()) for record in records]
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            return _encode(head | {"items": items})
        head = {"apiVersion": kind.api_version, "kind": kind.list_kind, "metadata": metadata}
        items_raw = b",".join(map(self._item, records))
        return _encode(head)[:-1] + b',"items":[' + items_raw + b"]}"

    def _item(self, record: Record) -> bytes:
        """Items of built-in kinds do not say again what they are."""
        if self.kind.is_custom:
            return self.one(record)
        body = from_stored(self.kind, record.load())
        return _encode({name: value for name, value in body.items() if name not in ("apiVersion", "kind")})

    @property
    def _is_changed(self) -> bool:
        return self.shape != "" or bool(self.kind.renamed) or self.kind.has_versions


class Reading:
    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, asked: Asked) -> Record:
        record = self._store.shelf(asked.kind.shelf).find((asked.namespace, asked.name))
        if record is None:
            raise Failure.missing(asked.kind, asked.name)
        return record

    def no_log(self, asked: Asked) -> Failure:
        """Why a pod has no log: nothing runs here. A real server names the pod's node, which it does not know either."""
        check_numbers("log", asked.query)
        node = self.get(asked).load().get("spec", {}).get("nodeName")
        if node:
            return Failure.missing(asked.kind, node)
        return Failure.bad_request(f"pod {asked.name} does not have a host assigned")

    def select(self, asked: Asked) -> list[Record]:
        selector = read_selector(asked.kind, asked.query)
        shelf = self._store.shelf(asked.kind.shelf)
        return [record for record in shelf.scan(_namespace(asked)) if selector.matches(record)]

    def list(self, asked: Asked) -> tuple[list[Record], Body]:
        """Records and the list's metadata, of one page."""
        shelf, selector = self._store.shelf(asked.kind.shelf), read_selector(asked.kind, asked.query)
        limit = max(read_number(asked.query, "limit") or 0, 0)
        token = asked.query.get("continue", "")
        version, after = self._snapshot(asked, shelf) if not token else _read_token(token, asked)
        if version < shelf.oldest and token:
            raise Failure.expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list "
                "without the continue parameter."
            )
        found = self._found(asked, shelf, selector, version, after)
        page = found[:limit] if limit else found
        metadata: Body = {"continue": ""} if asked.kind.is_custom else {}
        if len(page) < len(found):
            metadata["continue"] = _write_token(version, page[-1].key, asked)
            if selector.is_open:
                metadata["remainingItemCount"] = len(found) - len(page)
        return page, metadata | {"resourceVersion": str(version)}

    def _snapshot(self, asked: Asked, shelf: Shelf) -> tuple[int, Key | None]:
        text, match = asked.query.get("resourceVersion", ""), asked.query.get("resourceVersionMatch", "")
        wanted = _version(text or "0")
        if match and not text:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            raise Failure.of_options("ListOptions", Cause.forbidden("resourceVersionMatch", why))
        if wanted > self._store.version:
            details = {
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            }
            message = f"Timeout: Too large resource version: {wanted}, current: {self._store.version}"
            raise Failure(504, "Timeout", message, details=details)
        if match == "Exact":
            if wanted < shelf.oldest:
                raise Failure.expired(f"The resourceVersion for the provided list is too old: {wanted}")
            return wanted, None
        return self._store.version, None

    def _found(self, asked: Asked, shelf: Shelf, selector: Selector, version: int, after: Key | None) -> list[Record]:
        namespace = _namespace(asked)
        if version == self._store.version or not shelf.log or shelf.log[-1].version <= version:
            return [record for record in shelf.scan(namespace, after) if selector.matches(record)]
        then = shelf.as_of(version)
        return [
            then[key]
            for key in sorted(then, key=in_order)
            if (namespace is None or key[0] == namespace)
            and (after is None or in_order(key) > in_order(after))
            and selector.matches(then[key])
        ]


def _shape(accept: str) -> str:
    """The first of the wanted shapes that is known here."""
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        known = dict(piece.split("=", 1) for piece in parameters if "=" in piece)
        if media in ("application/json", "*/*", "application/*"):
            shape = known.get("as", "").removesuffix("List")
            if shape in ("", "Table", "PartialObjectMetadata") and known.get("v", "v1") == "v1":
                return shape
    if not accept:
        return ""
    message = (
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
    raise Failure(406, "NotAcceptable", message)


def _namespace(asked: Asked) -> str | None:
    return asked.namespace if asked.namespace or not asked.kind.is_namespaced else None


def _version(text: str) -> int:
    if not text.isdigit():
        why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise Failure.bad_request(f"invalid resource version: resourceVersion: {why}")
    return int(text)


def _write_token(version: int, last: Key, asked: Asked) -> str:
    start = f"/{last[1]}\0" if asked.namespace or not asked.kind.is_namespaced else f"/{last[0]}/{last[1]}\0"
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def _read_token(token: str, asked: Asked) -> tuple[int, Key]:
    raw = b""
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        read = json.loads(raw)
        version, start = int(read["rv"]), str(read["start"]).removeprefix("/").removesuffix("\0")
    except (binascii.Error, ValueError, KeyError, TypeError):
        why = f": {first_wrong(raw)}" if raw else ""
        raise Failure.bad_request(f"invalid continue token: continue key is not valid{why}") from None
    namespace, _, name = start.rpartition("/")
    return version, (namespace or asked.namespace, name)
