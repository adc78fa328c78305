"""Write the pages of the documentation that say what the code says: ``python docs/generate.py``, or ``make docs``."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from headwater import help_pages
from headwater.access import PRIVILEGES, Privilege, SecurableKind
from headwater.cli import main as headwater_command
from headwater.cli.named_contexts import CallSettings
from headwater.engines.engine_configs import COMMENTS, ENGINE_CONFIGS, EngineAddress, EngineConfig
from headwater.monitoring import MetricDescription
from headwater.settings import Settings, duration_text, variable_of
from headwater.store import BackendKind
from headwater_operator.metrics.operator_metrics import CATALOGUE
from headwater_operator.resource.reasons import conditions_table, events_table, reasons_table
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.runtime.operator_settings import operator_variable as operator_variable_of
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.management import management_table
from headwater_server.nessie import nessie_table
from headwater_server.route_table import RouteTable
from headwater_server.server_metrics import SERVER_CATALOGUE, ServerMetric
from headwater_server.server_probes import SERVER_PROBES

FOLDER = Path(__file__).parent
ALERTS = FOLDER.parent / "charts" / "headwater" / "files" / "alerts.yaml"
README = FOLDER.parent / "README.md"
EXAMPLE_ADDRESS = EngineAddress("http://127.0.0.1:8181", "acme/lake")
GENERATED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SETTINGS_HEAD = """\
# Settings

Every setting has one default, which stands in one place: `headwater.settings`.
This page is written from there by `make docs`.

Each setting is an environment variable.
Durations are written like `250ms`, `90s`, `15m`, `24h`, `1h30m` or `30d`.
All values are checked together at the start, and every wrong one is named at once.
A variable that begins with `HEADWATER_` and is not a setting gets a warning, which names the setting that is closest, if one is.

| setting | default | what it is |
|---|---|---|
"""
COMMAND_LINE_SETTINGS_HEAD = """
## The command line's own

