"""An oracle of what one caller reads through Nessie's API: it looks at every key, commit and grant in the plainest way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from naive_access import DEFAULT, NaiveAccess, Path

READ = {"namespace": "NAMESPACE_READ_PROPERTIES", "table": "TABLE_READ_PROPERTIES", "view": "VIEW_READ_PROPERTIES"}
Shown = dict[Path, bool | None]
"""By key whether the content is shown whole; None: not at all."""


@dataclass(frozen=True)
class NaiveOperation:
    """A put, or a delete, which tells neither kind nor id."""

    path: Path
    kind: str | None = None
    content_id: UUID | None = None


@dataclass
class NaiveCommit:
    """A commit, and the kinds, ids and versions of all that stood at keys after it."""

    hash: str
    operations: list[NaiveOperation]
    contents: dict[Path, tuple[str, UUID]]
    versions: dict[Path, int]


@dataclass
class NaiveNessie(NaiveAccess):
    """``commits`` of each branch, oldest first."""

    commits: dict[str, list[NaiveCommit]] = field(default_factory=lambda: {DEFAULT: []})

    @contextmanager
    def before(self, reference: str) -> Iterator[None]:
        """The branch as it was one commit ago."""
        now = self.contents[reference]
        self.contents[reference] = self.commits[reference][-2].contents
        yield
        self.contents[reference] = now

    def refusal_of_reading(self, *references: str, is_history: bool = False) -> int | None:
        if not all(map(self.reaches, references)):
            return 404
        held = (self.holds("REFERENCE_READ_HISTORY", "reference", (), reference) for reference in references)
        return 403 if is_history and not all(held) else None

    def entries(self, reference: str) -> Shown:
        shown: Shown = {}
        for path, (kind, content_id) in self.contents[reference].items():
            if self.is_shown(path, reference) if kind == "namespace" else self._lists(kind, path, content_id, reference):
                shown[path] = self._reads(kind, path, content_id, reference)
        return shown

    def read(self, reference: str, paths: Iterable[Path]) -> Shown | None:
        """The contents at some keys; None: one of them may be listed and not read."""
        listed = self.entries(reference)
        asked = {path: listed[path] for path in paths if path in listed}
        return None if None in asked.values() else asked

    def log(self, reference: str) -> list[tuple[str, bool, list[Path]]]:
        """The commits, newest first, each with whether its message is shown, and the operations that are shown with their contents."""
        return [self._logged(commit, reference) for commit in reversed(self.commits[reference])]

    def diff(self, first: str, second: str) -> list[Path]:
        here, there = self.contents[first], self.contents[second]
        numbers = self.commits[first][-1].versions, self.commits[second][-1].versions
        differing = [
            path
            for path in {*here, *there}
            if (here.get(path), numbers[0].get(path)) != (there.get(path), numbers[1].get(path))
        ]
        return sorted(
            path
            for path in differing
            if all(
                self._lists(*_at(contents, path), reference) and self._reads(*_at(contents, path), reference) is not None
                for contents, reference in ((here, first), (there, second))
                if path in contents
            )
        )

    def _logged(self, commit: NaiveCommit, reference: str) -> tuple[str, bool, list[Path]]:
        listed = [each for each in commit.operations if self._lists_operation(each, reference)]
        shown = [
            each.path
            for each in listed
            if each.kind is None or self._reads(each.kind, each.path, each.content_id, reference) is not None
        ]
        return commit.hash, len(listed) == len(commit.operations), sorted(shown)

    def _lists_operation(self, operation: NaiveOperation, reference: str) -> bool:
        kinds = READ if operation.kind is None else (operation.kind,)
        return all(self._lists(kind, operation.path, operation.content_id, reference) for kind in kinds)

    def _lists(self, kind: str, path: Path, content_id: UUID | None, reference: str) -> bool:
        return self.holds(f"{kind.upper()}_LIST", kind, path, reference, content_id=content_id)

    def _reads(self, kind: str, path: Path, content_id: UUID | None, reference: str) -> bool | None:
        """Whether a content that is listed is shown whole; a namespace is shown without its properties otherwise."""
        return self.holds(READ[kind], kind, path, reference, content_id=content_id) or (False if kind == "namespace" else None)


def _at(contents: dict[Path, tuple[str, UUID]], path: Path) -> tuple[str, Path, UUID]:
    kind, content_id = contents[path]
    return kind, path, content_id
