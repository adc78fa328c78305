"""``kubectl headwater plan``: what the operator would do, told by the operator itself, without doing it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from headwater.errors import BeatenError, HeadwaterError, UnavailableError
from headwater_operator.plugin.applying import applied_spec, read_manifest
from headwater_operator.plugin.naming import FIELD_MANAGER, PLAN, TARGET, Target, status_of
from headwater_operator.plugin.options import cluster_options, output_option, timeout_option
from headwater_operator.plugin.session import Session

__all__ = ["plan", "plan_lines"]

FINDINGS = 8
PARTS = ("steps", "waits", "refused", "reports")
_POINTER = "/metadata/annotations/" + PLAN.replace("~", "~0").replace("/", "~1")
_TRIES_TO_TIDY = 3


@click.command(name="plan")
@click.argument("target", metavar="REALM|catalog/NAME", type=TARGET)
@click.option("-f", "--filename", "file", metavar="FILE", help="Plan as if this file had been applied; - is standard input.")
@timeout_option("30s", "How long to wait for the operator's answer.")
@cluster_options
@output_option
@click.pass_obj
def plan(session: Session, target: Target, file: str | None, timeout: float) -> int:
    """Show what the operator would do to make things as they are declared. Ends with 8 when it would refuse."""
    found = session.read(target)
    question: dict[str, Any] = {"token": secrets.token_hex(8)}
    if file is not None:
        question["spec"] = applied_spec(session, target, found, read_manifest(file, target, session.namespace))
    answer = _ask(session, target, question, timeout)
    data = {name: list(answer.get(name) or ()) for name in PARTS}
    session.show(data, lambda: plan_lines(str(target), data))
    return FINDINGS if data["refused"] else 0


def plan_lines(subject: str, data: Mapping[str, Sequence[Any]]) -> list[str]:
    """The plan for people; a plan without anything in it is one sentence."""
    if not any(data.values()):
        return [f"{subject}: nothing to do"]
    heads = {"steps": "would do", "waits": "would wait", "refused": "would refuse", "reports": "would report"}
    lines = [f"{subject}:"]
    for name, head in heads.items():
        lines += [f"  {head}: {_text(entry)}" for entry in data[name]]
    return lines


def _ask(session: Session, target: Target, question: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """Put the question into the annotation until the status has an answer to it; take it away in any case."""
    text = json.dumps(question, separators=(",", ":"), sort_keys=True)
    last: Mapping[str, Any] = {}

    def look() -> Mapping[str, Any] | None:
        nonlocal last
        last = session.read(target)
        given = status_of(last).get("plan") or {}
        return given if given.get("token") == question["token"] else None

    with _annotated(session, target, text):
        answer = session.wait_for(look, seconds)
    if answer is None:
        _explain(target, last, text, seconds)
    return answer or {}


def _explain(target: Target, last: Mapping[str, Any], text: str, seconds: float) -> None:
    if (last["metadata"].get("annotations") or {}).get(PLAN) != text:
        raise BeatenError(f"{target}: somebody else asked for a plan meanwhile; ask again")
    raise UnavailableError(
        f"{target}: no operator answered within {seconds:g} s; is one running, and does it watch this namespace? (kubectl get lease -A)"
    )


@contextmanager
def _annotated(session: Session, target: Target, text: str) -> Iterator[None]:
    path = target.path(session.namespace)
    session.api.patch(path, {"metadata": {"annotations": {PLAN: text}}}, kind="merge", manager=FIELD_MANAGER)
    try:
        yield
    finally:
        _tidy(session, path, text)


def _tidy(session: Session, path: str, text: str) -> None:
    """Take the annotation away, if it is still this question. A failure is told beside the result, and is none of it."""
    removal = [{"op": "test", "path": _POINTER, "value": text}, {"op": "remove", "path": _POINTER}]
    for attempt in range(_TRIES_TO_TIDY):
        try:
            session.api.patch(path, removal, kind="json", manager=FIELD_MANAGER)
            return
        except BeatenError:
            return  # another question stands there, or none
        except UnavailableError as fault:
            if attempt == _TRIES_TO_TIDY - 1:
                click.echo(f"kubectl headwater: the annotation {PLAN} was left behind ({fault})", err=True)
        except HeadwaterError:
            return  # the resource is gone


def _text(entry: Any) -> str:
    """An entry of a plan is a sentence, or an object with reason and message."""
    if isinstance(entry, Mapping):
        until = f" (until {entry['until']})" if entry.get("until") else ""
        return f"{entry.get('message') or entry.get('reason')}{until}"
    return str(entry)
