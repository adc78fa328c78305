"""A report of files on a storage that speaks S3's protocol, with its own listing: every file really lies there."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.lake_candidates import (
    STRAYS,
    Place,
    first_report,
    repeat_report,
    write_document,
    write_listing,
    write_manifests,
)
from benchmarks.report import ROOT, Row, say

from headwater.settings import Settings
from headwater.store import open_store

__all__ = ["ObjectScale", "measure_on_s3"]

_WRITERS = 32


@dataclass(frozen=True)
class ObjectScale:
    objects: int
    manifests: int


def measure_on_s3(folder: Path, scale: ObjectScale) -> Iterator[Row]:
    sys.path.insert(0, str(ROOT / "tests"))
    from servers.s3 import S3_LOGIN
    from servers.seaweedfs import seaweedfs_server

    place, per = Place(folder / "lake" / "t", "s3://lake/t"), scale.objects // scale.manifests
    say(f"putting {scale.objects:,} objects")
    manifests = write_manifests(place, range(scale.manifests), per)
    text = write_document(place, "v1", manifests, 10)
    listing = write_listing(folder / "listing", place, manifests, per)
    with seaweedfs_server() as url:
        storages = folder / "storages.json"
        storages.write_text(
            json.dumps({"storages": [{"location": "s3://lake", "endpoint": url, "region": "us-east-1", **S3_LOGIN}]})
        )
        storages.chmod(0o600)
        _put_objects(url, S3_LOGIN, place, (listing / "paths.txt").read_text(encoding="utf-8").splitlines())
        settings = Settings(storage_file=str(storages))
        with open_store(f"sqlite:///{folder}/s3.db", settings=settings) as store:
            what = f"report of {scale.objects:,} objects on SeaweedFS by its own listing"
            yield Row(f"{what}: first", "S3", scale.objects / first_report(store, "s3://lake", place, text, None), "objects/s")
            yield Row(f"{what}: the same again", "S3", scale.objects / repeat_report(store, None), "objects/s")


def _put_objects(url: str, login: dict[str, str], place: Place, paths: list[str]) -> None:
    from pyarrow.fs import S3FileSystem

    system: Any = S3FileSystem(
        access_key=login["access-key-id"],
        secret_key=login["secret-access-key"],
        endpoint_override=url.partition("//")[2],
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
        allow_delayed_open=True,  # one request for a small file
        force_virtual_addressing=False,
    )
    system.create_dir("lake")
    files = [(path.removeprefix("s3://"), b"1") for path in paths]
    metadata = place.folder / "metadata"
    files += [(f"lake/t/metadata/{file.name}", file.read_bytes()) for file in metadata.iterdir()]

    def put(entry: tuple[str, bytes]) -> None:
        with system.open_output_stream(entry[0]) as out:
            out.write(entry[1])

    started = time.perf_counter()
    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in pool.map(put, files):
            pass
    say(f"{len(files):,} objects, {STRAYS} of them strays, put in {time.perf_counter() - started:.0f} s")
