"""Requests to the Kubernetes API, synchronous and thread-safe; the paths of its resources; and its errors as errors of Headwater.

An error names the request in its words, and never what was sent.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import quote, urlencode

import urllib3

from headwater.errors import HeadwaterError, NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater_operator.kube.kube_connection import KubeConnection, connect_cluster

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TIMEOUT, CONFLICT, GONE, INVALID, TOO_MANY = 401, 403, 404, 408, 409, 410, 422, 429
HIDDEN = "(hidden)"
TEXT_LIMIT = 500


class ApiUnavailableError(UnavailableError):
    """The API server failed or did not answer. A write without an answer may have happened: read before repeating it.

    code          the HTTP status, 0 when there was no answer
    retry_after   seconds after which to retry, where the server said so
    """

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class KindPath:
    """A kind as the API serves it: ``group_version`` is ``v1`` or ``group/version``, ``plural`` is the word in the path."""

    group_version: str
    plural: str
    is_namespaced: bool = True

    @property
    def root(self) -> str:
        return f"/api/{self.group_version}" if "/" not in self.group_version else f"/apis/{self.group_version}"

    @property
    def group(self) -> str:
        """The API group; empty for the core group, as in access rules."""
        return self.group_version.partition("/")[0] if "/" in self.group_version else ""


KINDS = {
    "Realm": KindPath("headwater.dev/v1alpha1", "realms"),
    "Catalog": KindPath("headwater.dev/v1alpha1", "catalogs"),
    "Secret": KindPath("v1", "secrets"),
    "Event": KindPath("v1", "events"),
    "Namespace": KindPath("v1", "namespaces", is_namespaced=False),
    "Pod": KindPath("v1", "pods"),
    "ConfigMap": KindPath("v1", "configmaps"),
    "Deployment": KindPath("apps/v1", "deployments"),
    "Lease": KindPath("coordination.k8s.io/v1", "leases"),
    "CustomResourceDefinition": KindPath("apiextensions.k8s.io/v1", "customresourcedefinitions", is_namespaced=False),
    "SelfSubjectAccessReview": KindPath("authorization.k8s.io/v1", "selfsubjectaccessreviews", is_namespaced=False),
}
_BY_PLURAL = {kind_path.plural: kind_path for kind_path in KINDS.values()}


def resource_path(kind: str, namespace: str | None, name: str | None, subresource: str | None = None) -> str:
    """The absolute path of one resource, or of a whole collection when ``name`` is None.

    kind          as in a manifest (``Realm``) or as in a path (``realms``)
    namespace     None: over all namespaces, or a kind without them
    raises        RefusedError for a kind that the operator does not know
    """
    kind_path = KINDS.get(kind) or _BY_PLURAL.get(kind)
    if kind_path is None:
        raise RefusedError(f"the kind {kind!r} is not known here: one of {', '.join(KINDS)}")
    parts = [kind_path.root]
    if kind_path.is_namespaced and namespace is not None:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(kind_path.plural)
    if name is not None:
        parts += [quote(name, safe=""), *([subresource] if subresource else [])]
    return "/".join(parts)


PatchKind = Literal["merge", "json", "apply"]
Items = list[dict[str, Any]]
Selectors = list[tuple[str, str]]
MEDIA_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",  # JSON is YAML
}
JSON = "application/json"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
"""Accept headers for metadata without specs and statuses; a server that does not support this sends whole resources."""
FIELD_MANAGER = "headwater-operator"
PAGE = 500
READ_ATTEMPTS = 3
PATIENCE_SECONDS = 2.0
RELISTINGS = 3


class WriteBucket(Protocol):
    def reserve_token(self) -> None: ...


class Sleeper(Protocol):
    def __call__(self, seconds: float, /) -> object: ...


@dataclass(frozen=True, slots=True)
class KubeTimeouts:
    """How long to wait for a connection, and for the next bytes of an answer."""

    connect_seconds: float = 5.0
    read_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class _Request:
    """One request. ``verb`` is the word of access rules, ``method`` that of HTTP.

    is_opened_only  the body of a good answer is left unread, since it does not end by itself
    """

    verb: str
    method: str
    path: str
    parameters: tuple[tuple[str, str], ...] = ()
    body: Any = None
    media_type: str = JSON
    patch: str | None = None
    accept: str = JSON
    is_opened_only: bool = False

    @property
    def is_read(self) -> bool:
        return self.method == "GET"


class KubeApi:
    """The API server, for paths and plain values.

    bucket        what each write waits for
    fence         called before each write, after the wait; what it raises comes through, and nothing was written
    observe       called with verb, status (0: no answer) and seconds of each request
    raises        NotFoundError 404 · SwapConflictError 409 and a failed test of a JSON patch ·
                  ApiUnavailableError 401, 429, 5xx, no answer ·
                  RefusedError all else. Messages name method, path and the server's words, and nothing that was sent in a Secret

    A read is repeated a little: at once on a connection that had gone stale, and after a short ``Retry-After``. A write never is.
    """

    def __init__(
        self,
        connection: KubeConnection,
        *,
        bucket: WriteBucket | None = None,
        fence: Callable[[], None] | None = None,
        observe: Callable[[str, int, float], None] | None = None,
        timeouts: KubeTimeouts = KubeTimeouts(),
        sleep: Sleeper = time.sleep,
    ) -> None:
        self.connection = connection
        self._bucket = bucket
        self._fence = fence
        self._observe = observe
        self._timeouts = timeouts
        self._sleep = sleep

    @classmethod
    def from_environment(
        cls,
        *,
        context: str | None = None,
        bucket: WriteBucket | None = None,
        fence: Callable[[], None] | None = None,
        observe: Callable[[str, int, float], None] | None = None,
    ) -> KubeApi:
        """Connect as a pod's service account or by a kubeconfig.

        raises        RefusedError when there is neither
        """
        return cls(connect_cluster(context), bucket=bucket, fence=fence, observe=observe)

    def get_resource(self, path: str, params: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The resource at ``path``.

        raises        NotFoundError when nothing does
        """
        return self._ask(_Request("get", "GET", path, tuple((params or {}).items())))

    def find_resource(self, path: str) -> dict[str, Any] | None:
        try:
            return self.get_resource(path)
        except NotFoundError:
            return None

    def list_resources(self, path: str, *, label_selector: str | None = None, field_selector: str | None = None) -> Items:
        """All members of a collection, read in pages of one state. Members carry no ``kind`` when the server leaves it out."""
        chosen = _selectors(label_selector, field_selector)
        for _ in range(RELISTINGS - 1):
            try:
                return self._listed(path, chosen)
            except _ExpiredError:
                continue  # the listed state has expired: start again
        return self._listed(path, chosen)

    def pages(self, path: str, *, label_selector: str | None = None, metadata_only: bool = False) -> Iterator[Items]:
        """All members of a collection, page by page, of one state.

        metadata_only  members have no spec and no status, and no kind of their own
        raises        ApiUnavailableError, also when that state expires before the last page
        """
        try:
            yield from self._pages(path, _selectors(label_selector), accept=METADATA_LIST if metadata_only else JSON)
        except _ExpiredError as expired:
            raise ApiUnavailableError(str(expired), code=GONE) from expired

    def open_watch(self, path: str, params: Mapping[str, str]) -> None:
        """Check that the API server accepts a watch: return when it begins to answer, and close the watch.

        raises        NotFoundError also when it has forgotten the version from which to watch
        """
        request = _Request("watch", "GET", path, (("watch", "true"), *params.items()), accept="*/*", is_opened_only=True)
        answer = self._answer(request)
        if answer.code >= 400:
            raise kube_failure(answer)

    def text(self, path: str, params: Mapping[str, str] | None = None) -> str:
        """The text at ``path`` where that is no JSON, such as the log of a container.

        raises        NotFoundError when nothing does
        """
        answer = self._answer(_Request("get", "GET", path, tuple((params or {}).items())))
        if answer.code >= 400:
            raise kube_failure(answer)
        return answer.body.decode("utf-8", "replace")

    def create_resource(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create a resource in the collection at ``path``.

        raises        SwapConflictError when there is one of this name
        """
        return self._ask(_Request("create", "POST", path, _MANAGER, body))

    def replace_resource(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Swap a resource for another state of it; ``metadata.resourceVersion`` names the expected state.

        raises        SwapConflictError when it has changed since
        """
        return self._ask(_Request("update", "PUT", path, _MANAGER, body))

    def patch_resource(
        self,
        path: str,
        body: Any,
        *,
        kind: PatchKind,
        manager: str = FIELD_MANAGER,
        force: bool = True,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Change a resource. ``apply`` creates it where it is missing, and owns its fields as ``manager``.

        body          operations for ``json``, otherwise a partial resource
        force         for ``apply``: take fields from another manager
        raises        SwapConflictError for a stale resourceVersion, a failed ``test``, or fields of another manager
        """
        parameters = [("fieldManager", manager)]
        if kind == "apply":
            parameters.append(("force", "true" if force else "false"))
        if dry_run:
            parameters.append(("dryRun", "All"))
        return self._ask(_Request("patch", "PATCH", path, tuple(parameters), body, MEDIA_TYPES[kind], kind))

    def delete_resource(self, path: str, *, uid: str | None = None, propagation: str | None = None) -> None:
        """Request deletion; a missing resource is no error.

        uid           only this very one
        raises        SwapConflictError when another of the same name has taken its place
        """
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if propagation is not None:
            options["propagationPolicy"] = propagation
        try:
            self._ask(_Request("delete", "DELETE", path, body=options))
        except NotFoundError:
            return

    def _listed(self, path: str, chosen: Selectors) -> Items:
        return [member for page in self._pages(path, chosen) for member in page]

    def _pages(self, path: str, chosen: Selectors, *, accept: str = JSON) -> Iterator[Items]:
        token = ""
        while True:
            parameters = (*chosen, ("limit", str(PAGE)), *((("continue", token),) if token else ()))
            page = self._ask(_Request("list", "GET", path, parameters, accept=accept))
            yield page.get("items") or []
            token = page.get("metadata", {}).get("continue") or ""
            if not token:
                return

    def _ask(self, request: _Request) -> dict[str, Any]:
        answer = self._answer(request)
        if answer.code < 400:
            return answer.json()
        if request.verb == "list" and answer.code == GONE:
            raise _ExpiredError(f"{request.method} {request.path}: the list changed while it was read")
        raise kube_failure(answer, patch=request.patch)

    def _answer(self, request: _Request) -> KubeAnswer:
        """The answer, after the few repetitions that are harmless."""
        headers = self.connection.headers()
        answer = self._attempted(request, headers)
        if answer.code == UNAUTHORIZED:  # nothing was done, so a write may be sent again
            self.connection.renew(headers)
            answer = self._attempted(request, self.connection.headers())
        return answer

    def _attempted(self, request: _Request, headers: Mapping[str, str]) -> KubeAnswer:
        for attempt in range(1, READ_ATTEMPTS + 1):
            is_last = attempt == READ_ATTEMPTS or not request.is_read
            try:
                answer = self._sent(request, headers)
            except ApiUnavailableError as fault:
                if is_last or not isinstance(fault.__cause__, urllib3.exceptions.ProtocolError):
                    raise
                continue
            wait = answer.retry_after
            if is_last or answer.code < 400 or wait is None or wait > PATIENCE_SECONDS:
                return answer
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _sent(self, request: _Request, credentials: Mapping[str, str]) -> KubeAnswer:
        if not request.is_read:
            if self._bucket is not None:
                self._bucket.reserve_token()
            if self._fence is not None:
                self._fence()  # last, because the wait above may outlast a lease
        started = time.monotonic()
        code = 0
        try:
            answer = self._exchanged(request, credentials)
            code = answer.code
        finally:
            if self._observe is not None:
                self._observe(request.verb, code, time.monotonic() - started)
        return answer

    def _exchanged(self, request: _Request, credentials: Mapping[str, str]) -> KubeAnswer:
        url = self.connection.host + request.path + ("?" + urlencode(request.parameters) if request.parameters else "")
        headers = {"Accept": request.accept, "User-Agent": FIELD_MANAGER, **credentials}
        body = None
        if request.body is not None:
            headers["Content-Type"] = request.media_type
            body = json.dumps(request.body, separators=(",", ":")).encode()
        timeout = urllib3.Timeout(connect=self._timeouts.connect_seconds, read=self._timeouts.read_seconds)
        try:
            response = self.connection.pool().request(
                request.method,
                url,
                body=body,
                headers=headers,
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=not request.is_opened_only,
            )
            content = _content(request, response)
        except (urllib3.exceptions.HTTPError, OSError) as fault:
            raise ApiUnavailableError(f"{request.method} {request.path}: no answer ({fault})") from fault
        return KubeAnswer(
            request.method,
            request.path,
            response.status,
            response.reason or "",
            response.headers,
            content,
            request.body if _is_secret(request) else None,
        )


class _ExpiredError(Exception):
    """A list could not be read to its end from one state, because that state expired."""


_MANAGER = (("fieldManager", FIELD_MANAGER),)


def _is_secret(request: _Request) -> bool:
    return "/secrets" in request.path


def _selectors(label_selector: str | None, field_selector: str | None = None) -> Selectors:
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return [(name, value) for name, value in selectors.items() if value]


def _content(request: _Request, response: urllib3.BaseHTTPResponse) -> bytes:
    if request.is_opened_only and response.status < 400:
        response.close()
        return b""
    return response.data


@dataclass(frozen=True, slots=True)
class KubeAnswer:
    """An answer with its request, as far as error messages need it."""

    method: str
    path: str
    code: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    sent: Any = None

    def json(self) -> dict[str, Any]:
        """The JSON object of the body, or an empty mapping if it is none."""
        try:
            content = json.loads(self.body)
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def retry_after(self) -> float | None:
        details = self.json().get("details")
        said = self.headers.get("Retry-After") or (details.get("retryAfterSeconds") if isinstance(details, dict) else None)
        try:
            return None if said is None else max(float(said), 0.0)
        except (TypeError, ValueError):
            return None  # a date: allowed by HTTP, never sent by an API server


def kube_failure(answer: KubeAnswer, *, patch: str | None = None) -> HeadwaterError:
    """The error for an answer with a status of 400 or above.

    patch         kind of the patch that was sent, where it was one: a JSON patch whose ``test`` failed has lost a race
    """
    message = f"{answer.method} {answer.path}: {_said(answer)}"
    if answer.code == INVALID and patch == "json" and not _names_causes(answer):
        return SwapConflictError(message)
    return kube_error(answer.code, message, retry_after=answer.retry_after)


def kube_error(code: int, message: str, *, retry_after: float | None = None) -> HeadwaterError:
    """The error for an HTTP status of 400 or above, whatever was requested."""
    if code in (NOT_FOUND, GONE):
        return NotFoundError(message)
    if code == CONFLICT:
        return SwapConflictError(message)
    if code in (UNAUTHORIZED, TIMEOUT, TOO_MANY) or code >= 500:
        return ApiUnavailableError(message, code=code, retry_after=retry_after)
    return RefusedError(message)


def _names_causes(answer: KubeAnswer) -> bool:
    """Whether the answer names causes: a breach of the schema does, and a JSON patch whose test failed has empty details."""
    return bool(answer.json().get("details"))


def _said(answer: KubeAnswer) -> str:
    status = answer.json()
    message = status.get("message") if status.get("kind") == "Status" else None
    text = message if isinstance(message, str) else answer.reason  # a proxy's page tells a person nothing
    for secret in _secrets(answer.sent):
        text = text.replace(secret, HIDDEN)
    return f"{text[:TEXT_LIMIT]} ({answer.code})"


def _secrets(sent: Any) -> Iterator[str]:
    """Every value of a Secret that was sent, encoded and decoded: the server may quote either."""
    bodies = [sent] if isinstance(sent, dict) else [entry.get("value") for entry in sent or () if isinstance(entry, dict)]
    for body in bodies:
        if not isinstance(body, dict):
            continue
        for name in ("data", "stringData"):
            values = body.get(name)
            for value in values.values() if isinstance(values, dict) else ():
                yield from _spellings(value)


def _spellings(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            yield base64.b64decode(value, validate=True).decode() or value
        yield value
