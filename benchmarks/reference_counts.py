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
        removed = self.remove.replace("DELETE FROM", "gone AS (DELETE FROM", 1)
        self.remove = (
            f"{removed.replace(') gone AS', '), gone AS', 1)} RETURNING o.filename, o.part),"
            f" n AS (SELECT filename, {salt} AS salt, count(*) AS n FROM gone GROUP BY 1, 2),"
            f" l AS MATERIALIZED (SELECT c.filename, c.salt, n.n FROM n JOIN {counts} AS c ON c.scope = %(scope)b"
            " AND c.filename = n.filename AND c.salt = n.salt ORDER BY c.filename, c.salt FOR UPDATE OF c),"
            f" u AS (UPDATE {counts} AS c SET count = c.count - l.n, updated = %(now)b FROM l"
            " WHERE c.scope = %(scope)b AND c.filename = l.filename AND c.salt = l.salt) SELECT 1 FROM gone"
        )
        self.track = (
            f"INSERT INTO {counts} (scope, filename, salt, count, updated, marked)"
            f" SELECT %(scope)b, filename, 0, 0, %(now)b, {NOT_MARKED} FROM unnest(%(filenames)b::text[]) AS w (filename)"
            " ON CONFLICT DO NOTHING"
        )
        self.refer = (
            f"WITH new AS ({self.refer} RETURNING filename, part),"
            f" u AS (INSERT INTO {counts} AS c (scope, filename, salt, count, updated, marked)"
            f" SELECT %(scope)b, filename, {salt}, count(*), %(now)b, {NOT_MARKED} FROM new GROUP BY 2, 3 ORDER BY 2, 3"
            " ON CONFLICT (scope, filename, salt) DO UPDATE SET count = c.count + excluded.count, updated = excluded.updated)"
            " SELECT 1 FROM new"
        )
        free = f"NOT EXISTS (SELECT {mine} = f.filename AND c.count > 0)"
        self.forget = (
            "WITH d AS MATERIALIZED (SELECT f.filename FROM unnest(%(filenames)b::text[]) AS f (filename)"
            f" WHERE EXISTS (SELECT {mine} = f.filename) AND {free}),"
            f" gone AS (DELETE FROM {counts} AS c USING d WHERE c.scope = %(scope)b AND c.filename = d.filename"
            " RETURNING c.filename) SELECT DISTINCT filename FROM gone"
        )
        files = f"SELECT filename, min(marked) AS marked FROM {counts} AS f WHERE scope = %(scope)b"
        self.unreferenced = f"SELECT * FROM ({files} AND {free} GROUP BY filename) AS f WHERE true"
        self.collectable_files = (
            f"SELECT filename FROM ({files} AND marked < %(before)b AND marked < {NOT_MARKED} AND {free} GROUP BY filename) AS f"
            " ORDER BY filename"
        )
        self.any_file = f"SELECT 1 FROM {counts} WHERE scope = %b LIMIT 1"
        self.mark = (
            f"WITH d AS MATERIALIZED ({files} AND filename > %(after)b AND marked = {NOT_MARKED} AND {free}"
            " GROUP BY filename ORDER BY filename LIMIT %(batch)b),"
            f" u AS (UPDATE {counts} AS c SET marked = %(now)b FROM d WHERE c.scope = %(scope)b AND c.filename = d.filename"
            " RETURNING c.filename) SELECT (SELECT count(DISTINCT filename) FROM u), (SELECT count(*) FROM d),"
            " (SELECT max(filename) FROM d)"
        )
        some = f"DELETE FROM {counts} WHERE ctid = ANY (ARRAY (SELECT ctid FROM {counts} WHERE scope = %b LIMIT %b))"
        self.clear = (*self.clear, some)
        self.delete_some = (*self.delete_some, some)
