"""What the rulers count, shown on codebases of a few lines."""

from __future__ import annotations

import inspect
import threading

import pytest
from rulers import (
    Module,
    Survey,
    banners,
    calls_with_many_owners,
    comments_per_thousand,
    compare,
    doubled_classes,
    doubled_functions,
    error_roots,
    gerunds,
    import_circles,
    import_share,
    leaning_docstrings,
    long_functions,
    names_of_tests,
    shared_basenames,
    subjectless_tests,
    wordy_tests,
)

from headwater.catalogs import ContentKey
from opened_files import FOLDER, Journey


def make_modules(**texts: str) -> list[Module]:
    """``make_modules(a__b="x = 1")`` has a module ``a/b.py``."""
    return [Module(f"{name.replace('__', '/')}.py", text) for name, text in texts.items()]


def test_basename_of_two_modules_is_shared() -> None:
    modules = make_modules(a__log="", b__log="", b__merge="")

    assert shared_basenames(modules) == ["a/log.py", "b/log.py"]


def test_faces_of_packages_share_no_basename() -> None:
    assert shared_basenames([Module("a/__init__.py", ""), Module("b/__init__.py", "")]) == []


def test_private_classes_may_be_doubled() -> None:
    modules = make_modules(a="class Page: ...\nclass _Step: ...", b="class Page: ...\nclass _Step: ...")

    assert doubled_classes(modules) == ["Page"]


def test_methods_are_no_doubled_functions() -> None:
    modules = make_modules(a="def run(): ...\nclass A:\n    def stop(self): ...", b="def run(): ...\ndef stop(): ...")

    assert doubled_functions(modules) == ["run"]


@pytest.mark.parametrize(
    ("name", "is_gerund"),
    [("merging", True), ("realm_planning", True), ("string", False), ("ring", False), ("settings", False)],
)
def test_gerund_is_a_verb_with_ing(name: str, is_gerund: bool) -> None:
    assert gerunds(make_modules(**{name: ""})) == [f"{name}.py"] * is_gerund


def test_calls_on_others_count_by_the_owners_of_their_method() -> None:
    owners = "\n".join(f"class C{n}:\n    def read(self): ...\n    def only_{n}(self): ..." for n in range(5))
    calls = "import msgspec\nthing.read()\nthing.only_1()\nthing.of_nobody()\nself.read()\nsuper().read()\nmsgspec.read()"

    assert calls_with_many_owners(make_modules(a=owners, b=calls)) == 50.0


def test_imports_count_with_every_line() -> None:
    text = "from a import (\n    b,\n    c,\n)\n__all__ = []\n\n\nx = 1\ny = 2\nz = 3\n"

    assert import_share(make_modules(a=text)) == 50.0


def test_comments_count_for_the_code_beside_them() -> None:
    text = '"""Docstring."""\n# why\nx = 1  # because\ny = 2  # noqa: E501\n\nz = 3  # type: ignore[misc]  # as it is\nw = 4\n'

    assert comments_per_thousand(make_modules(a=text)) == 750.0


@pytest.mark.parametrize(("text", "leans"), [("Of a list.", True), ("The same.", True), ("Offer a list.", False)])
def test_docstring_leans_when_it_begins_with_its_neighbor(text: str, leans: bool) -> None:
    assert leaning_docstrings(make_modules(a=f'x = 1\n\ndef f():\n    """{text}"""\n')) == ["a.py:4"] * leans


def test_names_of_tests_are_counted_without_their_prefix() -> None:
    modules = make_modules(
        test_a="def test_swap_moves_it(): ...\nclass A:\n    def test_b(self): ...", b="def test_of_no_test(): ..."
    )

    assert sorted(names_of_tests(modules)) == ["b", "swap_moves_it"]


def test_wordy_names_have_more_than_twelve_words() -> None:
    names = ["test_" + "_".join("a" * words) for words in (12, 13)]

    assert wordy_tests(make_modules(test_a="\n".join(f"def {name}(): ..." for name in names))) == ["_".join("a" * 13)]


@pytest.mark.parametrize(
    ("name", "is_counted"), [("a_swap", True), ("what_is", True), ("swap_wins", False), ("anchor_is", False)]
)
def test_name_without_its_subject_is_counted(name: str, is_counted: bool) -> None:
    assert subjectless_tests(make_modules(test_a=f"def test_{name}(): ...")) == [name] * is_counted


def test_deferred_import_closes_a_circle() -> None:
    modules = make_modules(core__a="import b", core__b="def f():\n    from c import g", core__c="import a", core__d="import a")

    assert import_circles(modules) == [["a", "b", "c"]]


def test_table_of_many_lines_does_not_make_a_function_long() -> None:
    table = "def f():\n    return [\n" + "        1,\n" * 100 + "    ]\n"
    steps = "def g():\n" + "    x = 1\n" * 61

    assert long_functions(make_modules(a=table + steps)) == ["a.py:104 g"]


@pytest.mark.parametrize(
    ("line", "is_counted"), [("# ----", True), ("# Reading =====", True), ("# a - b", False), ("x = 1  # ----", False)]
)
def test_banner_is_a_comment_that_draws_a_line(line: str, is_counted: bool) -> None:
    assert banners(make_modules(a=line)) == ["a.py:1"] * is_counted


def test_error_that_derives_from_another_is_not_a_root() -> None:
    text = "class RootError(Exception): ...\nclass LeafError(RootError, ValueError): ...\nclass Other(Base): ..."

    assert error_roots(make_modules(a=text)) == ["RootError"]


def test_report_has_each_figure_before_and_after_and_what_is_new() -> None:
    before, after = (
        Survey({"modules": 2}, {"gerunds": ["a.py"]}),
        Survey({"modules": 3, "lines": 9}, {"gerunds": ["a.py", "b.py"]}),
    )

    assert [line.split() for line in compare(before, after)] == [
        ["modules", "2", "->", "3", "+1"],
        ["lines", "-", "->", "9"],
        ["new", "in", "gerunds:", "b.py"],
    ]


@pytest.mark.parametrize("is_in_thread", [False, True])
def test_journey_has_the_files_of_all_calls(is_in_thread: bool) -> None:
    journey = Journey()

    with journey.traced():
        if is_in_thread:
            thread = threading.Thread(target=ContentKey.of, args=("sales",))
            thread.start()
            thread.join()
        else:
            ContentKey.of("sales")

    assert [str(FOLDER / file) for file in journey.files] == [inspect.getsourcefile(ContentKey)]