`headwater` reads all of the above, and these; [contexts](cli.md#contexts) can say the same, and come after them.

| setting | default | what it is |
|---|---|---|
"""
OPERATOR_SETTINGS_HEAD = """
## The operator's own

`headwater-operator` reads all of the above, and these.
Their defaults stand in `headwater_operator.runtime.operator_settings`.
In a pod, the chart sets them.

| setting | default | what it is |
|---|---|---|
"""


def main() -> None:
    (FOLDER / "reference" / "settings.md").write_text(settings_page(), encoding="utf-8")
    (FOLDER / "reference" / "cli.md").write_text(cli_page(), encoding="utf-8")
    help_pages.FILE.write_text(help_table(), encoding="utf-8")
    (FOLDER / "reference" / "resources.md").write_text(resources_page(), encoding="utf-8")
    (FOLDER / "reference" / "python.md").write_text(python_page(), encoding="utf-8")
    operating = FOLDER / "operate" / "operating.md"
    operating.write_text(operating_page(operating.read_text(encoding="utf-8")), encoding="utf-8")
    server = FOLDER / "operate" / "server.md"
    server.write_text(server_page(server.read_text(encoding="utf-8")), encoding="utf-8")
    access = FOLDER / "operate" / "access.md"
    access.write_text(access_page(access.read_text(encoding="utf-8")), encoding="utf-8")
    README.write_text(readme_page(README.read_text(encoding="utf-8")), encoding="utf-8")
    stores = FOLDER / "operate" / "stores.md"
    stores.write_text(stores_page(stores.read_text(encoding="utf-8")), encoding="utf-8")


def settings_page() -> str:
    core, operator = _settings_rows(Settings, variable_of), _settings_rows(OperatorSettings, operator_variable_of)
    command_line = _settings_rows(CallSettings, variable_of)
    own = COMMAND_LINE_SETTINGS_HEAD + "".join(command_line) + OPERATOR_SETTINGS_HEAD + "".join(operator)
    return SETTINGS_HEAD + "".join(core) + own


def help_table() -> str:
    """The table that `headwater --help` is answered from."""
    pages = help_pages.describe_commands(headwater_command)
    return json.dumps(pages, indent=1, ensure_ascii=False) + "\n"


def cli_page() -> str:
    """The page of the command line, as its own module writes it from the commands."""
    return str(runpy.run_path(str(FOLDER / "command_line.py"))["page"]())


def python_page() -> str:
    page: str = runpy.run_path(str(FOLDER / "python_reference.py"))["reference_page"]()
    return page


def resources_page() -> str:
    """The page of Realm and Catalog, as its own module writes it from their definitions."""
    return str(runpy.run_path(str(FOLDER / "resources.py"))["page"]())


def operating_page(page: str) -> str:
    """The page for people on call, with the parts between its markers written anew from the operator's catalogues and the chart."""
    parts = {
        "conditions": conditions_table(),
        "reasons": reasons_table(),
        "events": events_table(),
        "metrics": metrics_table(CATALOGUE),
        "alerts": alerts_chapter(),
    }
    return GENERATED.sub(lambda found: f"{found[1]}\n{parts[found[2]]}\n{found[3]}", page)


def server_page(page: str) -> str:
    """The page of the server, with its routes, settings, engines and metrics written anew from the code."""
    parts = {
        "server_engines": engines_table(),
        "server_metrics": metrics_table(SERVER_CATALOGUE),
        "management_routes": rights_table(management_table()),
        "nessie_routes": rights_table(nessie_table()),
        "server_routes": routes_table(iceberg_table()) + probe_rows(),
        "server_settings": server_settings_table(),
    }
    return GENERATED.sub(lambda found: f"{found[1]}\n{parts[found[2]]}\n{found[3]}", page)


def routes_table(table: RouteTable) -> str:
    """Every operation, by the path that a client asks for."""
    rows = ["| operation | request | what it does |\n", "|---|---|---|\n"]
    rows += [
        f"| `{route.name}` | `{route.method} {table.mount}{route.template}` | {route.summary} |\n" for route in table.routes
    ]
    return "".join(rows)


def rights_table(table: RouteTable) -> str:
    """Every operation, with the privilege that its caller needs."""
    rows = ["| operation | request | what it does | needs |\n", "|---|---|---|---|\n"]
    rows += [
        f"| `{route.name}` | `{route.method} {table.mount}{route.template}` | {route.summary} | {route.needs} |\n"
        for route in table.routes
    ]
    return "".join(rows)


def probe_rows() -> str:
    """The probes, as rows of ``routes_table``."""
    return "".join(f"| `{probe.name}` | `GET {probe.path}` | {probe.summary} |\n" for probe in SERVER_PROBES)


def access_page(page: str) -> str:
    """The page of access, with its table of privileges written anew from the code."""
    return GENERATED.sub(lambda found: f"{found[1]}\n{privileges_table()}\n{found[3]}", page)


def privileges_table() -> str:
    rows = ["| privilege | what it allows | granted on | includes |\n", "|---|---|---|---|\n"]
    for privilege, rule in PRIVILEGES.items():
        kinds = ", ".join(kind.value for kind in SecurableKind if kind in rule.kinds)
        everything = privilege is Privilege.SERVICE_MANAGE_ACCESS
        included = "all others" if everything else ", ".join(f"`{each}`" for each in rule.includes) or "-"
        rows.append(f"| `{privilege}` | {rule.summary} | {kinds} | {included} |\n")
    return "".join(rows)


def readme_page(page: str) -> str:
    """The README, with what engines are given written anew from the table that `headwater client-config` prints from."""
    return GENERATED.sub(lambda found: f"{found[1]}\n{engine_blocks()}\n{found[3]}", page)


def engine_blocks() -> str:
    """The shortest form of each engine, those of one language in one block."""
    blocks: dict[str, list[str]] = {}
    for config in ENGINE_CONFIGS:
        form, *_ = config.filled(EXAMPLE_ADDRESS).forms
        if config.name not in ("curl", "iceberg-go", "iceberg-rust"):  # whose forms are long
            told = f"{config.title}: {form.file}" if form.file else config.title
            blocks.setdefault(form.language, []).append(f"{COMMENTS[form.language]} {told}\n{form.text}")
    fenced = (f"```{language}\n" + "\n".join(texts) + "```\n" for language, texts in blocks.items())
    return "\n".join(fenced)


def _tried(config: EngineConfig) -> str:
    return f"{config.tried}, {config.run}" if config.tried else "never run with Headwater"


def engines_table() -> str:
    rows = ["| engine | what it needs | tried | how it reaches files |\n", "|---|---|---|---|\n"]
    for config in ENGINE_CONFIGS:
        rows.append(f"| {config.title}: `{config.name}` | {config.needs} | {_tried(config)} | {config.storage} |\n")
    return "".join(rows)


def server_settings_table() -> str:
    rows = [row for row in _settings_rows(Settings, variable_of) if row.startswith("| `HEADWATER_SERVER_")]
    return "".join(["| setting | default | what it is |\n", "|---|---|---|\n", *rows])


def stores_page(page: str) -> str:
    """The page of the databases, with the options of each written anew from its ``BackendKind``, and what its URL looks like."""
    kinds = {
        point.name: point.load() for point in entry_points(group="headwater.backends") if point.module.startswith("headwater.")
    }
    parts = {f"options_{name}": options_table(kind) for name, kind in kinds.items()} | {"examples": examples_table(kinds)}
    return GENERATED.sub(lambda found: f"{found[1]}\n{parts[found[2]]}\n{found[3]}", page)


def examples_table(kinds: Mapping[str, BackendKind]) -> str:
    rows = ["| database | URL, for example |\n", "|---|---|\n"]
    return "".join([*rows, *(f"| `{name}` | `{kinds[name].example}` |\n" for name in sorted(kinds))])


def options_table(kind: BackendKind) -> str:
    rows = ["| option | default | what it is |\n", "|---|---|---|\n"]
    for option in kind.options:
        default = "(none)" if option.default is None else f"`{option.default}`" if option.default else "(empty)"
        rows.append(f"| `{option.name}` | {default} | {option.purpose} |\n")
    return "".join(rows) if kind.options else "It takes no options.\n"


def metrics_table(catalogue: Iterable[MetricDescription | ServerMetric]) -> str:
    rows = ["| metric | type | labels | what it says |\n", "|---|---|---|---|\n"]
    for entry in catalogue:
        labels = ", ".join(f"`{label}`" for label in entry.labels)
        rows.append(f"| `{entry.name}` | {entry.type} | {labels} | {entry.help} |\n")
    return "".join(rows)


def alerts_chapter() -> str:
    """A section for each alert, so that `runbookUrl` of the chart leads to it."""
    return "\n".join(map(_alert_section, yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["alerts"]))


def _alert_section(alert: Mapping[str, str]) -> str:
    expression = re.sub(r",?\s*SERIES|\{SERIES\}", "", alert["expr"]).replace("{}", "")
    after = "at once" if alert["for"] in ("0m", "0s") else f"after {alert['for']}"
    return (
        f"### {alert['alert']}\n\n"
        f"{_untemplated(alert['summary'])}\n\n"
        f"- Seen: {_untemplated(alert['description'])}\n"
        f"- Do: {_untemplated(alert['action'])}\n"
        f"- Severity: {alert['severity']}, {after}\n"
        f"- Rule: `{expression}`\n"
    )


def _untemplated(text: str) -> str:
    """What Prometheus puts in is a word in capitals here."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}|\{\{ \$value[^}]*\}\}", lambda found: f"*{(found[1] or 'n').upper()}*", text)


def _settings_rows(settings: type[Any], variable: Callable[[str], str]) -> Iterator[str]:
    for field in dataclasses.fields(settings):
        default = field.metadata.get("shown") or _shown(field.default, field.metadata["unit"])
        yield f"| `{variable(field.name)}` | {default} | {field.metadata['purpose']} |\n"


def _shown(value: Any, unit: str) -> str:
    if unit == "seconds":
        return duration_text(value)
    if unit == "bytes":
        return f"{value} ({value // 1024**2} MiB)" if value >= 1024**2 else f"{value} ({value // 1024} KiB)"
    if unit == "text":
        return f"`{value}`" if value else "(empty)"
    if unit == "names":
        return ", ".join(value) or "(empty)"
    return f"{str(value).lower()} {unit}".rstrip()


if __name__ == "__main__":
    main()
