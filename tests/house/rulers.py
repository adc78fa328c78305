"""How easily a reader finds things in the house, in figures: names that mean two things, addresses, and the reasons in hard places.

``python tests/house/rulers.py`` prints each figure beside its limit; ``--basenames``, ``--classes``, ``--functions``, ``--gerunds``,
``--docstrings``, ``--test-gerunds``, ``--test-names`` and ``--test-subjects`` list what was counted; ``--lower`` writes into
``limits.toml`` what has become better.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).parents[2]
LIMITS = Path(__file__).with_name("limits.toml")
FLOORS = ("core", "operator", "server", "workers")
HARD_PLACES = ("core/headwater/commits", "core/headwater/gc", "core/headwater/store/backends")
"""Where the order of two lines saves data, and a race is guarded against: here the reasons stand beside the lines."""

PUBLIC_API = "core/headwater/api/"
MANY_OWNERS = 5
MANY_WORDS = 12
Function = ast.FunctionDef | ast.AsyncFunctionDef
SUBJECTLESS = re.compile(
    r"(an?|the|what|who|whoever|whatever|whichever|of|when|where|wherever|while|it|after|before|without|with|during|within|in|at|as|for|by"
    r"|on|if|that|there|those|nothing|nobody|only)_"
)
"""How the name of a test begins that does not begin with its subject, and so does not stand beside what is said of it."""
LEANING = re.compile(r"(Of|The same|As)\b")
GERUND = re.compile(r"[a-z]*[aeiouy][a-z]*ing")
PRAGMA = re.compile(r"#\s*(noqa|type: ignore|pragma)\b[^#]*$")


@dataclass(frozen=True)
class Module:
    """One file of Python. ``path`` is relative to the folder that the floors are in."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def stem(self) -> str:
        return Path(self.path).stem

    @property
    def is_named(self) -> bool:
        """Whether somebody chose its name: Python wants ``__init__`` and ``__main__``, and pytest ``conftest``."""
        return not self.stem.startswith("__") and self.stem != "conftest"

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    @property
    def documented(self) -> Iterator[tuple[ast.Expr, str]]:
        """Every docstring, beside its statement."""
        for node in self.nodes:
            if isinstance(node, ast.Module | ast.ClassDef | Function) and (text := ast.get_docstring(node)):
                statement = node.body[0]
                assert isinstance(statement, ast.Expr)
                yield statement, text


House = list[Module]


def read_house(folder: Path = FOLDER, floors: Iterable[str] = FLOORS) -> House:
    paths = [path for floor in floors for path in sorted((folder / floor).rglob("*.py"))]
    return [Module(str(path.relative_to(folder)), path.read_text(encoding="utf-8")) for path in paths]


def read_tests(folder: Path = FOLDER) -> House:
    return read_house(folder, ["tests"])


def core_of(house: House) -> House:
    return [module for module in house if module.path.startswith("core/")]


def is_public(name: str) -> bool:
    return not name.startswith("_")


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def percentage(part: int, whole: int) -> float:
    return round(100 * part / max(whole, 1), 1)


def shared_basenames(house: House) -> list[str]:
    """The modules that have their basename in common with another one."""
    counts = Counter(module.stem for module in house if module.is_named)
    return [module.path for module in house if counts[module.stem] > 1]


def doubled_classes(house: House) -> list[str]:
    """The names that two or more public classes bear."""
    counts = Counter(node.name for module in house for node in module.classes if is_public(node.name))
    return sorted(name for name, count in counts.items() if count > 1)


def doubled_functions(house: House) -> list[str]:
    """The names of public functions that two or more modules define."""
    names = [
        {node.name for node in module.tree.body if isinstance(node, Function) and is_public(node.name)} for module in house
    ]
    counts = Counter(name for found in names for name in found)
    return sorted(name for name, count in counts.items() if count > 1)


def gerunds(house: House) -> list[str]:
    """The modules whose last word is a verb's -ing form. ``string`` and ``ring`` are none: what is before -ing has no vowel."""
    return [module.path for module in house if module.is_named and GERUND.fullmatch(module.stem.rpartition("_")[2])]


def names_of_tests(house: House) -> list[str]:
    """The name of every test, without ``test_``: it is a sentence, whose words are parted by underscores."""
    nodes = (node for module in house if module.stem.startswith("test_") for node in module.nodes)
    return [node.name.removeprefix("test_") for node in nodes if isinstance(node, Function) and node.name.startswith("test_")]


