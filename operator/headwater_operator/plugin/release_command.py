"""``kubectl headwater release``: release resources whose operator never comes back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from headwater.console import count_text
from headwater.errors import NotFoundError, RefusedError, SwapConflictError
from headwater_operator.kube import resource_path
from headwater_operator.plugin.cluster_session import (
    FIELD_MANAGER,
    FINALIZER,
    LEASE,
    TARGET,
    ClusterSession,
    CommandTarget,
    cluster_options,
    target_realm_id,
)

_PAUSE_SECONDS = 0.5
_DEFAULT_LEASE_SECONDS = 15
_CONFIRMATION = "release"
_OPERATORS = "app.kubernetes.io/part-of=headwater,app.kubernetes.io/component=operator"

Resource = dict[str, Any]


@click.command(name="release")
@click.argument("target", metavar="[REALM|catalog/NAME]", type=TARGET, required=False)
@click.option("--all", "is_all", is_flag=True, help="Every Realm and Catalog of the namespace.")
@click.option("-A", "--all-namespaces", is_flag=True, help="With --all: of every namespace.")
@click.option(
    "--operator-namespace", metavar="NAME", help="Where the operator's Lease is; default: looked for in all namespaces."
)
@click.option("--yes", "is_confirmed", is_flag=True, help="Go ahead without being asked.")
@cluster_options
@click.pass_obj
def release_command(
    session: ClusterSession,
    target: CommandTarget | None,
    is_all: bool,
    all_namespaces: bool,
    operator_namespace: str | None,
    is_confirmed: bool,
) -> None:
    """Take the operator's finalizer off, so that a deletion ends without it. Only for when the operator is gone for good."""
    if (target is None) is not is_all:
        raise click.UsageError("name one resource, or say --all")
    held = _held(session, target, all_namespaces)
    if not held:
        session.say("nothing holds the operator's finalizer: there is nothing to release")
        return
    _check_operator(session, operator_namespace)
    click.echo("\n".join(_left_behind(held)), err=True)
    if not is_confirmed:
        question = f"Type {_CONFIRMATION} to take the finalizer off {count_text(len(held), 'resource')}"
        session.confirm_word(_CONFIRMATION, question, "say --yes to go ahead")
    for resource in held:
        _release(session, resource)


def _held(session: ClusterSession, target: CommandTarget | None, all_namespaces: bool) -> list[Resource]:
    """The selected resources with our finalizer, each with its kind; Catalogs first."""
    if target is not None:
        resources = [{**session.read_resource(target), "kind": target.kind}]
    else:
        namespace = None if all_namespaces else session.namespace
        resources = [
            {**resource, "kind": kind}
            for kind in ("Catalog", "Realm")
            for resource in session.api.list_resources(resource_path(kind, namespace, None))
        ]
    return [resource for resource in resources if FINALIZER in (resource["metadata"].get("finalizers") or ())]


def _check_operator(session: ClusterSession, namespace: str | None) -> None:
    """Check by the Lease that no operator is running.

    A Lease may be fresh by a wrong clock, or belong to a process that was just killed. So it is watched for its whole
    duration: a living holder renews it within that time.

    raises        RefusedError naming the holder
    """
    leases = session.api.list_resources(resource_path("Lease", namespace, None), field_selector=f"metadata.name={LEASE}")
    if not leases:
        _check_pods(session, namespace)  # it may run without leader election
    held = [lease for lease in leases if (lease.get("spec") or {}).get("holderIdentity")]
    if not held:
        return
    seconds = max(float(lease["spec"].get("leaseDurationSeconds") or _DEFAULT_LEASE_SECONDS) for lease in held)
    session.say(f"watching the operator's Lease for {seconds:g} s, to see whether its holder lives")
    end = time.monotonic() + seconds
    while True:
        for lease in held:
            _check_still(session, lease)
        if time.monotonic() >= end:
            return
        time.sleep(_PAUSE_SECONDS)


def _check_pods(session: ClusterSession, namespace: str | None) -> None:
    """Check that no pod of an operator runs, where pods may be listed."""
    try:
        pods = session.api.list_resources(resource_path("Pod", namespace, None), label_selector=_OPERATORS)
    except (NotFoundError, RefusedError):
        return
    for pod in pods:
        if (pod.get("status") or {}).get("phase") == "Running":
            metadata = pod["metadata"]
            raise RefusedError(
                f"nothing was released: the pod {metadata['name']} in namespace {metadata['namespace']} is an operator that runs; "
                "delete the resource and let it do its work, or uninstall it first"
            )


def _check_still(session: ClusterSession, lease: Resource) -> None:
    metadata = lease["metadata"]
    now = session.api.find_resource(resource_path("Lease", metadata["namespace"], metadata["name"]))
    spec = (now or {}).get("spec") or {}
    if spec.get("holderIdentity") and (spec.get("holderIdentity"), spec.get("renewTime")) != (
        lease["spec"].get("holderIdentity"),
        lease["spec"].get("renewTime"),
    ):
        raise RefusedError(
            f"nothing was released: the operator lives ({spec['holderIdentity']} in namespace {metadata['namespace']} holds its Lease); "
            "delete the resource and let it do its work, or uninstall it first"
        )


def _left_behind(held: Sequence[Resource]) -> list[str]:
    """What nobody manages any more."""
    lines = ["the finalizer of the operator is taken off these, and what they stand for stays in the store as it is:"]
    for resource in held:
        metadata = resource["metadata"]
        going = "being deleted: it goes at once" if metadata.get("deletionTimestamp") else "stays, without an operator"
        lines.append(f"  {resource['kind']} {metadata['namespace']}/{metadata['name']} ({going}){_stays(resource)}")
    lines += [
        "in the store they remain marked as managed by these resources; to go on with one of them:",
        "  keep it:    apply it again under the same name, in a cluster whose operator has the same cluster name;",
        "              without a cluster name, or as another Realm of the namespace, annotate it headwater.dev/adopt: REALM_ID",
        "  delete it:  headwater realm deactivate REALM_ID, and after the hold: headwater realm purge, headwater realm delete",
    ]
    return lines


def _stays(resource: Mapping[str, Any]) -> str:
    metadata, spec = resource["metadata"], resource.get("spec", {})
    if resource["kind"] == "Realm":
        return f": realm {target_realm_id(resource)}, uid {metadata['uid']}"
    return f": catalog {spec.get('name') or metadata['name']} of Realm {spec.get('realm', '')}"


def _release(session: ClusterSession, resource: Mapping[str, Any]) -> None:
    """Remove our finalizer, and no other."""
    metadata = resource["metadata"]
    place = list(metadata["finalizers"]).index(FINALIZER)
    target = CommandTarget(resource["kind"], metadata["name"])
    removal = [
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": f"/metadata/finalizers/{place}", "value": FINALIZER},
        {"op": "remove", "path": f"/metadata/finalizers/{place}"},
    ]
    try:
        session.api.patch_resource(target.path(metadata["namespace"]), removal, kind="json", manager=FIELD_MANAGER)
    except SwapConflictError as beaten:
        raise SwapConflictError(
            f"{target} has changed meanwhile, and keeps its finalizer; run the same command again"
        ) from beaten
    session.say(f"{target} in namespace {metadata['namespace']}: released")
