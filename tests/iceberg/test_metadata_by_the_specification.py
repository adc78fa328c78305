from __future__ import annotations

import json
import warnings

import pytest
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.view.metadata import ViewMetadata

from headwater.iceberg.spec import RAW_VERSION, Document, FaultError, check_table, check_view, is_maintainable, is_view
from metadata_fixtures import COLUMNS, FIXTURES, Fixture, changed, column, schema, table, view

each_fixture = pytest.mark.parametrize("fixture", [pytest.param(one, id=one.name) for one in FIXTURES])


def verdict_on(document: Document) -> tuple[str, str]:
    try:
        facts = (check_view if is_view(document) else check_table)(document)
    except FaultError as fault:
        return fault.kind.name, str(fault)
    return "raw" if facts.version == RAW_VERSION else "valid", ""


@each_fixture
def test_document_is_judged_by_the_specification(fixture: Fixture) -> None:
    verdict, message = verdict_on(fixture.document)

    assert (verdict, fixture.says in message) == (fixture.verdict, True), message


def test_document_is_to_pyiceberg_what_is_noted() -> None:
    wrong = [fixture.name for fixture in FIXTURES if is_read_by_pyiceberg(fixture.document) is not fixture.pyiceberg]

    assert not wrong


def test_every_message_is_half_a_sentence_about_the_document() -> None:
    messages = [message for _, message in (verdict_on(fixture.document) for fixture in FIXTURES) if message]

    assert all(message.startswith(("has ", "is ")) and not message.endswith(".") for message in messages)


def test_no_name_stands_twice() -> None:
    assert len({fixture.name for fixture in FIXTURES}) == len(FIXTURES)


def test_sound_table_tells_what_holds_in_it() -> None:
    facts = check_table(table(3))

    assert facts == (3, table(3)["table-uuid"], 0, 0, 1, 22)


def test_sound_view_tells_what_holds_in_it() -> None:
    facts = check_view(view())

    assert facts == (1, view()["view-uuid"], 2, 0, (1, 2))


@pytest.mark.parametrize("value", [None, "yesterday", 1])
def test_table_field_is_left_alone_in_a_view(value: object) -> None:
    assert check_view(changed(view(), {"last-updated-ms": value})) == check_view(view())


def test_draft_is_read_as_far_as_it_tells() -> None:
    facts = check_table(changed(table(2), {"format-version": 4, "current-schema-id": "?"}))

    assert (facts.version, facts.schema_id, facts.snapshot_id) == (4, 0, 22)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_plain_tables_may_be_maintained(version: int) -> None:
    assert is_maintainable(table(version)) is None


@pytest.mark.parametrize(("changes", "says"), [
    ({"format-version": 4}, "draft"),
    ({"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "x"}]}, "encrypted"),
    ({"snapshots": [{"snapshot-id": 5, "key-id": "k"}]}, "snapshot 5 is encrypted"),
])  # fmt: skip
def test_document_that_cannot_be_followed_is_refused_for_maintenance(changes: Document, says: str) -> None:
    reason = is_maintainable(changed(table(3), dict(changes)))

    assert reason is not None
    assert says in reason


def is_read_by_pyiceberg(document: Document) -> bool:
    reader = ViewMetadata.model_validate_json if is_view(document) else TableMetadataUtil.parse_raw
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reader(json.dumps(document))
        except Exception:  # noqa: BLE001  # whatever it refuses with
            return False
    return True


@pytest.mark.parametrize("numbers", [(0, 4), (4, 7)])
def test_first_format_tells_its_current_schema_by_the_schema_alone(numbers: tuple[int, int]) -> None:
    old, now = schema(column(1, "id", "long"), number=numbers[0]), schema(*COLUMNS, number=numbers[1])

    facts = check_table(changed(table(1), {"schemas": [old, now], "schema": now}))

    assert facts.schema_id == numbers[1]


def test_schema_without_a_number_is_found_by_what_it_holds() -> None:
    old, now = schema(column(1, "id", "long"), number=0), schema(*COLUMNS, number=4)
    single = {name: value for name, value in now.items() if name != "schema-id"}

    assert check_table(changed(table(1), {"schemas": [old, now], "schema": single})).schema_id == 4


def test_first_format_tells_its_current_spec_by_the_spec_alone() -> None:
    fields = table(1)["partition-spec"]
    specs = [{"spec-id": 3, "fields": []}, {"spec-id": 5, "fields": fields}]

    assert check_table(changed(table(1), {"partition-specs": specs})).spec_id == 5


def test_schema_that_is_none_of_the_schemas_is_told() -> None:
    old = schema(column(1, "id", "long"), number=3)

    with pytest.raises(FaultError, match="current-schema-id is missing"):
        check_table(changed(table(1), {"schemas": [old, schema(column(2, "x", "long"), number=4)]}))
