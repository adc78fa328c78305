"""The ASGI application: from a request to its route, through everything that may refuse it, to a thread, and back as an answer.

The order is that of the cost: what the head of a request shows is looked at first, then whether there is room for it, then its body
is received, and only then a thread takes it. Dispatch reads the path as it was sent: frameworks decode it whole, so that a table
``t%2Fx`` would be two segments.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec
import structlog
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater.access import ForbiddenError
from headwater.clock import Clock
from headwater.commits import committing_as
from headwater.errors import HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.settings import Settings, duration_text
from headwater_server.access_log import RequestRecord, request_id_of, write_access_line
from headwater_server.admission import HandlerTimeoutError, RequestAdmission
from headwater_server.audit_log import open_audit_log
from headwater_server.audit_trail import begin_trail
from headwater_server.call import Answer, Call, ServedStore
from headwater_server.caller import Caller, NotProvenError
from headwater_server.console_files import console_files
from headwater_server.drain import ServerDrain
from headwater_server.error_answers import OverloadedError, ProtocolError, error_answer
from headwater_server.identity import CallerProof, bearer_token
from headwater_server.json_body import convert_body, convert_query, parse_json, unpacked_body, utf8_body
from headwater_server.openapi import openapi_document
from headwater_server.realm_directory import access_plugin
from headwater_server.request_body import BodyBudget, BodyReader, ClientGoneError
from headwater_server.request_origin import TrustedOrigins
from headwater_server.request_target import is_form_encoding, path_segments, query_parameters
from headwater_server.route_table import ErrorFacts, Route, RouteMatch, RouteTable
from headwater_server.server_health import ServerHealth, health_text
from headwater_server.server_metrics import METRICS_CONTENT_TYPE, ServerMetrics
from headwater_server.server_probes import HEALTH_TEXT, SERVER_PROBES

log = structlog.get_logger(__name__)

RECORD_KEY: Final = "headwater.record"
SURPLUS_KEY: Final = "headwater.surplus"
"""In the state of a request whose connection is one too many."""
PUBLIC_PROBES: Final = frozenset({"healthz", "readyz", "metrics"})
"""What the port for probes answers to everybody: counts and states, and no name of anything that is stored."""
_FORM_TYPES: Final = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
"""What a page in a browser can send to any server without asking it first."""
_EXPOSED_HEADERS: Final = ("ETag", "Retry-After", "X-Request-ID")
_UNSOUND_HEADER = re.compile(r"[^\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class EncodedAnswer:
    """An answer as bytes. ``error`` is the type of an error, for the log."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"
    is_closing: bool = False
    error: str = ""


