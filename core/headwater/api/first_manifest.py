"""A first manifest to begin with: a realm and a catalog, with comments."""

from __future__ import annotations

from pathlib import Path

from headwater.catalogs import checked_catalog_name
from headwater.durability import sync_folder
from headwater.errors import RefusedError, UnavailableError
from headwater.reconcile.manifests import checked_resource_name

FILE = "headwater.yaml"
WAREHOUSE = "warehouse"

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


def write_first_manifest(folder: str | Path = "manifests", *, realm: str = "acme", catalog: str = "lake") -> Path:
    """Write a first manifest with comments into a folder: a realm, and a catalog whose tables lie in ``warehouse`` beside it.

    Nothing is overwritten, and no store is opened: ``Connection.apply`` does what the manifest says.

    folder        made where it is not there
    returns       the file, ``headwater.yaml`` in the folder
    raises        RefusedError where there is such a file, and for names that no realm or catalog can have
    """
    checked_manifest_name(realm)
    checked_manifest_name(catalog)
    place = Path(folder)
    file = place / FILE
    try:
        place.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(_MANIFEST.format(file=file, realm=realm, catalog=catalog))
        (place / WAREHOUSE).mkdir(exist_ok=True)
        sync_folder(place.absolute())
    except FileExistsError as there:
        raise RefusedError(f"{there.filename} is there already, and is not overwritten: name another folder") from there
    except OSError as fault:
        raise UnavailableError(f"{file} cannot be written: {fault.strerror}") from fault
    return file


def checked_manifest_name(text: str) -> str:
    """A name that may be that of a resource, a realm, and a catalog."""
    return checked_catalog_name(checked_resource_name(text))
