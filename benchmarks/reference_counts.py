"""Option 1: a table of references, and one of counts that each change of a reference raises or lowers.

With a salt, the count of a file is spread over several rows: a partition's references are counted in the row of its hash.

A row of counts also says that the file is tracked. A job's inputs need no look at it, because their references prove it: reading rows
that others change would cost option 1 more errors than it deserves.

Source: "Use PostgreSQL for the state store", option 1.
"""

from __future__ import annotations

from headwater.files.reference_statements import ReferenceStatements
from headwater.files.sql_references import NOT_MARKED

__all__ = ["CountStatements", "count_tables"]


def count_tables(schema: str) -> str:
    """The statement that makes the table of counts."""
    return (
        f'CREATE TABLE IF NOT EXISTS "{schema}".file_counts (scope bigint NOT NULL, filename text COLLATE "C" NOT NULL,'
        " salt int NOT NULL, count bigint NOT NULL, updated bigint NOT NULL, marked bigint NOT NULL,"
        " PRIMARY KEY (scope, filename, salt))"
    )


class CountStatements(ReferenceStatements):
    """The statements of option 3 with counts in place of ``tracked_files``. ``salts`` is how many rows a count is spread over.

    Counts are locked in the order of filename and salt: in any other one, commits would deadlock.
    """

    def __init__(self, schema: str, *, salts: int = 1) -> None:
        super().__init__(schema)
        refs, counts = f'"{schema}".file_references', f'"{schema}".file_counts'
        salt = f"mod(hashtext(part) & 2147483647, {salts})"
        mine = f"FROM {counts} AS c WHERE c.scope = %(scope)b AND c.filename"
        tracked = f'CROSS JOIN LATERAL (SELECT FROM "{schema}".tracked_files AS f WHERE f.scope = %(scope)b'
        known = (
            f"WHERE CASE WHEN EXISTS (SELECT FROM {refs} AS r WHERE r.scope = %(scope)b AND r.filename = w.name"
            f" AND r.part = ANY (%(parts)b::text[])) THEN true ELSE EXISTS (SELECT {mine} = w.name) END"
        )
        self.load = self.load.replace(f"{tracked} AND f.filename = w.name OFFSET 0) AS f", known)
        if known not in self.load:
            raise ValueError("the statement that loads rows is not the one that option 1 was made for")
        places, _ = self.steps["removed"]
        self.steps["removed"] = (
            places,
            f"gone AS (DELETE FROM {refs} AS o USING removed_places AS d WHERE o.ctid = d.ctid AND o.job IS NOT DISTINCT FROM d.job"
            " RETURNING o.filename, o.part)",
            f"fewer AS (SELECT filename, {salt} AS salt, count(*) AS n FROM gone GROUP BY 1, 2)",
            f"locked AS MATERIALIZED (SELECT c.filename, c.salt, n.n FROM fewer AS n JOIN {counts} AS c ON c.scope = %(scope)b"
            " AND c.filename = n.filename AND c.salt = n.salt ORDER BY c.filename, c.salt FOR UPDATE OF c)",
            f"lowered AS (UPDATE {counts} AS c SET count = c.count - l.n, updated = door.now FROM locked AS l CROSS JOIN door"
            " WHERE c.scope = %(scope)b AND c.filename = l.filename AND c.salt = l.salt RETURNING 1)",
            "removed AS MATERIALIZED (SELECT 1 FROM gone WHERE (SELECT count(*) FROM lowered) >= 0)",
        )
        # A statement changes a row once, so a new file's counts are written when it is tracked, and other files' when it is placed.
        new = "filename = ANY (%(tracked_files)b::text[])"
        placed = "FROM unnest(%(placed_files)b::text[], %(placed_parts)b::text[]) AS w (filename, part)"
        self.steps["tracked"] = (
            f"fresh AS (INSERT INTO {counts} (scope, filename, salt, count, updated, marked)"
            f" SELECT %(scope)b, filename, salt, sum(n), min(now), {NOT_MARKED} FROM"
            " (SELECT filename, 0 AS salt, 0 AS n FROM unnest(%(tracked_files)b::text[]) AS w (filename)"
            f" UNION ALL SELECT filename, {salt}, 1 {placed} WHERE {new}) AS n CROSS JOIN door"
            f" WHERE {{before}} AND NOT EXISTS (SELECT {mine} = n.filename) GROUP BY filename, salt ORDER BY filename, salt"
            " ON CONFLICT DO NOTHING RETURNING filename, salt)",
            "tracked AS MATERIALIZED (SELECT 1 FROM fresh WHERE salt = 0)",
        )
        [insertion] = self.steps["placed"]
        self.steps["placed"] = (
            insertion.replace("placed AS", "put AS", 1).replace("RETURNING 1)", "RETURNING filename, part)"),
            f"more AS (INSERT INTO {counts} AS c (scope, filename, salt, count, updated, marked)"
            f" SELECT %(scope)b, filename, {salt}, count(*), min(door.now), {NOT_MARKED} FROM put CROSS JOIN door WHERE NOT {new}"
            " GROUP BY 2, 3 ORDER BY 2, 3 ON CONFLICT (scope, filename, salt)"
            " DO UPDATE SET count = c.count + excluded.count, updated = excluded.updated RETURNING 1)",
            "placed AS MATERIALIZED (SELECT 1 FROM put WHERE (SELECT count(*) FROM more) >= 0)",
        )
        free = f"NOT EXISTS (SELECT {mine} = f.filename AND c.count > 0)"
        self.steps["forgotten"] = (
            "forgotten_places AS MATERIALIZED (SELECT f.filename FROM unnest(%(forgotten_files)b::text[]) AS f (filename)"
            f" WHERE EXISTS (SELECT {mine} = f.filename) AND {free} AND {{before}})",
            f"dropped AS (DELETE FROM {counts} AS c USING forgotten_places AS d WHERE c.scope = %(scope)b AND c.filename = d.filename"
            " RETURNING c.filename)",
            "forgotten AS MATERIALIZED (SELECT DISTINCT filename FROM dropped)",
        )
        files = f"SELECT filename, min(marked) AS marked FROM {counts} AS f WHERE scope = %(scope)b"
        self.files = f"SELECT filename, marked, {free} FROM ({files} GROUP BY filename) AS f WHERE true"
        self.collectable_files = (
            f"SELECT filename FROM ({files} AND marked < %(before)b AND marked < {NOT_MARKED} AND {free} GROUP BY filename) AS f"
            " ORDER BY filename"
        )
        self.any_file = f"SELECT 1 FROM {counts} WHERE scope = %b LIMIT 1"
        self.mark = (
            f"WITH looked AS MATERIALIZED ({files} AND filename > %(after)b AND marked = {NOT_MARKED}"
            " GROUP BY filename ORDER BY filename LIMIT %(limit)b),"
            f" free AS MATERIALIZED (SELECT f.filename FROM looked AS f WHERE {free}),"
            f" marks AS (UPDATE {counts} AS c SET marked = %(now)b FROM free AS d WHERE c.scope = %(scope)b"
            " AND c.filename = d.filename RETURNING c.filename) SELECT (SELECT count(DISTINCT filename) FROM marks),"
            " (SELECT count(*) FROM looked), (SELECT max(filename) FROM looked)"
        )
        some = f"DELETE FROM {counts} WHERE ctid = ANY (ARRAY (SELECT ctid FROM {counts} WHERE scope = %b LIMIT %b))"
        self.clear = (*self.clear, some)
        self.delete_some = (*self.delete_some, some)
