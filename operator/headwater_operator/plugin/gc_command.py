"""``kubectl headwater gc``: have a realm's garbage collected now."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import click

from headwater.console import bytes_text, count_text, output_option
from headwater.errors import RefusedError, UnavailableError
from headwater.exits import FINDINGS
from headwater_operator.plugin.cluster_session import (
    REALM,
    RUN_NOW,
    ClusterSession,
    CommandTarget,
    cluster_options,
    status_of,
    timeout_option,
)
from headwater_operator.plugin.status_command import progress_text

KIND = "gc"


@click.command(name="gc")
@click.argument("realm", metavar="REALM", type=REALM)
@click.option("--wait", "is_followed", is_flag=True, help="Follow it to its end, and tell what was reclaimed.")
@timeout_option("30m", "With --wait: how long at most.")
@cluster_options
@output_option
@click.pass_obj
def gc_command(session: ClusterSession, realm: CommandTarget, is_followed: bool, timeout: float) -> int:
    """Collect the garbage of a realm now, instead of when it is next due."""
    resource = session.read_resource(realm)
    _check_state(resource, realm)
    asked = f"{KIND}:{secrets.token_hex(4)}"
    session.merge_patch(realm, {"metadata": {"annotations": {RUN_NOW: asked}}})
    session.say(f"{realm}: a collection of garbage is asked for ({RUN_NOW}: {asked})")
    former = (status_of(resource).get("maintenance") or {}).get("lastTask")
    return _follow(session, realm, former, timeout) if is_followed else 0


def _check_state(resource: Mapping[str, Any], realm: CommandTarget) -> None:
    if resource["metadata"].get("deletionTimestamp"):
        raise RefusedError(f"{realm} is being deleted: nothing is collected in it any more")
    state = status_of(resource).get("state")
    if state != "ACTIVE":
        raise RefusedError(f"{realm} is {state or 'not looked at by an operator yet'}: only an ACTIVE realm is collected")


def _follow(session: ClusterSession, realm: CommandTarget, former: Any, seconds: float) -> int:
    """Follow the collection in the status: first as a task, finally as the newest maintenance.

    former        the task of the newest maintenance before
    """
    tasks: set[str] = set()

    def look() -> Mapping[str, Any] | None:
        status = status_of(session.read_resource(realm))
        for task in status.get("tasks") or ():
            if task.get("kind") == KIND and task.get("state") == "RUNNING":
                tasks.add(str(task.get("id")))
                session.say_news(f"running: {progress_text(task) or 'begun'}")
        last = status.get("maintenance") or {}
        task = last.get("lastTask")
        return last if task and (task != former or task in tasks) else None

    ended = session.wait_for(look, seconds)
    if ended is None:
        begun = "it runs" if tasks else "no worker has begun it"
        raise UnavailableError(
            f"{realm}: the collection has not ended in time, {begun}; see `kubectl headwater status {realm.name}`"
        )
    session.print_result(dict(ended), lambda: [_sentence(realm, ended)])
    return 0 if ended.get("lastResult") == "Succeeded" else FINDINGS


def _sentence(realm: CommandTarget, ended: Mapping[str, Any]) -> str:
    objects, size = int(ended.get("objectsDeleted") or 0), int(ended.get("bytesReclaimed") or 0)
    counts = f"{count_text(objects, 'object')} deleted, {bytes_text(size)} reclaimed"
    return f"{realm}: {str(ended.get('lastResult', '')).lower()}, {counts}"
