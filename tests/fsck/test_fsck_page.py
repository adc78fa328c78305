"""The page about fsck names every code with its weight, and every step of a repair."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.fsck import FindingCode, RepairAction, RepairStep

PAGE = (Path(__file__).parents[2] / "docs" / "operate" / "fsck.md").read_text(encoding="utf-8")


def test_every_code_stands_on_the_page_with_its_weight() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| (DAMAGE|TROUBLE|LEFTOVER) \|", PAGE, re.MULTILINE))

    assert told == {code.value: code.weight.value for code in FindingCode}


def test_steps_stand_on_the_page_with_their_safety() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| (yes|no) \|", PAGE, re.MULTILINE))
    steps = [RepairStep(action=action, realm="", subject="", does="", loses="", because=()) for action in RepairAction]

    assert told == {step.action.value: "yes" if step.is_safe else "no" for step in steps}
