"""The page of maintenance runs: pictures that tell the counts, nothing that is loaded from elsewhere, everything escaped."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.clock import Micros
from headwater.html_report import report_page
from headwater.html_report.svg_charts import (
    Series,
    bar_chart,
    chart_bytes_text,
    chart_count_text,
    column_chart,
    seconds_text,
)
from headwater.jobs.task_runs import Run, record_run

NOW = Micros(1_800_000_000_000_000)
NASTY = "<script>alert('1')</script>&\"'"


def run_of(number: int, **fields: object) -> Run:
    counts = {
        "scanned": 100,
        "kept": {"head": 60 + number, "young": 10},
        "garbage": 30,
        "deleted": 29,
        "deletedBytes": 2048,
        "types": {"iceberg-table": {"head": 50, "garbage": 30}, "commit": {"head": 10, "young": 10}},
        "deletedTypes": {"iceberg-table": {"rows": 29, "bytes": 2048}},
        "seconds": {"mark": 1.0, "sweep": 2.0, "delete": 1.5},
    }
    told = {
        "kind": "gc",
        "realm": "acme",
        "started": Micros(NOW + number),
        "finished": Micros(NOW + 4_000_000),
        "counts": counts,
    }
    return Run(**(told | fields))  # type: ignore[arg-type]


def page_of(*runs: Run) -> str:
    return report_page(runs, store="sqlite:///here.db", now=NOW)


def parsed(page: str) -> ElementTree.Element:
    """Every element is closed: the page is XML, too."""
    return ElementTree.fromstring(page.partition("\n")[2])


def titles(page: str) -> list[str]:
    return re.findall(r"<h3>(.*?)</h3>", page)


def test_page_has_a_picture_of_every_kind() -> None:
    assert titles(page_of(run_of(2), run_of(1))) == [
        "Kept, and why",
        "Garbage and deletions",
        "Duration",
        "By type",
        "Freed, by type",
    ]


def test_every_bar_tells_its_number() -> None:
    page = page_of(run_of(1))

    for told in (
        "head 61",
        "young 10",
        "deleted 29",
        "left 1",
        "mark 1 s",
        "sweep 0.5 s",
        "delete 1.5 s",
        "iceberg-table: garbage 30",
    ):
        assert f": {told}</title>" in page or f"{told}</title>" in page


def test_page_is_well_formed_with_a_picture_for_each_title() -> None:
    page = page_of(run_of(1))

    assert len(list(parsed(page).iter("{http://www.w3.org/2000/svg}svg"))) == len(titles(page)) == 5


def test_page_loads_nothing_from_elsewhere() -> None:
    page = page_of(run_of(1))

    assert re.findall(r"(?:src|href)=\"(?!#)", page) == []
    assert "<script" not in page and "@import" not in page and "url(" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("field", ["realm", "subject", "kind", "error", "notes", "reason", "type", "store"])
def test_everything_that_comes_from_a_store_is_escaped(field: str) -> None:
    fields: dict[str, object] = {"notes": (NASTY,)} if field == "notes" else {}
    if field in ("realm", "subject", "kind", "error"):
        fields[field] = NASTY
    if field == "reason":
        fields["counts"] = {"kept": {NASTY: 3}}
    if field == "type":
        fields["counts"] = {"types": {NASTY: {"head": 3}}}
    page = report_page([run_of(1, **fields)], store=NASTY if field == "store" else "s", now=NOW)

    assert "<script" not in page
    assert "&lt;script&gt;alert(" in page
    parsed(page)


def test_page_without_runs_says_so() -> None:
    assert "There was no run of maintenance yet." in page_of()


@pytest.mark.parametrize("counts", [{}, {"kept": None, "types": 3, "seconds": {"mark": "x"}, "deletedTypes": {"a": 1}}])
def test_counts_that_another_release_wrote_otherwise_are_left_out(counts: dict[str, object]) -> None:
    parsed(page_of(run_of(1, counts=counts)))


def test_failed_run_is_told_with_its_reason() -> None:
    page = page_of(run_of(1, error="reference 'grants' dangles"), run_of(2))

    assert 'class="failed"' in page and "reference &#39;grants&#39; dangles" in page
    assert re.search(r"failed</span><b>1</b>", page)


def test_stack_is_as_high_as_its_share_of_the_axis() -> None:
    chart = column_chart("t", "a", [Series("x", "x", [30, 10]), Series("y", "y", [10, 0])], ["1", "2"], text=chart_count_text)

    heights = [bar.height for bar in chart.bars]
    assert [tick.text for tick in chart.ticks] == ["0", "10", "20", "30", "40"]
    assert heights == pytest.approx([127.5, 42.5, 42.5])


def test_axis_of_counts_has_whole_numbers() -> None:
    chart = bar_chart("t", "a", [Series("x", "x", [2, 1])], ["one", "two"], text=chart_count_text)

    assert [tick.text for tick in chart.ticks] == ["0", "1", "2"]


def test_long_name_beside_a_row_is_cut_in_its_middle() -> None:
    chart = bar_chart("t", "a", [Series("x", "x", [1])], ["a_namespace_with_a_very_long_name_of_2026"], text=chart_count_text)

    assert chart.labels[0].text == "a_namespace_w…g_name_of_2026"
    assert len(chart.labels[0].text) == 28
    assert chart.bars[0].title.startswith("a_namespace_with_a_very_long_name_of_2026:")


def test_rows_end_with_their_totals() -> None:
    chart = bar_chart("t", "a", [Series("x", "x", [3072, 1024])], ["one", "two"], text=chart_bytes_text)

    assert [total.text for total in chart.totals] == ["3 KiB", "1 KiB"]
    assert [tick.text for tick in chart.ticks] == ["0 B", "1 KiB", "2 KiB", "3 KiB"]


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        (chart_count_text, 0, "0"),
        (chart_count_text, 1234, "1.2k"),
        (chart_count_text, 5e6, "5M"),
        (chart_bytes_text, 1536, "1.5 KiB"),
        (seconds_text, 0.25, "0.25 s"),
        (seconds_text, 150, "2.5 min"),
        (seconds_text, 7200, "2 h"),
    ],
)
def test_numbers_are_short(text: object, value: float, shown: str) -> None:
    assert text(value) == shown  # type: ignore[operator]


def test_command_writes_the_page_and_replaces_the_one_before(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    headwater.ok("gc", "report", file)
    headwater.ok("gc", "run", realm)

    assert "report of 1 run " in headwater.ok("gc", "report", file)
    assert "Kept, and why" in file.read_text()
    assert [path.name for path in tmp_path.iterdir() if "report" in path.name] == ["report.html"]


def test_page_that_cannot_be_written_is_a_sentence(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    result = headwater("gc", "report", tmp_path / "nowhere" / "report.html")

    assert (result.exit_code, "cannot be written" in result.stderr) == (5, True)


@pytest.fixture
def three_runs(store: Store, realm: str) -> None:
    """A failed one, one long ago, and one of now."""
    now = store.clock.now()
    for age, error in ((9, "refused"), (8, ""), (0, "")):
        started = Micros(now - age * 86_400_000_000)
        record_run(store, run_of(0, started=started, finished=started, realm=realm, error=error))


@pytest.mark.usefixtures("three_runs")
def test_log_shows_failed_runs_alone(headwater: CommandLine) -> None:
    assert [run["error"] for run in headwater.data("gc", "log", "--failed")] == ["refused"]


@pytest.mark.usefixtures("three_runs")
def test_log_shows_runs_since_a_time_alone(headwater: CommandLine) -> None:
    assert len(headwater.data("gc", "log", "--since", "7d")) == 1
    assert len(headwater.data("gc", "log", "--since", "1970-01-01")) == 3


@pytest.mark.usefixtures("three_runs")
def test_log_shows_each_type_on_a_line(headwater: CommandLine) -> None:
    first, *_ = headwater.data("gc", "log", "--since", "7d", "--types")

    assert (first["type"], first["scanned"], first["garbage"], first["deleted"]) == ("iceberg-table", 80, 30, 29)
