"""``kubectl headwater gc``: have a realm's garbage collected now."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from headwater.console import bytes_text, count_text, output_option
from headwater.errors import RefusedError, UnavailableError
from headwater.exits import FINDINGS
from headwater_operator.plugin.cluster_session import (
    FIELD_MANAGER,
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


@dataclass(slots=True)
class _Following:
    """The progress of the requested collection in the status: first as a task, finally as the newest maintenance."""

    former: Any
    tasks: set[str] = field(default_factory=set)
    told: str = ""

    def news(self, realm: Mapping[str, Any]) -> str:
        """The new progress to print; empty when there is none."""
        for task in status_of(realm).get("tasks") or ():
            if task.get("kind") == KIND and task.get("state") == "RUNNING":
                self.tasks.add(str(task.get("id")))
                text = f"running: {progress_text(task) or 'begun'}"
                if text != self.told:
                    self.told = text
                    return text
        return ""

    def ended(self, realm: Mapping[str, Any]) -> Mapping[str, Any] | None:
        last = status_of(realm).get("maintenance") or {}
        task = last.get("lastTask")
        return last if task and (task != self.former or task in self.tasks) else None


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
    following = _Following((status_of(resource).get("maintenance") or {}).get("lastTask"))
    asked = f"{KIND}:{secrets.token_hex(4)}"
    patch = {"metadata": {"annotations": {RUN_NOW: asked}}}
    session.api.patch_resource(realm.path(session.namespace), patch, kind="merge", manager=FIELD_MANAGER)
    session.say(f"{realm}: a collection of garbage is asked for ({RUN_NOW}: {asked})")
    return _follow(session, realm, following, timeout) if is_followed else 0


def _check_state(resource: Mapping[str, Any], realm: CommandTarget) -> None:
    if resource["metadata"].get("deletionTimestamp"):
        raise RefusedError(f"{realm} is being deleted: nothing is collected in it any more")
    state = status_of(resource).get("state")
    if state != "ACTIVE":
        raise RefusedError(f"{realm} is {state or 'not looked at by an operator yet'}: only an ACTIVE realm is collected")


def _follow(session: ClusterSession, realm: CommandTarget, following: _Following, seconds: float) -> int:
    def look() -> Mapping[str, Any] | None:
        resource = session.read_resource(realm)
        if news := following.news(resource):
            session.say(news)
        return following.ended(resource)

    ended = session.wait_for(look, seconds)
    if ended is None:
        begun = "it runs" if following.tasks else "no worker has begun it"
        raise UnavailableError(
            f"{realm}: the collection has not ended in time, {begun}; see `kubectl headwater status {realm.name}`"
        )
    session.print_result(dict(ended), lambda: [_sentence(realm, ended)])
    return 0 if ended.get("lastResult") == "Succeeded" else FINDINGS


def _sentence(realm: CommandTarget, ended: Mapping[str, Any]) -> str:
    objects, size = int(ended.get("objectsDeleted") or 0), int(ended.get("bytesReclaimed") or 0)
    counts = f"{count_text(objects, 'object')} deleted, {bytes_text(size)} reclaimed"
    return f"{realm}: {str(ended.get('lastResult', '')).lower()}, {counts}"
