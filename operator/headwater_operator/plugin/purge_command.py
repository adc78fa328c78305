"""``kubectl headwater purge``: delete a realm with everything in it, follow that to its end, or call it off while it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from headwater.console import count_text
from headwater.errors import RefusedError, UnavailableError
from headwater.text_tables import cell
from headwater_operator.plugin.cluster_session import (
    CONFIRM_PURGE,
    REALM,
    ClusterSession,
    CommandTarget,
    cluster_options,
    status_of,
    target_realm_id,
    timeout_option,
)

_NO_WAY_BACK = ("PURGING", "PURGED")


@click.command(name="purge")
@click.argument("realm", metavar="REALM", type=REALM)
@click.option("--confirm", metavar="REALM_ID", help="Repeat the realm's id to go ahead without being asked.")
@click.option("--wait", "is_followed", is_flag=True, help="Follow it until the realm is gone.")
@click.option("--cancel", "is_cancelled", is_flag=True, help="Call off a purge that has not begun to delete.")
@timeout_option("48h", "With --wait: how long at most.")
@cluster_options
@click.pass_obj
def purge_command(
    session: ClusterSession, realm: CommandTarget, confirm: str | None, is_followed: bool, is_cancelled: bool, timeout: float
) -> None:
    """Delete a realm and everything in it, after its hold. There is no way back once the hold is over."""
    resource = session.read_resource(realm)
    if is_cancelled:
        _cancel(session, realm, resource)
        return
    realm_id = target_realm_id(resource)
    _check_protection(resource, realm)
    click.echo("\n".join(_stakes(realm, resource, session.catalogs_of(realm.name))), err=True)
    if confirm is None:
        advice = f"repeat the realm's id with --confirm {realm_id} to go ahead"
        session.confirm_word(realm_id, f"Type the realm's id ({realm_id}) to delete all of it", advice)
    elif confirm != realm_id:
        raise RefusedError(f"nothing was done: --confirm says {confirm!r}, and the realm's id is {realm_id!r}")
    _start(session, realm, resource, realm_id)
    session.say(f"{realm}: the purge of realm {realm_id} is asked for; --cancel calls it off until its hold is over")
    if is_followed:
        _follow(session, realm, resource["metadata"]["uid"], timeout)


def _check_protection(resource: Mapping[str, Any], realm: CommandTarget) -> None:
    if resource.get("spec", {}).get("deletionProtection"):
        patch = '{"spec":{"deletionProtection":false}}'
        raise RefusedError(
            f"{realm} has deletionProtection: true, and nothing was done; set it to false first: "
            f"kubectl patch realm {realm.name} -n {resource['metadata']['namespace']} --type merge -p '{patch}'"
        )


def _stakes(realm: CommandTarget, resource: Mapping[str, Any], catalogs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What will be deleted, for a person who is about to confirm."""
    status, spec = status_of(resource), resource.get("spec", {})
    names = [catalog["metadata"]["name"] for catalog in catalogs]
    fields = {
        "realm id": target_realm_id(resource),
        "state": status.get("state"),
        "catalogs": status.get("catalogs"),
        "tables": status.get("tables"),
        "hold": spec.get("purgeHold") or "that of the store's settings (24h if they do not say otherwise)",
        "credentials": status.get("credentialsSecret"),
    }
    lines = [f"{realm} in namespace {resource['metadata']['namespace']}: all this is deleted for good after the hold"]
    lines += [f"  {name + ':':<13}{cell(value)}" for name, value in fields.items()]
    if names:
        lines.append(f"  {count_text(len(names), 'Catalog resource')} will wait for a realm that is gone: {', '.join(names)}")
    return lines


def _start(session: ClusterSession, realm: CommandTarget, resource: Mapping[str, Any], realm_id: str) -> None:
    """Announce the purge, then delete this very resource. After an interruption in between nothing is deleted, and the same command
    resumes.
    """
    metadata = resource["metadata"]
    patch = {
        "metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": {CONFIRM_PURGE: realm_id}},
        "spec": {"deletionPolicy": "Purge"},
    }
    session.merge_patch(realm, patch)
    session.api.delete_resource(realm.path(session.namespace), uid=metadata["uid"])


def _cancel(session: ClusterSession, realm: CommandTarget, resource: Mapping[str, Any]) -> None:
    state, realm_id = status_of(resource).get("state"), target_realm_id(resource)
    if state in _NO_WAY_BACK:
        raise RefusedError(f"realm {realm_id} is {state}: its purge cannot be called off any more")
    metadata = resource["metadata"]
    patch = {
        "metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": {CONFIRM_PURGE: None}},
        "spec": {"deletionPolicy": "Retain"},
    }
    session.merge_patch(realm, patch)
    if metadata.get("deletionTimestamp"):
        session.say(
            f"{realm}: the purge is called off; the resource goes, and the realm {realm_id} stays in the store. "
            "To look after it again, apply its manifest again: a Realm of this namespace and name takes it back"
        )
    else:
        session.say(f"{realm}: deletionPolicy is Retain; no deletion was asked for")


def _follow(session: ClusterSession, realm: CommandTarget, uid: str, seconds: float) -> None:
    def look() -> bool | None:
        resource = session.api.find_resource(realm.path(session.namespace))
        if resource is None or resource["metadata"]["uid"] != uid:
            return True
        session.say_news(_news(resource))
        if resource.get("spec", {}).get("deletionPolicy") == "Retain":
            raise RefusedError(f"{realm}: the purge was called off")
        return None

    if session.wait_for(look, seconds) is None:
        raise UnavailableError(f"{realm}: not gone in time; it goes on, see `kubectl headwater status {realm.name}`")
    session.say(f"{realm}: gone, with everything in it")


def _news(resource: Mapping[str, Any]) -> str:
    """The state of the purge in one line."""
    status = status_of(resource)
    state, purge_status = status.get("state"), status.get("purge") or {}
    if state == "PURGING":
        done, left = int(purge_status.get("rowsDeleted") or 0), purge_status.get("rowsRemaining")
        total = f" of {done + int(left)}" if left is not None else ""
        return f"PURGING: {done}{total} rows deleted"
    if purge_status.get("holdUntil") and state == "INACTIVE":
        return f"INACTIVE: held until {purge_status['holdUntil']}"
    return ": ".join(filter(None, (str(state or ""), str(status.get("message") or "")))) or "waiting for the operator"
