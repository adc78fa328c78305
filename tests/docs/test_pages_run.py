"""Every command and block of README, the quick start and the how-tos is run, in order, in a fresh environment."""

from __future__ import annotations

import dataclasses
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_blocks import blocks_of, matches
from page_terminals import page_terminals

from free_ports import free_port

FOLDER = Path(__file__).parents[2]
HERE = Path(__file__).parent
PAGES = [
    FOLDER / "README.md",
    *sorted((FOLDER / "docs" / "start").glob("*.md")),
    *sorted((FOLDER / "docs" / "how-to").glob("*.md")),
]
RUN_LANGUAGES = {"bash", "console", "python"}
NOT_RUN_ALLOWED = {
    "README.md": 6,
    "install.md": 2,
    "import-a-warehouse.md": 1,
    "nessie.md": 6,
    "pyiceberg.md": 1,
    "spark.md": 19,
    "upgrade.md": 1,
}
"""How many blocks of a page may be marked as not run here. Each says why."""
LAKE = (
    "python {examples}/warehouse.py warehouse >/dev/null",
    "headwater realm create acme --credentials acme.json",
    'headwater catalog create acme/lake --base-location "file://$PWD/warehouse"',
    'headwater import acme/lake "file://$PWD/warehouse" || [ $? = 8 ]',
)


def shown(page: Path) -> str:
    return str(page.relative_to(FOLDER))


RUN_PAGES = [page for page in PAGES if any(not block.not_run for block in blocks_of(page)[1])]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What a new user has: an empty home, the programs of this installation, and no variable of ours."""
    folder = tmp_path_factory.mktemp("pages")
    programs, home = folder / "bin", folder / "home"
    programs.mkdir()
    home.mkdir()
    for name in ("headwater", "headwater-session"):
        program = programs / name
        client = (HERE / "command_client.py").read_text(encoding="utf-8")
        program.write_text(f"#!{sys.executable} -IS\n{client}", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    zygote = subprocess.Popen(
        [sys.executable, str(HERE / "command_zygote.py"), str(folder / "zygote")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert zygote.stdout is not None and zygote.stdout.readline() == "ready\n"
    yield {
        "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "USER": "me",
        "LANG": "C.UTF-8",
        "PAGE_ZYGOTE": str(folder / "zygote"),
    }
    zygote.communicate(timeout=20)  # which closes its standard input, and so ends it


@dataclasses.dataclass(frozen=True)
class Desk:
    """The folder that pages are run in, and what lies there when a page begins with a lake: tables know their folder, so it is one."""

    folder: Path
    lake: Path

    def lay_out(self, setup: str) -> Path:
        """Empty the folder, and put in what the page asks for."""
        shutil.rmtree(self.folder)
        if setup == "lake":
            shutil.copytree(self.lake, self.folder)
        elif setup == "warehouse":
            shutil.copytree(self.lake / "warehouse", self.folder / "warehouse")
        else:
            self.folder.mkdir()
        return self.folder


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Desk:
    folder = tmp_path_factory.mktemp("desk")
    work = folder / "work"
    work.mkdir()
    script = " && ".join(f"{{ {line.format(examples=FOLDER / 'examples')}; }}" for line in LAKE)
    made = subprocess.run(
        ["bash", "-c", script], cwd=work, env=environment, check=False, capture_output=True, text=True, timeout=180
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return Desk(work, shutil.copytree(work, folder / "lake"))


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.mark.long
@pytest.mark.parametrize("page", RUN_PAGES, ids=shown)
def test_page_does_what_it_shows(page: Path, environment: dict[str, str], desk: Desk, port: int) -> None:
    setup, blocks = blocks_of(page)
    blocks = [dataclasses.replace(block, text=block.text.replace("8181", str(port))) for block in blocks]
    listening = environment | {"HEADWATER_SERVER_LISTEN": f"127.0.0.1:{port}"}  # pages that serve run side by side
    with page_terminals(desk.lay_out(setup), listening, shown(page)) as terminals:
        for block, follower in zip(blocks, [*blocks[1:], None], strict=True):
            if not block.not_run:
                terminals.run(block, follower)


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_each_block_is_run_or_says_why_not(page: Path) -> None:
    _, blocks = blocks_of(page)
    unclear = [
        (block.line, block.language)
        for block in blocks
        if not (block.language in RUN_LANGUAGES or block.file or block.not_run or block.language == "text")
    ]
    not_run = [(block.line, block.not_run) for block in blocks if block.not_run]

    assert unclear == []
    assert len(not_run) <= NOT_RUN_ALLOWED.get(page.name, 0), not_run


def test_pages_that_run_are_most_of_them() -> None:
    assert len(RUN_PAGES) >= 12


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("id: …", "id:   42", True),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\nd", "a\nb\nd", False),
        ("id: …\nx", "id: 4\ny", False),
        ("a.c", "abc", False),
    ],
)
def test_dots_stand_for_anything(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


@pytest.mark.long
def test_command_that_fails_fails_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ false\n```\n", encoding="utf-8")
    [block] = blocks_of(page)[1]

    environment, message = {"PATH": "/usr/bin:/bin"}, r"page\.md:1: exit code 1"
    with page_terminals(tmp_path, environment, "page.md") as terminals, pytest.raises(AssertionError, match=message):
        terminals.run(block, None)
