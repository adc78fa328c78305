"""``headwater init``: a first manifest to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from headwater.catalogs import checked_catalog_name
from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import FOLDER
from headwater.console import ParsedType, ResultView, ViewField, prints
from headwater.durability import sync_folder
from headwater.errors import RefusedError, UnavailableError
from headwater.reconcile.manifests import checked_resource_name

FILE = "headwater.yaml"

_MANIFEST = """\
# A tenant with one catalog. Change it, and apply it again: `headwater apply -f {file}`.
# All fields: docs/reference/resources.md.
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata:
  name: {realm}
spec:
  deletionPolicy: Retain            # deleting this resource leaves the realm and all that is in it
  # retention:                      # how much history stays; these are the defaults
  #   content: {{age: 30d, commits: 100}}
  # maintenance:
  #   schedule: "0 3 * * 0"         # garbage collection, Sundays at three; default: weekly, at a time spread by realm
  #   timeZone: UTC
  # principals:                     # who may call a server that checks it; each gets a file with its credentials
  #   - name: ann
  #     roles: [analysts]
  # roles:
  #   - name: analysts
---
apiVersion: headwater.dev/v1alpha1
kind: Catalog
metadata:
  name: {catalog}
spec:
  realm: {realm}
  storage:
    baseLocation: ./warehouse       # where tables lie: a folder beside this file. Elsewhere a URL, such as s3://bucket/lake/
  deletionPolicy: Retain
  # imports:                        # Iceberg tables that are there already: a worker, or `headwater up`, registers them
  #   - name: initial
  #     locations: [./warehouse]
  #     mode: once                  # or sync, which looks again every day
  # maintenance:
  #   expireSnapshots: {{schedule: "0 4 * * *"}}
"""


def _resource_name(text: str) -> str:
    """A name that may be that of a resource, a realm, and a catalog."""
    return checked_catalog_name(checked_resource_name(text))


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
    "--realm", metavar="NAME", default="acme", show_default=True, type=ParsedType("name", _resource_name), help="Its realm."
)
@click.option(
    "--catalog", metavar="NAME", default="lake", show_default=True, type=ParsedType("name", _resource_name), help="Its catalog."
)
@prints(INITIAL)
def init_command(session: CliSession, folder: Path, realm: str, catalog: str) -> None:
    """Write a first manifest into DIR, by default manifests: a realm and a catalog, with comments. Nothing is overwritten."""
    file = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(_MANIFEST.format(file=file, realm=realm, catalog=catalog))
        (folder / "warehouse").mkdir(exist_ok=True)
        sync_folder(folder.absolute())
    except FileExistsError as there:
        raise RefusedError(f"{there.filename} is there already, and is not overwritten: name another folder") from there
    except OSError as fault:
        raise UnavailableError(f"{file} cannot be written: {fault.strerror}") from fault
    data = {"file": str(file), "realm": realm, "catalog": catalog, "warehouse": str(folder / "warehouse")}
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
