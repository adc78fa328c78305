from __future__ import annotations

import pytest

from headwater.errors import HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.settings import Settings
from headwater_workers.pipeline import SparkOptions
from headwater_workers.pipeline.spark_session import spark_errors


def test_settings_say_how_a_session_is_made() -> None:
    settings = Settings(
        spark_master="spark://here:7077",
        spark_conf="spark.cores.max=4",
        spark_packages="a:b:1",
        spark_archive="s3a://x/y.tar.gz",
    )

    conf = SparkOptions.of(settings).complete()

    assert conf["spark.cores.max"] == "4"
    assert conf["spark.jars.packages"] == "a:b:1"
    assert conf["spark.archives"] == "s3a://x/y.tar.gz#headwater-archive"
    assert conf["spark.executorEnv.PYTHONPATH"] == "headwater-archive"


def test_option_set_by_hand_goes_before_our_own() -> None:
    own = {
        "spark.ui.enabled": "true",
        "spark.jars.packages": "c:d:2",
        "spark.archives": "z.zip",
        "spark.executorEnv.PYTHONPATH": "/lib",
    }

    conf = SparkOptions("local[*]", own, packages="a:b:1", archive="y.tar.gz").complete()

    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.jars.packages"] == "c:d:2,a:b:1"
    assert conf["spark.archives"] == "z.zip,y.tar.gz#headwater-archive"
    assert conf["spark.executorEnv.PYTHONPATH"] == "headwater-archive:/lib"


def test_session_is_kept_on_loopback_only_if_local() -> None:
    assert SparkOptions("local[2]").complete()["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in SparkOptions("spark://here:7077").complete()


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("headwater.errors.NotFoundError: there is no folder x", NotFoundError, "there is no folder x"),
        ("headwater.errors.RefusedError: no file system: a: b", RefusedError, "no file system: a: b"),
        ("ValueError: 7", UnavailableError, "the Spark job failed: Job aborted"),
        ("headwater.errors.NoSuchError: x", UnavailableError, "the Spark job failed: Job aborted"),
    ],
)
def test_error_of_an_executor_is_raised_as_what_it_was(line: str, kind: type[HeadwaterError], message: str) -> None:
    found = spark_errors(RuntimeError(f"Job aborted\nTraceback (most recent call last):\n  File x\n{line}\n\n\tat org.apache"))

    assert (type(found), str(found)) == (kind, message)


@pytest.mark.parametrize("reason", ["org.apache.spark.SparkException: no room", ""])
def test_error_of_the_jvm_gives_its_reason_where_it_has_one(reason: str) -> None:
    call = "An error occurred while calling o1036.save"
    found = spark_errors(RuntimeError(f"{call}.\n: {reason}\n\tat org" if reason else call))

    assert str(found) == f"the Spark job failed: {reason or call}"
