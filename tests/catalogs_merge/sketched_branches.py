"""A catalog in few words: ``s/`` is a namespace, ``s.a`` a table, ``s.a=2`` its second version."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from headwater.catalogs import (
    CONTENT,
    IDS,
    Catalog,
    Content,
    ContentKey,
    ContentOperation,
    ContentType,
    ContentValue,
    Delete,
    IcebergTable,
    KeyMerge,
    MergeConflictError,
    MergeMode,
    MergeOptions,
    MergeResult,
    Namespace,
    Put,
)
from headwater.catalogs.content import with_id
from headwater.store import ObjectId

__all__ = ["Branching", "conflicted_or_done", "key", "table"]


def key(text: str) -> ContentKey:
    return ContentKey.parse(text)


def table(version: str = "1") -> IcebergTable:
    return IcebergTable(metadata_location=f"s3://lake/v{version}.json")


def conflicted_or_done(act: Callable[[], MergeResult]) -> MergeResult:
    """What a merge did, or what it would have done but for the conflicts."""
    try:
        return act()
    except MergeConflictError as refused:
        return refused.result


class Branching:
    """A catalog whose branches are changed and told in words."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def put(self, branch: str, *words: str) -> ObjectId:
        """Create, or change what is there."""
        return self.commit(branch, [self._put(branch, word) for word in words], " ".join(words))

    def delete(self, branch: str, *texts: str) -> ObjectId:
        return self.commit(branch, [Delete(key(text)) for text in texts], f"delete {' '.join(texts)}")

    def rename(self, branch: str, old: str, new: str) -> ObjectId:
        content = self.catalog.get_content(branch, key(old))
        assert content is not None
        return self.commit(branch, [Delete(key(old)), Put(key(new), content)], f"rename {old}")

    def commit(self, branch: str, operations: list[ContentOperation], message: str) -> ObjectId:
        done = self.catalog.commit(branch, operations, message=message)
        assert done.commit_id is not None
        return done.commit_id

    def merge(
        self,
        source: str = "dev",
        into: str = "main",
        mode: MergeMode = MergeMode.NORMAL,
        keys: dict[str, KeyMerge] | None = None,
        **options: bool | ObjectId,
    ) -> MergeResult:
        by_key = {key(text): one for text, one in (keys or {}).items()}
        return self.catalog.merge(source, into, options=MergeOptions(mode=mode, keys=by_key, **options))  # type: ignore[arg-type]

    def words(self, branch: str) -> set[str]:
        """What is there, in the words of ``put``."""
        entries = self.catalog.entries(branch).entries
        contents = self.catalog.get_contents(branch, [entry.key for entry in entries])
        return {_word(at, content) for at, content in contents.items()}

    def content_id(self, branch: str, text: str) -> UUID:
        content = self.catalog.get_content(branch, key(text))
        assert content is not None
        assert content.id is not None
        return content.id

    def head(self, branch: str) -> ObjectId:
        found = self.catalog.branch(branch).head
        assert found is not None
        return found

    def check(self, branch: str) -> None:
        """Every key has its namespaces, and the index of content ids is the content's turned round."""
        head = self.catalog.resolve(branch)
        assert head is not None
        values = {ContentKey.from_index(at): ContentValue.from_value(value) for at, value in head.index(CONTENT).range()}
        spaces = {at for at, value in values.items() if value.type == ContentType.NAMESPACE}
        ids = {at: bytes(value.data) for at, value in head.index(IDS).range()}

        assert all(above in spaces for at in values for above in at.ancestors())
        assert ids == {value.content_id.bytes: at.to_index() for at, value in values.items()}
        assert len(ids) == len(values)
        assert len(self.catalog.get_contents(branch, values)) == len(values)

    def _put(self, branch: str, word: str) -> Put:
        text, _, version = word.partition("=")
        at = key(text.rstrip("/"))
        content: Content = table(version or "1")
        if text.endswith("/"):
            content = Namespace(properties={"version": version} if version else {})
        there = self.catalog.get_content(branch, at)
        return Put(at, content if there is None or there.id is None else with_id(content, there.id))


def _word(at: ContentKey, content: Content) -> str:
    if isinstance(content, Namespace):
        version = content.properties.get("version")
        return f"{at}/" + (f"={version}" if version else "")
    assert isinstance(content, IcebergTable)
    version = content.metadata_location.removeprefix("s3://lake/v").removesuffix(".json")
    return str(at) if version == "1" else f"{at}={version}"
