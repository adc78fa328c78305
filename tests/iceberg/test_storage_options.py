"""The options by which storages are reached: read from mounted files, chosen by place and catalog, and never shown."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from headwater.errors import RefusedError
from headwater.iceberg import StorageFile, StorageOptions
from headwater.iceberg.storage_options import read_storage_options

ARN = "arn:aws:iam::123456789012:role/lake"
CLIENT_KEY = {"access-key-id": "AKIAHUNTER", "secret-access-key": "hunter3"}
SECRETS = {"access-key-id": "AKIAHUNTER", "secret-access-key": "hunter2", "session-token": "hunter3"}
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes entries to a file of the folder ``mounted``."""

    def write(*entries: dict[str, Any], name: str = "storage.json") -> Path:
        file = tmp_path / "mounted" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"storages": entries}))
        return file

    return write


def entry(location: str, **fields: Any) -> dict[str, Any]:
    return {"location": location, **{name.replace("_", "-"): value for name, value in fields.items()}}


def chosen(file: StorageFile, location: str, realm: str = "acme", catalog: str = "lake") -> str | None:
    options = file.options_for(location, realm=realm, catalog=catalog)
    return None if options is None else options.region


def test_options_of_the_longest_location_count(write: Write) -> None:
    file = StorageFile(
        str(write(entry("s3://a", region="1"), entry("s3://a/b", region="2"), entry("s3://a/b/c/d", region="3")))
    )

    assert chosen(file, "s3://a/b/c/x.json") == "2"
    assert chosen(file, "s3a://a/x") == "1"
    assert chosen(file, "s3://a/bc/x") == "1"
    assert chosen(file, "s3://other/x") is None


def test_options_of_a_catalog_are_its_own(write: Write) -> None:
    entries = [
        entry("s3://a", realm="acme", catalog="lake", region="catalog"),
        entry("s3://a", realm="acme", region="realm"),
        entry("s3://a", region="all"),
        entry("s3://b", realm="acme", catalog="lake", region="catalog"),
    ]
    file = StorageFile(str(write(*entries)))

    assert [chosen(file, "s3://a/x", *who) for who in (("acme", "lake"), ("acme", "pond"), ("other", "lake"))] == [
        "catalog",
        "realm",
        "all",
    ]
    assert chosen(file, "s3://b/x", "acme", "pond") is None


def test_file_that_is_not_configured_has_no_options() -> None:
    assert StorageFile("").options_for("s3://a/x", realm="acme", catalog="lake") is None


def test_folder_of_files_is_read_as_one(write: Write) -> None:
    folder = write(entry("s3://a", region="1"), name="a.json").parent
    write(entry("s3://b", region="2"), name="b.json")
    write(entry("s3://c", region="3"), name="..2026_former.json")
    (folder / "README").write_text("no JSON")

    file = StorageFile(str(folder))

    assert [chosen(file, f"s3://{bucket}/x") for bucket in "abc"] == ["1", "2", None]


def test_file_is_read_again_when_it_changes(write: Write) -> None:
    path = write(entry("s3://a", region="1"))
    file = StorageFile(str(path))
    before = chosen(file, "s3://a/x")
    write(entry("s3://a", region="22"))

    assert (before, chosen(file, "s3://a/x")) == ("1", "22")


def test_secret_that_is_mounted_anew_is_read_again(tmp_path: Path) -> None:
    """A kubelet swaps a link to a folder: the names in the mounted folder stay what they were."""
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "storage.json").write_text(json.dumps({"storages": [entry("s3://a", region=number)]}))
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "..data").symlink_to(tmp_path / "1")
    (mounted / "storage.json").symlink_to("..data/storage.json")
    file = StorageFile(str(mounted))
    before = chosen(file, "s3://a/x")
    (mounted / "..new").symlink_to(tmp_path / "2")
    (mounted / "..new").rename(mounted / "..data")

    assert (before, chosen(file, "s3://a/x")) == ("1", "2")


def test_change_that_cannot_be_read_leaves_what_was(write: Write) -> None:
    path = write(entry("s3://a", region="1"))
    file = StorageFile(str(path))
    before = chosen(file, "s3://a/x")
    path.write_text('{"storages": [{"secret-access-key": "hunter2"')

    with structlog.testing.capture_logs() as logs:
        assert (before, chosen(file, "s3://a/x"), chosen(file, "s3://a/x")) == ("1", "1", "1")
    assert [log["log_level"] for log in logs] == ["error"]
    assert "hunter" not in str(logs)


