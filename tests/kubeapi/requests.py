"""A request, read: which verb of which resource is asked for, by whom, and with which options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubeapi.causes import Cause
from kubeapi.failures import Failure, NotServed
from kubeapi.kinds import Kind, Kinds
from kubeapi.parameters import check_numbers, read_flag

__all__ = ["Asked", "read_request"]

MOST_MANAGER_BYTES = 128
PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")
_NAMED_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for.

    namespace      "" for a cluster's own resources, and for all namespaces
    warnings       are sent along with the answer
    """

    verb: str
    kind: Kind
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]
    user_agent: str = ""
    user: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def is_dry(self) -> bool:
        return bool(self.query.get("dryRun"))

    @property
    def manager(self) -> str:
        """Who is told to own what is written: the name that was given, or else that of the program."""
        return self.query.get("fieldManager") or self.user_agent.split("/")[0][:128]

    @property
    def strictness(self) -> str:
        return self.query.get("fieldValidation") or "Warn"

    @property
    def is_forced(self) -> bool:
        return read_flag(self.query, "force")

    def check(self) -> None:
        """Refuse options that nobody knows, and numbers that are none."""
        check_numbers(self.verb, self.query)
        if self.query.get("dryRun") not in (None, "", "All"):
            _refuse_option(self.verb, Cause.not_supported("dryRun", [self.query["dryRun"]], ("All",)))
        if self.strictness not in ("Ignore", "Warn", "Strict"):
            choices = ("", "Ignore", "Strict", "Warn")
            _refuse_option(self.verb, Cause.not_supported("fieldValidation", self.strictness, choices))
        if len(self.query.get("fieldManager", "").encode()) > MOST_MANAGER_BYTES:
            _refuse_option(self.verb, Cause.too_long("fieldManager", MOST_MANAGER_BYTES))
        if self.verb in ("delete", "deletecollection"):
            self.check_deletion(self.query.get("propagationPolicy"))

    def check_deletion(self, policy: str | None) -> None:
        """Refuse a propagation policy that nobody knows, be it of the query or of the body."""
        if policy not in (None, *PROPAGATION_POLICIES):
            choices = (*PROPAGATION_POLICIES, "nil")
            _refuse_option(self.verb, Cause.not_supported("propagationPolicy", policy, choices))


def read_request(kinds: Kinds, method: str, path: str, query: Mapping[str, str], *, user_agent: str, user: str) -> Asked:
    """raises NotServed where the path leads to no resource that is served"""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise NotServed(path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (group or rest[2] not in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    kind = kinds.find(group, version, rest[0])
    if kind is None or len(rest) > 3:
        raise NotServed(path)
    name, subresource = (*rest[1:], "", "")[:2]
    if subresource and subresource not in kind.subresources:
        raise Failure.missing(kind, name) if kind.is_custom else NotServed(path)
    verb = (_NAMED_VERBS if name else _COLLECTION_VERBS).get(method, "")
    if verb == "list" and read_flag(query, "watch"):
        verb = "watch"
    if kind.is_namespaced != bool(namespace) and (namespace or verb not in ("list", "watch")):
        raise NotServed(path)
    if method == "POST" and subresource and kind.is_custom:
        told = f'create is not supported on resources of kind "{kind.resource}"'
        raise Failure(405, "MethodNotAllowed", told, details={"group": kind.group, "kind": kind.plural})
    if not verb or verb not in kind.verbs or (subresource and verb not in ("get", "patch", "update")):
        raise Failure.not_allowed()
    return Asked(verb, kind, namespace, name, subresource, query, user_agent, user)


def _refuse_option(verb: str, cause: Cause) -> None:
    kind = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}.get(verb, "DeleteOptions")
    raise Failure.of_options(kind, cause)
