"""Figures of the codebase, for a report per change: how easily a reader finds things. No figure has a limit; five rules are tests.

``python tests/house/rulers.py [BASE]`` prints each figure in a commit (``HEAD`` without BASE) and in the working tree, and what is new in
the lists behind them. ``--journeys`` adds how many files a reader opens who follows a journey, which takes minutes. ``--list NAME`` prints
one list in full.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).parents[2]
JOURNEYS = "tests/house/journeys.py"
LAYERS = ("core", "operator", "server", "workers")
LONGEST_FUNCTION = 60
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
BANNER = re.compile(r"#\s*[-=*#~_+]{3,}|#.*[-=*#~_+]{4,}\s*$")
GERUND = re.compile(r"[a-z]*[aeiouy][a-z]*ing")
PRAGMA = re.compile(r"#\s*(noqa|type: ignore|pragma)\b[^#]*$")


@dataclass(frozen=True)
class Module:
    """A Python file. ``path`` is relative to the root of the repository."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def name(self) -> str:
        """As it is imported."""
        return ".".join(Path(self.path).with_suffix("").parts[1:]).removesuffix(".__init__")

    @property
    def stem(self) -> str:
        return Path(self.path).stem

    @property
    def is_named(self) -> bool:
        """Whether somebody chose its name: Python requires ``__init__`` and ``__main__``, and pytest ``conftest``."""
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


Codebase = list[Module]


def read_product(folder: Path = FOLDER, layers: Iterable[str] = LAYERS) -> Codebase:
    paths = [path for layer in layers for path in sorted((folder / layer).rglob("*.py"))]
    return [Module(str(path.relative_to(folder)), path.read_text(encoding="utf-8")) for path in paths]


def read_tests(folder: Path = FOLDER) -> Codebase:
    return read_product(folder, ["tests"])


def core_of(modules: Codebase) -> Codebase:
    return [module for module in modules if module.path.startswith("core/")]


def is_public(name: str) -> bool:
    return not name.startswith("_")


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def percentage(part: int, whole: int) -> float:
    return round(100 * part / max(whole, 1), 1)


def shared_basenames(modules: Codebase) -> list[str]:
    """The modules that have their basename in common with another one."""
    counts = Counter(module.stem for module in modules if module.is_named)
    return [module.path for module in modules if counts[module.stem] > 1]


def doubled_classes(modules: Codebase) -> list[str]:
    """The names that two or more public classes bear."""
    counts = Counter(node.name for module in modules for node in module.classes if is_public(node.name))
    return sorted(name for name, count in counts.items() if count > 1)


def doubled_functions(modules: Codebase) -> list[str]:
    """The names of public functions that two or more modules define."""
    names = [
        {node.name for node in module.tree.body if isinstance(node, Function) and is_public(node.name)} for module in modules
    ]
    counts = Counter(name for found in names for name in found)
    return sorted(name for name, count in counts.items() if count > 1)


def gerunds(modules: Codebase) -> list[str]:
    """The modules whose last word is a verb's -ing form. ``string`` and ``ring`` are none: what is before -ing has no vowel."""
    return [module.path for module in modules if module.is_named and GERUND.fullmatch(module.stem.rpartition("_")[2])]


def names_of_tests(modules: Codebase) -> list[str]:
    """The name of every test, without ``test_``: it is a sentence, whose words are parted by underscores."""
    nodes = (node for module in modules if module.stem.startswith("test_") for node in module.nodes)
    return [node.name.removeprefix("test_") for node in nodes if isinstance(node, Function) and node.name.startswith("test_")]


def words_of(name: str) -> int:
    return len(name.split("_"))


def wordy_tests(modules: Codebase) -> list[str]:
    """The tests whose name has more words than a reader takes in at once."""
    return sorted((name for name in names_of_tests(modules) if words_of(name) > MANY_WORDS), key=words_of, reverse=True)


def subjectless_tests(modules: Codebase) -> list[str]:
    """The tests whose name does not begin with its subject; in a class its name may be the subject."""
    return sorted(name for name in names_of_tests(modules) if SUBJECTLESS.match(name))


def owners_of_methods(modules: Codebase) -> Counter[str]:
    """How many classes define a method of each name. The public API is no owner: its objects repeat what they lead to, on purpose."""
    classes = (node for module in modules if not module.path.startswith(PUBLIC_API) for node in module.classes)
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