class ServerApplication:
    """Everything between an ASGI server and the handlers of the tables.

    version       of Headwater, for the OpenAPI document
    probe_port    requests that come to this port are answered as probes, or not at all: others than this machine reach it
    """

    probe_port: int | None = None

    def __init__(
        self,
        served: ServedStore,
        tables: Sequence[RouteTable],
        *,
        settings: Settings,
        clock: Clock,
        version: str,
    ) -> None:
        self.served = served
        self._tables = tables
        self._settings = settings
        self._clock = clock
        self._origins = TrustedOrigins.of_settings(settings)
        self._proof = served.part(CallerProof.of_settings)
        served.part(access_plugin)  # one that is missing is refused at the start
        self._console = console_files()
        self._safety = {"X-Content-Type-Options": "nosniff"}
        if settings.server_certificate:  # behind a proxy, what it speaks and for how long is its own affair
            self._safety["Strict-Transport-Security"] = "max-age=31536000"
        self._audit = open_audit_log(settings.server_audit_file, clock=clock)
        self._budget = BodyBudget(settings.server_bodies_bytes)
        self.metrics = ServerMetrics()
        self.admission = RequestAdmission(settings, clock)
        self.drain = ServerDrain(
            clock, seconds=settings.server_drain_timeout_seconds, changes=lambda: self.admission.changes_begun
        )
        self.health = ServerHealth(served.store, settings, clock, admission=self.admission, drain=self.drain)
        self._openapi = _openapi_content(tuple(tables), version)
        self._probes: Mapping[str, Callable[[], Awaitable[EncodedAnswer]]] = {
            "healthz": self._answer_alive,
            "readyz": self._answer_ready,
            "metrics": self._answer_metrics,
            "openapi.json": self._answer_openapi,
        }
        assert {probe.path.lstrip("/") for probe in SERVER_PROBES} == set(self._probes), (
            "a probe is not described, or not answered"
        )
        self._watch_gauges()
        self._inner: ASGIApp = self._answer_request
        if self._origins.pages:
            self._inner = CORSMiddleware(
                self._answer_request,
                allow_origins=self._origins.pages,
                allow_methods=("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"),
                allow_headers=("*",),
                expose_headers=_EXPOSED_HEADERS,
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._record_request(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    def close(self) -> None:
        """Begin nothing any more. Handlers that run are not waited for."""
        self.admission.shut_down()
        self.health.shut_down()
        self._audit.close()

    async def _record_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers_of(scope)
        record = RequestRecord(
            method=scope["method"],
            path=_raw_path_of(scope).decode("ascii", "replace"),
            query=scope.get("query_string", b"").decode("ascii", "replace"),
            client=self._origins.client_of((scope.get("client") or ("", 0))[0], headers),
            request_id=request_id_of(headers.get("x-request-id")),
            agent=headers.get("user-agent", ""),
            started=self._clock.monotonic(),
        )

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
            else:
                record.sent_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._inner({**scope, RECORD_KEY: record}, receive, send_on)
        except ClientGoneError:
            pass  # the ASGI server knows that there is nobody to answer
        finally:
            record.seconds = self._clock.monotonic() - record.started
            self.metrics.count_request(record)
            write_access_line(record)
            self._audit.write(record)

    async def _answer_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: RequestRecord = scope[RECORD_KEY]
        try:
            answer = await self._answer_of(scope, receive, record)
        except ClientGoneError:
            raise
        except Exception as error:  # noqa: BLE001 - the door: whatever comes out here is answered, and a bug is logged
            answer = self._failed(error, record)
        record.error = answer.error
        await self._send(answer, record, send)

    async def _answer_of(self, scope: Scope, receive: Receive, record: RequestRecord) -> EncodedAnswer:
        headers = _headers_of(scope)
        _check_framing(scope, headers)
        segments = path_segments(_raw_path_of(scope), is_form_encoded=is_form_encoding(headers))
        is_for_all = self.probe_port is not None and (scope.get("server") or ("", None))[1] == self.probe_port
        probes = PUBLIC_PROBES if is_for_all else self._probes.keys()
        if len(segments) == 1 and segments[0] in probes and record.method in ("GET", "HEAD"):
            record.route, record.is_probe = segments[0], segments[0] in PUBLIC_PROBES
            return await self._probes[segments[0]]()
        if is_for_all:
            raise ProtocolError(
                "this port answers GET /healthz, /readyz and /metrics alone", status=404, type_="NotFoundException"
            )
        if len(segments) == 1 and segments[0] in self._probes:
            raise _wrong_method_error(record.method, ("GET", "HEAD"))
        if self._proof is None:
            self._origins.check_host(headers.get("host"))
        self._origins.check_page(record.method, headers)
        if record.method in ("GET", "HEAD") and (file := self._console.find_file(segments, seen=headers.get("if-none-match"))):
            record.route = "console"
            return EncodedAnswer(file.status, file.content, file.headers, file.media_type)
        try:
            table, match = self._find(segments, record)
            if record.method == "OPTIONS":
                return EncodedAnswer(204, headers={"Allow": ", ".join(match.allowed)})
            return await self._answer_at(table, match, headers, scope, receive, record)
        except ClientGoneError:
            raise
        except Exception as error:  # noqa: BLE001 - the door: what comes out of a table is answered in its protocol's own words
            covering = next((table for table in self._tables if table.covers(segments)), None)
            return self._failed(error, record, covering, headers)

    async def _answer_at(
        self,
        table: RouteTable,
        match: RouteMatch,
        headers: Mapping[str, str],
        scope: Scope,
        receive: Receive,
        record: RequestRecord,
    ) -> EncodedAnswer:
        route, path = _route_of(match, record.method)
        record.route, record.is_change = route.name, route.writes
        if scope.get("state", {}).get(SURPLUS_KEY):
            raise OverloadedError("the server has as many connections as it keeps; send the request again in a moment")
        self._check_room(route)
        limit_bytes = min(self._settings.server_body_bytes, route.most_bytes or self._settings.server_body_bytes)
        work = _RequestWork(self.served, table, route, path, headers, scope, record, limit_bytes, self._proof)
        if self._proof is not None and not route.is_open:
            # who shows no token, or one that is made up, sends no body; without a token of an issuer, it takes no thread, either
            if route.body is None:
                bearer_token(headers)
            elif not self._proof.check_token(headers):
                await self._prove_first(work)
        return await self._work(work, receive)

    async def _prove_first(self, work: _RequestWork) -> None:
        """Have a token verified before a body is received; raises what proves nothing."""
        try:
            await self.admission.run(work.prove, seconds=self._settings.server_request_timeout_seconds)
        except HandlerTimeoutError:
            raise UnavailableError("who calls was not found out in time; nothing was changed") from None

    def _find(self, segments: Sequence[str], record: RequestRecord) -> tuple[RouteTable, RouteMatch]:
        for table in self._tables:
            if match := table.find(segments):
                return table, match
        advices = (table.advice(segments) for table in self._tables)
        advice = next((text for text in advices if text), "GET /openapi.json lists what is")
        raise ProtocolError(f"nothing is served at {record.path[:200]}: {advice}", status=404, type_="NotFoundException")

    def _check_room(self, route: Route) -> None:
        """raises DrainingError and OverloadedError, before anything is received or done"""
        if route.writes:
            self.drain.check_change()
        self.admission.check_room()

    async def _work(self, work: _RequestWork, receive: Receive) -> EncodedAnswer:
        route, seconds = work.route, self._settings.server_request_timeout_seconds
        if route.body is not None:
            _check_media_type(route, work.headers)
        reader = BodyReader(receive, work.headers, self._budget, limit_bytes=work.limit_bytes)
        try:
            if route.body is not None:
                work.raw = await reader.read(seconds=self._settings.server_body_timeout_seconds)
                work.record.received_bytes = len(work.raw)
                self._check_room(route)  # receiving may have taken a while
            return await self.admission.run(work.handle, seconds=seconds, is_change=route.writes)
        except HandlerTimeoutError:
            if route.writes:
                raise UnknownOutcomeError(
                    f"the request has taken longer than {duration_text(seconds)}, and may still take effect:"
                    " look whether it did before you repeat it or delete files"
                ) from None
            raise UnavailableError(f"the request has taken longer than {duration_text(seconds)}; nothing was changed") from None
        finally:
            reader.release()

    def _failed(
        self, error: Exception, record: RequestRecord, table: RouteTable | None = None, headers: Mapping[str, str] | None = None
    ) -> EncodedAnswer:
        answer = error_answer(error, meanings=table.meanings if table else None, request_id=record.request_id)
        if not isinstance(error, HeadwaterError):
            log.error("a request ended in a bug", request_id=record.request_id, route=record.route, exc_info=error)
        elif isinstance(error, NotProvenError) and error.reason:
            log.info("a token was refused", request_id=record.request_id, client=record.client, why=error.reason)
        elif answer.meaning.status >= 500:
            log.warning("a request failed", request_id=record.request_id, route=record.route, why=answer.message)
        content = answer.content
        if table is not None and table.error_body is not None:
            facts = ErrorFacts(answer.meaning, answer.message, error, headers or {})
            content = msgspec.json.encode(table.error_body(facts))
        return EncodedAnswer(
            answer.meaning.status, content, answer.headers, is_closing=answer.is_closing, error=answer.meaning.type
        )

    async def _send(self, answer: EncodedAnswer, record: RequestRecord, send: Send) -> None:
        headers = {**self._safety, "Cache-Control": "no-cache", **answer.headers, "X-Request-ID": record.request_id}
        if answer.content:
            headers["Content-Type"] = answer.media_type
        if answer.content or answer.status not in (204, 304):
            headers["Content-Length"] = str(len(answer.content))
        if answer.is_closing or self.drain.is_draining:
            headers["Connection"] = "close"
        raw = [(name.lower().encode("latin-1"), _UNSOUND_HEADER.sub("?", value).encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        await send({"type": "http.response.body", "body": b"" if record.method == "HEAD" else answer.content})

    async def _answer_alive(self) -> EncodedAnswer:
        status, content = health_text(self.health.alive())
        return EncodedAnswer(status, content, media_type=HEALTH_TEXT)

    async def _answer_ready(self) -> EncodedAnswer:
        status, content = health_text(await self.health.ready())
        return EncodedAnswer(status, content, media_type=HEALTH_TEXT)

    async def _answer_metrics(self) -> EncodedAnswer:
        return EncodedAnswer(200, self.metrics.render(), media_type=METRICS_CONTENT_TYPE)

    async def _answer_openapi(self) -> EncodedAnswer:
        return EncodedAnswer(200, self._openapi)

    def _watch_gauges(self) -> None:
        gauges = self.metrics.gauges
        gauges.running = lambda: self.admission.running
        gauges.waiting = lambda: self.admission.waiting
        gauges.oldest_seconds = lambda: self.admission.longest_seconds
        gauges.body_bytes = lambda: self._budget.taken_bytes
        gauges.draining = lambda: self.drain.is_draining


@dataclass(slots=True)
class _RequestWork:
    """What a thread does for one request."""

    served: ServedStore
    table: RouteTable
    route: Route
    path: Mapping[str, str]
    headers: Mapping[str, str]
    scope: Scope
    record: RequestRecord
    limit_bytes: int
    proof: CallerProof | None
    raw: bytes = b""

    def handle(self) -> EncodedAnswer:
        begin_trail(self.record.trail)
        with structlog.contextvars.bound_contextvars(request_id=self.record.request_id):
            call = self._call()
            with committing_as("" if call.caller is None else call.caller.name):
                return encoded_answer(self.route.handler(call))

    def prove(self) -> None:
        """Check who calls, before anything is received; raises as ``_prove_caller`` does, and RefusedError for a wrong query."""
        self._prove_caller(self._query())

    def _query(self) -> Any:
        raw = self.scope.get("query_string", b"")
        parameters = query_parameters(raw, self.route.query_names, repeated=self.route.repeated_names)
        query = None if self.route.query is None else convert_query(parameters, self.route.query)
        if self.route.complete_query is None:
            return query
        if self.proof is not None:
            self.proof.check_token(self.headers)
        return self.route.complete_query(self.served, query)

    def _call(self) -> Call[Any, Any]:
        route, query = self.route, self._query()
        caller = self._prove_caller(query)
        raw = unpacked_body(self.raw, self.headers.get("content-encoding", ""), limit_bytes=self.limit_bytes)
        return Call(
            served=self.served,
            method=self.record.method,
            raw_path=self.record.path,
            path=self.path,
            query=query,
            body=_body_of(route, raw, self.headers),
            raw_body=raw,
            headers=self.headers,
            request_id=self.record.request_id,
            client=self.record.client,
            caller=caller,
        )

    def _prove_caller(self, query: Any) -> Caller | None:
        """Who calls; None where nobody has to prove it, and on a route that is open to everybody. It comes before the body is unpacked.

        raises        NotProvenError; ForbiddenError for a route that names no realm: there is nobody who could judge
        """
        if self.proof is None or self.route.is_open:
            return None
        if self.route.realm_of is None:
            raise ForbiddenError(f"{self.route.name} is for whoever administers the store: use the command line")
        caller = self.proof.prove_caller(self.headers, self.route.realm_of(self.path, query))
        self.record.trail.realm, self.record.trail.caller = caller.realm, caller.name
        return caller


@lru_cache(maxsize=8)
def _openapi_content(tables: Sequence[RouteTable], version: str) -> bytes:
    """The OpenAPI document, once for all servers of a process: it takes a fifth of a second to make."""
    return msgspec.json.encode(openapi_document(tables, SERVER_PROBES, version=version))


def encoded_answer(answer: Answer) -> EncodedAnswer:
    """A handler's answer as bytes: JSON that is there already is handed on as it is."""
    return EncodedAnswer(answer.status, _content_of(answer.body), answer.headers, answer.media_type)


def _content_of(body: Any) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


def _body_of(route: Route, raw: bytes, headers: Mapping[str, str]) -> Any:
    if route.body is None:
        return None
    text = utf8_body(raw, content_type=headers.get("content-type", ""), client=headers.get("x-client-version", ""))
    return text if route.body is bytes else convert_body(parse_json(text), route.body)


def _route_of(match: RouteMatch, method: str) -> tuple[Route, Mapping[str, str]]:
    """The route of a method, with its parameters. HEAD is answered as GET is, without the body, where it has no route of its own."""
    if method == "HEAD" and "HEAD" not in match.routes:
        method = "GET"
    if method not in match.routes:
        raise _wrong_method_error(method, match.allowed)
    return match.routes[method], match.path[method]


def _wrong_method_error(method: str, allowed: Sequence[str]) -> ProtocolError:
    return ProtocolError(
        f"this path takes {', '.join(allowed)}, and not {method[:40]!r}",
        status=405,
        type_="MethodNotAllowedException",
        Allow=", ".join(allowed),
    )


def _check_framing(scope: Scope, headers: Mapping[str, str]) -> None:
    """Refuse what two readers could take for two different requests. Source: RFC 9112, 6.1."""
    if "transfer-encoding" in headers and ("content-length" in headers or scope.get("http_version") == "1.0"):
        raise ProtocolError(
            "a request has Transfer-Encoding alone, and in HTTP/1.1 alone: its end would be in two places", is_closing=True
        )


def _check_media_type(route: Route, headers: Mapping[str, str]) -> None:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if route.body is not bytes and media_type in _FORM_TYPES:
        raise ProtocolError(
            f"a body of the type {media_type} is not read here; send application/json",
            status=415,
            type_="UnsupportedMediaTypeException",
        )


def _headers_of(scope: Scope) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _raw_path_of(scope: Scope) -> bytes:
    """The path as it was sent. ASGI servers need not hand it on, but without it nothing could be told apart."""
    raw_path: bytes | None = scope.get("raw_path")
    assert raw_path is not None, "the ASGI server gives no raw_path"
    return raw_path.partition(b"?")[0]


async def _live(receive: Receive, send: Send) -> None:
    """Answer the server's own start and end: there is nothing to be done at either."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
