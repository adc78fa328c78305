"""Files of a snapshot by size: what manifests hold is counted once, by content and by class, and broken ones add nothing."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from headwater.iceberg.snapshot_sizes import SIZE_BOUNDS, FileContent, SnapshotSizes

_SIZES = [{"name": "file_size_in_bytes", "type": "long"}, {"name": "record_count", "type": "long"}]
_CONTENT = {"name": "content", "type": "int"}


def manifest(*files: tuple[int, int, int, int], has_content: bool = True) -> bytes:
    """A manifest of entries: status, content, bytes and records of each file; version 1 has no content."""
    data_file = {"type": "record", "name": "r2", "fields": [*([_CONTENT] if has_content else []), *_SIZES]}
    schema = {
        "type": "record",
        "name": "manifest_entry",
        "fields": [{"name": "status", "type": "int"}, {"name": "data_file", "type": data_file}],
    }
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [entry(*file, has_content=has_content) for file in files])
    return out.getvalue()


def entry(status: int, content: int, size: int, records: int, *, has_content: bool) -> dict[str, Any]:
    held = {"file_size_in_bytes": size, "record_count": records}
    return {"status": status, "data_file": held | ({"content": content} if has_content else {})}


def totals(sizes: SnapshotSizes, content: FileContent) -> tuple[int, int, int]:
    held = sizes.contents[content]
    return held.files, held.bytes, held.records


def test_files_are_counted_by_content() -> None:
    sizes = SnapshotSizes()
    sizes.add_manifest(manifest((1, 0, 100, 5), (0, 0, 50, 2), (2, 0, 9, 9)))
    sizes.add_manifest(manifest((1, 1, 7, 3), (1, 2, 8, 4)))

    assert totals(sizes, FileContent.DATA) == (2, 150, 7)
    assert totals(sizes, FileContent.POSITION_DELETES) == (1, 7, 3)
    assert totals(sizes, FileContent.EQUALITY_DELETES) == (1, 8, 4)


def test_class_begins_at_the_end_of_the_one_before() -> None:
    sizes = SnapshotSizes()
    sizes.add_manifest(manifest(*((1, 0, size + more, 1) for size in (0, *SIZE_BOUNDS) for more in (0, 1)), (1, 1, 5, 1)))

    assert [each.files for each in sizes.classes] == [2] * (len(SIZE_BOUNDS) + 1)


def test_manifest_of_version_1_has_data_alone() -> None:
    sizes = SnapshotSizes()
    sizes.add_manifest(manifest((1, 0, 100, 5), has_content=False))

    assert totals(sizes, FileContent.DATA) == (1, 100, 5)


@pytest.mark.parametrize("data", [b"", b"PAR1", manifest((1, 0, 1, 1))[:-20], manifest((1, 0, 1, 1), (1, 7, 1, 1))])
def test_broken_manifest_adds_nothing(data: bytes) -> None:
    sizes = SnapshotSizes()

    with pytest.raises(ValueError):
        sizes.add_manifest(data)
    assert totals(sizes, FileContent.DATA) == (0, 0, 0)
