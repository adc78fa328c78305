"""Option 2: one table of references, in which a dummy reference of each file says that the file is tracked.

The dummy's partition is ``DUMMY``, which no tree has, and its time of update is the mark. Whoever reads references leaves dummies out.

Source: "Use PostgreSQL for the state store", option 2.
"""

from __future__ import annotations

from headwater.files.reference_statements import ReferenceStatements
from headwater.files.sql_references import NOT_MARKED

__all__ = ["DummyStatements"]

DUMMY = "'DUMMY'"


class DummyStatements(ReferenceStatements):
    """The statements of option 3 with a row of the references in place of one of ``tracked_files``."""

    def __init__(self, schema: str) -> None:
        super().__init__(schema)
        refs = f'"{schema}".file_references'
        free = f"NOT EXISTS (SELECT FROM {refs} AS r WHERE r.scope = f.scope AND r.filename = f.filename AND r.part <> {DUMMY})"
        is_dummy = f"f.scope = %(scope)b AND f.part = {DUMMY}"
        one = f"SELECT f.ctid FROM {refs} AS f WHERE {is_dummy} AND f.filename = w.filename"
        self.load = self.load.replace(
            f'"{schema}".tracked_files AS f WHERE f.scope = %(scope)b', f"{refs} AS f WHERE {is_dummy}"
        ).replace(
            f"SELECT count(*) FROM {refs} AS r WHERE r.scope = %(scope)b",
            f"SELECT count(*) FROM {refs} AS r WHERE r.scope = %(scope)b AND r.part <> {DUMMY}",
        )
        self.steps["forgotten"] = (
            "forgotten_places AS MATERIALIZED (SELECT f.ctid FROM unnest(%(forgotten_files)b::text[]) AS w (filename)"
            f" CROSS JOIN LATERAL ({one} AND {free} OFFSET 0) AS f WHERE {{before}})",
            f"forgotten AS (DELETE FROM {refs} AS o USING forgotten_places AS d WHERE o.ctid = d.ctid RETURNING 1)",
        )
        self.steps["tracked"] = (
            f"tracked AS (INSERT INTO {refs} (scope, filename, part, row_count, flags, job, updated)"
            f" SELECT %(scope)b, filename, {DUMMY}, 0, 0, NULL, {NOT_MARKED} FROM unnest(%(tracked_files)b::text[]) AS w (filename)"
            " WHERE {before} ON CONFLICT DO NOTHING RETURNING 1)",
        )
        self.select = f"{self.select.partition(' FROM ')[0]} FROM (SELECT * FROM {refs} WHERE part <> {DUMMY}) AS r"
        self.files = f"SELECT filename, updated AS marked, {free} FROM {refs} AS f WHERE {is_dummy}"
        self.collectable_files = (
            f"SELECT filename FROM {refs} AS f WHERE {is_dummy} AND updated < %(before)b AND updated < {NOT_MARKED} AND {free}"
            " ORDER BY filename"
        )
        self.any_file = f"SELECT 1 FROM {refs} WHERE scope = %b LIMIT 1"
        self.mark = (
            f"WITH looked AS MATERIALIZED (SELECT f.scope, f.filename, f.ctid FROM {refs} AS f WHERE {is_dummy}"
            f" AND f.filename > %(after)b AND f.updated = {NOT_MARKED} ORDER BY f.filename LIMIT %(limit)b),"
            f" free AS MATERIALIZED (SELECT f.ctid FROM looked AS f WHERE {free}),"
            f" marks AS (UPDATE {refs} AS o SET updated = %(now)b FROM free WHERE o.ctid = free.ctid AND o.updated = {NOT_MARKED}"
            " RETURNING 1)"
            " SELECT (SELECT count(*) FROM marks), (SELECT count(*) FROM looked), (SELECT max(filename) FROM looked)"
        )
