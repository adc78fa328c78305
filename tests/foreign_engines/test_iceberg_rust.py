"""A program with iceberg-rust, whose catalog is the function that `headwater client-config iceberg-rust` prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from engine_tools import MINUTES, OpenLake, printed_config, run_program, tool_folder

from vending_lake import VendingLake

pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * MINUTES)]
_SOURCES = Path(__file__).with_name("rust_client")


def run_client(folder: Path, printed: str, namespace: str, **environment: str) -> list[str]:
    """The steps of the client: a line each, which begins with ``ok`` or ``FAIL``."""
    target = tool_folder("iceberg-rust")
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo is not installed")
    client = folder / "client"
    shutil.copytree(_SOURCES, client)
    (client / "src" / "catalog.rs").write_text(printed, encoding="utf-8")
    run_program([cargo, "build", "-q", "--locked", "--offline"], client, CARGO_TARGET_DIR=str(target))
    return run_program([target / "debug" / "rust-client", namespace], folder, **environment).splitlines()


def test_client_does_all_that_its_library_can(open_lake: OpenLake, tmp_path: Path) -> None:
    steps = run_client(tmp_path, printed_config("iceberg-rust", open_lake.warehouse, open_lake.url, "rust"), "rust")

    failed = [step for step in steps if step.startswith("FAIL")]
    assert [step.partition(":")[0] for step in failed] == ["FAIL update_namespace"], failed  # the library does not have it yet
    assert "ok   rows 6" in steps and steps[-1] == "ok   drop namespace"


def test_bucket_is_reached_by_credentials_of_the_server(bucket_lake: VendingLake, root_file: Path, tmp_path: Path) -> None:
    printed = printed_config("iceberg-rust", "acme/lake", bucket_lake.url, "rust", "--credentials", root_file, "--check")
    steps = run_client(tmp_path, printed, "rust", ICEBERG_CREDENTIAL=bucket_lake.root)

    failed = [step for step in steps if step.startswith("FAIL")]
    assert [step.partition(":")[0] for step in failed] == ["FAIL update_namespace"], failed
    assert "ok   rows 6" in steps
