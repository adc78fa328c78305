"""`headwater client-config`: what it prints, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from commandline import CommandLine

from headwater.engines.engine_configs import ENGINE_CONFIGS, EngineAddress, parse_engine
from headwater.realms import Credentials, CredentialsForm, told_credential
from headwater.reconcile.credentials_sink import FileCredentials

NAMES = [config.name for config in ENGINE_CONFIGS]
NESSIE_NAMES = ("spark-nessie", "pynessie")
URL = "http://127.0.0.1:8181"
SECRET = "s3cr-et_of-alice"


@pytest.fixture
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line where there is no store."""
    return CommandLine(f"sqlite:///{tmp_path_factory.mktemp('nowhere')}/none.db", {"HEADWATER_SERVER_LISTEN": "127.0.0.1:8181"})


def assert_address_in(text: str, name: str, url: str) -> None:
    """Whether a text names the branch ``dev`` of ``acme/lake`` at a server, as the protocol of its engine wants that."""
    if name in NESSIE_NAMES:
        assert f"{url}/nessie/acme/lake/api/v" in text and "dev" in text
    else:
        assert f"{url}/iceberg" in text and "acme/lake@dev" in text


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """A server that gives one answer to everything; gives its URL."""

    class FixedAnswer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), FixedAnswer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_engines_are_listed_in_a_line_each(nowhere: CommandLine) -> None:
    heading, *lines = nowhere.ok("client-config").splitlines()

    assert [line.split()[0] for line in lines] == NAMES
    assert heading.startswith("ENGINE")


@pytest.mark.parametrize("name", NAMES)
def test_engine_is_told_the_address(nowhere: CommandLine, name: str) -> None:
    for form in nowhere.data("client-config", name, "acme/lake@dev", "--url", "https://lake.example.com:8443/iceberg/")[
        "forms"
    ]:
        assert_address_in(form["text"], name, "https://lake.example.com:8443")
        assert "$" not in form["text"] + (form["file"] or "")


@pytest.mark.parametrize("name", NAMES)
def test_printed_text_is_comments_and_forms(nowhere: CommandLine, name: str) -> None:
    forms = parse_engine(name).filled(EngineAddress(URL, "acme/lake")).forms
    printed = nowhere.ok("client-config", name, "acme/lake")
    pasted = [line for line in printed.splitlines() if not line.startswith(("# ", "-- ", "// "))]

    assert [line for line in pasted if line] == [line for form in forms for line in form.text.splitlines() if line]


def test_shortest_forms_have_few_lines() -> None:
    lines = {config.name: len(config.forms[0].text.splitlines()) for config in ENGINE_CONFIGS}

    assert lines.pop("trino") == 7  # a property a line
    assert (lines.pop("iceberg-rust"), lines.pop("iceberg-go")) == (8, 11)  # a function each
    assert max(lines.values()) <= 3


def test_form_is_printed_alone(nowhere: CommandLine) -> None:
    printed = nowhere.ok("client-config", "pyiceberg", "acme/lake", "--form", "yaml")

    assert "catalog:\n  lake:\n" in printed and "load_catalog" not in printed


def test_form_that_takes_the_place_of_another_says_so(nowhere: CommandLine) -> None:
    lines = nowhere.ok("client-config", "duckdb", "acme/lake").splitlines()

    assert lines[lines.index("-- s3: instead of the above") - 2].startswith("SELECT")


def test_javascript_is_iceberg_js(nowhere: CommandLine) -> None:
    assert nowhere.data("client-config", "JavaScript", "acme/lake")["name"] == "iceberg-js"


def test_address_is_the_servers_setting(nowhere: CommandLine) -> None:
    secured = CommandLine(
        nowhere.url, {"HEADWATER_SERVER_LISTEN": "localhost:9000", "HEADWATER_SERVER_CERTIFICATE": "server.pem"}
    )

    assert "https://localhost:9000/iceberg" in secured.ok("client-config", "curl", "acme/lake")


@pytest.mark.parametrize(
    ("warehouse", "name"),
    [("acme/lake", "lake"), ("acme/my-lake.v2", "my_lake_v2"), ("acme/2026", "lake"), ("acme/class@dev", "lake")],
)
def test_catalog_has_a_name_for_sql(warehouse: str, name: str) -> None:
    assert EngineAddress(URL, warehouse).name == name


def test_words_of_a_shell_are_quoted(nowhere: CommandLine) -> None:
    assert "warehouse='acme/lake@main~1'" in nowhere.ok("client-config", "spark", "acme/lake@main~1", "--form", "shell")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["presto"], "there are pyiceberg, spark, spark-nessie"),
        (["spark", "lake"], "write REALM/CATALOG"),
        (["spark", "acme/la'ke"], "is not a catalog name"),
        (["spark", "acme/lake@"], "leave the @ out"),
        (["spark", "acme/lake@de v"], "is in no name"),
        (["spark", "acme/lake", "--url", "lake.example.com"], "is no URL of a server"),
        (["spark", "acme/lake", "--url", "http://a'b"], "is no URL of a server"),
        (["spark", "acme/lake", "--form", "yaml"], "there are shell, conf"),
        (["--form", "yaml"], "goes with an engine"),
        (["spark", "--check"], "REALM/CATALOG"),
        (["spark", "acme/lake", "--show-secret"], "goes with --credentials"),
    ],
)
def test_mistake_is_usage(nowhere: CommandLine, words: list[str], told: str) -> None:
    result = nowhere("client-config", *words)

    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


