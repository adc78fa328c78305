"""The engines run among the long tests; the quick ones judge histories that were made by hand, and what is public."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
QUICK = ("histories", "model", "outcomes/test_numbers_from_outside.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them before ``-m`` selects. Whatever folder is new is long, too."""
    for item in items:
        if item.path.is_relative_to(FOLDER) and not item.path.relative_to(FOLDER).as_posix().startswith(QUICK):
            item.add_marker(pytest.mark.long)
