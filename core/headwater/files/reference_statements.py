"""The SQL of file references in PostgreSQL. Values stand as %b, which the driver sends in binary form, many of them as arrays.

As in the tables of rows, no statement that writes leaves the planner a choice: each looks its keys up one after another in the index
(LATERAL with OFFSET 0 is not flattened), in the order of the keys, so that all transactions lock rows in the same order.
"""

from __future__ import annotations

from headwater.files.sql_references import NOT_MARKED

SCHEMA_VERSION = 1
DOORS = 16
"""Rows of a scope that writers lock, each one of them; see ``postgresql_references``."""
SERVER_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
WHOLE_TABLES = (
    "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on;"
    " SET LOCAL plan_cache_mode = force_custom_plan"
)
"""For statements that compare whole tables. All others find their rows by the key, whatever the planner believes of the tables' size."""
_REFERENCE = "filename, part, row_count, flags, job, updated"


class ReferenceStatements:
    """The statements for the tables of a schema. Those that write return one row for each that they changed."""

    def __init__(self, schema: str) -> None:
        scopes, doors = f'"{schema}".file_scopes', f'"{schema}".file_doors'
        files, refs, outcomes = f'"{schema}".tracked_files', f'"{schema}".file_references', f'"{schema}".file_outcomes'
        free = f"NOT EXISTS (SELECT FROM {refs} AS r WHERE r.scope = f.scope AND r.filename = f.filename)"
        self.steps = dict(_STEPS)
        self._names = {"scopes": scopes, "doors": doors, "files": files, "refs": refs, "outcomes": outcomes, "free": free}
        self._writes: dict[tuple[str, ...], str] = {}
        self.enter = f"SELECT {SERVER_NOW} FROM {doors} WHERE scope = %b AND slot = %b FOR KEY SHARE"
        self.lock_doors = f"SELECT slot FROM {doors} WHERE scope = %b ORDER BY slot FOR UPDATE"
        self.remove_doors = f"DELETE FROM {doors} WHERE scope = %b"
        self.close = f"UPDATE {scopes} SET closed = true WHERE scope = %b AND NOT closed"
        self.is_closed = f"SELECT closed FROM {scopes} WHERE scope = %b"
        self.delete_scope = f"DELETE FROM {scopes} WHERE scope = %b AND closed"
        self.load = (
            "SELECT 1 AS what, w.name, NULL::text AS part, NULL::text AS text, NULL::bigint AS count, NULL::text[] AS outcome"
            f" FROM unnest(%(files)b::text[]) AS w (name) CROSS JOIN LATERAL (SELECT FROM {files} AS f WHERE f.scope = %(scope)b"
            " AND f.filename = w.name OFFSET 0) AS f"
            " UNION ALL SELECT 2, w.name, w.part, r.job, NULL, NULL FROM unnest(%(filenames)b::text[], %(parts)b::text[])"
            f" AS w (name, part) CROSS JOIN LATERAL (SELECT r.job FROM {refs} AS r WHERE r.scope = %(scope)b AND r.filename = w.name"
            " AND r.part = w.part OFFSET 0) AS r"
            " UNION ALL SELECT 3, w.name, NULL, NULL, c.count, NULL FROM unnest(%(counted)b::text[]) AS w (name)"
            f" CROSS JOIN LATERAL (SELECT count(*) FROM {refs} AS r WHERE r.scope = %(scope)b AND r.filename = w.name OFFSET 0) AS c"
            " UNION ALL SELECT 4, w.name, NULL, NULL, o.time, ARRAY[o.kind, o.state, o.digest, o.reason, o.error]"
            f" FROM unnest(%(requests)b::text[]) AS w (name) CROSS JOIN LATERAL (SELECT o.* FROM {outcomes} AS o"
            " WHERE o.scope = %(scope)b AND o.request = w.name OFFSET 0) AS o"
        )
        self.tree_number = f"SELECT tree_number FROM {scopes} WHERE scope = %(scope)b"
        self.select = f"SELECT {_REFERENCE} FROM {refs}"
        self.files = f"SELECT filename, marked, {free} FROM {files} AS f WHERE scope = %(scope)b"
        self.collectable_files = (
            f"SELECT filename FROM {files} AS f WHERE scope = %(scope)b AND marked < %(before)b AND marked < {NOT_MARKED} AND {free}"
            " ORDER BY filename"
        )
        self.forget_outcomes = (
            f"DELETE FROM {outcomes} WHERE ctid = ANY (ARRAY (SELECT ctid FROM {outcomes} WHERE scope = %(scope)b"
            " AND time < %(before)b LIMIT %(limit)b))"
        )
        self.untracked_files = (
            f"SELECT DISTINCT filename FROM {refs} AS r WHERE scope = %(scope)b AND NOT EXISTS (SELECT FROM {files} AS f"
            " WHERE f.scope = r.scope AND f.filename = r.filename) ORDER BY filename LIMIT %(limit)b"
        )
        self.marked_files = (
            f"SELECT filename FROM {files} AS f WHERE scope = %(scope)b AND marked < {NOT_MARKED} AND NOT {free}"
            " ORDER BY filename LIMIT %(limit)b"
        )
        self.any_file = f"SELECT 1 FROM {files} WHERE scope = %b LIMIT 1"
        self.mark = (
            f"WITH looked AS MATERIALIZED (SELECT f.scope, f.filename, f.ctid FROM {files} AS f WHERE f.scope = %(scope)b"
            f" AND f.filename > %(after)b AND f.marked = {NOT_MARKED} ORDER BY f.filename LIMIT %(limit)b),"
            f" free AS MATERIALIZED (SELECT f.ctid FROM looked AS f WHERE {free}),"
            f" marks AS (UPDATE {files} AS o SET marked = %(now)b FROM free WHERE o.ctid = free.ctid AND o.marked = {NOT_MARKED}"
            " RETURNING 1)"
            " SELECT (SELECT count(*) FROM marks), (SELECT count(*) FROM looked), (SELECT max(filename) FROM looked)"
        )
        self.clear = tuple(
            f"DELETE FROM {table} WHERE ctid = ANY (ARRAY (SELECT ctid FROM {table} WHERE scope = %b LIMIT %b))"
            for table in (refs, files)
        )
        self.delete_some = (
            *self.clear,
            f"DELETE FROM {outcomes} WHERE ctid = ANY (ARRAY (SELECT ctid FROM {outcomes} WHERE scope = %b LIMIT %b))",
        )

    def write(self, steps: tuple[str, ...]) -> str:
        """One statement that enters by a door, runs these steps, and returns the time: NULL where there is no door.

        It fails by a division by zero unless each step changes as many rows as the value ``STEP_rows`` says: only an error undoes what
        a statement has done so far. A step begins when the one before it is complete, so all transactions lock in one order.
        """
        if steps not in self._writes:
            parts = [
                f"door AS MATERIALIZED (SELECT coalesce(%(now)b::bigint, {SERVER_NOW}) AS now FROM {self._names['doors']}"
                " WHERE scope = %(scope)b AND slot = %(slot)b FOR KEY SHARE)"
            ]
            before, is_sound = "EXISTS (SELECT FROM door)", "true"
            for step in steps:
                parts += [part.format(before=before, **self._names) for part in self.steps[step]]
                before = is_sound = f"(SELECT count(*) FROM {step}) = %({step}_rows)b"
            check = f"CASE WHEN EXISTS (SELECT FROM door) THEN 1 / ({is_sound})::int END"
            self._writes[steps] = f"WITH {', '.join(parts)} SELECT (SELECT now FROM door), {check}"
        return self._writes[steps]