@pytest.fixture
def login_file(tmp_path: Path) -> Path:
    """Credentials of a principal of the realm acme, as a file has them that an older release wrote."""
    file = tmp_path / "alice's.json"
    file.write_text(json.dumps({"realm": "acme", "clientId": "0123456789abcdef", "clientSecret": SECRET}))
    return file


@pytest.mark.parametrize("name", NAMES)
def test_secret_is_printed_only_where_it_is_asked_for(nowhere: CommandLine, login_file: Path, name: str) -> None:
    words = ["client-config", name, "acme/lake", "--credentials", login_file]
    hidden, shown = nowhere(*words), nowhere.ok(*words, "--show-secret")

    assert hidden.exit_code == 0 and SECRET not in hidden.output
    assert "$login" not in hidden.output + shown
    assert "acme.0123456789abcdef" in shown and SECRET in shown
    assert str(login_file).partition("'")[0] in hidden.output and login_file.name not in shown


@pytest.mark.parametrize("name", NAMES)
def test_forms_with_credentials_are_called_as_those_without(nowhere: CommandLine, login_file: Path, name: str) -> None:
    plain = nowhere.data("client-config", name, "acme/lake@dev")["forms"]
    forms = nowhere.data("client-config", name, "acme/lake@dev", "--credentials", login_file)["forms"]

    assert [(form["name"], form["file"]) for form in forms] == [(form["name"], form["file"]) for form in plain]
    for form in forms:
        assert_address_in(form["text"], name, URL)


def test_file_of_a_declared_principal_is_taken(nowhere: CommandLine, tmp_path: Path) -> None:
    credentials = Credentials("0123456789abcdef", SECRET)
    FileCredentials(tmp_path).of_principal("alice").write_credentials("acme", credentials)
    words = ("client-config", "spark", "acme/lake", "--credentials", tmp_path / "acme.alice.json")

    assert f"credential={told_credential('acme', credentials)}\n" in nowhere.ok(*words, "--show-secret")
    assert "acme.acme." not in nowhere(*words).output


@pytest.mark.parametrize("form", [CredentialsForm("alice"), CredentialsForm()], ids=["principal", "root"])
def test_command_before_a_form_prints_the_credential(nowhere: CommandLine, tmp_path: Path, form: CredentialsForm) -> None:
    credentials = Credentials("0123456789abcdef", SECRET)
    (tmp_path / "it's.json").write_text(json.dumps(form.content("acme", credentials)))
    printed = nowhere.ok("client-config", "spark", "acme/lake", "--form", "conf", "--credentials", tmp_path / "it's.json")
    [export] = [line.removeprefix("# first: ") for line in printed.splitlines() if line.startswith("# first: ")]
    done = subprocess.run(["bash", "-c", f'{export}; echo "$ICEBERG_CREDENTIAL"'], text=True, capture_output=True, check=True)

    assert done.stdout.strip() == told_credential("acme", credentials)


PROVIDER = ("--token-url", "https://login.example.com/token", "--client-id", "etl", "--scope", "openid")


@pytest.mark.parametrize("name", NAMES)
def test_client_of_a_provider_asks_there_for_the_scope(
    nowhere: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("ICEBERG_CLIENT_SECRET", SECRET)
    words = ("client-config", name, "acme/lake@dev", *PROVIDER)
    hidden, shown = nowhere.ok(*words), nowhere.data(*words, "--show-secret")["forms"]

    assert SECRET not in hidden and "$scope" not in hidden and "clientSecret" not in hidden
    for form in shown:
        assert_address_in(form["text"], name, URL)
        if form["name"] != "yaml" or name != "pynessie":  # whose file has a token, which the line before it asks for
            assert "https://login.example.com/token" in form["text"] and "openid" in form["text"] and SECRET in form["text"]


@pytest.mark.parametrize(
    ("name", "variable", "value"),
    [
        ("trino", "ICEBERG_CREDENTIAL", f"etl:{SECRET}"),
        ("daft", "ICEBERG_CREDENTIAL", f"etl:{SECRET}"),
        ("iceberg-js", "ICEBERG_CLIENT_SECRET", SECRET),
        ("spark-nessie", "NESSIE_AUTHENTICATION_OAUTH2_CLIENT_SECRET", SECRET),
    ],
)
def test_line_before_a_form_asks_for_the_secret(nowhere: CommandLine, name: str, variable: str, value: str) -> None:
    printed = nowhere.ok("client-config", name, "acme/lake", *PROVIDER)
    first = next(line for line in printed.splitlines() if "first: " in line).partition("first: ")[2]
    done = subprocess.run(
        ["bash", "-c", f'{first}; echo "${variable}"'], input=f"{SECRET}\n", text=True, capture_output=True, check=True
    )

    assert done.stdout.strip() == value


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (PROVIDER[:2], "goes with a client id"),
        (PROVIDER[2:4], "goes with a client id"),
        (("--scope", "openid"), "a scope goes with credentials"),
        ((*PROVIDER, "--credentials", "x.json"), "name one"),
        ((*PROVIDER, "--show-secret"), "ICEBERG_CLIENT_SECRET"),
        (("--token-url", "login", "--client-id", "x"), "is not the URL of a token endpoint"),
        ((*PROVIDER[:2], "--client-id", "o'etl"), "is not a client id"),
        (("--s3-endpoint", "storage:9000"), "is not the URL of an object store"),
    ],
)
def test_words_of_a_provider_go_together(nowhere: CommandLine, words: tuple[str, ...], told: str) -> None:
    result = nowhere("client-config", "trino", "acme/lake", *words)

    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


