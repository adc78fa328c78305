"""What a server serves, as one table: dispatch, the list of endpoints, the OpenAPI document and the page in the docs are made from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, get_origin

import msgspec

from headwater.errors import HeadwaterError
from headwater.typed_values import build_type
from headwater_server.call import Handler, ServedStore

_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"})
_PARAMETER: Final = re.compile(r"\{([a-z][a-z0-9-]*)\}")


@dataclass(frozen=True, slots=True)
class ErrorMeaning:
    """The answer to a kind of error: its status, and the type that clients dispatch on."""

    status: int
    type: str


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What the answer to an error is made of, for a protocol with a body of its own.

    message       for people, with nothing secret in it
    error         the error itself, whose attributes may be told
    headers       of the request, by name in lower case
    """

    meaning: ErrorMeaning
    message: str
    error: BaseException
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class HeaderField:
    """A header that a request may have, or that an answer has.

    schema        of its value, as JSON Schema
    is_certain    an answer always has it
    """

    name: str
    summary: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    is_certain: bool = False


@dataclass(frozen=True, kw_only=True)
class Route:
    """One operation: how it is asked for, by what, and what it answers.

    name          its name in camel case, unique in the server: the operationId, and the label in metrics and logs
    summary       one sentence for the docs
    template      of the path below the table's mount, such as ``/v1/{prefix}/namespaces/{namespace}``; a parameter is a whole segment
    also          further templates of the same operation, which are served but not listed
    realm_of      the realm that a request names, given the path's parameters and the query: whoever calls is judged by that one, before
                  the body is read as JSON. None: it names none, so it is refused where callers have to prove who they are
    complete_query    fills in what a query left out and the store knows; called only for who has a token, where callers have to prove
                  who they are
    is_open       it answers everybody, because it is what gives proofs
    needs         the privilege that its caller must have, and on what: for the docs, its handler asks for it
    writes        whether it changes anything: it is refused while the server drains, and its outcome is unknown when it takes too long
    query         a msgspec Struct of the query's parameters, which are converted from text; unknown ones are ignored
    body          the type that the JSON body must have, such as a msgspec Struct; ``bytes`` for a body that the handler reads by itself;
                  None for a route that reads none
    raw_type      the media type of a body that is ``bytes``, which a request may leave out
    most_bytes    the largest body, where that is less than of other routes; None: as the settings say
    headers       that the handler reads
    answers       the type of the body by status, None for an answer without body
    answer_type   the media type of an answer's body that is ``bytes``
    answer_headers  of those answers
    errors        statuses of errors beyond those that the server itself answers on any route
    """

    method: str
    template: str
    handler: Handler
    name: str
    summary: str
    also: tuple[str, ...] = ()
    realm_of: Callable[[Mapping[str, str], Any], str] | None = None
    complete_query: Callable[[ServedStore, Any], Any] | None = None
    is_open: bool = False
    needs: str = ""
    writes: bool = False
    query: type[Any] | None = None
    body: Any = None
    raw_type: str = "application/octet-stream"
    most_bytes: int | None = None
    headers: tuple[HeaderField, ...] = ()
    answers: Mapping[int, Any] = field(default_factory=lambda: {200: None})
    answer_type: str = "application/json"
    answer_headers: tuple[HeaderField, ...] = ()
    errors: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert self.method in _METHODS, f"{self.name}: {self.method} is no method that is served"
        for template in (self.template, *self.also):
            assert template.startswith("/"), f"{self.name}: {template} does not begin with a slash"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the path's parameters, in their order."""
        return tuple(_PARAMETER.findall(self.template))

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of the query's parameters."""
        names: tuple[str, ...] = () if self.query is None else self.query.__struct_encode_fields__
        return names

    @cached_property
    def repeated_names(self) -> frozenset[str]:
        """The names of the query's parameters that may stand there several times: those whose values are lists."""
        fields = () if self.query is None else msgspec.structs.fields(self.query)
        return frozenset(each.encode_name for each in fields if get_origin(each.type) is list)

    @property
    def endpoint(self) -> str:
        """Method and template, as the Iceberg REST specification lists endpoints."""
        return f"{self.method} {self.template}"


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """What a path can be asked for.

    routes        by method
    path          the values of the template's parameters, by method: two templates may name the same segment differently
    """

    routes: Mapping[str, Route]
    path: Mapping[str, Mapping[str, str]]

    @property
    def allowed(self) -> tuple[str, ...]:
        """The methods for the header ``Allow``: HEAD goes wherever GET goes."""
        methods = set(self.routes) | ({"HEAD"} if "GET" in self.routes else set())
        return tuple(sorted(methods | {"OPTIONS"}))


