from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from headwater.errors import NotFoundError, RefusedError
from headwater.iceberg import (
    AcceptedTable,
    ChoiceRule,
    QuarantineCode,
    QuarantinedTable,
    SurveyOutcome,
    SurveyScope,
    survey_in_process,
)
from headwater.iceberg.filesystem import STORAGE, LakeFolder

OTHER = "11111111-03fe-4693-9a96-a0705ddf69c1"
MakeTable = Callable[..., Path]


def survey(root: Path, **options: Any) -> dict[str, SurveyOutcome]:
    scope = SurveyScope(locations=[str(root)], allowed=[str(root)], **options).checked()
    return {".".join(outcome.key): outcome for outcome in survey_in_process(scope)}


def code_of(outcome: SurveyOutcome) -> QuarantineCode:
    assert isinstance(outcome, QuarantinedTable), outcome
    return outcome.code


def test_table_is_found_with_its_evidence(tmp_path: Path, make_table: MakeTable) -> None:
    directory = make_table("sales/orders", {"v1.metadata.json": {}, "v2.metadata.json": {}, "version-hint.text": b"2"})

    found = survey(tmp_path)["sales.orders"]

    assert isinstance(found, AcceptedTable)
    assert found.metadata_location == f"{directory.as_uri()}/metadata/v2.metadata.json"
    assert found.rule is ChoiceRule.VERSION_HINT


