"""What a storage lets somebody do with the credentials that the server gives, tried at a server that others run in production."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from vending_lake import BUCKET, DONE, ROWS, VendedBucket, VendingLake, admin_files

pytestmark = pytest.mark.long

OWN, NEIGHBOR = "acme/t/data/probe", "acme/t2/data/probe"


@pytest.fixture(autouse=True)
def probes(lake: VendingLake) -> None:
    """A file of each table, which tests try to reach."""
    for key in (OWN, NEIGHBOR):
        with admin_files(lake.endpoint).open_output_stream(f"{BUCKET}/{key}") as file:
            file.write(b"text")


def content(lake: VendingLake, key: str) -> bytes:
    with admin_files(lake.endpoint).open_input_file(f"{BUCKET}/{key}") as file:
        return bytes(file.readall())


def test_reader_reads_and_does_not_write(lake: VendingLake) -> None:
    bucket = lake.bucket(lake.reader)

    assert [bucket.read(OWN), bucket.list("acme/t/"), bucket.list("acme/t/data/")] == [DONE] * 3
    deeds = [bucket.write(OWN), bucket.write("acme/t/new"), bucket.delete(OWN), bucket.begin_upload("acme/t/new")]
    assert set(deeds) == {"AccessDenied"} and content(lake, OWN) == b"text"


def test_writer_writes_its_table(lake: VendingLake) -> None:
    bucket = lake.bucket(lake.root)

    assert [bucket.write("acme/t/new"), bucket.read("acme/t/new"), bucket.begin_upload("acme/t/new")] == [DONE] * 3
    assert bucket.delete("acme/t/new") == DONE


def test_neighbor_is_out_of_reach(lake: VendingLake) -> None:
    for credential in (lake.reader, lake.root):
        bucket = lake.bucket(credential)
        deeds = [
            bucket.read(NEIGHBOR),
            bucket.write(NEIGHBOR),
            bucket.delete(NEIGHBOR),
            bucket.copy(NEIGHBOR, "acme/t/data/copied"),
            *(bucket.list(prefix) for prefix in ("", "acme/", "acme/t", "acme/t2", "acme/t2/")),
        ]

        assert set(deeds) == {"AccessDenied"}
    assert content(lake, NEIGHBOR) == b"text"


@pytest.mark.parametrize(
    "key",
    [
        "acme/t/../t2/data/probe",
        "acme/t/./../t2/data/probe",
        "acme/t/%2e%2e/t2/data/probe",
        "acme/t/..%2Ft2/data/probe",
        "acme/t%2F..%2Ft2/data/probe",
        "acme/t//../t2/data/probe",
        "acme//t2/data/probe",
        "/acme/t2/data/probe",
        "acme/t2//data/probe",
        "acme/T2/data/probe",
        "acme/t\\..\\t2\\data\\probe",
    ],
)
def test_spelling_reaches_no_neighbor(lake: VendingLake, key: str) -> None:
    bucket = lake.bucket(lake.root)
    before = {file.path for file in admin_files(lake.endpoint).get_file_info(selector(f"{BUCKET}/acme/t2"))}

    assert bucket.read(key) != DONE and bucket.copy(key, "acme/t/data/copied") != DONE
    bucket.write(key)
    bucket.delete(key)
    after = {file.path for file in admin_files(lake.endpoint).get_file_info(selector(f"{BUCKET}/acme/t2"))}
    assert (after, content(lake, NEIGHBOR)) == (before, b"text")


def selector(folder: str) -> pa.fs.FileSelector:
    return pa.fs.FileSelector(folder, recursive=True)


def test_table_that_one_may_not_see_gives_no_credentials(lake: VendingLake) -> None:
    for path in ("namespaces/hidden/tables/orders2", "namespaces/hidden/tables/orders2/credentials"):
        answer = lake.get(lake.reader, path)

        assert answer.status_code == 404 and "s3." not in answer.text


def test_tag_is_only_read_by_whoever_may_write(lake: VendingLake) -> None:
    lake.catalog.create_tag("2026", "main")
    bucket = lake.bucket(lake.root, prefix="acme~lake~2026")

    assert (bucket.read(OWN), bucket.write(OWN)) == (DONE, "AccessDenied")


def test_branch_has_credentials_of_its_own(lake: VendingLake) -> None:
    lake.catalog.create_branch("dev", "main")
    answer = lake.get(lake.root, "namespaces/sales/tables/orders", prefix="acme~lake~dev").json()

    assert answer["config"]["client.refresh-credentials-endpoint"] == (
        "v1/acme~lake~dev/namespaces/sales/tables/orders/credentials"
    )
    assert VendedBucket(answer["config"]).write("acme/t/new") == DONE


def test_credentials_are_asked_for_again(lake: VendingLake) -> None:
    told = lake.get(lake.root, "namespaces/sales/tables/orders").json()
    renewed = lake.get(lake.root, told["config"]["client.refresh-credentials-endpoint"].removeprefix("v1/acme~lake/")).json()

    [part] = renewed["storage-credentials"]
    assert part["prefix"] == f"s3://{BUCKET}/acme/t/" and VendedBucket(part["config"]).write("acme/t/new") == DONE
    assert int(part["config"]["s3.session-token-expires-at-ms"]) > 1_780_000_000_000


def test_repeated_load_has_the_same_credentials(lake: VendingLake) -> None:
    path = "namespaces/sales/tables/orders"
    first, second, other = (lake.get(who, path).json()["config"] for who in (lake.root, lake.root, lake.reader))

    assert first == second and first["s3.access-key-id"] != other["s3.access-key-id"]


def test_pyiceberg_needs_no_login(lake: VendingLake) -> None:
    writer = lake.client(lake.root)
    table = writer.create_table("sales.made", ROWS.schema)
    table.append(ROWS)
    with writer.create_table_transaction("sales.staged", ROWS.schema) as staged:
        staged.append(ROWS)

    for name in ("made", "staged"):
        assert lake.client(lake.reader).load_table(f"sales.{name}").scan().to_arrow().num_rows == 2


def test_pyiceberg_of_a_reader_writes_nothing(lake: VendingLake) -> None:
    table = lake.client(lake.reader).load_table("sales.orders")

    with pytest.raises(OSError, match=r"ACCESS_DENIED|Access ?Denied"):
        table.append(ROWS)


def test_logs_know_who_and_no_secret(lake: VendingLake) -> None:
    config = lake.get(lake.reader, "namespaces/sales/tables/orders").json()["config"]
    audit, log = lake.audit_file.read_text(), lake.log.read_text()

    entries = [json.loads(line) for line in audit.splitlines()]
    assert any("TABLE_READ_DATA" in json.dumps(entry) and "reader" in json.dumps(entry) for entry in entries)
    for name in ("s3.secret-access-key", "s3.session-token", "s3.access-key-id"):
        assert config[name] not in audit + log
