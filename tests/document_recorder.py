"""A plugin of pytest that keeps each distinct document that a run writes to a lake or stores: ``-p document_recorder``.

Documents go into the folder that HEADWATER_RECORDED_DOCUMENTS names, each under its digest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.catalogs import content_operations
from headwater.catalogs.history import catalog_merge
from headwater.iceberg.metadata_json import MetadataParts, join_metadata
from headwater.iceberg_catalog.lake_files import LakeFiles

FOLDER_VARIABLE = "HEADWATER_RECORDED_DOCUMENTS"


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(os.environ[FOLDER_VARIABLE])
    folder.mkdir(exist_ok=True)
    write_file, store_metadata = LakeFiles.write_file, content_operations.store_metadata

    def write_and_keep(files: LakeFiles, location: str, text: bytes) -> None:
        keep_document(folder, text)
        write_file(files, location, text)

    def store_and_keep(adder: Any, parts: MetadataParts, **options: Any) -> Any:
        keep_document(folder, join_metadata(parts))
        return store_metadata(adder, parts, **options)

    _replace(LakeFiles, "write_file", write_and_keep)
    for module in (content_operations, catalog_merge):
        _replace(module, "store_metadata", store_and_keep)


def _replace(holder: Any, name: str, function: Callable[..., Any]) -> None:
    assert callable(getattr(holder, name))
    setattr(holder, name, function)


def keep_document(folder: Path, text: bytes) -> None:
    path = folder / f"{hashlib.sha256(text).hexdigest()}.json"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(text)
        part.rename(path)
