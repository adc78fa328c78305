"""The page of the command line, made from the commands, the exit codes and the views of results: ``page()``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from headwater.cli.access_commands import ACCESS_ANSWER, PRIVILEGE_RULE
from headwater.cli.application import main
from headwater.cli.apply_command import APPLIED
from headwater.cli.backup_commands import ARCHIVE, LOADED, RESTORATION
from headwater.cli.catalog_commands import CATALOG, DELETION_PLAN
from headwater.cli.cli_session import EXIT_CODES
from headwater.cli.client_config_command import ENGINE
from headwater.cli.content_commands import CHANGE, COMMIT, CONTENT, ENTRY, KEY_CHANGE
from headwater.cli.context_commands import CONTEXT, DEFAULT
from headwater.cli.credentials_commands import PRINCIPAL
from headwater.cli.file_row_commands import COMPACTION, INGESTED_FILE, SPLIT
from headwater.cli.file_table_commands import (
    ADOPTION,
    FILE_COLLECTION,
    FILE_EXPLANATION,
    FILE_TABLE,
    FILE_TABLE_DELETION,
    FILE_TABLE_REPORT,
)
from headwater.cli.fsck_command import FINDING, STEP
from headwater.cli.gc_commands import COLLECTION, EXPLANATION
from headwater.cli.grant_commands import GRANT
from headwater.cli.help_texts import HELP_TEXTS, PROGRAM
from headwater.cli.import_commands import IMPORT
from headwater.cli.init_command import INITIAL
from headwater.cli.maintenance_commands import STOP
from headwater.cli.manifest_commands import MANIFEST_DIFFERENCE
from headwater.cli.merge_commands import MERGE
from headwater.cli.realm_commands import PURGE_PLAN, REALM
from headwater.cli.ref_commands import DELETED_REFERENCE, NAMED_REFERENCE
from headwater.cli.role_commands import ROLE
from headwater.cli.run_commands import RUN, RUN_TYPE
from headwater.cli.store_commands import STORE, VERSION
from headwater.cli.table_commands import TABLE_HOME
from headwater.cli.task_commands import TASK, TASK_FIGURES
from headwater.console import RESULT_OPTIONS, PrintedForm, ResultView

_INTRODUCTION = """\
# Command line

<!-- Made by `make docs` from the code; a test compares the two. -->

