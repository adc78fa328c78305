"""The references and the partition tree of a file table as a file, for people and their tools: no store reads it back.

JSON lines: the first line is the table with its tree, each other line one reference. Parquet: a row for each reference, the table with its
tree as JSON in the metadata ``headwater.file-table``. The references are those of one moment; the tree is read after them, so it has every
partition that they name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headwater.durability import replacing
from headwater.files import FileReference, FileTable, PartitionTree, RowKeyRange

_TABLE = "headwater.file-table"


def export_file_table(table: FileTable, file: Path) -> int:
    """Write the file. Returns the number of references; raises TreeBehindError as reads do."""
    table.plan_read()  # refuses where the tree is older than the references
    snapshot = table.references.snapshot()
    tree = table.read_tree()
    about = _about(table, tree, snapshot.tree_number)
    rows = [_row(table, tree, reference) for reference in snapshot.references]
    with replacing(file) as part:
        if file.suffix == ".parquet":
            _write_parquet(part, about, rows)
        else:
            lines = (json.dumps(line, ensure_ascii=False) for line in (about, *rows))
            part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(rows)


def _about(table: FileTable, tree: PartitionTree, references_number: int) -> dict[str, Any]:
    definition = table.definition
    return {
        "realm": table.rows.realm,
        "table": definition.name,
        "id": definition.id,
        "location": definition.location,
        "columns": [{"name": column.name, "type": column.type, "nullable": column.nullable} for column in definition.columns],
        "keyColumn": definition.key_column,
        "sortColumns": list(definition.sort_columns),
        "treeNumber": tree.number,
        "referencesTreeNumber": references_number,
        "splits": {partition: _key(table, point) for partition, point in sorted(tree.splits.items())},
    }


def _row(table: FileTable, tree: PartitionTree, reference: FileReference) -> dict[str, Any]:
    keys = tree.range_of(reference.partition) if tree.has_partition(reference.partition) else RowKeyRange()
    return {
        "file": reference.filename,
        "partition": reference.partition,
        "low": None if keys.low is None else _key(table, keys.low),
        "high": None if keys.high is None else _key(table, keys.high),
        "rows": reference.rows,
        "estimate": reference.is_estimate,
        "wholeFile": reference.is_whole_file,
        "job": reference.job,
        "updated": reference.updated,
    }


def _key(table: FileTable, key: bytes) -> str:
    """A key as people write it, binary ones in hex."""
    decoded = table.definition.key_type.decode_key(key)
    return decoded.hex() if isinstance(decoded, bytes) else str(decoded)


def _write_parquet(part: Path, about: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    text, number, flag = pa.string(), pa.int64(), pa.bool_()
    types = {"rows": number, "updated": number, "estimate": flag, "wholeFile": flag}
    names = ("file", "partition", "low", "high", "rows", "estimate", "wholeFile", "job", "updated")
    schema = pa.schema([(name, types.get(name, text)) for name in names], metadata={_TABLE: json.dumps(about)})
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), part, compression="zstd")
