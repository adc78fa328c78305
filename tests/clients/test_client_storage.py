"""Files that a client reads on its walk through a table's metadata."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyiceberg.io import FileIO, load_file_io

from headwater.clients.pyiceberg.metadata_files import ClientStorage
from headwater.iceberg import FileInfo


def test_walk_opens_a_file_system_once(tmp_path: Path) -> None:
    opened: list[str] = []

    def open_io(location: str) -> FileIO:
        opened.append(location)
        return load_file_io({}, location)

    files = [tmp_path / f"{number}.avro" for number in range(20)]
    for file in files:
        file.write_text(file.name)
    storage = ClientStorage(open_io)
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda file: storage.read_file(FileInfo(file.as_uri(), 0)), files))

    assert texts == [file.name.encode() for file in files]
    assert len(opened) == 1
