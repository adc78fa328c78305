"""``headwater init``: a first manifest to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from headwater.api.first_manifest import WAREHOUSE, checked_manifest_name, write_first_manifest
from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import FOLDER
from headwater.console import ParsedType, ResultView, ViewField, prints

INITIAL: ResultView[dict[str, str]] = ResultView(
    "first manifest",
    "manifests",
    (
        ViewField("file", "the file that was written"),
        ViewField("realm", "the realm that it describes"),
        ViewField("catalog", "the catalog that it describes"),
        ViewField("warehouse", "the folder of its tables"),
    ),
)


@click.command(name="init")
@click.argument("folder", metavar="[DIR]", default="manifests", type=FOLDER)
@click.option(
    "--realm",
    metavar="NAME",
    default="acme",
    show_default=True,
    type=ParsedType("name", checked_manifest_name),
    help="Its realm.",
)
@click.option(
    "--catalog",
    metavar="NAME",
    default="lake",
    show_default=True,
    type=ParsedType("name", checked_manifest_name),
    help="Its catalog.",
)
@prints(INITIAL)
def init_command(session: CliSession, folder: Path, realm: str, catalog: str) -> None:
    """Write a first manifest into DIR, by default manifests: a realm and a catalog, with comments. Nothing is overwritten."""
    file = write_first_manifest(folder, realm=realm, catalog=catalog)
    data = {"file": str(file), "realm": realm, "catalog": catalog, "warehouse": str(folder / WAREHOUSE)}
    session.print_result(data, lambda: _lines(data, shlex.quote(str(folder))))


def _lines(data: dict[str, str], folder: str) -> list[str]:
    steps = {
        f"headwater apply -f {folder} --dry-run": "show what it would do",
        f"headwater apply -f {folder}": "do it",
        f"headwater up {folder}": "do it, run a worker, and keep watching the files",
        f"headwater catalog show {data['realm']}/{data['catalog']}": "see the catalog",
        "headwater client-config --help": "connect Spark, PyIceberg, Trino and others",
    }
    width = max(map(len, steps))
    about = f"realm {data['realm']} with catalog {data['catalog']}, whose tables lie in {data['warehouse']}"
    return [f"wrote {data['file']}: {about}", "", "Next:", *(f"  {step.ljust(width)}  {why}" for step, why in steps.items())]
