"""Contexts, and what calls leave out: an option stands before the environment, that before the context, and that before the default."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put
from headwater.cli import main
from headwater.cli.named_contexts import ContextFile, read_defaults
from headwater.errors import RefusedError
from headwater.realms import RealmRegistry

ORDERS = ContentKey.of("orders")


@pytest.fixture
def lake(store: Store, catalog: str) -> Catalog:
    """``acme/lake`` with a branch ``dev`` that alone has a table."""
    lake = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    lake.create_branch("dev")
    lake.commit("dev", [Put(ORDERS, IcebergTable(metadata_location="s3://lake/orders/metadata/1.json"))])
    return lake


@pytest.fixture
def on_dev(headwater: CommandLine, lake: Catalog) -> CommandLine:
    """The command line in a context of branch ``dev``."""
    headwater.ok("context", "set", "work", "acme/lake@dev")
    return headwater


def keys(headwater: CommandLine, *words: str) -> list[str]:
    return [row["key"] for row in headwater.items("catalog", "tables", *words)]


@pytest.mark.parametrize(("words", "found"), [((), 1), (("@",), 1), (("@dev",), 1), (("@main",), 0), (("/lake",), 0)])
def test_address_is_completed_by_the_context(on_dev: CommandLine, words: tuple[str, ...], found: int) -> None:
    assert len(keys(on_dev, *words)) == found


def test_written_address_knows_no_context(on_dev: CommandLine) -> None:
    assert keys(on_dev, "acme/lake") == []
    assert "there is no realm 'other'" in on_dev("catalog", "tables", "other/lake").stderr


@pytest.mark.parametrize(
    "line",
    [
        "catalog history orders",
        "catalog content orders",
        "catalog content @dev orders",
        "catalog diff main dev",
        "catalog merge @main dev --dry-run",
        "catalog merge acme/lake dev --dry-run",
        "catalog branch list",
        "catalog branch create more",
        "catalog list",
        "policy effective",
        "policy effective orders",
        "policy effective /lake@dev orders",
        "role list",
        "role show catalog_admin",
        "grant add catalog_admin TABLE_LIST",
        "grant add @ catalog_admin TABLE_LIST VIEW_LIST",
        "principal show root",
        "gc run --dry-run",
        "gc explain",
    ],
)
def test_arguments_are_told_from_an_address_that_is_left_out(on_dev: CommandLine, line: str) -> None:
    on_dev.ok(*line.split())


@pytest.mark.parametrize(
    "line", ["catalog delete", "catalog create --base-location s3://x/", "catalog delete @dev", "realm show", "realm purge"]
)
def test_subject_of_a_creation_or_deletion_is_written(on_dev: CommandLine, line: str) -> None:
    assert on_dev(*line.split()).exit_code == 2


def test_engine_is_told_the_catalog_of_the_context(on_dev: CommandLine) -> None:
    assert "acme/lake@dev" in on_dev.ok("client-config", "spark", "--url", "http://127.0.0.1:8181")
    assert "acme/lake@main" in on_dev.ok("client-config", "spark", "@main", "--url", "http://127.0.0.1:8181")


def test_stop_of_the_whole_store_stays_one(on_dev: CommandLine) -> None:
    assert on_dev.data("maintenance", "stop")["realm"] is None


def test_failure_tells_what_the_context_said(on_dev: CommandLine) -> None:
    refused = on_dev("catalog", "delete", "/lake")

    assert "--confirm acme/lake" in refused.stderr
    assert "the address is acme/lake, by context 'work'" in refused.stderr


def test_word_that_was_taken_for_the_address_is_told(on_dev: CommandLine) -> None:
    told = on_dev("grant", "add", "catalog_admin", "TABLE_LIST", "VIEW_LIST").stderr

    assert "'catalog_admin' is taken for the address: write @ before it where acme/lake is meant" in told


def test_store_of_a_context_is_told_where_it_fails(
    headwater: CommandLine, context_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    headwater.ok("context", "set", "work", "--store", "sqlite:///none.db")

    told = CliRunner().invoke(main, ["realm", "list"]).stderr
    assert f"the store is sqlite:///{tmp_path}/none.db, by context 'work'" in told


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, ("acme", "lake", "dev")),
        ({"HEADWATER_REF": "main"}, ("acme", "lake", "main")),
        ({"HEADWATER_CATALOG": "sea"}, ("acme", "sea", "")),
        ({"HEADWATER_REALM": "other"}, ("other", "", "")),
        ({"HEADWATER_REALM": "acme"}, ("acme", "lake", "dev")),
        ({"HEADWATER_REALM": "other", "HEADWATER_CATALOG": "lake"}, ("other", "lake", "")),
        ({"HEADWATER_CONTEXT": ""}, ("", "", "")),
        ({"HEADWATER_CONTEXT": "spare"}, ("acme", "", "")),
    ],
)
def test_environment_stands_before_the_context(
    on_dev: CommandLine, context_file: Path, environment: dict[str, str], address: tuple[str, str, str]
) -> None:
    on_dev.ok("context", "set", "spare", "acme")

    said = read_defaults({"HEADWATER_CONTEXT_FILE": str(context_file), **environment}).context
    assert (said.realm, said.catalog, said.ref) == address


def test_option_stands_before_the_environment(on_dev: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    on_dev.ok("context", "set", "spare", "acme/lake@main")
    monkeypatch.setenv("HEADWATER_CONTEXT", "work")
    monkeypatch.setenv("HEADWATER_OUTPUT", "yaml")

    assert keys(on_dev, "--context", "spare") == []
    assert on_dev.ok("catalog", "tables").startswith("items:\n- key: orders")
    assert on_dev.ok("catalog", "tables", "-o", "table").startswith("KEY")


def test_author_comes_from_option_environment_context_user(on_dev: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def author(*words: str) -> str:
        on_dev.ok("maintenance", "resume", "acme")
        return str(on_dev.data("maintenance", "stop", "acme", *words)["by"])

    monkeypatch.setenv("LOGNAME", "grace")
    said = [author()]
    on_dev.ok("context", "set", "work", "--author", "ann")
    said.append(author())
    monkeypatch.setenv("HEADWATER_AUTHOR", "bob")
    said += [author(), author("--author", "cid")]

    assert said == ["grace", "ann", "bob", "cid"]


def test_secrets_are_kept_and_not_shown(headwater: CommandLine, context_file: Path) -> None:
    CommandLine("postgresql://u:secret@h/db", {}).ok("context", "set", "work", "acme")

    shown = (
        headwater.ok("context", "show", "work")
        + headwater.ok("context", "list")
        + headwater.ok("-o", "json", "context", "list")
    )
    assert "postgresql://u:***@h/db" in shown and "secret" not in shown
    assert "secret" in context_file.read_text()
    assert stat.S_IMODE(context_file.stat().st_mode) == 0o600


def test_value_that_counts_is_shown_with_who_says_it(on_dev: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_REF", "main")

    rows = {row["name"]: (row["value"], row["origin"]) for row in on_dev.data("context", "show")}
    assert rows["catalog"] == ("lake", "context 'work'")
    assert rows["ref"] == ("main", "HEADWATER_REF")


def test_contexts_are_chosen_changed_and_removed(headwater: CommandLine, context_file: Path) -> None:
    for name in ("first", "second"):
        headwater.ok("context", "set", name, "acme/lake@dev", "--author", name)
    headwater.ok("context", "use", "second")
    headwater.ok("context", "unset", "second", "ref", "author")

    used = [row for row in headwater.data("context", "list") if row["inUse"]]
    assert [(row["name"], row["catalog"], row["ref"], row["author"]) for row in used] == [("second", "lake", None, None)]
    assert "no context is in use" in headwater.ok("context", "unset", "second")
    assert [row["name"] for row in headwater.data("context", "list")] == ["first"]
    headwater.ok("context", "use", "--none")
    assert headwater("context", "use", "third").exit_code == 3


@pytest.mark.parametrize(
    "text", ["- a list", "contexts: [1]", "contexts: {a: text}", "{", "more: 1", "contexts: {a: {realm: [b]}}"]
)
def test_file_of_something_else_is_refused(context_file: Path, text: str) -> None:
    context_file.parent.mkdir(parents=True)
    context_file.write_text(text)

    with pytest.raises(RefusedError, match="holds no contexts"):
        read_defaults({"HEADWATER_CONTEXT_FILE": str(context_file)})


def test_field_that_no_context_has_is_refused(context_file: Path) -> None:
    context_file.parent.mkdir(parents=True)
    context_file.write_text("contexts: {work: {relam: acme}}")

    with pytest.raises(RefusedError, match=r"context 'work' in .* has relam, and may have store, realm,"):
        read_defaults({"HEADWATER_CONTEXT_FILE": str(context_file)})


def test_file_written_by_hand_is_read_as_texts(headwater: CommandLine, context_file: Path) -> None:
    context_file.parent.mkdir(parents=True)
    context_file.write_text("current: on\ncontexts: {on: {realm: 2026, catalog: yes, ref: }, 1: }\n")

    assert [row["name"] for row in headwater.data("context", "list")] == ["1", "on"]
    assert headwater.data("context", "show", "on")["realm"] == "2026"


def test_none_in_a_file_written_by_hand_is_nothing(headwater: CommandLine, context_file: Path) -> None:
    context_file.parent.mkdir(parents=True)
    context_file.write_text("current: null\ncontexts: {dev: {realm: ~, catalog: null, ref: main}, prod: }\n")

    contexts = ContextFile.read_file(context_file)
    assert contexts.current == ""
    assert [each.said() for each in contexts.contexts.values()] == [{"ref": "main"}, {}]


def test_wrong_store_of_a_context_is_told_and_can_be_mended(context_file: Path) -> None:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, words, env={"HEADWATER_CONTEXT_FILE": str(context_file), "HEADWATER_STORE": ""})

    context_file.parent.mkdir(parents=True)
    context_file.write_text("current: work\ncontexts: {work: {store: secret-text}}\n")
    failed, listed, mended = (
        run("realm", "list"),
        run("context", "list"),
        run("context", "set", "work", "--store", "sqlite:///a"),
    )

    assert [result.exit_code for result in (failed, listed, mended)] == [5, 0, 0]
    assert "by context 'work'" in failed.stderr
    assert "secret-text" not in failed.output + listed.output


def test_output_that_there_is_not_is_refused(context_file: Path) -> None:
    with pytest.raises(RefusedError, match="HEADWATER_OUTPUT asks for the output 'xml'"):
        read_defaults({"HEADWATER_CONTEXT_FILE": str(context_file), "HEADWATER_OUTPUT": "xml"})


@pytest.mark.parametrize(
    "line",
    ["-o json catalog list acme", "catalog -o json list acme", "catalog list -o json acme", "catalog list acme -o json"],
)
@pytest.mark.parametrize("store_first", [True, False])
def test_global_options_stand_anywhere(catalog: str, url: str, line: str, store_first: bool) -> None:
    words = line.split()
    words = ["--store", url, *words] if store_first else [*words, "--store", url]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout[0]) == (0, "["), done.output


def test_innermost_global_option_counts(headwater: CommandLine, realm: str) -> None:
    assert headwater.ok("-o", "json", "realm", "-o", "table", "list").startswith("REALM")
    assert "Traceback" in headwater("--debug", "realm", "show", "nobody").stderr
