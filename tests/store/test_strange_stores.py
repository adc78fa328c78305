"""Stores of third parties, and URLs that name none: found by entry point, options checked, secrets never shown."""

from __future__ import annotations

import logging
import string
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from strangers import install, run

from headwater.errors import HeadwaterError, RefusedError
from headwater.settings import Settings
from headwater.store import BackendKind, StoreUrl, UrlOption, open_store
from headwater.store.backends.memory import MemoryBackend
from headwater.store.urls import as_count, as_seconds, one_of, parse_url

GROUP = "headwater.backends"
HARBOUR = """
from headwater.store import BackendKind, UrlOption
from headwater.store.backends.memory import MemoryBackend
from headwater.store.urls import (as_count, as_seconds)

class Harbour(MemoryBackend):
    def close(self):
        print("closed")

KIND = BackendKind(
    example="harbour://host/pier",
    open=lambda url, options, create: print(url.place, url.path, url.password, sorted(options.items())) or Harbour(),
    options=(UrlOption("berths", "how many", "3", as_count), UrlOption("wait", "how long", "10s", as_seconds)),
)
"""


def opening(url: str) -> str:
    return f"""
from headwater.errors import HeadwaterError
from headwater.store import ObjectId, RealmId, RealmKey, open_store
try:
    with open_store({url!r}) as store:
        rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        print(rows.create_reference("branch").name, store.url)
except HeadwaterError as fault:
    print(type(fault).__name__, fault)
"""


def install_harbour(folder: Path, *, name: str = "harbour", source: str = HARBOUR, value: str = "harbour:KIND") -> None:
    install(folder, name, group=GROUP, points={"harbour": value}, modules={value.partition(":")[0]: source})


def test_third_partys_backend_is_found_by_its_entry_point(tmp_path: Path) -> None:
    install_harbour(tmp_path)
    told = run(opening("harbour://me:s3cret@host:1/pier%204?berths=5"), tmp_path).splitlines()

    assert told == [
        "host:1 pier 4 s3cret [('berths', 5), ('wait', 10.0)]",
        "branch harbour://me:***@host:1/pier%204?berths=5",
        "closed",
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "reasons"),
    [
        ("depth=3", ["there is no option 'depth'", "the options of harbour:// are berths, wait"]),
        ("berths=2&berths=3", ["the option 'berths' stands there twice"]),
        ("berths=0", ["the option 'berths': '0' is not a whole number from 1"]),
        ("wait=soon", ["the option 'wait': "]),
        ("depth=3&berths=x&wait=-1s", ["'depth'", "'berths'", "'wait'"]),
    ],
)
def test_wrong_options_are_all_named_beside_those_there_are(tmp_path: Path, query: str, reasons: list[str]) -> None:
    install_harbour(tmp_path)
    told = run(opening(f"harbour://me:s3cret@host/pier?{query}"), tmp_path)

    assert told.startswith("RefusedError store 'harbour://me:***@host/pier?")
    assert all(reason in told for reason in reasons)
    assert "s3cret" not in told


def test_unknown_scheme_lists_what_there_is(tmp_path: Path) -> None:
    install_harbour(tmp_path)
    told = run(opening("oracle://me:s3cret@host/pier?key=hidden"), tmp_path)

    assert (
        "RefusedError store 'oracle://me:***@host/pier?key=***': unknown scheme 'oracle'; there are harbour://, memory://"
        in told
    )
    assert "hidden" not in told


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_driver", "the Python package 'no_such_driver' is not installed"),
        ("1 / 0", "the entry point 'harbour:KIND' of package 'harbour' cannot be loaded: ZeroDivisionError"),
        ("", "the entry point 'harbour:KIND' of package 'harbour' cannot be loaded: AttributeError"),
        ("KIND = 5", "the entry point 'harbour:KIND' of package 'harbour' is not a BackendKind"),
    ],
)
def test_backend_that_cannot_be_loaded_says_why(tmp_path: Path, source: str, reason: str) -> None:
    install_harbour(tmp_path, source=source)
    told = run(opening("harbour://me:s3cret@host/pier"), tmp_path)

    assert told.startswith("RefusedError store 'harbour://me:***@host/pier': ")
    assert reason in told


def test_scheme_that_two_packages_claim_names_both(tmp_path: Path) -> None:
    install_harbour(tmp_path)
    install_harbour(tmp_path, name="port", value="port:KIND")
    told = run(opening("harbour://host/pier"), tmp_path)

    assert "claimed by 'harbour:KIND' of package 'harbour' and 'port:KIND' of package 'port': uninstall one of them" in told


def test_driver_that_is_missing_names_the_extra_to_install() -> None:
    blocked = "import sys\nsys.modules['psycopg'] = None\n"
    told = run(blocked + opening("postgresql://me:s3cret@127.0.0.1:1/x"))

    assert "RefusedError store 'postgresql://me:***@127.0.0.1:1/x': the Python package 'psycopg'" in told
    assert told.endswith("is not installed: pip install 'headwater[postgresql]'")