def test_address_of_buckets_is_filled_in(nowhere: CommandLine) -> None:
    words = ("--form", "s3", "--s3-endpoint", "http://storage:9000/", "--s3-region", "eu-central-1")
    trino, duckdb = (nowhere.ok("client-config", name, "acme/lake", *words) for name in ("trino", "duckdb"))

    assert "s3.endpoint=http://storage:9000\ns3.path-style-access=true" in trino and "s3.region=eu-central-1" in trino
    assert "ENDPOINT 'storage:9000', URL_STYLE 'path', USE_SSL false" in duckdb
    assert "s3.endpoint" not in nowhere.ok("client-config", "trino", "acme/lake", "--form", "s3")


def test_file_of_a_new_realm_is_taken(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    told = json.loads((tmp_path / f"{realm}.json").read_text())["credential"]
    words = ("client-config", "curl", f"{realm}/lake", "--credentials", tmp_path / f"{realm}.json", "--show-secret")

    assert told in headwater.ok(*words)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is not a credentials file of Headwater"),
        ("[]", "is not a credentials file of Headwater"),
        ('{"realm": "acme", "clientId": "x"}', "is not a credentials file of Headwater"),
        ('{"realm": "other", "clientId": "x", "clientSecret": "y"}', "has credentials of realm 'other'"),
    ],
)
def test_other_file_is_refused(nowhere: CommandLine, login_file: Path, content: str, told: str) -> None:
    login_file.write_text(content)
    result = nowhere("client-config", "curl", "acme/lake", "--credentials", login_file)

    assert (result.exit_code, told in result.stderr) == (5, True), result.stderr


def test_missing_file_is_refused(nowhere: CommandLine, tmp_path: Path) -> None:
    result = nowhere("client-config", "curl", "acme/lake", "--credentials", tmp_path / "none.json")

    assert (result.exit_code, "No such file" in result.stderr) == (5, True), result.stderr


def test_check_that_needs_credentials_says_so(nowhere: CommandLine) -> None:
    with answering(401, b'{"error": {"message": "this needs a token"}}') as url:
        result = nowhere("client-config", "curl", "acme/lake", "--url", url, "--check")

    assert (result.exit_code, "--credentials" in result.stderr) == (5, True), result.stderr


def test_check_tells_why_credentials_were_refused(nowhere: CommandLine, login_file: Path) -> None:
    with answering(401, b'{"error": "invalid_client", "error_description": "the client is unknown"}') as url:
        words = ("client-config", "curl", "acme/lake", "--url", url, "--check", "--credentials", login_file)
        result = nowhere(*words)

    assert (result.exit_code, "the client is unknown" in result.stderr, SECRET in result.output) == (5, True, False)


def test_port_that_is_not_known_has_to_be_named(nowhere: CommandLine) -> None:
    result = CommandLine(nowhere.url, {"HEADWATER_SERVER_LISTEN": "127.0.0.1:0"})("client-config", "curl", "acme/lake")

    assert (result.exit_code, "--url" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("status", "body", "code", "told"),
    [
        (200, b'{"defaults": {}, "overrides": {}}', 0, ""),
        (404, b'{"error": {"message": "there is no realm \'acme\'"}}', 3, "there is no realm 'acme'"),
        (503, b'{"error": {"message": "the database is away"}}', 4, "the database is away"),
        (400, b'{"error": {"message": "the realm is INACTIVE"}}', 5, "the realm is INACTIVE"),
        (404, b"<html>", 5, "not as a server of Iceberg REST does"),
        (200, b"[]", 5, "not as a server of Iceberg REST does"),
        (200, b"<html>", 5, "not as a server of Iceberg REST does"),
    ],
)
def test_check_tells_what_the_server_says(nowhere: CommandLine, status: int, body: bytes, code: int, told: str) -> None:
    with answering(status, body) as url:
        result = nowhere("client-config", "spark", "acme/lake", "--url", url, "--check")

    assert (result.exit_code, told in result.stderr, bool(result.stdout)) == (code, True, code == 0)


def test_check_of_a_port_where_nobody_listens_is_unavailable(nowhere: CommandLine) -> None:
    with answering(200, b"") as url:
        pass
    result = nowhere("client-config", "spark", "acme/lake", "--url", url, "--check")

    assert (result.exit_code, "headwater serve" in result.stderr) == (4, True)