def calls_with_many_owners(modules: Codebase) -> float:
    """Of a hundred calls on another object, whose method some class of the codebase defines, those where five or more classes do."""
    owners = owners_of_methods(modules)
    counts = [owners[name] for module in modules for name in calls_on_others(module) if owners[name]]
    return percentage(sum(count >= MANY_OWNERS for count in counts), len(counts))


def is_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    return isinstance(node, ast.Import | ast.ImportFrom)


def import_share(modules: Codebase) -> float:
    """Of a hundred lines, those that are imports or ``__all__``."""
    imported = sum(
        lines_of(node) for module in modules for node in module.nodes if isinstance(node, ast.stmt) and is_import(node)
    )
    return percentage(imported, sum(len(module.lines) for module in modules))


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


def comments_per_thousand(modules: Codebase) -> float:
    """Comment lines for a thousand lines of code."""
    comments = sum(1 for module in modules for _ in comment_lines(module))
    return round(1000 * comments / max(sum(map(code_lines, modules)), 1), 1)


def hard_places(modules: Codebase) -> Codebase:
    return [module for module in modules if module.path.startswith(tuple(f"{place}/" for place in HARD_PLACES))]


def leaning_docstrings(modules: Codebase) -> list[str]:
    """Docstrings that cannot be read without their neighbor: they begin with Of, The same or As."""
    return [
        f"{module.path}:{node.lineno}" for module in modules for node, text in module.documented if LEANING.match(text.lstrip())
    ]


def import_circles(modules: Codebase) -> list[list[str]]:
    """Modules that import each other, also within functions and for type checkers alone; each circle sorted by name."""
    named = {module.name: module for module in modules}
    imports = {name: {found for found in imported_names(module, named) if found != name} for name, module in named.items()}
    reached = {name: reachable(name, imports) for name in imports}
    circles = {
        tuple(sorted(other for other in reached[name] if name in reached[other])) for name in imports if name in reached[name]
    }
    return sorted(map(list, circles))


def imported_names(module: Module, known: Mapping[str, Module]) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield from (found for found in [name if name in known else node.module] if found in known)


def reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = set(edges[start])
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= edges[name] - found
    return found


def logical_lines(node: ast.AST) -> int:
    """Statements in a function, without its docstring: a table of routes or a text of SQL is one, however many lines it has."""
    statements = sum(isinstance(child, ast.stmt | ast.ExceptHandler) for child in ast.walk(node)) - 1
    return statements - bool(isinstance(node, Function) and ast.get_docstring(node))


def long_functions(modules: Codebase) -> list[str]:
    """The functions with more than LONGEST_FUNCTION logical lines."""
    functions = ((module, node) for module in modules for node in module.nodes if isinstance(node, Function))
    return [f"{module.path}:{node.lineno} {node.name}" for module, node in functions if logical_lines(node) > LONGEST_FUNCTION]


def banners(modules: Codebase) -> list[str]:
    """Comments that draw a line or a heading."""
    return [f"{module.path}:{number}" for module in modules for number, line in enumerate(module.lines, 1) if is_banner(line)]


def is_banner(line: str) -> bool:
    return BANNER.match(line.strip()) is not None