def test_broken_newest_file_is_never_passed_over(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("sales/orders", {"v1.metadata.json": {}, "v2.metadata.json": b'{"format-version": 2, "ta'})

    outcome = survey(tmp_path)["sales.orders"]

    assert code_of(outcome) is QuarantineCode.CORRUPT
    assert "v2.metadata.json" in outcome.message  # type: ignore[union-attr]


@pytest.mark.parametrize("mtime", [1_700_000_000, 0])
def test_dropped_table_is_never_taken_for_the_one_after_it(tmp_path: Path, make_table: MakeTable, mtime: int) -> None:
    dropped = {f"0000{number}-{uuid4()}.metadata.json": {} for number in range(3)}
    table = make_table("s/t", {**dropped, f"00000-{uuid4()}.metadata.json": {"table-uuid": str(uuid4())}})
    for file in (table / "metadata").iterdir():
        os.utime(file, (mtime, mtime))

    (outcome,) = survey(tmp_path).values()

    assert isinstance(outcome, QuarantinedTable)
    assert outcome.code is QuarantineCode.TWO_TABLES


def test_file_that_lost_a_race_stops_no_table(tmp_path: Path, make_table: MakeTable) -> None:
    names = [f"0000{number}-{uuid4()}.metadata.json" for number in (0, 1, 1, 2)]
    log = [{"timestamp-ms": 1, "metadata-file": f"s3://lake/metadata/{name}"} for name in names[:2]]
    table = make_table("s/t", {names[0]: {}, names[1]: {}, names[2]: b"{", names[3]: {"metadata-log": log}})
    for file in (table / "metadata").iterdir():
        os.utime(file, (1, 1))

    (outcome,) = survey(tmp_path).values()

    assert isinstance(outcome, AcceptedTable)
    assert outcome.metadata_location.endswith(names[3])


def test_one_broken_table_does_not_stop_the_others(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("a/broken", {"v1.metadata.json": b""})
    make_table("b/sound", {"v1.metadata.json": {}})

    assert isinstance(survey(tmp_path)["b.sound"], AcceptedTable)


def test_packed_file_is_read_whatever_its_name(tmp_path: Path, make_table: MakeTable) -> None:
    directory = make_table("s/t", {"v1.metadata.json": {}})
    plain = directory / "metadata" / "v1.metadata.json"
    plain.write_bytes(gzip.compress(plain.read_bytes()))

    assert isinstance(survey(tmp_path)["s.t"], AcceptedTable)


def test_leftovers_of_a_dropped_table_are_reported(tmp_path: Path) -> None:
    (tmp_path / "sales" / "gone" / "data").mkdir(parents=True)
    (tmp_path / "sales" / "gone" / "data" / "a.parquet").touch()

    assert code_of(survey(tmp_path)["sales.gone"]) is QuarantineCode.NO_METADATA


def test_delta_table_with_iceberg_metadata_is_left_alone(tmp_path: Path, make_table: MakeTable) -> None:
    log = make_table("s/t", {"v1.metadata.json": {}}) / "_delta_log"
    log.mkdir()
    (log / "00000000000000000000.json").touch()

    assert code_of(survey(tmp_path)["s.t"]) is QuarantineCode.IS_DELTA


def test_two_tables_with_one_uuid_are_both_left_alone(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("a", {"v1.metadata.json": {}})
    make_table("b", {"v1.metadata.json": {}})

    assert {code_of(outcome) for outcome in survey(tmp_path).values()} == {QuarantineCode.DUPLICATE_UUID}


def test_table_within_a_table_leaves_both_alone(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("outer", {"v1.metadata.json": {}})
    make_table("outer/inner", {"v1.metadata.json": {"table-uuid": OTHER}})

    assert [code_of(outcome) for outcome in survey(tmp_path).values()] == [QuarantineCode.NESTED] * 2


def test_two_locations_with_the_same_key_leave_both_alone(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("one/s/t", {"v1.metadata.json": {}})
    make_table("two/s/t", {"v1.metadata.json": {"table-uuid": OTHER}})
    scope = SurveyScope(locations=[f"{tmp_path}/one", f"{tmp_path}/two"], allowed=[str(tmp_path)]).checked()

    assert [code_of(outcome) for outcome in survey_in_process(scope)] == [QuarantineCode.DUPLICATE_KEY] * 2


def test_paths_are_mapped_to_keys_before_they_are_selected(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("sales.db/orders", {"v1.metadata.json": {}})
    make_table("web.db/views", {"v1.metadata.json": {}})

    found = survey(tmp_path, path="{namespace}.db/{table}", namespace=("lake", "raw"), include=("lake.raw.sales.*",))

    assert list(found) == ["lake.raw.sales.orders"]


def test_path_that_does_not_fit_is_quarantined(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("sales.db/orders", {"v1.metadata.json": {}})
    make_table("stray", {"v1.metadata.json": {}})

    found = survey(tmp_path, path="{namespace}.db/{table}")

    assert code_of(found["stray"]) is QuarantineCode.UNMAPPED
    assert isinstance(found["sales.orders"], AcceptedTable)


def test_table_is_found_with_its_document(tmp_path: Path, make_table: MakeTable) -> None:
    table = make_table("s/t", {"v1.metadata.json": {"custom": 2**70}})
    text = (table / "metadata" / "v1.metadata.json").read_bytes()
    (table / "metadata" / "v1.metadata.json").write_bytes(gzip.compress(text))

    found = survey(tmp_path)["s.t"]

    assert isinstance(found, AcceptedTable), found
    assert found.document == text


def test_survey_can_be_read_more_than_once(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("a", {"v1.metadata.json": {}})
    make_table("b", {"v1.metadata.json": {}})

    surveyed = survey_in_process(SurveyScope(locations=[str(tmp_path)], allowed=[str(tmp_path)]).checked())

    assert list(surveyed) == list(surveyed)
    assert [code_of(outcome) for outcome in surveyed] == [QuarantineCode.DUPLICATE_UUID] * 2


def test_outcomes_are_sorted_by_directory_over_all_folders(tmp_path: Path, make_table: MakeTable) -> None:
    for number, name in enumerate(("a/t", "a-b/t", "a/a/t")):
        make_table(name, {"v1.metadata.json": {"table-uuid": str(UUID(int=number))}})

    directories = [
        outcome.directory
        for outcome in survey_in_process(SurveyScope(locations=[str(tmp_path)], allowed=[str(tmp_path)]).checked())
    ]

    assert len(directories) == 3
    assert directories == sorted(directories)


def test_tables_are_looked_at_only_if_selected(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("sales/orders", {"v1.metadata.json": {}})
    make_table("web/views", {"v1.metadata.json": b"broken"})

    assert list(survey(tmp_path, exclude=("web.*",))) == ["sales.orders"]


def test_location_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        survey(tmp_path / "nowhere")


@pytest.mark.parametrize("locations", [[], ["lake"], ["/"], ["s3://lake/a", "s3a://lake/a/b"], ["/a/b", "file:///a"]])
def test_scope_without_sense_is_refused(locations: list[str]) -> None:
    with pytest.raises(RefusedError):
        SurveyScope(locations=locations, allowed=[]).checked()


def test_empty_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="chooses no table"):
        SurveyScope(locations=[str(tmp_path)], allowed=[], include=[""]).checked()


def test_storage_without_a_driver_is_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="nosuch"):
        survey_in_process(SurveyScope(locations=["nosuch://bucket/lake"], allowed=[]).checked())


def test_progress_counts_tables(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("a/t", {"v1.metadata.json": {}})
    seen: list[tuple[int, int, str]] = []

    survey_in_process(
        SurveyScope(locations=[str(tmp_path)], allowed=[]).checked(), progress=lambda *numbers: seen.append(numbers)
    )

    assert seen[-1] == (1, 1, "tables looked at")


def test_file_that_goes_away_while_it_is_read_is_quarantined(tmp_path: Path, make_table: MakeTable) -> None:
    newest = make_table("a/t", {"v1.metadata.json": {}}) / "metadata" / "v1.metadata.json"

    def vanish(done: int, total: int, unit: str) -> None:
        if unit == "tables looked at":
            newest.unlink(missing_ok=True)

    (outcome,) = survey_in_process(SurveyScope(locations=[str(tmp_path)], allowed=[str(tmp_path)]).checked(), progress=vanish)
    assert code_of(outcome) is QuarantineCode.VANISHED


class GuardedFileSystem(LocalFileSystem):
    """Local files, but for folders called ``secret``."""

    protocol = "guarded"

    def ls(self, path: str, detail: bool = False, **options: object) -> list[object]:
        if path.endswith("secret"):
            raise PermissionError(path)
        return list(super().ls(path, detail=detail, **options))


@pytest.fixture
def guarded(tmp_path: Path) -> str:
    fsspec.register_implementation("guarded", GuardedFileSystem, clobber=True)
    return f"guarded://{tmp_path}"


@pytest.mark.parametrize("folder", ["sales/deep/secret", "sales/secret", "secret"])
def test_folder_that_may_not_be_listed_stops_no_other(guarded: str, make_table: MakeTable, folder: str) -> None:
    make_table(folder, {"v1.metadata.json": {}})
    make_table("sales/orders", {"v1.metadata.json": {"location": f"{guarded}/sales/orders"}})

    outcomes = {
        outcome.key: outcome
        for outcome in survey_in_process(
            SurveyScope(locations=[guarded], allowed=[guarded], include=["sales.orders"]).checked()
        )
    }

    assert isinstance(outcomes.pop(("sales", "orders")), AcceptedTable)
    assert [(key, code_of(outcome)) for key, outcome in outcomes.items()] == [
        (tuple(folder.split("/")), QuarantineCode.NO_ACCESS)
    ]


def test_folder_that_may_not_be_listed_can_be_excluded(guarded: str, make_table: MakeTable) -> None:
    make_table("sales/secret", {"v1.metadata.json": {}})

    assert list(survey_in_process(SurveyScope(locations=[guarded], allowed=[guarded], exclude=["*.secret"]).checked())) == []


def test_link_to_itself_stops_nothing(tmp_path: Path, make_table: MakeTable) -> None:
    metadata = make_table("sales/orders", {"v1.metadata.json": {}}) / "metadata"
    for link in (metadata / "v0.metadata.json", metadata / "version-hint.text", tmp_path / "sales" / "v2.metadata.json"):
        link.symlink_to(link.name)

    (outcome,) = survey_in_process(SurveyScope(locations=[str(tmp_path)], allowed=[str(tmp_path)]).checked())
    assert isinstance(outcome, AcceptedTable)


def test_other_links_to_nowhere_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("data/1.parquet", "v1.metadata.json"):
        (tmp_path / name).symlink_to("nowhere")

    assert [file.name for file in STORAGE.list_files(tmp_path.as_uri())] == ["v1.metadata.json"]
    assert list(LakeFolder(tmp_path.as_uri()).list_files()) == []


@pytest.mark.parametrize("folder", [b"caf\xe9", b"sales/caf\xe9", b"sales/deep/caf\xe9"])
def test_name_that_is_no_text_stops_nothing(tmp_path: Path, make_table: MakeTable, folder: bytes) -> None:
    make_table("sales/orders", {"v1.metadata.json": {}})
    strange = tmp_path / os.fsdecode(folder) / "metadata"
    strange.mkdir(parents=True)
    (strange / "v1.metadata.json").touch()

    outcomes = {
        outcome.key[-1]: outcome
        for outcome in survey_in_process(SurveyScope(locations=[str(tmp_path)], allowed=[str(tmp_path)]).checked())
    }

    assert isinstance(outcomes.pop("orders"), AcceptedTable)
    assert {name: code_of(outcome) for name, outcome in outcomes.items()} == {"caf\ufffd": QuarantineCode.NO_ACCESS}


def test_metadata_whose_name_is_no_text_is_quarantined(tmp_path: Path, make_table: MakeTable) -> None:
    metadata = make_table("sales/orders", {"v1.metadata.json": {}}) / "metadata"
    (metadata / "v1.metadata.json").rename(metadata / os.fsdecode(b"00001-\xe9.metadata.json"))

    (outcome,) = survey_in_process(SurveyScope(locations=[str(tmp_path)], allowed=[str(tmp_path)]).checked())
    assert code_of(outcome) is QuarantineCode.BAD_LOCATION


def test_other_file_systems_are_read_alike(tmp_path: Path, make_table: MakeTable) -> None:
    document = json.loads((make_table("s/t", {"v1.metadata.json": {}}) / "metadata" / "v1.metadata.json").read_bytes())
    lake = f"/{tmp_path.name}"  # all of memory is shared
    content = json.dumps(document | {"location": f"memory://{lake}/s/t"}).encode()
    fsspec.filesystem("memory").pipe(f"{lake}/s/t/metadata/v1.metadata.json", content)

    (outcome,) = survey_in_process(SurveyScope(locations=[f"memory://{lake}"], allowed=[f"memory://{lake}"]).checked())

    assert isinstance(outcome, AcceptedTable), outcome


def test_data_without_metadata_is_not_called_garbage(tmp_path: Path) -> None:
    (tmp_path / "s" / "t" / "data").mkdir(parents=True)
    (tmp_path / "s" / "t" / "data" / "1.parquet").touch()

    outcome = survey(tmp_path)["s.t"]

    assert code_of(outcome) is QuarantineCode.NO_METADATA
    assert "write.metadata.path" in outcome.message  # type: ignore[union-attr]
    assert "delete" not in outcome.message  # type: ignore[union-attr]


def test_metadata_written_elsewhere_is_told_from_a_moved_table(tmp_path: Path, make_table: MakeTable) -> None:
    place = (tmp_path / "meta" / "t" / "metadata").as_uri()
    properties = {"properties": {"write.metadata.path": place}}
    make_table("meta/t", {"v1.metadata.json": {"location": (tmp_path / "t").as_uri(), **properties}})

    outcome = survey(tmp_path)["meta.t"]

    assert code_of(outcome) is QuarantineCode.LOCATION_MISMATCH
    assert "write.metadata.path" in outcome.message  # type: ignore[union-attr]
    assert "rewritten" not in outcome.message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("folder", "options", "key"),
    [
        ("orders", {}, "lake.orders"),
        ("orders", {"namespace": ("raw",)}, "raw.orders"),
        ("deep/sales/orders", {"path": "**/{table}"}, "sales.orders"),
        ("orders", {"path": "{table}"}, "lake.orders"),
        ("orders", {"include": ("lake.*",)}, "lake.orders"),
    ],
)
def test_table_without_a_namespace_gets_that_of_the_folder_around_it(
    tmp_path: Path, make_table: MakeTable, folder: str, options: dict[str, Any], key: str
) -> None:
    make_table(f"lake/{folder}", {"v1.metadata.json": {}})

    assert list(survey(tmp_path / "lake", **options)) == [key]


def test_location_that_is_a_table_has_the_namespace_of_the_folder_around_it(tmp_path: Path, make_table: MakeTable) -> None:
    make_table("sales/orders", {"v1.metadata.json": {}})

    assert list(survey(tmp_path / "sales" / "orders")) == ["sales.orders"]