Names, flags, exit codes and JSON field names on this page are a contract.
Results go to standard output, everything else to standard error.
A failure is a line on standard error that begins with `headwater:`, or a line of JSON with `HEADWATER_LOG_FORMAT=json`.
There is a line for each where several things were refused; `--debug` adds the traceback.
What does one thing says so in a sentence; `-v` prints all fields instead, as `show` commands do.
`-o json` and `-o yaml` print the fields under [Results](#results): one object for a single result, a list for many.
A page of a longer list (`catalog tables`, `catalog diff`) is an object: `items` is the list, `nextPageToken` continues it by `--after`,
and is null on the last page.
`-o wide` adds columns for all plain fields, `-o csv` prints all fields (objects as JSON in their cell), `-o name` and `-q` names or ids.
With `-q` nothing else goes to standard output.
Without results, standard output is empty (CSV keeps its line of heads, unless `--no-headers` is given).
On a terminal, columns are shortened to its width, states are colored, and long work shows how far it is on standard error.
Pipes and files get none of that; `NO_COLOR` and `TERM=dumb` are respected.
There `a.b` is a field of the object `a`, and `a[].b` one of each object in the list `a`.
Ids are 16 hex digits, times RFC 3339 in UTC, durations written as in manifests (`90s`, `24h`, `1d12h`).
What deletes or replaces much at once asks for `--confirm` with the name of what it is about.
Without it the plan is shown and nothing is done; the exit code is 5, unless there is nothing to do.
What takes long is a task, done in the same process by the same protocol as a worker's.
With `--detach` it is left to a worker, and the [task](#task) is printed.
Settings come from the environment (`HEADWATER_...`); an option wins over them, and they win over a context.
[Global options](#global-options) may stand anywhere: before the name of a command, between group and command, and after it.

## Addresses

What a command is about is its first argument, in one word:

| address | what is meant |
|---|---|
| `acme/lake` | the catalog `lake` of realm `acme`, on its default branch |
| `acme/lake@dev` | the same on the branch, tag or commit `dev`; also `@main~2`, `@0123456789abcdef` and the like |
| `/lake`, `/lake@dev` | that catalog of the realm that `HEADWATER_REALM` or the context names |
| `@dev` | that reference of the catalog that they name |
| `@`, or nothing | the catalog that they name, on the reference that they name |

Commands about roles and rights take `acme` for what holds in the whole realm, and those about a realm take it alone.
A file table is `acme/orders`.

An address is left out where the other arguments are complete without it: `headwater catalog merge dev`.
Where they could be complete with and without the first word, it is the address if it has the form of one, that is a `/` or an `@`.
Then `@` says that the address is left out, and `./` in front of a folder that it is a folder.
What a command creates, deletes or changes as a whole has to be written: `headwater catalog delete /lake`, `headwater realm purge acme`.

## Contexts

A context is a named set of what commands may leave out: store, realm, catalog, reference, author of commits, and output format.

```sh
headwater context set work acme/lake@dev --store postgresql://headwater@db/headwater
headwater context use work
headwater catalog tables              # those of acme/lake@dev
headwater context show                # what counts now, and who says it
headwater catalog tables --context other
```

Each of them comes from an option, else from the environment (`HEADWATER_STORE`, `HEADWATER_REALM`, `HEADWATER_CATALOG`,
`HEADWATER_REF`, `HEADWATER_AUTHOR`, `HEADWATER_OUTPUT`), else from the context, else it is the built-in default.
A catalog belongs to its realm, and a reference to its catalog:
where `HEADWATER_REALM` names another realm than the context, the context's catalog and reference do not count.
The context is the one of `--context`, else of `HEADWATER_CONTEXT` (empty for none), else of `headwater context use`.

Contexts are in one file that only its owner can read, for the URL of a store may hold a login; no command shows that.
It is `headwater/contexts.yaml` in `XDG_CONFIG_HOME` or `~/.config`, or what `HEADWATER_CONTEXT_FILE` names.
A command that fails says which store and address it had from a context.
"""


_WHICH_CODE = """\
The same situation ends with the same code at `headwater`, `headwater-operator` and `kubectl headwater`.
Where two codes could be meant:

- 2, not 5: an argument, an option or a setting does not have the form that is expected there, such as a duration, an id or a reference.
  Nothing is opened then.
- 3, not 5: what is named is not there, such as a store, a realm, a commit that was collected, or a file to read.
- 5, not 2: the form is right, and a rule says no.
  That is a name or location that nothing may have, what a file holds, a wrong state, a file that would be overwritten,
  a store's URL that is wrong, a confirmation that is missing or repeats something else, a database that refuses the login.
- 6, not 5: it would have been right before somebody made, moved or took it.

A filter that fits nothing, such as `task list --state FAILED`, is an empty list and 0.
A filter by what there is not ends with 2 for an unknown `--kind` and with 3 for an unknown `--realm`.
What leaves findings, such as tables in quarantine, ends with 8 where the command does it and under `up --once`.
"""


RESULTS: tuple[ResultView[Any], ...] = (
    APPLIED,
    MANIFEST_DIFFERENCE,
    INITIAL,
    REALM,
    PURGE_PLAN,
    ARCHIVE,
    LOADED,
    RESTORATION,
    CATALOG,
    DELETION_PLAN,
    ENTRY,
    CONTENT,
    COMMIT,
    KEY_CHANGE,
    CHANGE,
    TABLE_HOME,
    STOP,
    MERGE,
    PRINCIPAL,
    ROLE,
    GRANT,
    ACCESS_ANSWER,
    PRIVILEGE_RULE,
    NAMED_REFERENCE,
    DELETED_REFERENCE,
    IMPORT,
    FILE_TABLE,
    FILE_TABLE_REPORT,
    INGESTED_FILE,
    SPLIT,
    COMPACTION,
    FILE_COLLECTION,
    FILE_EXPLANATION,
    ADOPTION,
    FILE_TABLE_DELETION,
    COLLECTION,
    RUN,
    RUN_TYPE,
    EXPLANATION,
    FINDING,
    STEP,
    TASK,
    TASK_FIGURES,
    ENGINE,
    CONTEXT,
    DEFAULT,
    STORE,
    VERSION,
)
"""Every kind of result of this package, in the order of the page."""


def page() -> str:
    """The whole page."""
    root = click.Context(main, info_name="headwater", **main.context_settings)
    parts = [_INTRODUCTION, _exit_codes(), "## Global options\n\n" + _options(main, root)]
    parts += ["## Commands\n", *_commands(main, root), "## Results\n", *map(_results, results())]
    return "\n".join(parts)


def results() -> list[ResultView[Any]]:
    """Every kind of result: those of this package, and those of commands that other packages add."""
    printed = [
        _printed_form(command) for command in _walk(main, click.Context(main, info_name="headwater", **main.context_settings))
    ]
    return [*RESULTS, *(form.view for form in printed if form is not None and form.view not in RESULTS)]


def _walk(group: click.Group, ctx: click.Context) -> Iterator[click.Command]:
    """All commands that are no groups."""
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, f"{name} is listed"
        if isinstance(command, click.Group):
            yield from _walk(command, click.Context(command, parent=ctx, info_name=name))
        else:
            yield command


def _printed_form(command: click.Command) -> PrintedForm | None:
    return getattr(command.callback, "printed", None)


def _exit_codes() -> str:
    table = _table(["code", "meaning"], ((str(code), meaning) for code, meaning in EXIT_CODES.items()))
    return f"## Exit codes\n\n{table}\n{_WHICH_CODE}"


def _commands(group: click.Group, ctx: click.Context) -> Iterator[str]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, f"{name} is listed"
        inner = click.Context(command, parent=ctx, info_name=name)
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from _commands(command, inner)
        else:
            usage = " ".join([inner.command_path, *command.collect_usage_pieces(inner)])
            parts = [
                f"### {inner.command_path}",
                f"`{usage}`",
                _sentences(command.help),
                _examples(inner.command_path),
                _printed(command),
                _options(command, inner),
            ]
            yield "\n\n".join(filter(None, parts)).rstrip() + "\n"


def _examples(path: str) -> str:
    text = HELP_TEXTS.get(path.removeprefix(f"{PROGRAM} "))
    return "\n".join(["```sh", *(f"{PROGRAM} {line}" for line in text.examples), "```"]) if text and text.examples else ""


def _printed(command: click.Command) -> str:
    printed = _printed_form(command)
    if printed is None:
        return ""
    link = f"[{printed.view.name}](#{printed.view.name.replace(' ', '-')})"
    return f"Prints: {link}{', a page' if printed.is_page else ', a list' if printed.many else ''}."


def _options(command: click.Command, ctx: click.Context) -> str:
    rows = []
    for option in _told(command, ctx):
        names = ", ".join([*option.opts, *option.secondary_opts])
        value = "" if option.is_flag or option.count else f" {option.make_metavar(ctx)}"
        required = " Required." if option.required else ""
        rows.append((f"`{names}{value}`", f"{option.help or ''}{required}{_default(option)}"))
    return _table(["option", "meaning"], rows) if rows else ""


def _told(command: click.Command, ctx: click.Context) -> list[click.Option]:
    """The documented options: without hidden ones, and without ``-o`` and its like where they repeat the global ones."""
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return [option for option in options if not option.hidden and (ctx.parent is None or option.name not in RESULT_OPTIONS)]


def _default(option: click.Option) -> str:
    return f" Default: {option.default}." if option.show_default and not option.is_flag else ""


def _results(view: ResultView[Any]) -> str:
    rows = []
    for field in view.fields:
        rows.append((f"`{field.name}`", field.header.lower(), field.about))
        rows += [(f"`{field.name}{way}`", "", about) for way, about in field.inside.items()]
    return f"### {view.name}\n\n" + _table(["field", "column", "meaning"], rows)


def _sentences(text: str | None) -> str:
    """The paragraphs of a help text, without its line breaks."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (text or "").split("\n\n"))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
