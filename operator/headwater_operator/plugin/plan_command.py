"""``kubectl headwater plan``: the operator's plan for a resource, for its current spec or for a file, without executing it.

The API server answers what `kubectl apply -f FILE` would make of the resource; the operator answers what it would do.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import yaml

from headwater.console import output_option
from headwater.errors import HeadwaterError, NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater.exits import FINDINGS
from headwater_operator.plugin.cluster_session import (
    FIELD_MANAGER,
    PLAN,
    TARGET,
    ClusterSession,
    CommandTarget,
    cluster_options,
    status_of,
    timeout_option,
)

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SERVER_SIDE_MANAGER = "kubectl"


def read_manifest_file(file: str, target: CommandTarget, namespace: str) -> dict[str, Any]:
    """The document of the file that is about the target.

    raises        NotFoundError when none is; RefusedError for a file that cannot be read, or one about another namespace
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if isinstance(document, dict)]
    except (OSError, UnicodeDecodeError) as unreadable:
        raise RefusedError(f"{file} cannot be read: {unreadable}") from unreadable
    except yaml.YAMLError as wrong:
        raise RefusedError(f"{file} is no YAML: {wrong}") from wrong
    document = next((document for document in documents if _is_about(document, target)), None)
    if document is None:
        raise NotFoundError(f"{file} has no {target.kind} {target.name!r}")
    named = document["metadata"].get("namespace", namespace)
    if named != namespace:
        raise RefusedError(f"{target} in {file} is of namespace {named!r}, and not {namespace!r}: name it with -n {named}")
    return document


def applied_spec(
    session: ClusterSession, target: CommandTarget, live: Mapping[str, Any], manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """The spec after an apply, validated and with the server's defaults.

    raises        RefusedError when the server would not take it
    """
    last = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    path = target.path(session.namespace)
    if last is None:
        body = {**manifest, "metadata": {**manifest["metadata"], "namespace": session.namespace}}
        answer = session.api.patch_resource(path, body, kind="apply", manager=SERVER_SIDE_MANAGER, dry_run=True)
    else:
        patch = three_way_patch(json.loads(last).get("spec", {}), manifest.get("spec") or {}, live.get("spec") or {})
        answer = session.api.patch_resource(path, {"spec": patch}, kind="merge", manager=SERVER_SIDE_MANAGER, dry_run=True)
    return dict(answer.get("spec") or {})


def three_way_patch(last: Any, wished: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch of `kubectl apply`: the wished fields, and null for fields that only the last file had."""
    former = last if isinstance(last, Mapping) else {}
    patch: dict[str, Any] = {name: None for name in former if name not in wished and name in live}
    for name, value in wished.items():
        present = live.get(name)
        if isinstance(value, Mapping) and isinstance(present, Mapping):
            if inner := three_way_patch(former.get(name), value, present):
                patch[name] = inner
        elif name not in live or present != value:
            patch[name] = value
    return patch


def _is_about(document: Mapping[str, Any], target: CommandTarget) -> bool:
    metadata = document.get("metadata")
    named = metadata.get("name") if isinstance(metadata, Mapping) else None
    return str(document.get("apiVersion", "")).startswith("headwater.dev/") and (document.get("kind"), named) == (
        target.kind,
        target.name,
    )


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
def plan_command(session: ClusterSession, target: CommandTarget, file: str | None, timeout: float) -> int:
    """Show what the operator would do to make things as they are declared. Ends with 8 when it would refuse."""
    resource = session.read_resource(target)
    question: dict[str, Any] = {"token": secrets.token_hex(8)}
    if file is not None:
        question["spec"] = applied_spec(session, target, resource, read_manifest_file(file, target, session.namespace))
    answer = _ask(session, target, question, timeout)
    data = {name: list(answer.get(name) or ()) for name in PARTS}
    session.print_result(data, lambda: plan_lines(str(target), data))
    return FINDINGS if data["refused"] else 0


def plan_lines(subject: str, data: Mapping[str, Sequence[Any]]) -> list[str]:
    """The plan as lines for people; an empty plan is one sentence."""
    if not any(data.values()):
        return [f"{subject}: nothing to do"]
    heads = {"steps": "would do", "waits": "would wait", "refused": "would refuse", "reports": "would report"}
    lines = [f"{subject}:"]
    for name, head in heads.items():
        lines += [f"  {head}: {_text(entry)}" for entry in data[name]]
    return lines


def _ask(session: ClusterSession, target: CommandTarget, question: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
    """Put the question into the annotation, wait for the answer in the status, and always remove the annotation."""
    text = json.dumps(question, separators=(",", ":"), sort_keys=True)
    last: Mapping[str, Any] = {}

    def look() -> Mapping[str, Any] | None:
        nonlocal last
        last = session.read_resource(target)
        given = status_of(last).get("plan") or {}
        return given if given.get("token") == question["token"] else None

    with _annotated(session, target, text):
        answer = session.wait_for(look, seconds)
    if answer is None:
        _explain(target, last, text, seconds)
    return answer or {}


def _explain(target: CommandTarget, last: Mapping[str, Any], text: str, seconds: float) -> None:
    if (last["metadata"].get("annotations") or {}).get(PLAN) != text:
        raise SwapConflictError(f"{target}: somebody else asked for a plan meanwhile; ask again")
    raise UnavailableError(
        f"{target}: no operator answered within {seconds:g} s; is one running, and does it watch this namespace? (kubectl get lease -A)"
    )


@contextmanager
def _annotated(session: ClusterSession, target: CommandTarget, text: str) -> Iterator[None]:
    session.merge_patch(target, {"metadata": {"annotations": {PLAN: text}}})
    try:
        yield
    finally:
        _tidy(session, target.path(session.namespace), text)


def _tidy(session: ClusterSession, path: str, text: str) -> None:
    """Remove the annotation if it is still this question. A failure is reported, but does not fail the command."""
    removal = [{"op": "test", "path": _POINTER, "value": text}, {"op": "remove", "path": _POINTER}]
    for attempt in range(_TRIES_TO_TIDY):
        try:
            session.api.patch_resource(path, removal, kind="json", manager=FIELD_MANAGER)
            return
        except SwapConflictError:
            return  # another question or none is there
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