ODD = [*string.punctuation, " ", "\xe9", "\U0001f600", "%41", "s3cret", "a:b@c/d?e#f[g]"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("scheme", ["other", "memory", "sqlite", "postgresql", "mongodb"])
def test_password_of_any_characters_is_in_no_error_or_log(
    scheme: str, odd: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    password = f"alpha{odd}omega"
    with caplog.at_level(logging.DEBUG), pytest.raises(HeadwaterError) as refused:
        open_store(f"{scheme}://me:{urllib.parse.quote(password, safe='')}@127.0.0.1:1/place?no-such-option=1")

    shown = [str(refused.value), repr(refused.value), caplog.text, *capfd.readouterr()]
    assert not any("alpha" in text or "omega" in text for text in shown)


@pytest.mark.parametrize("odd", ["/", "?", "#", "@", "[", "]", "\n", " "])
def test_password_that_was_not_encoded_is_not_shown_either(odd: str) -> None:
    with pytest.raises(HeadwaterError) as refused:
        open_store(f"other://me:alpha{odd}omega@127.0.0.1:1/place")

    assert "alpha" not in str(refused.value)
    assert "omega" not in str(refused.value)


def test_url_taken_apart_shows_no_password_in_its_repr() -> None:
    url = parse_url("other://me:s3cret@host/x?key=s3cret")

    assert "s3cret" not in repr(url)
    assert (url.password, url.query) == ("s3cret", (("key", "s3cret"),))


@pytest.mark.parametrize(
    ("text", "shown", "shown_open"),
    [
        ("other://host/x", "other://host/x", "other://host/x"),
        ("other://host/x?a=1&b=2", "other://host/x?a=***&b=***", "other://host/x?a=1&b=2"),
        ("other://me@host/x?a=1", "other://me@host/x?a=***", "other://me@host/x?a=1"),
        ("other://me:pw@h1:1,h2:2/x?a=1", "other://me:***@h1:1,h2:2/x?a=***", "other://me:***@h1:1,h2:2/x?a=1"),
        ("other:///x?a=1", "other:///x?a=***", "other:///x?a=1"),
        ("other:////x/y@z?a=1", "other:////x/y@z?a=***", "other:////x/y@z?a=1"),
        ("other://:pw@host/x", "other://:***@host/x", "other://:***@host/x"),
        ("other://m%40e:pw@[::1]:5/x%20y", "other://m%40e:***@[::1]:5/x%20y", "other://m%40e:***@[::1]:5/x%20y"),
    ],
)
def test_open_store_shows_options_but_never_its_password(text: str, shown: str, shown_open: str) -> None:
    url = parse_url(text)

    assert (url.shown, url.shown_open) == (shown, shown_open)


class Counted(MemoryBackend):
    """Tells how many are open."""

    opened = 0

    def __init__(self) -> None:
        super().__init__()
        Counted.opened += 1

    def close(self) -> None:
        Counted.opened -= 1


def open_counted(url: StoreUrl, options: Mapping[str, Any], create: bool) -> Counted:
    return Counted()


def test_store_whose_opening_fails_leaves_nothing_open(tmp_path: Path) -> None:
    install_harbour(tmp_path)
    broken = """
from headwater.clock import SystemClock
class Broken(SystemClock):
    def monotonic(self): raise RuntimeError("no time")
class Settings:
    def __getattr__(self, name): return (lambda: []) if name == "faults" else 1 / 0
from headwater.store import open_store
try:
    open_store("harbour://host/pier", settings=Settings(), clock=Broken())
except RuntimeError:
    print("failed")
"""
    assert run(broken, tmp_path).splitlines()[1:] == ["closed", "failed"]


def test_wrong_settings_are_refused_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="settings: "):
        open_store(f"sqlite:///{tmp_path}/store.db", settings=Settings(writer_grace_seconds=1))

    assert list(tmp_path.iterdir()) == []


def test_options_have_defaults_and_are_parsed() -> None:
    kind = BackendKind(
        example="x://",
        open=open_counted,
        options=(
            UrlOption("size", "how many", "4", as_count),
            UrlOption("wait", "how long", "2m", as_seconds),
            UrlOption("mode", "which", None, one_of("a", "b")),
        ),
    )

    assert kind.options_of(parse_url("x://h")) == {"size": 4, "wait": 120.0, "mode": None}
    assert kind.options_of(parse_url("x://h?mode=b&size=7")) == {"size": 7, "wait": 120.0, "mode": "b"}
    with pytest.raises(RefusedError, match="'c' is none of a, b"):
        kind.options_of(parse_url("x://h?mode=c"))