class RouteTable:
    """The routes below one mount, such as ``/iceberg``. A static segment goes before a parameter, from left to right.

    meanings      what kinds of errors mean to this protocol's clients, where it differs from the server's own table; the nearest class
                  of an error counts
    shapes        types by the names under which ``shape_of`` refers to them; a mapping is a schema that stands for itself
    advice        what to do about a path of no route, given its segments; None where it has nothing to do with this table
    fold          joins the segments of a path that are one, for a protocol whose parameters may span several
    error_body    the body of an answer to an error; None: as Iceberg's REST specification has it
    error_shape   the type of that body
    """

    def __init__(
        self,
        mount: str,
        routes: Sequence[Route],
        *,
        meanings: Mapping[type[HeadwaterError], ErrorMeaning] | None = None,
        shapes: Mapping[str, Any] | None = None,
        advice: Callable[[Sequence[str]], str | None] = lambda segments: None,
        fold: Callable[[Sequence[str]], Sequence[str]] = lambda segments: segments,
        error_body: Callable[[ErrorFacts], Any] | None = None,
        error_shape: type[Any] | None = None,
    ) -> None:
        assert (error_body is None) == (error_shape is None), f"{mount}: the body of errors and its type go together"
        self.advice = advice
        self.error_body = error_body
        self.error_shape = error_shape
        self._fold = fold
        self.mount = mount.rstrip("/")
        self.routes = tuple(routes)
        self.shapes = dict(shapes or {})
        self.meanings = dict(meanings or {})
        self._root = _Node()
        names = [route.name for route in routes]
        assert len(set(names)) == len(names), f"two routes of {mount} share a name"
        for route in routes:
            for kind in (route.query, route.body):
                build_type(kind)  # a wrong declaration is found at the start, not by a request
            for template in (route.template, *route.also):
                self._root.add_route(_segments(self.mount + template), route, ())

    @property
    def endpoints(self) -> list[str]:
        """What is served, as the Iceberg REST specification lists it."""
        return [route.endpoint for route in self.routes]

    def covers(self, segments: Sequence[str]) -> bool:
        """Whether a path lies below the static part of the mount."""
        static = [segment for segment in _segments(self.mount) if not _PARAMETER.fullmatch(segment)]
        return list(segments[: len(static)]) == static

    def find(self, segments: Sequence[str]) -> RouteMatch | None:
        """The routes of a path; None where there is none. No parameter matches an empty segment.

        segments      of the whole path, each decoded once
        """
        routes: dict[str, Route] = {}
        path: dict[str, Mapping[str, str]] = {}
        for node, values in self._root.walk(self._fold(segments), ()):
            for method, (route, names) in node.routes.items():
                if method not in routes:
                    routes[method], path[method] = route, dict(zip(names, values, strict=True))
        return RouteMatch(routes, path) if routes else None


class _Node:
    """A segment of templates."""

    def __init__(self) -> None:
        self.static: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.routes: dict[str, tuple[Route, tuple[str, ...]]] = {}

    def add_route(self, segments: Sequence[str], route: Route, names: tuple[str, ...]) -> None:
        if not segments:
            assert route.method not in self.routes, f"{route.name}: {route.endpoint} is served by another route, too"
            self.routes[route.method] = (route, names)
        elif parameter := _PARAMETER.fullmatch(segments[0]):
            self.parameter = self.parameter or _Node()
            self.parameter.add_route(segments[1:], route, (*names, parameter[1]))
        else:
            self.static.setdefault(segments[0], _Node()).add_route(segments[1:], route, names)

    def walk(self, segments: Sequence[str], values: tuple[str, ...]) -> Iterator[tuple[_Node, tuple[str, ...]]]:
        """Every node that the segments lead to, with the parameters' values on the way; the most static first."""
        if not segments:
            yield self, values
            return
        head, rest = segments[0], segments[1:]
        if head in self.static:
            yield from self.static[head].walk(rest, values)
        if self.parameter is not None and head:
            yield from self.parameter.walk(rest, (*values, head))


def _segments(path: str) -> list[str]:
    return path.split("/")[1:]