def test_file_that_is_missing_at_first_is_told(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"nothing\.json cannot be read: No such file"):
        StorageFile(str(tmp_path / "nothing.json")).current()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"location": "s3://a/../b"}, "location is none"),
        ({"location": "file:///lake"}, "its location has a scheme that takes no options"),
        ({"location": "s3://a", "catalog": "lake"}, "catalog needs a realm"),
        ({"location": "s3://a", "endpoint": "localhost:9000"}, "endpoint is no URL"),
        ({"location": "s3://a", "endpoint": "http://ada:hunter2@localhost"}, "endpoint is no URL"),
        ({"location": "s3://a", "client-endpoint": "http://localhost/path"}, "client-endpoint is no URL"),
        ({"location": "s3://a", "access-key-id": "AKIAHUNTER"}, "access-key-id and secret-access-key go together"),
        ({"location": "s3://a", "session-token": "hunter2"}, "session-token needs"),
        ({"location": "s3://a", "account-key": "hunter2"}, "account-key is nothing that s3 takes"),
        ({"location": "gs://a", "region": "hunter2"}, "region is nothing that gs takes"),
        ({"location": "abfss://c@a.dfs.core.windows.net", "account-key": "hunter2", "sas-token": "hunter3"}, "exclude each other"),
        ({"location": "abfss://c@a.dfs.core.windows.net", "client-secret": "hunter2"}, "client-secret needs"),
        ({"location": "s3://a", "anonymous": True, "role-arn": "hunter2"}, "anonymous excludes credentials"),
        ({"location": "s3://a", "path-style": True}, "path-style needs an endpoint"),
        ({"location": "s3://a", "client-role": {"arn": "arn:aws:s3*"}}, "client-role has an arn that is none"),
        ({"location": "s3://a", "client-role": {"arn": ARN, "sts-endpoint": "sts"}}, "client-role has an sts-endpoint"),
        ({"location": "s3://a", "client-role": {"arn": ARN, "lifetime-seconds": 60}}, "is not from 900 to 43200"),
        ({"location": "s3://a", "client-role": {"external-id": "hunter2"}}, "missing required field `arn`"),
        ({"location": "s3://a", "client-role": {"arn": ARN}, "client-key": CLIENT_KEY}, "exclude each other"),
        ({"location": "s3://a", "client-role": {"arn": ARN}, "anonymous": True}, "anonymous excludes credentials"),
        ({"location": "s3://a", "client-key": {**CLIENT_KEY, "secret-access-key": ""}}, "client-key needs"),
        ({"location": "s3://a", "client-key": CLIENT_KEY, **CLIENT_KEY}, "client-key is the server's own"),
        ({"location": "gs://a", "client-role": {"arn": ARN}}, "clients are given credentials for s3 alone so far"),
        ({"location": "s3://a", "secret-acces-key": "hunter2"}, "unknown field `secret-acces-key`"),
        ({"location": "s3://a", "secret-access-key": 5}, r"`\$\.storages\[0\]\.secret-access-key`"),
        ({"region": "hunter2"}, "missing required field `location`"),
    ],
)  # fmt: skip
def test_fault_is_told_without_a_value(write: Write, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(RefusedError, match=said) as refusal:
        read_storage_options(str(write(fields)))

    assert "hunter" not in str(refusal.value).lower()
    assert refusal.value.__cause__ is None


def test_all_faults_are_told_at_once(write: Write) -> None:
    with pytest.raises(RefusedError) as refusal:
        read_storage_options(str(write(entry("s3://a", catalog="lake"), entry("s3://b", endpoint="x", path_style=True))))

    assert "'s3://a'" in str(refusal.value) and "'s3://b'" in str(refusal.value)


def test_place_stands_there_once(write: Write) -> None:
    with pytest.raises(RefusedError, match="stands there twice"):
        read_storage_options(str(write(entry("s3://a/b", region="1"), entry("s3a://a/b/", region="2"))))


def test_options_for_clients_are_not_shown(write: Write) -> None:
    places = ({"client-role": {"arn": ARN, "external-id": "hunter2"}}, {"client-key": CLIENT_KEY})
    role, key = read_storage_options(str(write(*({"location": f"s3://a/{at}", **fields} for at, fields in enumerate(places)))))

    assert role.gives_credentials and key.gives_credentials
    for options, secrets in ((role, "hunter2"), (key, "hunter3 AKIAHUNTER")):
        held = options.client_role or options.client_key
        assert "hunter" not in f"{held!r} {held} {options!r} {options.without_secrets(secrets)}".lower()
        with pytest.raises(TypeError, match="not sent elsewhere"):
            pickle.dumps(held)


def test_options_are_not_shown(write: Write) -> None:
    (options,) = read_storage_options(str(write(entry("s3://a", realm="acme", **SECRETS))))

    texts = [repr(options), str(options), f"{[options]}", str(options.__rich_repr__())]
    assert all("s3://a" in text for text in texts)
    assert not any("hunter" in text.lower() for text in texts)


def test_options_are_not_sent_elsewhere(write: Write) -> None:
    (options,) = read_storage_options(str(write(entry("s3://a", **SECRETS))))

    with pytest.raises(TypeError, match="not sent elsewhere"):
        pickle.dumps(options)


def test_clients_are_told_no_credential() -> None:
    given = {name.replace("-", "_"): value for name, value in SECRETS.items()}
    options = StorageOptions(
        location="s3://a", endpoint="http://in:1", client_endpoint="https://out", region="eu", ca_file="/ca.pem", **given
    )

    assert options.client_config() == {
        "s3.endpoint": "https://out",
        "s3.path-style-access": "true",
        "s3.force-virtual-addressing": "false",
        "s3.region": "eu",
        "client.region": "eu",
    }


def test_endpoint_is_kept_from_clients_where_options_say_so(write: Write) -> None:
    (options,) = read_storage_options(str(write(entry("s3://a", endpoint="http://in:1", region="eu", send_endpoint=False))))

    assert options.client_config() == {"s3.region": "eu", "client.region": "eu"}


def test_clients_are_told_nothing_of_a_cloud_without_options() -> None:
    assert StorageOptions(location="s3://a").client_config() == {}
    assert StorageOptions(location="gs://a").client_config() == {}
    assert StorageOptions(location="abfss://c@a.dfs.core.windows.net", account_key="x").client_config() == {}


def test_text_of_a_driver_loses_its_credentials() -> None:
    options = StorageOptions(location="s3://a", access_key_id="AKIAHUNTER", secret_access_key="hunter2")

    assert options.without_secrets("key AKIAHUNTER, secret hunter2\nand more") == "key ***, secret ***"


def test_unreadable_file_is_told(write: Write) -> None:
    path = write(entry("s3://a"))
    path.unlink()
    os.mkfifo(path)  # reading it would wait for a writer

    with pytest.raises(RefusedError, match="no regular file"):
        read_storage_options(str(path))
