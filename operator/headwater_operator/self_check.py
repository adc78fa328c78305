"""The operator's self-check: what it needs from its surroundings, and what is missing. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from headwater.clock import SystemClock
from headwater.errors import HeadwaterError, NotFoundError, RefusedError
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import open_store
from headwater_operator.kube import KINDS, KubeApi, KubeTimeouts
from headwater_operator.permissions import LEASE_PERMISSIONS, PERMISSIONS, Permission
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.runtime.served_schema import check_served_schemas
from headwater_operator.runtime.watch import try_watch

OURS = "headwater.dev"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The result of one check: what was found, or what is wrong with it."""

    subject: str
    seen: str = ""
    error: HeadwaterError | None = None

    def __str__(self) -> str:
        return f"{'FAILED' if self.error else 'ok':<7} {self.subject}: {self.error or self.seen}"


def run_self_check(api: KubeApi, store_settings: Settings, settings: OperatorSettings) -> Iterator[CheckFinding]:
    """Check everything, one after the other; a failure does not prevent the other checks."""
    yield _found("API server", partial(_version, api))
    yield _found("custom resource definitions", partial(_kinds_served, api))
    yield _found("fields of the definitions", partial(_schemas_served, api))
    for namespace in settings.namespaces or ("",):
        where = f"namespace {namespace}" if namespace else "all namespaces"
        yield _found(f"rights in {where}", partial(_rights, api, PERMISSIONS, namespace))
    if settings.leader_election:
        subject = f"rights to the Lease in namespace {settings.namespace}"
        yield _found(subject, partial(_rights, api, LEASE_PERMISSIONS, settings.namespace, settings.lease_name))
    for kind, path in KINDS.items():
        for namespace in (settings.namespaces or ("",)) if path.group == OURS else ():
            where = f"namespace {namespace}" if namespace else "all namespaces"
            yield _found(f"watch of {path.plural}.{OURS} in {where}", partial(_watched, api, settings, kind, namespace))
    yield _found("store", partial(_store_answers, store_settings))


def _found(subject: str, look: Callable[[], str]) -> CheckFinding:
    try:
        return CheckFinding(subject, look())
    except HeadwaterError as error:
        return CheckFinding(subject, error=error)


def _version(api: KubeApi) -> str:
    return f"{api.get_resource('/version').get('gitVersion', 'unknown version')} at {api.connection.host}"


def _kinds_served(api: KubeApi) -> str:
    ours = {kind: path for kind, path in KINDS.items() if path.group == OURS}
    root = next(iter(ours.values())).root
    resources = (api.find_resource(root) or {}).get("resources") or []
    served = {str(resource.get("name")) for resource in resources}
    missing = [path.plural for path in ours.values() if not {path.plural, f"{path.plural}/status"} <= served]
    if missing:
        names = ", ".join(f"{plural}.{OURS}" for plural in missing)
        raise NotFoundError(f"the API server does not serve {names} with a status: apply the CRDs of the chart")
    return ", ".join(f"{path.plural}.{OURS} ({path.group_version.partition('/')[2]})" for path in ours.values())


def _schemas_served(api: KubeApi) -> str:
    check_served_schemas(api, SystemClock())
    return "all that this operator knows"


def _rights(api: KubeApi, permissions: Iterable[Permission], namespace: str, name: str = "") -> str:
    wanted = tuple(permissions)
    missing = [permission for permission in wanted if not _may(api, permission, namespace, name)]
    if missing:
        raise RefusedError(f"this identity may not {', '.join(map(str, missing))}: give its service account a role that does")
    return f"all {len(wanted)} of them"


def _may(api: KubeApi, permission: Permission, namespace: str, name: str) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    attributes: dict[str, Any] = {"group": permission.group, "resource": resource, "verb": permission.verb}
    attributes |= {"subresource": subresource} if subresource else {}
    attributes |= {"namespace": namespace} if namespace else {}
    attributes |= {"name": name} if name and permission.verb != "create" else {}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    status = api.create_resource(REVIEWS, review).get("status") or {}
    return bool(status.get("allowed"))


def _watched(api: KubeApi, settings: OperatorSettings, kind: str, namespace: str) -> str:
    timely = KubeApi(api.connection, timeouts=KubeTimeouts(settings.connect_timeout_seconds, settings.request_timeout_seconds))
    count = try_watch(timely, kind, namespace=namespace or None, label_selector=settings.label_selector)
    return f"open, after a list of {count}"


def _store_answers(settings: Settings) -> str:
    """Check that the store answers. An empty database is fine before the operator's first run."""
    try:
        store = open_store(settings.store, settings=settings, create=False)
    except NotFoundError as missing:
        return f"{missing}; the operator creates it"
    with store:
        count = len(RealmRegistry(store).list_realms())
        return f"{store.url} answers, with {count} realm{'s' if count != 1 else ''}"