_STEPS = {
    "removed": (
        "removed_places AS MATERIALIZED (SELECT o.ctid, w.job FROM unnest(%(removed_files)b::text[], %(removed_parts)b::text[],"
        " %(removed_jobs)b::text[]) AS w (filename, part, job) CROSS JOIN LATERAL (SELECT o.ctid FROM {refs} AS o"
        " WHERE o.scope = %(scope)b AND o.filename = w.filename AND o.part = w.part OFFSET 0) AS o WHERE {before})",
        "removed AS (DELETE FROM {refs} AS o USING removed_places AS d WHERE o.ctid = d.ctid AND o.job IS NOT DISTINCT FROM d.job"
        " RETURNING 1)",
    ),
    "assigned": (
        "assigned_places AS MATERIALIZED (SELECT o.ctid, w.job FROM unnest(%(assigned_files)b::text[], %(assigned_parts)b::text[],"
        " %(assigned_jobs)b::text[]) AS w (filename, part, job) CROSS JOIN LATERAL (SELECT o.ctid FROM {refs} AS o"
        " WHERE o.scope = %(scope)b AND o.filename = w.filename AND o.part = w.part OFFSET 0) AS o WHERE {before})",
        "assigned AS (UPDATE {refs} AS o SET job = d.job, updated = door.now FROM assigned_places AS d CROSS JOIN door"
        " WHERE o.ctid = d.ctid AND o.job IS NULL RETURNING 1)",
    ),
    "forgotten": (
        "forgotten_places AS MATERIALIZED (SELECT f.ctid FROM unnest(%(forgotten_files)b::text[]) AS w (filename) CROSS JOIN LATERAL"
        " (SELECT f.ctid FROM {files} AS f WHERE f.scope = %(scope)b AND f.filename = w.filename AND {free} OFFSET 0) AS f"
        " WHERE {before})",
        "forgotten AS (DELETE FROM {files} AS o USING forgotten_places AS d WHERE o.ctid = d.ctid RETURNING 1)",
    ),
    "tracked": (
        f"tracked AS (INSERT INTO {{files}} (scope, filename, marked) SELECT %(scope)b, filename, {NOT_MARKED}"
        " FROM unnest(%(tracked_files)b::text[]) AS w (filename) WHERE {before} ON CONFLICT DO NOTHING RETURNING 1)",
    ),
    "placed": (
        "placed AS (INSERT INTO {refs} (scope, filename, part, row_count, flags, job, updated)"
        " SELECT %(scope)b, filename, part, row_count, flags, job, door.now FROM unnest(%(placed_files)b::text[],"
        " %(placed_parts)b::text[], %(placed_counts)b::bigint[], %(placed_flags)b::int[], %(placed_jobs)b::text[])"
        " AS w (filename, part, row_count, flags, job) CROSS JOIN door WHERE {before} ON CONFLICT DO NOTHING RETURNING 1)",
    ),
    "told": (
        "told AS (INSERT INTO {outcomes} (scope, request, kind, state, digest, reason, error, time)"
        " SELECT %(scope)b, request, kind, state, digest, reason, error, door.now FROM unnest(%(told_requests)b::text[],"
        " %(told_kinds)b::text[], %(told_states)b::text[], %(told_digests)b::text[], %(told_reasons)b::text[],"
        " %(told_errors)b::text[]) AS w (request, kind, state, digest, reason, error) CROSS JOIN door WHERE {before}"
        " ON CONFLICT DO NOTHING RETURNING 1)",
    ),
    "raised": (
        "raised_scope AS (UPDATE {scopes} SET tree_number = %(tree_number)b WHERE scope = %(scope)b"
        " AND tree_number < %(tree_number)b AND {before} RETURNING 1)",
        "raised AS (SELECT 1 WHERE {before} AND (SELECT count(*) FROM raised_scope) >= 0)",
    ),
}
"""What a transaction may do, by the names that ``write`` takes: parts of a WITH clause, of which the last returns a row for each that was
changed. Each finds its rows in the order of their keys."""