def error_roots(modules: Codebase) -> list[str]:
    """Exceptions that derive from none of the codebase."""
    classes = {
        node.name: [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        for module in modules
        for node in module.classes
    }
    return sorted(
        name for name, bases in classes.items() if any(map(is_foreign_error, bases)) and not set(bases) & set(classes)
    )


def is_foreign_error(name: str) -> bool:
    found = getattr(builtins, name, None)
    return (isinstance(found, type) and issubclass(found, BaseException)) or name.endswith(("Error", "Exception"))


@dataclass(frozen=True)
class Ruler:
    """One figure of the codebase."""

    name: str
    measure: Callable[[Codebase], float]


def many(measure: Callable[[Codebase], Iterable[object]]) -> Callable[[Codebase], float]:
    return lambda modules: len(list(measure(modules)))


RULERS = (
    Ruler("modules", many(list)),
    Ruler("modules of core", many(core_of)),
    Ruler("lines", lambda modules: sum(len(module.lines) for module in modules)),
    Ruler("lines of core", lambda modules: sum(len(module.lines) for module in core_of(modules))),
    Ruler("lines of a module, median", lambda modules: statistics.median(len(module.lines) for module in modules)),
    Ruler("lines of a module, maximum", lambda modules: max(len(module.lines) for module in modules)),
    Ruler("modules without a docstring", many(lambda modules: [one for one in modules if not ast.get_docstring(one.tree)])),
    Ruler("modules that share their basename", many(shared_basenames)),
    Ruler("function names used twice", many(doubled_functions)),
    Ruler("modules named by a gerund", many(gerunds)),
    Ruler("calls whose name has five owners, percent", calls_with_many_owners),
    Ruler("imports and __all__, percent of core", lambda modules: import_share(core_of(modules))),
    Ruler("comments per 1000 lines in hard places", lambda modules: comments_per_thousand(hard_places(modules))),
    Ruler("docstrings that lean on a neighbor", many(leaning_docstrings)),
)
TEST_RULERS = (
    Ruler("test modules", many(list)),
    Ruler("tests", many(names_of_tests)),
    Ruler("test modules named by a gerund", many(gerunds)),
    Ruler("words in the name of a test, median", lambda modules: statistics.median(map(words_of, names_of_tests(modules)))),
    Ruler("test names of more than twelve words", many(wordy_tests)),
    Ruler("test names that do not begin with their subject", many(subjectless_tests)),
)
LISTS: Mapping[str, Callable[[Codebase], list[str]]] = {
    "basenames": shared_basenames,
    "functions": doubled_functions,
    "gerunds": gerunds,
    "docstrings": leaning_docstrings,
}
TEST_LISTS: Mapping[str, Callable[[Codebase], list[str]]] = {
    "test-gerunds": gerunds,
    "test-names": wordy_tests,
    "test-subjects": subjectless_tests,
}


@dataclass(frozen=True)
class Survey:
    """What was measured in one tree."""

    figures: Mapping[str, float]
    lists: Mapping[str, list[str]]


def survey(folder: Path, *, with_journeys: bool = False) -> Survey:
    product, tests = read_product(folder), read_tests(folder)
    figures = {ruler.name: ruler.measure(product) for ruler in RULERS} | {
        ruler.name: ruler.measure(tests) for ruler in TEST_RULERS
    }
    lists = {name: measure(product) for name, measure in LISTS.items()} | {
        name: measure(tests) for name, measure in TEST_LISTS.items()
    }
    return Survey(figures | (follow_journeys(folder) if with_journeys else {}), lists)


def follow_journeys(folder: Path) -> dict[str, float]:
    """How many files each journey opens in a tree. Nothing where its journeys cannot be followed."""
    paths = os.pathsep.join(str(folder / layer) for layer in LAYERS)
    with tempfile.TemporaryDirectory() as made:
        found = Path(made) / "journeys"
        environment = {**os.environ, "PYTHONPATH": paths, "HEADWATER_JOURNEYS": str(found)}
        call = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", JOURNEYS]
        subprocess.run(call, cwd=folder, env=environment, check=False, stdout=subprocess.DEVNULL)
        lines = found.read_text(encoding="utf-8").splitlines() if found.exists() else []
    return {f"files opened: {name}": count for name, count in map(json.loads, lines)}


def survey_commit(commit: str, *, with_journeys: bool = False) -> Survey:
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=FOLDER, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        return survey(Path(folder), with_journeys=with_journeys)


def compare(before: Survey, after: Survey) -> list[str]:
    """A line for each figure, then what the lists have now and had not."""
    lines = [figure_line(name, before.figures.get(name), figure) for name, figure in after.figures.items()]
    news = {name: sorted(set(found) - set(before.lists.get(name, []))) for name, found in after.lists.items()}
    return lines + [f"new in {name}: {', '.join(found)}" for name, found in news.items() if found]


def figure_line(name: str, before: float | None, after: float) -> str:
    change = "" if before is None or before == after else f"{after - before:+,.10g}"
    return f"{name:50} {'-' if before is None else f'{before:,g}':>10} -> {after:>10,g} {change:>10}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", default="HEAD", help="the commit to compare with")
    parser.add_argument("--journeys", action="store_true", help="count the files that journeys open, too")
    parser.add_argument("--list", choices=[*LISTS, *TEST_LISTS], help="print what one figure counts, and nothing else")
    options = parser.parse_args()
    after = survey(FOLDER, with_journeys=options.journeys)
    lines = (
        after.lists[options.list]
        if options.list
        else compare(survey_commit(options.base, with_journeys=options.journeys), after)
    )
    print(*lines, sep="\n")  # noqa: T201 - the output of a program


if __name__ == "__main__":
    main()
