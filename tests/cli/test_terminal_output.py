"""What only a terminal gets: a line that tells how far work is, columns that fit, colors; and what a pipe gets instead."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from commandline import CommandLine
from hypothesis import given
from hypothesis import strategies as st

from headwater import terminal
from headwater.cli import main
from headwater.cli.cli_session import CliSession, print_note
from headwater.cli.comparison_text import fitted
from headwater.console import ConsoleSession, ResultView, ViewField, count_text, csv_text
from headwater.outcome_text import outcome_lines
from headwater.store import Store
from headwater.tasks import TaskQueue
from headwater.terminal import ProgressLine, paint_state, shortened, text_width
from headwater.text_tables import TextLayout, result_lines, text_table

ERASE = "\r\x1b[K"
THING: ResultView[dict[str, Any]] = ResultView(
    "thing",
    "things",
    (
        ViewField("name", "what it is called", header="NAME"),
        ViewField("state", "how it is", header="STATE"),
        ViewField("heldUntil", "until when", source=lambda thing: thing.get("until")),
        ViewField("parts", "of it", inside={"[].size": "of one"}),
    ),
)
ROUND = {"name": "round", "state": "ACTIVE", "until": "noon", "parts": [{"size": 1}]}


def session_with(**fields: Any) -> CliSession:
    """The session of a command line with these options."""
    session = CliSession()
    for name, value in fields.items():
        setattr(session, name, value)
    return session


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal, 40 characters wide; a test puts it in the place of a stream."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


@pytest.fixture
def make_line(screen: Terminal) -> Callable[[], tuple[ProgressLine, list[float]]]:
    """A line on the screen, and the time that it sees."""

    def make() -> tuple[ProgressLine, list[float]]:
        now = [0.0]
        return ProgressLine(screen, "gc", monotonic=lambda: now[0]), now

    return make


def test_line_tells_phase_share_rate_and_rest(
    make_line: Callable[[], tuple[ProgressLine, list[float]]], screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    line, now = make_line()
    line.update(0, 5000, "rows deleted")
    now[0] = 10.0
    line.update(1200, 5000, "rows deleted")

    assert screen.getvalue() == f"{ERASE}gc: 1,200 of 5,000 rows deleted, 24 %, 120/s, 32 s left"


def test_line_is_rewritten_cut_to_the_width_and_erased(
    make_line: Callable[[], tuple[ProgressLine, list[float]]], screen: Terminal
) -> None:
    line, now = make_line()
    for now[0] in (1.0, 1.05, 2.0):
        line.update(round(100 * now[0]), 0, "files that nobody refers to listed")
    line.erase()
    *written, end = screen.getvalue().split(ERASE)[1:]

    assert len(written) == 2 and max(map(len, written)) == 39 and written[0].endswith("…")
    assert end == ""


def test_short_work_shows_no_line(make_line: Callable[[], tuple[ProgressLine, list[float]]], screen: Terminal) -> None:
    line, now = make_line()
    now[0] = 0.2
    line.update(1, 1, "rows")
    line.erase()

    assert screen.getvalue() == ""


def test_dumb_terminal_gets_a_line_a_phase(
    make_line: Callable[[], tuple[ProgressLine, list[float]]], screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    line, now = make_line()
    for now[0], unit in ((1.0, "rows scanned"), (2.0, "rows scanned"), (3.0, "rows deleted")):
        line.update(1, 0, unit)
    line.erase()

    assert screen.getvalue() == "gc: 1 rows scanned\ngc: 1 rows deleted\n"


def test_note_stands_on_a_line_of_its_own(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_QUIET_SECONDS", 0)
    monkeypatch.setattr(sys, "stderr", screen)
    with CliSession().progress("gc") as progress:
        progress(1, 2, "rows")
        print_note("mind the gap")

    assert screen.getvalue() == f"{ERASE}gc: 1 of 2 rows, 50 %{ERASE}headwater: mind the gap\n"


def test_progress_is_not_shown_elsewhere(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_QUIET_SECONDS", 0)
    monkeypatch.setattr(sys, "stderr", screen)

    def work(session: CliSession) -> str:
        with session.progress("gc") as progress:
            progress(1, 2, "rows")
        return screen.getvalue()

    assert work(session_with(quiet=True)) == ""
    monkeypatch.setenv("HEADWATER_LOG_FORMAT", "json")
    assert work(CliSession()) == ""
    monkeypatch.delenv("HEADWATER_LOG_FORMAT")
    monkeypatch.setattr(Terminal, "isatty", lambda self: False)
    assert work(CliSession()) == ""


def test_finished_task_has_done_all(headwater: CommandLine, realm: str, store: Store) -> None:
    headwater.ok("gc", "run", realm)
    (task,) = TaskQueue(store).list_tasks()
    progress = task.value.progress

    assert progress is not None and progress.done == progress.total
    assert task.value.attempts[-1].progress == progress


def test_widest_columns_are_cut_to_fit() -> None:
    rows = [("acme", "s3://bucket/a/long/way/down", "ann"), ("b", "s3://b", "somebody with a long name")]

    assert text_table(("ID", "LOCATION", "BY"), rows, layout=TextLayout(width=38)) == [
        "ID     LOCATION         BY",
        "acme   s3://bucket/a…   ann",
        "b      s3://b           somebody with…",
    ]
    assert "s3://bucket/a/long/way/down" in "".join(text_table(("ID", "LOCATION", "BY"), rows))


def test_columns_that_do_not_fit_are_left_out_and_told() -> None:
    heads, rows = ("TASK", "STATE", "CREATED", "DUE"), [("0123456789abcdef", "WAITING", "2026-11-27T08:09:48Z", "never")]

    assert text_table(heads, rows, layout=TextLayout(width=40)) == [
        "TASK               STATE     …",
        "0123456789abcdef   WAITING",
    ]
    assert text_table(heads, rows, layout=TextLayout(width=54))[0].endswith("CREATED                …")


@given(
    widths=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    width=st.integers(20, 120),
)
def test_lines_fit_wherever_the_first_column_does(widths: list[int], width: int) -> None:
    heads = [f"H{number}" for number in range(len(widths))]
    lines = text_table(heads, [["x" * each for each in widths]], layout=TextLayout(width=width))

    assert max(map(len, lines)) <= max(width, 24)  # a first column that is never cut, and the head for the others


def test_states_are_colored_on_terminals_only() -> None:
    heads, rows = ("STATE", "NAME"), [("ACTIVE", "ACTIVE"), ("odd", "x")]

    assert text_table(heads, rows, layout=TextLayout(has_colors=True)) == [
        "STATE    NAME",
        "\x1b[32mACTIVE\x1b[0m   ACTIVE",
        "odd      x",
    ]
    assert text_table(heads, rows)[1] == "ACTIVE   ACTIVE"
    assert paint_state("QUARANTINED") == "\x1b[33mQUARANTINED\x1b[0m"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "NAME    STATE\nround   ACTIVE\n"),
        ({"no_headers": True}, "round   ACTIVE\n"),
        ({"output": "wide"}, "NAME    STATE    HELD UNTIL\nround   ACTIVE   noon\n"),
        ({"output": "name"}, "round\n"),
        ({"output": "json", "quiet": True}, "round\n"),
        ({"output": "csv"}, 'name,state,heldUntil,parts\nround,ACTIVE,noon,"[{""size"": 1}]"\n'),
        ({"output": "csv", "no_headers": True}, 'round,ACTIVE,noon,"[{""size"": 1}]"\n'),
    ],
    ids=str,
)
def test_results_are_printed_in_many_forms(capsys: pytest.CaptureFixture[str], options: dict[str, Any], text: str) -> None:
    session_with(**options).show_all(THING, [ROUND])

    assert capsys.readouterr() == (text, "")


def test_csv_is_read_back_as_it_was(headwater: CommandLine, realm: str) -> None:
    (row,) = csv.DictReader(io.StringIO(headwater.ok("realm", "list", "-o", "csv")))

    assert row | {"id": realm, "state": "ACTIVE"} == row
    assert list(row) == list(headwater.data("realm", "show", realm))


@pytest.mark.parametrize("form", ["table", "wide", "name", "yaml", "json"])
def test_empty_list_is_empty(headwater: CommandLine, store: Store, form: str) -> None:
    result = headwater("realm", "list", "-o", form)

    assert (result.stdout, result.stderr) == ("[]\n" if form in ("json", "yaml") else "", "")


def test_empty_list_is_told_to_a_person(
    screen: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", screen)
    CliSession().show_all(THING, [])

    assert (capsys.readouterr().out, screen.getvalue()) == ("", "no things\n")


def test_command_says_in_one_sentence_what_it_did(headwater: CommandLine, catalog: str) -> None:
    line = ("catalog", "branch", "create", catalog)

    assert headwater.ok(*line, "one") == "branch one of acme/lake is created, without a commit yet\n"
    assert headwater.ok(*line, "two", "-q") == "two\n"
    assert headwater.ok("-v", *line, "three").splitlines()[:2] == ["kind:    branch", "name:    three"]
    assert headwater.data(*line, "four")["name"] == "four"


def test_version_of_the_program_is_printed(headwater: CommandLine) -> None:
    assert headwater.ok("--version").startswith("headwater 0.")


def test_person_sees_cut_columns_and_colored_states(
    url: str, catalog: str, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(*words: str) -> str:
        monkeypatch.setattr(sys, "stdout", Terminal())
        with pytest.raises(SystemExit, match="0"):
            main.main(["--store", url, *words])
        return cast(Terminal, sys.stdout).getvalue()

    listed, shown = seen("catalog", "list", "acme").splitlines(), seen("realm", "show", "acme")
    monkeypatch.setenv("NO_COLOR", "1")

    assert max(map(len, listed)) <= 40 and listed[0].endswith("…")
    assert "\x1b[32mACTIVE\x1b[0m" in shown
    assert "\x1b" not in seen("realm", "show", "acme")


EVIL = "ev\x1b]0;x\x07il"
SHOWN: ResultView[dict[str, str]] = ResultView("thing", "things", (ViewField("name", "what it is called"),))
WIDE = [["日本語", 1], ["emoji😀", 2], ["e\u0301t\u00e9", 3], ["plain", 4]]


def test_columns_are_aligned_beside_wide_characters() -> None:
    lines = text_table(["NAME", "NUMBER"], WIDE)

    assert {text_width(line[: line.rindex(" ") + 1]) for line in lines[1:]} == {10}


@given(st.text(st.sampled_from("a日é😀\u0301"), max_size=30), st.integers(1, 20))
def test_shortened_text_fits(text: str, width: int) -> None:
    short = shortened(text, width)

    assert text_width(short) <= width
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@pytest.mark.parametrize(
    "obeyed", ["\x1b[2J", "\x07", "\t", "\x7f", "\x9b2J", "\u202e", "\u2066", "\u061c", "\u2028", "\udcff"]
)
def test_characters_that_a_terminal_obeys_are_shown(obeyed: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = {"name": f"a{obeyed}b", "properties": {f"c{obeyed}": "d"}}
    texts = [*result_lines(data), *text_table(["NAME"], [[data["name"]], [data["properties"]]]), fitted(data["name"])]
    print_note(f"what{obeyed}ever")

    shown = obeyed[0].encode("unicode_escape").decode()
    assert [text for text in texts if obeyed[0] in text] == []
    assert [text for text in texts if shown in text] == [text for text in texts if text not in ("properties:", "NAME")]
    assert capsys.readouterr().err == f"headwater: what{shown}{obeyed[1:]}ever\n"


def test_sentences_show_what_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = {
        "surveyed": 1,
        "quarantined": {"total": 1, "codes": {}, "shown": [dict.fromkeys(("table", "code", "message"), EVIL)]},
    }
    session = ConsoleSession()
    session.show_done(SHOWN, {}, f"{EVIL} was made")
    session.show_changes(SHOWN, [], f"{EVIL} was changed")
    session.say(f"{EVIL} is said")
    told = [*capsys.readouterr().out.splitlines(), *outcome_lines("import", {**outcome, "notes": [EVIL]})]

    assert [line for line in told if "\x1b" in line] == []
    assert len([line for line in told if r"\x1b]0;x" in line]) == 5


@pytest.mark.parametrize("text", ["a,b", "a\nb", "a\rb", 'a"b', " a ", "", "a\r\nb", "日本"])
@pytest.mark.parametrize("more", [{}, {"state": "on"}])
def test_any_text_survives_as_csv(text: str, more: dict[str, str]) -> None:
    row = {"name": text, **more}
    written = csv_text([row], list(row))

    assert list(csv.DictReader(io.StringIO(written, newline=""))) == [row]
    assert "\r\n" not in written.replace(text, "")


def test_argument_that_is_no_text_is_told(headwater: CommandLine) -> None:
    result = headwater("realm", "show", "a\udcff")

    assert result.exit_code == 2
    assert r"the argument 'a\udcff' is not UTF-8" in result.stderr


def test_characters_that_the_locale_lacks_are_written_as_escapes(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr("sys.stdout", written)
    words = ["realm", "create", "acme", "--credentials", str(tmp_path / "acme.json"), "--property", "owner=日本"]
    with pytest.raises(SystemExit, match="0"):
        main(["--store", url, "-o", "json", *words])
    written.flush()

    assert json.loads(cast(io.BytesIO, written.buffer).getvalue())["properties"]["owner"] == "日本"


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(1, "log entry", "1 log entry"), (77, "log entry", "77 log entries"), (2, "branch", "2 branches"), (0, "key", "0 keys")],
)
def test_counts_have_their_plural(count: int, noun: str, text: str) -> None:
    assert count_text(count, noun) == text
