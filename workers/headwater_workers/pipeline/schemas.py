"""The columns of the data frames of an import. What outcomes and tables hold travels packed, by the functions of core."""

from __future__ import annotations

__all__ = ["FILES", "FOLDERS", "LOCATIONS", "OUTCOMES", "PARTS", "TABLES", "TRAITS"]

LOCATIONS = "location string"
"""Where to look."""

FOLDERS = "location string, folder string"
"""One row per folder that can be listed on its own: no table reaches over two of them."""

PARTS = "part binary"
"""One file of an inventory (``iceberg.inventory.Part``)."""

FILES = "location string, folder string, file binary"
"""One file that an inventory lists (``iceberg.File``) and the folder of a location that it belongs to."""

TABLES = "directory string, tbl binary"
"""What lies in a table directory (``iceberg.TableFiles``); unique by ``directory``."""

OUTCOMES = "directory string, key array<string>, uuid string, traits array<struct<name string, alone boolean>>, outcome binary"
"""One outcome per table directory, with its document. What is quarantined has no ``key``, ``uuid`` and ``traits``; ``uuid`` may be null.
``traits`` are what ``iceberg.judging.traits_of`` says."""

TRAITS = "directory string, key array<string>, uuid string, name string, alone boolean"
"""One trait of a table that was found."""
