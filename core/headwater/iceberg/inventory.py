"""Inventories: lists of files made by another program, such as S3 Inventory, read instead of listing a storage."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus

import msgspec

from headwater.errors import NotFoundError, RefusedError, UnavailableError
from headwater.iceberg.file_drivers import open_file_system
from headwater.iceberg.layout import FileInfo
from headwater.iceberg.location import canonical_location
from headwater.typed_values import decode_json

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_OWN = ("path", "size", "mtime")
_S3 = ("bucket", "key", "size", "lastmodifieddate")
_MANIFEST = "manifest.json"
_BATCH_ROWS = 65_536


class InventoryPart(msgspec.Struct, frozen=True):
    """One file of an inventory.

    columns       lower-case names of a CSV's columns where it has no header line, as S3 Inventory's has none
    """

    url: str
    columns: tuple[str, ...] = ()


class _Listed(msgspec.Struct):
    key: str


class _Manifest(msgspec.Struct):
    """The manifest of one S3 Inventory list."""

    files: list[_Listed]
    fileSchema: str = ""  # noqa: N815  # S3's spelling
    fileFormat: str = "CSV"  # noqa: N815


def inventory_parts(url: str) -> list[InventoryPart]:
    """The files of an inventory: the one at the URL itself, or all that it names if it is S3 Inventory's ``manifest.json``.

    url           canonical
    raises        NotFoundError · UnavailableError · RefusedError for a malformed manifest, or lists in ORC
    """
    if url.rpartition("/")[2] != _MANIFEST:
        return [InventoryPart(url)]
    try:
        manifest = decode_json(_content(url), _Manifest)
    except msgspec.DecodeError as fault:
        raise RefusedError(f"{url} is no manifest of S3 Inventory: {fault}") from fault
    if manifest.fileFormat not in ("CSV", "Parquet"):
        raise RefusedError(f"{url} lists files in {manifest.fileFormat}: only CSV and Parquet are read")
    columns = tuple(name.strip().lower() for name in manifest.fileSchema.split(",")) if manifest.fileFormat == "CSV" else ()
    bucket = "/".join(url.split("/")[:3])  # lists lie in the bucket of their manifest
    return [InventoryPart(canonical_location(f"{bucket}/{listed.key}"), columns) for listed in manifest.files]


def read_inventory_part(part: InventoryPart) -> Iterator[FileInfo]:
    """Read the files that one part of an inventory lists, without those that S3 marks as deleted or overwritten.

    A part is CSV with a header line (packed with gzip or not) or Parquet, told by its content, and has either the columns ``path``,
    ``size`` and, if known, ``mtime`` (ISO 8601, or microseconds since 1970), or S3 Inventory's ``Bucket``, ``Key`` (in CSV
    URL-encoded), ``Size`` and ``LastModifiedDate``.

    raises        NotFoundError · UnavailableError · RefusedError, with the line or row, for what is none of these
    """
    data = _content(part.url)
    rows = _parquet_rows(part.url, data) if data.startswith(_PARQUET) else _csv_rows(part, data)
    for number, row in enumerate(rows, start=1):
        try:
            file = _file(row, is_csv=not data.startswith(_PARQUET))
        except (KeyError, TypeError, ValueError, RefusedError) as fault:
            raise RefusedError(f"{part.url}, row {number}, lists no file ({type(fault).__name__}: {fault})") from fault
        if file is not None:
            yield file


def _content(url: str) -> bytes:
    system, path = open_file_system(url)
    try:
        return system.read_bytes(path)
    except FileNotFoundError as fault:
        raise NotFoundError(f"there is no inventory {url}: correct its name, or import without one") from fault
    except OSError as fault:
        raise UnavailableError(f"cannot read the inventory {url}: {fault}") from fault


def _csv_rows(part: InventoryPart, data: bytes) -> Iterator[Mapping[str, Any]]:
    packed = io.BytesIO(data)
    text = gzip.GzipFile(fileobj=packed) if data.startswith(_GZIP) else packed
    lines = csv.reader(io.TextIOWrapper(text, encoding="utf-8-sig", newline=""))
    try:
        columns = part.columns or tuple(name.strip().lower() for name in next(lines, ()))
        _check(part.url, columns)
        for line in lines:
            if line:
                yield dict(zip(columns, line, strict=False))
    except (OSError, EOFError, zlib.error) as fault:
        raise RefusedError(f"{part.url} is broken gzip: {fault}") from fault
    except (UnicodeDecodeError, csv.Error) as fault:
        raise RefusedError(f"{part.url}, line {lines.line_num + 1}, is no text in CSV: {fault}") from fault


def _parquet_rows(url: str, data: bytes) -> Iterator[Mapping[str, Any]]:
    from pyarrow import ArrowInvalid, BufferReader
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(BufferReader(data))
        names = {name.lower().replace("_", ""): name for name in file.schema_arrow.names}
        wanted = _check(url, tuple(names))
        for batch in file.iter_batches(_BATCH_ROWS, columns=[names[name] for name in wanted]):
            columns = [batch.column(names[name]).to_pylist() for name in wanted]
            yield from (dict(zip(wanted, values, strict=True)) for values in zip(*columns, strict=True))
    except ArrowInvalid as fault:
        raise RefusedError(f"{url} is no Parquet file: {fault}") from fault


def _check(url: str, columns: Sequence[str]) -> list[str]:
    """Check the columns of an inventory; returns those with a known name."""
    known = (*_OWN, *_S3, "islatest", "isdeletemarker")
    if not {"path", "size"} <= set(columns) and not {"bucket", "key", "size"} <= set(columns):
        raise RefusedError(
            f"{url} has the columns {', '.join(columns)[:200] or 'of none'}: an inventory has path and size, or Bucket, Key and Size"
        )
    return [name for name in columns if name in known]


def _file(row: Mapping[str, Any], *, is_csv: bool) -> FileInfo | None:
    if _is(row.get("isdeletemarker"), "true") or _is(row.get("islatest"), "false"):
        return None
    if row.get("path"):
        return FileInfo(canonical_location(row["path"]), _number(row["size"] or 0), _micros(row.get("mtime")))
    key = unquote_plus(row["key"]) if is_csv else row["key"]
    return FileInfo(
        canonical_location(f"s3://{row['bucket']}/{key}"), _number(row["size"] or 0), _micros(row.get("lastmodifieddate"))
    )


def _is(value: object, text: str) -> bool:
    return str(value).lower() == text


def _micros(value: object) -> int:
    if value is None or value == "":
        return 0
    if isinstance(value, str) and not value.isdecimal():
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1_000_000)
    return _number(value)


def _number(value: object) -> int:
    """A count of bytes or microseconds; ValueError for any other text."""
    number = int(str(value))
    if not 0 <= number < 2**63:
        raise ValueError(f"{number} is no size and no time")
    return number
