"""Which requests on file references go to the queue, and the ids that make their repetitions harmless."""

from __future__ import annotations

import pytest

from headwater.errors import RefusedError
from headwater.files import (
    FileReference,
    ForgetFiles,
    PartitionId,
    identify_request,
    is_asynchronous,
    kind_of,
    split_to_children,
)
from headwater.settings import REQUEST_KINDS, Settings

REDIS = "redis://localhost:6379/0"
SOURCE = FileReference(filename="a", partition=PartitionId("root"), rows=3)
SPLIT = split_to_children(SOURCE, PartitionId("L"), PartitionId("R"))


def chosen(**settings: str) -> list[str]:
    return [kind for kind in REQUEST_KINDS if is_asynchronous(Settings(**settings), kind)]  # type: ignore[arg-type]  # all are texts


def test_commits_are_sent_where_the_broker_is_a_server() -> None:
    assert chosen(broker=REDIS) == ["commit"]
    assert chosen() == []


def test_setting_names_the_kinds_for_any_broker() -> None:
    assert chosen(files_asynchronous="split, commit") == ["split", "commit"]
    assert chosen(files_asynchronous="none", broker=REDIS) == []


@pytest.mark.parametrize("names", ["", "commits", "auto,commit", "none,add"])
def test_wrong_names_are_refused(names: str) -> None:
    with pytest.raises(RefusedError, match=r"HEADWATER_FILES_ASYNCHRONOUS must be auto, none, or names among add, split"):
        Settings.from_environment({"HEADWATER_FILES_ASYNCHRONOUS": names})


def test_request_without_an_id_gets_one() -> None:
    first, second = identify_request(SPLIT), identify_request(SPLIT)

    assert first.request and second.request and first.request != second.request
    assert first.source == SOURCE
    assert identify_request(first) is first


def test_kind_is_the_tag_of_the_request() -> None:
    assert [kind_of(SPLIT), kind_of(ForgetFiles(filenames=("a",)))] == ["split", "forget"]
