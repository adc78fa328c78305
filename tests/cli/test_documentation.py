"""``docs/cli.md`` says what the code does."""

from __future__ import annotations

from pathlib import Path

from headwater.cli.documentation import command_line_page
from headwater.cli.views import ALL

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == command_line_page(), "run `make docs`"


def test_every_field_is_named_once_and_explained() -> None:
    for view in ALL:
        names = [field.name for field in view.fields]
        assert len(names) == len(set(names)), view.name
        assert all(field.about for field in view.fields), view.name


def test_json_names_are_camel_case() -> None:
    names = [field.name for view in ALL for field in view.fields]

    assert [name for name in names if not (name.isalnum() and name[0].islower())] == []
