"""The server's front: from an HTTP request to what is asked, and back to an answer."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml
from aiohttp import web

from kubeapi import discovery, openapi, protobuf, reviews
from kubeapi.admission import Policies
from kubeapi.asking import Asked, read_request
from kubeapi.builtin import BUILT_IN_KINDS, NAMESPACES
from kubeapi.caretaking import Caretaking
from kubeapi.control import Audit, Fault, Faults
from kubeapi.failures import Failure, NotServed
from kubeapi.kinds import Kinds
from kubeapi.reading import Reading, View
from kubeapi.store import Store
from kubeapi.watching import Watch, Watches
from kubeapi.writing import Writing

__all__ = ["Server", "Tuning"]

Body = dict[str, Any]
NAMES_AT_START = ("default", "kube-node-lease", "kube-public", "kube-system")
MOST_BODY_BYTES = 3 * 1024 * 1024
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Tuning:
    """kept_changes: of each resource, for watches. kept_requests: in the audit. bookmark_seconds: between two bookmarks."""

    kept_changes: int = 5000
    kept_requests: int = 20_000
    bookmark_seconds: float = 60.0


@dataclass(slots=True)
class Answer:
    code: int
    body: bytes
    media: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


class Server:
    """Everything there is, and the handler that is given to aiohttp."""

    def __init__(self, tuning: Tuning | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.tuning = tuning or Tuning()
        self._clock = clock
        self.kinds = Kinds(BUILT_IN_KINDS)
        self.store = Store(kept_changes=self.tuning.kept_changes)
        self.policies = Policies()
        self.writing = Writing(self.store, self.kinds, self.policies, clock)
        self.reading = Reading(self.store)
        self.watches = Watches()
        self.caretaking = Caretaking(self.store, self.kinds, self.policies, self.writing, self.watches, clock)
        self.faults = Faults()
        self.audit = Audit(self.tuning.kept_requests)
        self._documents: dict[tuple[int, str], bytes] = {}

    def prepare(self) -> None:
        """What a fresh cluster holds."""
        for name in NAMES_AT_START:
            asked = Asked("create", NAMESPACES, "", "", "", {"fieldManager": "kube-apiserver"})
            self.writing.create(asked, {"metadata": {"name": name}})
        for kind in self.kinds:
            self.store.shelf(kind.shelf)

    def put(self, body: Body) -> None:
        """Make an object at the start, as a file says it."""
        kind = self.kinds.of_object(body)
        if kind is None:
            raise NotServed(f"{body.get('apiVersion')} {body.get('kind')}")
        namespace = body.get("metadata", {}).get("namespace", "default") if kind.is_namespaced else ""
        self.writing.create(Asked("create", kind, namespace, "", "", {"fieldManager": "kubeapi"}), body)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started = time.perf_counter()
        if request.path.startswith("/_control/"):
            return _reply(await self._control(request))
        seen: Body = {
            "verb": request.method.lower(),
            "path": request.path,
            "query": request.query_string,
            "time": self._clock(),
        }
        seen |= {"user_agent": request.headers.get("User-Agent", ""), "token": request.headers.get("Authorization", "")[7:]}
        response = await self._watched_over(request, seen)
        seen["milliseconds"] = round((time.perf_counter() - started) * 1000, 3)
        if "number" not in seen:
            self.audit.add(seen)
        return response

    async def _watched_over(self, request: web.BaseRequest, seen: Body) -> web.StreamResponse:
        """Answer, unless a fault was asked for; what goes wrong is told as a Status."""
        asked: Asked | None = None
        fault: Fault | None = None
        try:
            asked = self._read(request, seen)
            fault = self.faults.take(seen)
            if fault is not None and (not fault.is_after or seen["verb"] == "watch"):
                await self._befall(fault, request, seen)
            if asked is not None and asked.verb == "watch":
                return await self._watch(request, asked, seen)
            version = self.store.version
            answer = await self._answer(request, asked, seen)
            seen["wrote"] = self.store.version != version
            if fault is not None and fault.is_after:
                await self._befall(fault, request, seen)
        except NotServed:
            answer = Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")
        except Failure as failure:
            answer = Answer(failure.code, _encode(failure.status), headers=failure.headers)
        except Exception as error:  # noqa: BLE001  a fault of this server: say so, and where, and go on serving
            traceback.print_exc()
            failure = Failure.internal(f"this server of the tests failed: {error!r}")
            answer = Answer(500, _encode(failure.status))
        seen["status"] = answer.code
        if asked is not None and asked.warnings:
            answer.headers["Warning"] = ", ".join(f"299 - {json.dumps(text)}" for text in asked.warnings)
        return _reply(answer)

    async def _befall(self, fault: Fault, request: web.BaseRequest, seen: Body) -> None:
        seen["fault"] = fault.action
        if fault.deed == "delay":
            await asyncio.sleep(fault.seconds)
            return
        if fault.deed == "drop":
            seen["status"] = 0
            self.audit.add(seen)
            if request.transport is not None:
                request.transport.abort()
            raise asyncio.CancelledError
        raise fault.failure()

    def _read(self, request: web.BaseRequest, seen: Body) -> Asked | None:
        """What is asked of a resource; None for all other paths."""
        parts = request.path.strip("/").split("/")
        if (parts[0] != "api" or len(parts) < 3) and (parts[0] != "apis" or len(parts) < 4):
            return None
        asked = read_request(
            self.kinds, request.method, request.path, request.query, user_agent=seen["user_agent"], user="kubernetes-admin"
        )
        seen |= {"verb": asked.verb, "group": asked.kind.group, "resource": asked.kind.plural, "subresource": asked.subresource}
        seen |= {"namespace": asked.namespace, "name": asked.name, "manager": asked.query.get("fieldManager", "")}
        asked.check()
        return asked

    async def _answer(self, request: web.BaseRequest, asked: Asked | None, seen: Body) -> Answer:
        if asked is None:
            return self._about(request)
        view = View(asked.kind, request.headers.get("Accept", ""), request.query.get("includeObject", ""), self._clock)
        if asked.verb == "get":
            return Answer(200, view.one(self.reading.get(asked)))
        if asked.verb == "list":
            records, metadata = self.reading.list(asked)
            return Answer(200, view.list(records, metadata))
        raw = await request.content.read()
        if len(raw) > MOST_BODY_BYTES:
            raise Failure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MOST_BODY_BYTES}")
        media = request.headers.get("Content-Type", "application/json").partition(";")[0].strip()
        return self._write(asked, raw, media, view)

    def _write(self, asked: Asked, raw: bytes, media: str, view: View) -> Answer:
        if asked.verb in ("delete", "deletecollection"):
            return self._delete(asked, _parsed(asked, raw, media)[0] if raw else {}, view)
        if asked.verb == "patch":
            body, is_new = self.writing.patch(asked, media, _parsed_patch(raw, media))
        else:
            parsed, doubles = _parsed(asked, raw, media)
            if asked.verb == "create":
                body, is_new = self.writing.create(asked, parsed, doubles=doubles), True
            else:
                body, is_new = self.writing.update(asked, parsed, doubles=doubles)
        if not asked.kind.is_kept:
            body = reviews.answer(body, asked.user)
        return Answer(201 if is_new else 200, view.body(body))

    def _delete(self, asked: Asked, options: Body, view: View) -> Answer:
        if asked.verb == "deletecollection":
            records = self.reading.select(asked)
            for record in records:
                self.writing.delete(asked, options, record)
            return Answer(200, view.list(records, {"resourceVersion": str(self.store.version)}))
        if options.get("dryRun"):
            asked = Asked(
                asked.verb,
                asked.kind,
                asked.namespace,
                asked.name,
                "",
                {**asked.query, "dryRun": "All"},
                asked.user_agent,
                asked.user,
            )
        body, is_gone = self.writing.delete(asked, options)
        if not is_gone:
            return Answer(200, view.body(body))
        kind = asked.kind
        details: Body = {"name": asked.name} | ({"group": kind.group} if kind.group else {})
        details |= {"kind": kind.plural, "uid": body["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return Answer(200, _encode(status))

    async def _watch(self, request: web.BaseRequest, asked: Asked, seen: Body) -> web.StreamResponse:
        view = View(asked.kind, request.headers.get("Accept", ""), request.query.get("includeObject", ""), self._clock)
        watch = Watch(asked, self.store.shelf(asked.kind.shelf), self.store, view)
        watch.start()
        self.watches.add(watch)
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
        seen["status"] = 200
        self.audit.add(seen)
        try:
            response.enable_chunked_encoding()
            await response.prepare(request)
            async for lines in watch.drain(time.monotonic, self.tuning.bookmark_seconds):
                await response.write(lines)
            await response.write_eof()
        finally:
            self.watches.remove(watch)
        return response

    def _about(self, request: web.BaseRequest) -> Answer:
        """Everything that is no resource."""
        path, parts = request.path.rstrip("/"), request.path.strip("/").split("/")
        if request.method not in ("GET", "HEAD"):
            raise Failure.not_allowed()
        if path in ("/readyz", "/healthz", "/livez") or parts[0] in ("readyz", "healthz", "livez"):
            return Answer(200, b"ok", "text/plain; charset=utf-8")
        if path == "/version":
            return Answer(200, _encode(discovery.VERSION))
        if parts[0] == "openapi":
            return self._openapi(parts[1:])
        is_aggregated = "as=APIGroupDiscoveryList" in request.headers.get("Accept", "")
        if path in ("/api", "/apis") and is_aggregated and "v=v2;" in request.headers["Accept"] + ";":
            return Answer(200, _encode(discovery.aggregated(self.kinds, core=path == "/api")), discovery.AGGREGATED)
        if path == "/api":
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": request.host}]
            versions = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
            return Answer(200, _encode(versions))
        if path == "/apis":
            return Answer(200, _encode(discovery.groups(self.kinds)))
        if parts[0] == "api" and len(parts) == 2:
            return Answer(200, _encode(discovery.resources(self.kinds, "", parts[1])))
        if parts[0] == "apis" and len(parts) == 2:
            return Answer(200, _encode(discovery.group(self.kinds, parts[1])))
        if parts[0] == "apis" and len(parts) == 3:
            return Answer(200, _encode(discovery.resources(self.kinds, parts[1], parts[2])))
        raise NotServed(path)

    def _openapi(self, parts: list[str]) -> Answer:
        if parts == ["v2"]:
            return Answer(200, protobuf.OPENAPI, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        where = "/".join(parts[1:])
        if parts[:1] != ["v3"]:
            raise NotServed(where)
        key = (self.kinds.generation, where)
        if key not in self._documents:
            self._documents = {kept: raw for kept, raw in self._documents.items() if kept[0] == self.kinds.generation}
            self._documents[key] = _encode(openapi.document(self.kinds, where) if where else openapi.index(self.kinds))
        return Answer(200, self._documents[key], "application/json" if where else "text/plain; charset=utf-8")

    async def _control(self, request: web.BaseRequest) -> Answer:
        what = (request.method, request.path.removeprefix("/_control/"))
        if what == ("GET", "requests"):
            return Answer(200, _encode({"total": self.audit.total, "requests": self.audit.select(request.query)}))
        if what == ("DELETE", "requests"):
            self.audit.clear()
        elif what == ("GET", "counts"):
            return Answer(
                200, _encode({"counts": self.audit.counts, "writes": self.audit.writes, "watches": len(self.watches)})
            )
        elif what == ("POST", "faults"):
            try:
                self.faults.add(json.loads(await request.read()))
            except (ValueError, TypeError, AttributeError) as error:
                return Answer(400, _encode({"error": str(error)}))
        elif what == ("GET", "faults"):
            return Answer(200, _encode(self.faults.described()))
        elif what == ("DELETE", "faults"):
            self.faults.clear()
        elif what == ("POST", "watches/cut"):
            return Answer(200, _encode({"cut": self.watches.cut(request.query.get("resource"))}))
        elif what == ("POST", "compact"):
            self.store.compact()
            return Answer(200, _encode({"resourceVersion": str(self.store.version)}))
        else:
            return Answer(404, _encode({"error": f"there is no {what[0]} {what[1]}"}))
        return Answer(200, b"{}")


def _reply(answer: Answer) -> web.Response:
    headers = {"Content-Type": answer.media, "Cache-Control": "no-cache, private", **answer.headers}
    return web.Response(status=answer.code, body=answer.body, headers=headers)


def _parsed(asked: Asked, raw: bytes, media: str) -> tuple[Any, list[str]]:
    """The body of a request, and the fields that stand twice in it."""
    if media == protobuf.MEDIA_TYPE:
        return protobuf.decode(raw), []
    if media == "application/yaml":
        return _yaml(raw), []
    if media not in ("application/json", "", "*/*"):
        raise Failure.unsupported_media(["application/json", "application/yaml", protobuf.MEDIA_TYPE])
    doubles: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> Body:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            doubles.extend(dict.fromkeys(name for name in names if names.count(name) > 1))
        return found

    try:
        return json.loads(raw, object_pairs_hook=unique), doubles
    except (ValueError, RecursionError):
        text = raw.decode(errors="replace")
        raise Failure.bad_request(
            f"the object provided is unrecognized (must be of type {asked.kind.kind}): couldn't get version/kind; json parse error: "
            f"invalid character {_first_wrong(text)!r} looking for beginning of object key string ({text})"
        ) from None


def _parsed_patch(raw: bytes, media: str) -> Any:
    if media.endswith("+yaml"):
        return _yaml(raw)
    try:
        return json.loads(raw)
    except ValueError as error:
        raise Failure.bad_request(f"error decoding patch: {error}") from None


def _yaml(raw: bytes) -> Any:
    if raw.lstrip().startswith(b"{"):
        try:
            return json.loads(raw)
        except ValueError:
            pass
    try:
        return yaml.safe_load(raw)
    except yaml.YAMLError as error:
        raise Failure.bad_request(f"error decoding YAML: {error}") from None


def _first_wrong(text: str) -> str:
    return next((sign for sign in text[1:].lstrip() if sign), "")
