"""The server's front: from an HTTP request to what is asked, and back to an answer."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from kubeapi import reviews
from kubeapi.about import About, Answer
from kubeapi.admission import Policies
from kubeapi.bodies import parsed, parsed_patch
from kubeapi.builtin import BUILT_IN_KINDS, NAMESPACES
from kubeapi.caretakers import Caretaking
from kubeapi.control import Audit, Fault, Faults
from kubeapi.failures import Failure, NotServed
from kubeapi.gotypes import check_delete_options
from kubeapi.kinds import Kinds
from kubeapi.reads import Reading, View
from kubeapi.requests import Asked, read_request
from kubeapi.shapes import shape_of
from kubeapi.store import Store
from kubeapi.watches import Watch, Watches
from kubeapi.writes import Writing

__all__ = ["Server", "Tuning"]

Body = dict[str, Any]
NAMES_AT_START = ("default", "kube-node-lease", "kube-public", "kube-system")
RAW = "the body as it was sent"
MOST_BODY_BYTES = 3 * 1024 * 1024
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Tuning:
    """kept_changes: of each resource, for watches. kept_requests: in the audit. bookmark_seconds: between two bookmarks.

    has_controllers     without them it is as bare as a kube-apiserver alone: a deleted namespace stays, and nobody collects what
                        belonged to what is gone
    """

    kept_changes: int = 5000
    kept_requests: int = 20_000
    bookmark_seconds: float = 60.0
    has_controllers: bool = True


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
        self.caretaking = Caretaking(
            self.store, self.kinds, self.policies, self.writing, self.watches, clock, is_bare=not self.tuning.has_controllers
        )
        self.faults = Faults()
        self.audit = Audit(self.tuning.kept_requests)
        self._about = About(self.kinds)

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
            "status": 0,
            "wrote": False,
        }
        seen |= {"user_agent": request.headers.get("User-Agent", ""), "token": request.headers.get("Authorization", "")[7:]}
        await self._notice_shape(request, seen)
        try:
            return await self._watched_over(request, seen)
        finally:
            seen["milliseconds"] = round((time.perf_counter() - started) * 1000, 3)
            if "number" not in seen:
                self.audit.add(seen)

    async def _notice_shape(self, request: web.BaseRequest, seen: Body) -> None:
        raw = request[RAW] = await request.content.read()
        try:
            body = msgspec.json.decode(raw) if raw else None
        except msgspec.DecodeError:
            body = raw
        media = request.headers.get("Content-Type", "") if raw else ""
        accept = request.headers.get("Accept", "")
        shape = shape_of(request.method, request.path, request.query.items(), accept=accept, media=media, body=body)
        self.audit.notice_shape(shape, seen["user_agent"], request.path_qs)

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
            answer = await self._answer(request, asked, seen)
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
            asked_again = request.headers.get("If-None-Match", "")
            return self._about.answer(
                request.method, request.path, request.headers.get("Accept", ""), request.host, asked_again
            )
        view = View(asked.kind, request.headers.get("Accept", ""), request.query.get("includeObject", ""), self._clock)
        if asked.subresource == "log":
            raise self.reading.no_log(asked)
        if asked.verb == "get":
            return Answer(200, view.one(self.reading.get(asked)))
        if asked.verb == "list":
            records, metadata = self.reading.list(asked)
            return Answer(200, view.list(records, metadata))
        raw = request[RAW]
        if len(raw) > MOST_BODY_BYTES:
            raise Failure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MOST_BODY_BYTES}")
        media = request.headers.get("Content-Type", "application/json").partition(";")[0].strip()
        version = self.store.version
        answer = self._write(asked, raw, media, view)
        seen["wrote"] = self.store.version != version
        return answer

    def _write(self, asked: Asked, raw: bytes, media: str, view: View) -> Answer:
        if asked.verb in ("delete", "deletecollection"):
            return self._delete(asked, parsed(asked, raw, media)[0] if raw else {}, view)
        if asked.verb == "patch":
            body, is_new = self.writing.patch(asked, media, parsed_patch(raw, media))
        else:
            wanted, doubles = parsed(asked, raw, media)
            if asked.verb == "create":
                body, is_new = self.writing.create(asked, wanted, doubles=doubles), True
            else:
                body, is_new = self.writing.update(asked, wanted, doubles=doubles)
        if not asked.kind.is_kept:
            body = reviews.answer(body, asked.user)
        return Answer(201 if is_new else 200, view.body(body))

    def _delete(self, asked: Asked, options: Body, view: View) -> Answer:
        check_delete_options(options)
        asked.check_deletion(options.get("propagationPolicy"))
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
        if not is_gone or asked.kind.is_shown_when_deleted:
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

    async def _control(self, request: web.BaseRequest) -> Answer:
        what = (request.method, request.path.removeprefix("/_control/"))
        if what == ("GET", "requests"):
            return Answer(200, _encode({"total": self.audit.total, "requests": self.audit.select(request.query)}))
        if what == ("DELETE", "requests"):
            self.audit.clear()
        elif what == ("GET", "shapes"):
            return Answer(200, _encode({"shapes": self.audit.described_shapes()}))
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
