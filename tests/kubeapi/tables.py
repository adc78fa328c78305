"""Tables, as kubectl shows them, and objects cut down to their metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubeapi.columns import default_columns
from kubeapi.kinds import Kind

__all__ = ["as_metadata", "as_table"]

Body = Mapping[str, Any]


def as_table(
    kind: Kind, bodies: Iterable[Body], metadata: Body, *, now: float, included: str = "Metadata", headed: bool = True
) -> dict[str, Any]:
    """``included`` says what of each object goes along: ``Metadata``, ``Object`` or ``None``."""
    columns = kind.columns or default_columns()
    rows = []
    for body in bodies:
        row: dict[str, Any] = {"cells": [column.read(body, now) for column in columns]}
        if included != "None":
            row["object"] = body if included == "Object" else as_metadata(body)
        rows.append(row)
    table: dict[str, Any] = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": dict(metadata)}
    return table | {"columnDefinitions": [column.definition for column in columns] if headed else None, "rows": rows}


def as_metadata(body: Body) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": body["metadata"]}
