"""The story of a random lake: steps, runs of every engine that is given, time that passes, and harm at the end."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headwater.errors import UnavailableError
from lake_oracle.lake_harm import HARMS
from lake_oracle.lake_steps import STEPS, LakeStep
from lake_oracle.lake_verdict import DAY, LakeVerdict
from lake_oracle.random_lake import LakeEngine, RandomLake
from lake_oracle.ref_steps import collect
from lake_oracle.report_adapter import HeadwaterReport
from lake_oracle.table_steps import create_table

MakeEngines = Callable[[RandomLake], Mapping[str, LakeEngine]]
ScriptLine = Callable[[RandomLake], str] | str | int
_TRIES = 20
_ROLLED_BACK = 5
"""Of so many lakes one has its database rolled back."""


@dataclass(slots=True)
class LakeStory:
    """What came of a lake.

    faults        of each engine that had some, in its first run that had
    checked       how often a verdict has judged what
    """

    seed: int
    history: list[str]
    faults: dict[str, list[str]] = field(default_factory=dict)
    checked: dict[str, int] = field(default_factory=dict)
    runs: int = 0

    def text(self, *, shown: int = 10) -> str:
        lines = [f"HEADWATER_SEED={self.seed}", *(f"  {at:3}  {line}" for at, line in enumerate(self.history))]
        for name, faults in self.faults.items():
            lines += [f"{name}: {len(faults)} faults", *(f"  {fault}" for fault in faults[:shown])]
        return "\n".join(lines)


def tell_story(seed: int, folder: Path, make_engines: MakeEngines, *, steps: int = 14) -> LakeStory:
    """Let a lake happen. An engine that has made a mistake is asked no more.

    steps         before the first run; about as many follow
    """
    return _told(seed, folder, make_engines, lambda teller: teller.tell(steps), on_disk=seed % _ROLLED_BACK == 0)


def tell_script(seed: int, folder: Path, make_engines: MakeEngines, script: Sequence[ScriptLine]) -> LakeStory:
    """Let exactly this happen in a lake: steps, times to wait in days, ``run``, ``save`` and ``roll back``."""
    return _told(seed, folder, make_engines, lambda teller: teller.follow(script), on_disk="save" in script)


def _told(seed: int, folder: Path, make_engines: MakeEngines, tell: Callable[[_Teller], None], *, on_disk: bool) -> LakeStory:
    with _same_names(seed):
        teller = _Teller(seed, folder, make_engines, on_disk=on_disk)
        try:
            tell(teller)
        except _NothingLeftError:
            pass
        except Exception as fault:
            raise AssertionError(f"{fault!r}\n{teller.story.text()}") from fault
        finally:
            teller.lake.close()
    return teller.story


@contextmanager
def _same_names(seed: int) -> Iterator[None]:
    """Let pyiceberg give the same names to files whenever a seed is told."""
    chance = random.Random(f"names of {seed}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=chance.getrandbits(128), version=4))
        yield


class _Teller:
    def __init__(self, seed: int, folder: Path, make_engines: MakeEngines, *, on_disk: bool) -> None:
        self.is_rolled_back = on_disk
        self.lake = RandomLake(seed, folder, on_disk=on_disk)
        self._engines = dict(make_engines(self.lake))
        self._verdicts = {name: LakeVerdict() for name in self._engines}
        self.lake.watchers += [*self._engines.values(), *self._verdicts.values()]
        self.story = LakeStory(seed, self.lake.history)

    def tell(self, steps: int) -> None:
        chance = self.lake.chance
        for _ in range(2):
            self._step([LakeStep(create_table)])
        self._steps(steps)
        self._run()
        for round_ in range(chance.randrange(2, 4)):
            if self.is_rolled_back and round_ == 1:
                self._roll_back()
            self._steps(chance.randrange(2, 1 + steps // 2))
            self._collect_perhaps(0.4)
            (self._run_disturbed if chance.random() < 0.3 else self._run)()
            if chance.random() < 0.5:
                self._wait(9)
        self._run()
        if chance.random() < 0.6:
            for _ in range(chance.randrange(1, 3)):
                self._step(HARMS)
            self._run()
            self._collect_perhaps(0.3)
            self._wait(9)
            self._run()

    def follow(self, script: Sequence[ScriptLine]) -> None:
        """Do what a script says."""
        words = {"run": self._run, "save": self.lake.save, "roll back": self.lake.roll_back}
        for line in script:
            if isinstance(line, str):
                self.lake.history.append(line)
                words[line]()
            elif isinstance(line, int):
                self._wait(line)
            else:
                self._step([LakeStep(line)])

    def _steps(self, count: int) -> None:
        for _ in range(count):
            self._step(STEPS)

    def _step(self, steps: Sequence[LakeStep]) -> None:
        lake = self.lake
        weights = [step.weight for step in steps]
        for _ in range(_TRIES):
            (step,) = lake.chance.choices(steps, weights)
            lake.clock.advance(1)
            try:
                lake.history.append(f"({step.do.__name__})")
                lake.history[-1] = step.do(lake)
            except LookupError:
                lake.history.pop()
                continue
            lake.settle()
            return

    def _collect_perhaps(self, share: float) -> None:
        if self.lake.chance.random() < share:
            self._step([LakeStep(collect)])

    def _wait(self, days: float) -> None:
        self.lake.clock.advance(days * DAY)
        self.lake.history.append(f"wait for {days} days")

    def _roll_back(self) -> None:
        """Copy the database, go on, and put the copy back."""
        lake = self.lake
        lake.save()
        lake.history.append("copy the database")
        self._steps(lake.chance.randrange(1, 5))
        self._collect_perhaps(0.5)
        if lake.chance.random() < 0.7:
            self._run()
        lake.clock.advance(3600)
        lake.roll_back()
        lake.history.append("put the copy of the database back")

    def _run_disturbed(self) -> None:
        """Let every report that can be disturbed go on while others act, and let all look again."""
        lake = self.lake
        disturbed = {name: engine for name, engine in self._engines.items() if isinstance(engine, HeadwaterReport)}
        for name, engine in disturbed.items():
            lake.clock.advance(1)
            view = lake.view()
            view.model = view.model.copy()
            act = self._kill if lake.chance.random() < 0.4 else self._act_meanwhile
            engine.meanwhile = lake.chance.choice((1, 2, 3, 4, 6, 8, 12, 16, 24)), act
            lake.history.append("while a report is on:")
            try:
                outcome = engine.run(view)
            except (UnavailableError, _KilledError) as fault:
                lake.history.append(f"the report ends: {fault!r}")
                self._verdicts[name].note_broken_run()
                continue
            lake.history.append("the report is over")
            self._note_faults(name, engine, self._verdicts[name].check_disturbed(view, lake.model, outcome))
        self._run()

    def _kill(self) -> None:
        raise _KilledError

    def _act_meanwhile(self) -> None:
        self._steps(self.lake.chance.randrange(1, 4))

    def _run(self) -> None:
        lake = self.lake
        lake.settle()
        lake.clock.advance(1)
        lake.history.append(f"run {self.story.runs + 1}, at day {lake.now / DAY % 1000:.2f}")
        self.story.runs += 1
        for name, engine in list(self._engines.items()):
            view = lake.view()
            faults = self._verdicts[name].check(view, engine.run(view))
            for what, count in self._verdicts[name].checked.items():
                self.story.checked[what] = self.story.checked.get(what, 0) + count
            self._verdicts[name].checked.clear()
            self._note_faults(name, engine, faults)

    def _note_faults(self, name: str, engine: LakeEngine, faults: list[str]) -> None:
        if faults:
            self.story.faults[name] = faults
            self.lake.watchers = [each for each in self.lake.watchers if each not in (engine, self._verdicts[name])]
            del self._engines[name], self._verdicts[name]
        if not self._engines:
            raise _NothingLeftError


class _KilledError(Exception):
    """A report ends in the middle of what it does."""


class _NothingLeftError(Exception):
    """Every engine has made its mistake: the rest of the lake's story is nobody's."""