def set_up_tables(schema: str) -> tuple[str, ...]:
    """The statements that make the tables. Names sort by their bytes (COLLATE "C"), as Python sorts them."""
    name = f'"{schema}"'
    return (
        f"CREATE TABLE {name}.file_scopes (scope bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, realm bigint NOT NULL,"
        ' table_id text COLLATE "C" NOT NULL, tree_number bigint NOT NULL, closed boolean NOT NULL, created bigint NOT NULL,'
        " UNIQUE (realm, table_id))",
        f"CREATE TABLE {name}.file_doors (scope bigint NOT NULL, slot bigint NOT NULL, PRIMARY KEY (scope, slot))",
        f'CREATE TABLE {name}.tracked_files (scope bigint NOT NULL, marked bigint NOT NULL, filename text COLLATE "C" NOT NULL,'
        " PRIMARY KEY (scope, filename))",
        f"CREATE INDEX tracked_files_marked ON {name}.tracked_files (scope, marked) WHERE marked < {NOT_MARKED}",
        f"CREATE TABLE {name}.file_references (scope bigint NOT NULL, row_count bigint NOT NULL, updated bigint NOT NULL,"
        ' flags int NOT NULL, filename text COLLATE "C" NOT NULL, part text COLLATE "C" NOT NULL, job text COLLATE "C",'
        " PRIMARY KEY (scope, filename, part))",
        f'CREATE TABLE {name}.file_outcomes (scope bigint NOT NULL, time bigint NOT NULL, request text COLLATE "C" NOT NULL,'
        " kind text NOT NULL, state text NOT NULL, digest text NOT NULL, reason text NOT NULL, error text NOT NULL,"
        " PRIMARY KEY (scope, request))",
        f"CREATE INDEX file_outcomes_time ON {name}.file_outcomes (scope, time)",
        f"CREATE TABLE {name}.file_tables_version (number int NOT NULL)",
        f"INSERT INTO {name}.file_tables_version VALUES ({SCHEMA_VERSION})",
    )
