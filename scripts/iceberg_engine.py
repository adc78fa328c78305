"""Put Spark with Iceberg's own engine together, from packages: ``python scripts/iceberg_engine.py FOLDER``.

FOLDER gets the jars of Spark 3.5, Iceberg's runtime for it, and one jar of two libraries that this build of the runtime lacks. Tests
start a JVM with them; no Python of Spark 3.5 takes part, so its rules about versions of Python do not matter.

The runtime comes in a wheel that leaves Jackson and HttpClient out, and calls them by names of its own. Spark's package carries the
one and Debian the other, under their usual names. A class file names other classes in its constant pool only, where each text has its
length before it, so that a library is renamed by writing the texts of its pools anew.

Nothing is in FOLDER until everything is. Where a package cannot be had, one sentence says so, and the exit code is 1.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

SPARK = "pyspark==3.5.7 --hash=sha256:80e36514e0c5c126d35a26adf4f405cd4a69de96a8ea8a3c1e9a65fce2fb4eaa"
RUNTIME = "snowpark-connect-deps-iceberg==1.0.3 --hash=sha256:4f280e3677ab8d3a89f16647fc392ab2a3d48369f0c48873fe07bc1e74e06ffc"
RUNTIME_JAR = "iceberg-spark-runtime-3.5_2.12-1.10.2.jar"
DEBIAN_JARS = tuple(Path("/usr/share/java") / name for name in ("httpclient5.jar", "httpcore5.jar", "httpcore5-h2.jar"))
JACKSON_JARS = ("jackson-annotations-2", "jackson-core-2", "jackson-databind-2", "jackson-datatype-jsr310-2")
UNUSED_JARS = (
    "breeze",
    "datanucleus",
    "derby",
    "hive-",
    "kubernetes-",
    "mesos",
    "rocksdbjni",
    "spark-hive",
    "spark-mllib",
    "spire",
)
"""Beginnings of the names of Spark's large jars that SQL without Hive never opens: half of the bytes."""
STAMP = ".complete"

LIBRARIES = (b"com/fasterxml/jackson/", b"org/apache/hc/")
SHADE = b"org/apache/iceberg/shaded/"
LATER_INTERFACE = SHADE + b"org/apache/hc/client5/http/ssl/TlsSocketStrategy"
"""Newer than Debian's HttpClient. Methods of the runtime mention it, so that it must exist; none is called without TLS of its own."""

UTF8 = 1
WIDE = (5, 6)
"""Tags of the constants that count twice: long and double."""
BYTES_BEHIND_TAG = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Of each constant but text: the Java Virtual Machine Specification, section 4.4."""


def main(folder: Path) -> None:
    wanted = fingerprint()
    if is_complete(folder, wanted):
        return
    missing = [str(jar) for jar in DEBIAN_JARS if not jar.exists()]
    if missing:
        sys.exit(f"{' and '.join(missing)} of the Debian package libhttpclient5-java are missing")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as part:
        downloads, jars = Path(part) / "downloads", Path(part) / "jars"
        downloads.mkdir()
        jars.mkdir()
        spark = download(SPARK, downloads)
        unpack_spark(spark, jars)
        spark.unlink()
        with zipfile.ZipFile(download(RUNTIME, downloads)) as wheel:
            package = next(name for name in wheel.namelist() if name.endswith(f"/{RUNTIME_JAR}"))
            with wheel.open(package) as source, (jars / RUNTIME_JAR).open("wb") as target:
                shutil.copyfileobj(source, target)
        jackson = [jar for jar in sorted(jars.iterdir()) if jar.name.startswith(JACKSON_JARS)]
        write_libraries([*jackson, *DEBIAN_JARS], jars / "iceberg-libraries.jar")
        (jars / STAMP).write_text(wanted, encoding="utf-8")
        jars.rename(folder)


def fingerprint() -> str:
    """What the result depends on: this script, and Debian's jars."""
    sizes = [str(jar.stat().st_size) for jar in DEBIAN_JARS if jar.exists()]
    return hashlib.sha256(Path(__file__).read_bytes() + " ".join(sizes).encode()).hexdigest()


