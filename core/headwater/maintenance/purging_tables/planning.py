"""The plan of a purge, in a temporary file: a table has more files than fit into memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from headwater.catalogs.iceberg import Folder, Reached, comparable, is_within
from headwater.errors import RefusedError

__all__ = ["Plan"]

_SCHEMA = """
create table planned (place text primary key, named text, turn integer, path text, folder integer) without rowid;
create table outside (place text primary key) without rowid;
create index turns on planned (turn) where path is not null;
"""
_PLAN = """
insert into planned (place, named, turn) values (?, ?, ?)
on conflict (place) do update set turn = max(turn, excluded.turn)
"""


class Plan:
    """Files that the metadata reaches, within the table's own folders; of each whether it is there, and what its file system calls it.

    others        files in the folders that no metadata reaches
    """

    def __init__(self, folders: Sequence[Folder]) -> None:
        self._folders = folders
        self._rows = sqlite3.connect("", isolation_level=None)  # a file of its own, gone when it is closed
        self._rows.executescript(_SCHEMA)
        self.others = 0

    def close(self) -> None:
        self._rows.close()

    def add(self, reached: Iterable[Reached]) -> None:
        self._rows.execute("begin")
        for location, turn in reached:
            if any(is_within(location, folder.location) for folder in self._folders):
                self._rows.execute(_PLAN, (comparable(location), location, turn))
            else:
                self._rows.execute("insert or ignore into outside values (?)", (_told(location),))
        self._rows.execute("commit")

    def look(self) -> None:
        """See which of the files are there."""
        self.others = 0
        self._rows.execute("begin")
        self._rows.execute("update planned set path = null")
        for number, folder in enumerate(self._folders):
            for location, path in folder.files():
                found = self._rows.execute(
                    "update planned set path = ?, folder = ? where place = ?", (path, number, comparable(location))
                )
                self.others += not found.rowcount
        self._rows.execute("commit")

    @property
    def planned(self) -> int:
        return self._number("select count(*) from planned")

    @property
    def outside(self) -> int:
        return self._number("select count(*) from outside")

    @property
    def there(self) -> int:
        return self._number("select count(*) from planned where path is not null")

    def examples(self, limit: int = 5) -> list[str]:
        """Some of the files that are there."""
        found = self._rows.execute("select named from planned where path is not null order by place limit ?", (limit,))
        return [named for (named,) in found]

    def not_listed(self) -> Iterator[str]:
        """The files that no listing told."""
        for (named,) in self._rows.execute("select named from planned where path is null order by place"):
            yield named

    def batches(self, size: int) -> Iterator[tuple[int, Folder, list[str]]]:
        """The files that are there, turn by turn: the turn, the folder, and paths in it."""
        turns = self._rows.execute(
            "select distinct turn, folder from planned where path is not null order by turn, folder"
        ).fetchall()
        for turn, folder in turns:
            after = ""
            while rows := self._rows.execute(
                "select place, path from planned where turn = ? and folder = ? and path is not null and place > ? order by place limit ?",
                (turn, folder, after, size),
            ).fetchall():
                after = rows[-1][0]
                yield turn, self._folders[folder], [path for _, path in rows]

    def _number(self, query: str) -> int:
        (number,) = self._rows.execute(query).fetchone()
        return int(number)


def _told(location: str) -> str:
    try:
        return comparable(location)
    except RefusedError:
        return location
