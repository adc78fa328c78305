"""``kubectl headwater report``: a bundle for support that holds no secret."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headwater.console import count_text
from headwater.errors import RefusedError
from headwater_operator.plugin.bundling import archive, files_of
from headwater_operator.plugin.gathering import gather
from headwater_operator.plugin.options import cluster_options
from headwater_operator.plugin.session import Session

__all__ = ["report"]


@click.command(name="report")
@click.option("-o", "--output", "file", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; a .tar.gz.")
@click.option("--only-namespace", is_flag=True, help="Only Realms and Catalogs of the namespace at hand; default: of all.")
@click.option(
    "--log-lines", type=click.IntRange(min=1), default=5000, show_default=True, help="Of each container, at most so many."
)
@cluster_options
@click.pass_obj
def report(session: Session, file: Path | None, only_namespace: bool, log_lines: int) -> None:
    """Write a bundle for support: resources, events, workloads and logs. Secrets are never read, and what looks like one is left out."""
    now = session.now()
    name = f"headwater-report-{now:%Y%m%dT%H%M%SZ}"
    target = file or Path(f"{name}.tar.gz")
    namespace = session.namespace if only_namespace else None
    files = files_of(gather(session.api, namespace=namespace, home=session.namespace, log_lines=log_lines), now)
    _write(target, archive(files, name, now))
    session.say(f"{target}: {count_text(len(files), 'file')}; begin with index.md, and look through it before you send it on")


def _write(target: Path, content: bytes) -> None:
    """Only for its owner, and never over another file."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as there:
        raise RefusedError(f"{target} is there already, and is not written over") from there
    except OSError as wrong:
        raise RefusedError(f"{target} cannot be written: {wrong}") from wrong
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