def words_of(name: str) -> int:
    return len(name.split("_"))


def wordy_tests(house: House) -> list[str]:
    """The tests whose name has more words than a reader takes in at once."""
    return sorted((name for name in names_of_tests(house) if words_of(name) > MANY_WORDS), key=words_of, reverse=True)


def subjectless_tests(house: House) -> list[str]:
    """The tests whose name does not begin with its subject; in a class its name may be the subject."""
    return sorted(name for name in names_of_tests(house) if SUBJECTLESS.match(name))


def owners_of_methods(house: House) -> Counter[str]:
    """How many classes define a method of each name. The public API is no owner: its objects repeat what they lead to, on purpose."""
    classes = (node for module in house if not module.path.startswith(PUBLIC_API) for node in module.classes)
    return Counter(name for node in classes for name in {method.name for method in node.body if isinstance(method, Function)})


def calls_on_others(module: Module) -> Iterator[str]:
    """The methods that a module calls on what is neither ``self``, ``cls`` and ``super()`` nor imported."""
    imports = [node for node in module.nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    known = {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names} | {"self", "cls"}
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver = node.func.value
            if isinstance(receiver, ast.Name) and receiver.id in known:
                continue
            if isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super":
                continue
            yield node.func.attr


def calls_with_many_owners(house: House) -> float:
    """Of a hundred calls on another object, whose method some class of the house defines, those where five or more classes do."""
    owners = owners_of_methods(house)
    counts = [owners[name] for module in house for name in calls_on_others(module) if owners[name]]
    return percentage(sum(count >= MANY_OWNERS for count in counts), len(counts))


def is_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    return isinstance(node, ast.Import | ast.ImportFrom)


def import_share(house: House) -> float:
    """Of a hundred lines, those that are imports or ``__all__``."""
    imported = sum(
        lines_of(node) for module in house for node in module.nodes if isinstance(node, ast.stmt) and is_import(node)
    )
    return percentage(imported, sum(len(module.lines) for module in house))


def comment_lines(module: Module) -> Iterator[tuple[int, bool]]:
    """The lines with a comment that tells something, and whether there is nothing else on it."""
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            is_alone = token.line.lstrip().startswith("#")
            if is_alone or not PRAGMA.match(token.string):
                yield token.start[0], is_alone


def code_lines(module: Module) -> int:
    """Lines that are not empty, no docstring and no comment alone."""
    documented = {line for node, _ in module.documented for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    commented = {line for line, is_alone in comment_lines(module) if is_alone}
    filled = {number for number, line in enumerate(module.lines, 1) if line.strip()}
    return len(filled - documented - commented)


def comments_per_thousand(house: House) -> float:
    """Comment lines for a thousand lines of code."""
    comments = sum(1 for module in house for _ in comment_lines(module))
    return round(1000 * comments / max(sum(map(code_lines, house)), 1), 1)


def hard_places(house: House) -> House:
    return [module for module in house if module.path.startswith(tuple(f"{place}/" for place in HARD_PLACES))]


def leaning_docstrings(house: House) -> list[str]:
    """Docstrings that cannot be read without their neighbor: they begin with Of, The same or As."""
    return [
        f"{module.path}:{node.lineno}" for module in house for node, text in module.documented if LEANING.match(text.lstrip())
    ]


@dataclass(frozen=True)
class Ruler:
    """One figure of the house.

    slack     by which part of the limit a figure may be better before the limit has to follow: many people make it better at once
    is_floor  whether more is better
    """

    name: str
    measure: Callable[[House], float]
    slack: float = 0.1
    is_floor: bool = False

    def gain(self, figure: float, limit: float) -> float:
        """By how much a figure is better than its limit."""
        return figure - limit if self.is_floor else limit - figure

    def is_loose(self, figure: float, limit: float) -> bool:
        """Whether the limit has to follow the figure."""
        return self.gain(figure, limit) > self.slack * limit

    def verdict(self, figure: float, limit: float) -> str:
        """What is to be done about a figure, in a sentence. Empty: nothing."""
        if self.gain(figure, limit) < 0:
            return f"{self.name}: {figure:g}, and the limit is {limit:g}; change the code, not the limit"
        if not self.is_loose(figure, limit):
            return ""
        return (
            f"{self.name}: better than asked, {'raise' if self.is_floor else 'lower'} the limit to {figure:g} in {LIMITS.name}"
        )


def many(measure: Callable[[House], Iterable[object]]) -> Callable[[House], float]:
    return lambda house: len(list(measure(house)))


RULERS = (
    Ruler("modules that share their basename", many(shared_basenames)),
    Ruler("class names used twice", many(doubled_classes)),
    Ruler("function names used twice", many(doubled_functions)),
    Ruler("modules named by a gerund", many(gerunds)),
    Ruler("calls whose name has five owners, percent", calls_with_many_owners, slack=0.03),
    Ruler("imports and __all__, percent of core", lambda house: import_share(core_of(house))),
    Ruler("comments per 1000 lines in hard places", lambda house: comments_per_thousand(hard_places(house)), is_floor=True),
    Ruler("docstrings that lean on a neighbor", many(leaning_docstrings)),
    Ruler("modules of core", many(core_of), slack=0.03),
    Ruler("lines of core", lambda house: sum(len(module.lines) for module in core_of(house)), slack=0.02),
)

TEST_RULERS = (
    Ruler("modules that share their basename", many(shared_basenames)),
    Ruler("modules named by a gerund", many(gerunds)),
    Ruler("words of a name, median", lambda house: statistics.median(map(words_of, names_of_tests(house)))),
    Ruler("words of a name, maximum", lambda house: max(map(words_of, names_of_tests(house))), slack=0.3),
    Ruler("names of more than twelve words", many(wordy_tests), slack=1.0),
    Ruler("names that do not begin with their subject", many(subjectless_tests), slack=0.8),
)
"""The figures of the tests, which have limits of their own."""


def read_limits(section: str = "names") -> Mapping[str, float]:
    limits: dict[str, float] = tomllib.loads(LIMITS.read_text(encoding="utf-8"))[section]
    return limits


def lower_limits(text: str, figures: Mapping[str, float], rulers: Iterable[Ruler] = RULERS, section: str = "names") -> str:
    """The text of ``limits.toml`` where each figure that is better than its limit by more than the slack is the limit."""
    limits = tomllib.loads(text)[section]
    before, header, after = text.partition(f"[{section}]\n")
    for ruler in rulers:
        figure, limit = figures[ruler.name], limits[ruler.name]
        if ruler.is_loose(figure, limit):
            after = after.replace(f'"{ruler.name}" = {limit}\n', f'"{ruler.name}" = {figure}\n', 1)
    return before + header + after


LISTS: Mapping[str, Callable[[House], list[str]]] = {
    "basenames": shared_basenames,
    "classes": doubled_classes,
    "functions": doubled_functions,
    "gerunds": gerunds,
    "docstrings": leaning_docstrings,
}
"""What ``rulers.py --basenames`` and its like list, line by line."""
TEST_LISTS: Mapping[str, Callable[[House], list[str]]] = {
    "test-gerunds": gerunds,
    "test-names": wordy_tests,
    "test-subjects": subjectless_tests,
}


def table(figures: Mapping[str, float], limits: Mapping[str, float]) -> list[str]:
    """Each figure, and its limit."""
    lines = [f"{name:42} {figure:10,} {limits[name]:10,}" for name, figure in figures.items()]
    return [f"{'':42} {'is':>10} {'limit':>10}", *lines]


def shape(house: House) -> str:
    sizes, named = [len(module.lines) for module in house], [module for module in house if module.is_named]
    share = percentage(len(gerunds(house)), len(named))
    return f"{statistics.median(sizes):g} lines in the median, {max(sizes)} at most; {share} percent of their names are gerunds"


def main() -> None:
    house, tests = read_house(), read_tests()
    listed = [line for name, measure in LISTS.items() if f"--{name}" in sys.argv for line in measure(house)]
    listed += [line for name, measure in TEST_LISTS.items() if f"--{name}" in sys.argv for line in measure(tests)]
    figures = {ruler.name: ruler.measure(house) for ruler in RULERS}
    of_tests = {ruler.name: ruler.measure(tests) for ruler in TEST_RULERS}
    lines = [*table(figures, read_limits()), f"{len(house)} modules, {shape(house)}"]
    lines += ["", *table(of_tests, read_limits("tests")), f"{len(tests)} modules of tests, {len(names_of_tests(tests))} tests"]
    print(*(listed or lines), sep="\n")  # noqa: T201 - a program that people call
    if "--lower" in sys.argv:
        text = lower_limits(LIMITS.read_text(encoding="utf-8"), figures)
        LIMITS.write_text(lower_limits(text, of_tests, TEST_RULERS, "tests"), encoding="utf-8")


if __name__ == "__main__":
    main()
