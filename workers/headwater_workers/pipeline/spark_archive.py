"""Pack what executors need of this environment into one file: Headwater, and the libraries that it runs on."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import platform
import sysconfig
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from headwater.errors import RefusedError

MANIFEST = "headwater-archive.json"
"""The archive's own record: its Python version, and its distributions with their versions."""

_OWN = ("headwater", "headwater_workers")
_EXTRAS = frozenset({"lake", "workers", "postgresql", "mongodb"})
_SPARKS_OWN = frozenset({"pyspark", "py4j"})  # a cluster brings its own
_FILE_SYSTEMS = ("adlfs", "gcsfs", "s3fs")  # fsspec loads them by the scheme of a location
_LEVEL = 1  # mostly machine code, which higher levels compress hardly better and much slower


@dataclass(frozen=True, slots=True)
class Packed:
    """The contents of an archive: distributions by name with their versions, the number of files, and the archive's size."""

    distributions: dict[str, str]
    files: int
    size_bytes: int


def pack_environment(target: Path, *, without: Collection[str] = ()) -> Packed:
    """Write a ``.tar.gz`` for Spark's ``spark.archives``: its top folder belongs on the PYTHONPATH.

    It holds this environment's Headwater as it is now and every installed distribution that it requires, at the installed versions;
    so it fits executors with the same minor version of Python on the same platform. Equal environments give equal bytes.

    without       distributions that executors have already, or can do without; what only they require stays out, too
    raises        RefusedError where the file cannot be written, or for a name in ``without`` that is not required at all
    """
    skipped = frozenset(_normal(name) for name in without)
    installed = _closure(skipped)
    if unknown := sorted(skipped - _closure(frozenset()).keys()):
        raise RefusedError(f"nothing here requires {', '.join(unknown)}: leave it out of what is left out")
    versions = {name: installed[name].version for name in sorted(installed)}
    files = dict(
        sorted([*_own_files(), *(pair for name in installed if name != "headwater" for pair in _files(installed[name]))])
    )
    manifest = {"python": platform.python_version(), "platform": sysconfig.get_platform(), "distributions": versions}
    try:
        with (
            target.open("wb") as raw,
            gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            _add(archive, MANIFEST, json.dumps(manifest, indent=1).encode())
            for name, path in files.items():
                _add(archive, name, path.read_bytes())
    except OSError as fault:
        raise RefusedError(f"cannot write {target}: {fault}") from fault
    return Packed(versions, len(files) + 1, target.stat().st_size)


def _closure(without: Collection[str]) -> dict[str, Distribution]:
    """Headwater and what it requires, by normalised name, as far as it is installed."""
    installed: dict[str, Distribution] = {}
    waiting: list[tuple[str, frozenset[str]]] = [("headwater", _EXTRAS), *((name, frozenset()) for name in _FILE_SYSTEMS)]
    visited: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if name in without or name in _SPARKS_OWN or (name, extras) in visited:
            continue
        visited.add((name, extras))
        try:
            installed[name] = distribution(name)
        except PackageNotFoundError:  # an extra that is not installed here, or a requirement of another platform
            continue
        waiting.extend(_requirements(installed[name], extras))
    return installed


def _requirements(dist: Distribution, extras: Collection[str]) -> Iterator[tuple[str, frozenset[str]]]:
    from packaging.requirements import Requirement

    for line in dist.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield _normal(requirement.name), frozenset(requirement.extras)


def _own_files() -> Iterator[tuple[str, Path]]:
    """Headwater's packages from where they are imported (they may be installed in place), and its entry points."""
    for package in _OWN:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise RefusedError(f"the package {package} is not installed as files: no archive can be made of it")
        folder = Path(spec.origin).parent
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{package}/{path.relative_to(folder).as_posix()}", path
    for name, path in _files(distribution("headwater")):
        if Path(name).parts[0].endswith(".dist-info") and Path(name).name in ("METADATA", "entry_points.txt"):
            yield name, path


def _files(dist: Distribution) -> Iterator[tuple[str, Path]]:
    """The files of an installed distribution below its site-packages: no scripts, nothing compiled on the way."""
    for file in dist.files or ():
        path = Path(str(dist.locate_file(file)))
        if file.parts[0] != ".." and not file.is_absolute() and "__pycache__" not in file.parts and path.is_file():
            yield file.as_posix(), path


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    archive.addfile(entry, io.BytesIO(content))


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