def is_complete(folder: Path, wanted: str) -> bool:
    stamp = folder / STAMP
    return stamp.exists() and stamp.read_text(encoding="utf-8") == wanted


def download(requirement: str, folder: Path) -> Path:
    """The file of a package; ends the program where no index has it."""
    listed = folder / "requirements.txt"
    listed.write_text(requirement, encoding="utf-8")
    before = set(folder.iterdir())
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--require-hashes",
        "--retries",
        "1",
    ]
    call = subprocess.run([*pip, "-r", str(listed), "-d", str(folder)], check=False, capture_output=True, text=True)
    if call.returncode:
        sys.exit(
            f"pip could not download {requirement.split()[0]}: {(call.stderr.strip() or 'no reason given').splitlines()[-1]}"
        )
    [package] = set(folder.iterdir()) - before
    return package


def unpack_spark(package: Path, folder: Path) -> None:
    with tarfile.open(package) as archive:
        for member in archive:
            path = Path(member.name)
            if path.parts[1:3] == ("deps", "jars") and member.isfile() and not path.name.startswith(UNUSED_JARS):
                source = archive.extractfile(member)
                assert source is not None
                with source, (folder / path.name).open("wb") as target:
                    shutil.copyfileobj(source, target)


def write_libraries(jars: list[Path], target: Path) -> None:
    """Write the classes of jars into one, each under the name by which the runtime calls it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(f"{LATER_INTERFACE.decode()}.class", empty_interface(LATER_INTERFACE))
        for jar in jars:
            with zipfile.ZipFile(jar) as source:
                for name in library_entries(source):
                    content = source.read(name)
                    content = shaded_class(content) if name.endswith(".class") else shaded(content)
                    archive.writestr(shaded(name.encode()).decode(), content)


def library_entries(jar: zipfile.ZipFile) -> Iterator[str]:
    """Classes, and the files beside them by which services are found; not what is for another version of Java."""
    for name in jar.namelist():
        if name.startswith((*(library.decode() for library in LIBRARIES), "META-INF/services/")) and not name.endswith("/"):
            yield name


def shaded(text: bytes) -> bytes:
    """A text in which the libraries have the names that the runtime calls them by, with slashes or with dots."""
    for library in LIBRARIES:
        for separator in (b"/", b"."):
            name = library.replace(b"/", separator)
            text = text.replace(name, SHADE.replace(b"/", separator) + name)
    return text


def shaded_class(code: bytes) -> bytes:
    """A class file whose constants say the shaded names."""
    (end,) = struct.unpack_from(">H", code, 8)
    parts, offset, index = [code[:10]], 10, 1
    while index < end:
        tag = code[offset]
        if tag == UTF8:
            (length,) = struct.unpack_from(">H", code, offset + 1)
            following = offset + 3 + length
            parts.append(utf8_constant(shaded(code[offset + 3 : following])))
        else:
            following = offset + 1 + BYTES_BEHIND_TAG[tag]
            parts.append(code[offset:following])
        offset = following
        index += 2 if tag in WIDE else 1
    return b"".join([*parts, code[offset:]])


def empty_interface(name: bytes) -> bytes:
    """The class file of a public interface without methods, as Java 8 reads it."""
    pool = [utf8_constant(name), utf8_constant(b"java/lang/Object"), struct.pack(">BH", 7, 1), struct.pack(">BH", 7, 2)]
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 52, len(pool) + 1)
    public_abstract_interface, this_class, super_class = 0x0601, 3, 4
    return head + b"".join(pool) + struct.pack(">HHH4H", public_abstract_interface, this_class, super_class, 0, 0, 0, 0)


def utf8_constant(text: bytes) -> bytes:
    return struct.pack(">BH", UTF8, len(text)) + text


if __name__ == "__main__":
    main(Path(sys.argv[1]))
