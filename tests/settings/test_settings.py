"""Settings: their defaults, how they are read, and how they are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RefusedError
from headwater.settings import Settings, duration_text, parse_duration, parse_spark_conf, unknown_variables

MINUTE, HOUR, DAY = 60, 3600, 86400
DEFAULTS = {
    "store": "sqlite:///headwater.db",
    "commit_timeout_seconds": 15,
    "commit_backoff_seconds": 0.005,
    "commit_backoff_limit_seconds": 0.25,
    "cache_bytes": 128 * 1024 * 1024,
    "reference_ttl_seconds": 15 * MINUTE,
    "realm_handle_ttl_seconds": 60,
    "request_lifetime_seconds": 30 * MINUTE,
    "node_lease_seconds": 10 * MINUTE,
    "node_renew_seconds": 5 * MINUTE,
    "writer_grace_seconds": 3 * HOUR,
    "reader_grace_seconds": 3 * HOUR,
    "unsafe_short_graces": False,
    "purge_hold_seconds": 24 * HOUR,
    "purged_keys_kept_seconds": 90 * DAY,
    "task_lease_seconds": 60,
    "task_heartbeat_seconds": 15,
    "task_attempts": 5,
    "task_backoff_seconds": 10,
    "task_backoff_limit_seconds": 10 * MINUTE,
    "task_history_seconds": 90 * DAY,
    "runs_kept": 50,
    "content_age_seconds": 30 * DAY,
    "content_commits": 100,
    "reference_commits": 20,
    "mark_exact_bytes": 64 * 1024 * 1024,
    "filter_fpp": 1e-5,
    "filter_refuse_fpp": 5e-5,
    "sweep_splits": 2,
    "scan_rows_per_second": 0,
    "delete_rows_per_second": 0,
    "catalog_hold_seconds": 24 * HOUR,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_is_as_documented(name: str) -> None:
    assert getattr(Settings(), name) == DEFAULTS[name]


def test_defaults_have_no_faults() -> None:
    assert Settings().faults() == []
    assert Settings.from_environment({}) == Settings()


def test_variables_are_named_without_the_unit_and_read_as_durations() -> None:
    environment = {
        "HEADWATER_COMMIT_TIMEOUT": "90s",
        "HEADWATER_WRITER_GRACE": "1h30m",
        "HEADWATER_RUNS_KEPT": "7",
        "HEADWATER_UNSAFE_SHORT_GRACES": "Yes",
        "HEADWATER_BROKER": "redis://localhost",
        "UNRELATED": "x",
    }
    read = Settings.from_environment(environment)

    assert (read.commit_timeout_seconds, read.writer_grace_seconds, read.runs_kept) == (90, 5400, 7)
    assert (read.unsafe_short_graces, read.broker) == (True, "redis://localhost")


def test_overrides_win_over_the_environment_and_none_is_no_override() -> None:
    environment = {"HEADWATER_STORE": "memory://", "HEADWATER_RUNS_KEPT": "7"}
    read = Settings.from_environment(environment, store="sqlite:///x.db", runs_kept=None)

    assert (read.store, read.runs_kept) == ("sqlite:///x.db", 7)


def test_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_RUNS_KEPT", "9")

    assert Settings.from_environment().runs_kept == 9


def test_all_faults_are_reported_at_once() -> None:
    environment = {
        "HEADWATER_COMMIT_TIMEOUT": "soon",
        "HEADWATER_RUNS_KEPT": "many",
        "HEADWATER_UNSAFE_SHORT_GRACES": "perhaps",
        "HEADWATER_TASK_ATTEMPTS": "0",
        "HEADWATER_WRITER_GRACE": "1m",
        "HEADWATER_READER_GRACE": "299s",
        "HEADWATER_PURGE_HOLD": "74s",
        "HEADWATER_TASK_HEARTBEAT": "31s",
        "HEADWATER_NODE_LEASE": "1h",
        "HEADWATER_NODE_RENEW": "1h",
        "HEADWATER_LOG_FORMAT": "prose",
    }
    with pytest.raises(RefusedError) as refused:
        Settings.from_environment(environment)

    words = [name.removeprefix("HEADWATER_").lower() for name in environment]
    assert [word for word in words if word not in str(refused.value).lower()] == []


@pytest.mark.parametrize(
    ("variables", "renewed"),
    [({"NODE_RENEW": "15m"}, 300), ({"NODE_RENEW": "4m"}, 240), ({"NODE_LEASE": "2m"}, 60), ({"NODE_LEASE": "1h"}, 300)],
)
def test_renewal_fits_the_lease_where_one_of_them_is_set(variables: dict[str, str], renewed: float) -> None:
    settings = Settings.from_environment({f"HEADWATER_{name}": value for name, value in variables.items()})

    assert settings.node_renew_seconds == renewed


@pytest.mark.parametrize("lease", ["0s", "nan", "-1s"])
def test_wrong_lease_is_refused_by_its_name_alone(lease: str) -> None:
    with pytest.raises(RefusedError, match="HEADWATER_NODE_LEASE") as refused:
        Settings.from_environment({"HEADWATER_NODE_LEASE": lease})

    assert "NODE_RENEW" not in str(refused.value)


def test_short_graces_need_the_setting_that_is_named_unsafe() -> None:
    short = {"writer_grace_seconds": 1, "reader_grace_seconds": 1, "purge_hold_seconds": 1}

    assert len(Settings(**short).faults()) == 3
    assert Settings(**short, unsafe_short_graces=True).faults() == []


def test_purge_hold_is_never_under_handle_ttl_and_commit_timeout() -> None:
    assert Settings(purge_hold_seconds=75).faults() == []
    assert Settings(purge_hold_seconds=74.9).faults() != []


def test_clocks_may_differ_by_half_the_smaller_grace() -> None:
    assert Settings(writer_grace_seconds=600, reader_grace_seconds=800).clock_bound_seconds == 300


def test_every_setting_says_what_it_is_for() -> None:
    fields = Settings.__dataclass_fields__

    assert [name for name, field in fields.items() if not field.metadata.get("purpose")] == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("24h", 86400), ("30d", 30 * DAY), ("1h30m", 5400), ("250ms", 0.25), ("0s", 0)],
)
def test_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "1 h", "1h 30m", "-5s", "1.5h", "5w", "h1", "5S"])
def test_text_that_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(RefusedError, match="90s, 15m, 24h or 30d"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["36501d", "876000h1ms", pytest.param("9" * 5000 + "d", id="huge")])
def test_duration_beyond_all_times_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="the longest is 36500d"):
        parse_duration(text)


@given(st.integers(0, 10**12))
def test_duration_written_is_read_back_exactly(millis: int) -> None:
    assert round(parse_duration(duration_text(millis / 1000)) * 1000) == millis


def test_spark_settings_are_pairs_whose_values_may_hold_commas() -> None:
    conf = parse_spark_conf("spark.cores.max=4, spark.jars=a.jar,b.jar,spark.x=y=z")

    assert conf == {"spark.cores.max": "4", "spark.jars": "a.jar,b.jar", "spark.x": "y=z"}


def test_spark_settings_may_be_json() -> None:
    assert parse_spark_conf('{"spark.a": 1, "spark.b": true, "spark.c": "x, spark.d=e"}') == {
        "spark.a": "1",
        "spark.b": "true",
        "spark.c": "x, spark.d=e",
    }


@pytest.mark.parametrize("text", ["secret", "fs.key=secret", '{"spark.key": ["secret"]}', "{secret", '{"fs.key": "secret"}'])
def test_wrong_spark_settings_are_refused_without_their_values(text: str) -> None:
    with pytest.raises(RefusedError, match="HEADWATER_SPARK_CONF: ") as refused:
        Settings.from_environment({"HEADWATER_SPARK_CONF": text})

    assert "secret" not in str(refused.value)


def test_mistyped_variable_is_named_with_what_was_meant() -> None:
    [sentence] = unknown_variables({"HEADWATER_WRITERS_GRACE": "1h", "HEADWATER_STORE": "memory://", "HOME": "/"})

    assert sentence == "HEADWATER_WRITERS_GRACE is set but is not a setting; did you mean HEADWATER_WRITER_GRACE?"


@pytest.mark.parametrize(
    "name",
    [
        "HEADWATER_OPERATOR_RESYNC",
        "HEADWATER_TEST_MONGODB",
        "HEADWATER_METRICS_SERVICE_HOST",
        "HEADWATER_METRICS_SERVICE_PORT_HTTP",
        "HEADWATER_METRICS_PORT",
        "HEADWATER_METRICS_PORT_8080_TCP_ADDR",
    ],
)
def test_variable_of_another_program_is_passed_over(name: str) -> None:
    assert unknown_variables({name: "1"}) == []


def test_variable_of_the_operator_is_looked_at_by_the_operator() -> None:
    sentences = unknown_variables({"HEADWATER_OPERATOR_RESINC": "1m"}, ["HEADWATER_OPERATOR_RESYNC"])

    assert "did you mean HEADWATER_OPERATOR_RESYNC?" in sentences[0]


def test_requests_are_kept_for_half_the_smaller_grace_at_most() -> None:
    assert Settings().requests_kept_seconds == 30 * MINUTE
    assert Settings(writer_grace_seconds=600, reader_grace_seconds=800).requests_kept_seconds == 300
