"""Write what is derived from the CRDs and the chart: ``python charts/generate.py``.

It numbers the schemas of the CRDs, copies the CRDs into the chart, writes the fields that the operator expects the API server to serve, and
makes the tables of the chart's README.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "headwater"
README = CHART / "README.md"
SCHEMAS = ROOT / "operator" / "headwater_operator" / "runtime" / "built_in_schemas.json"
REVISION, DIGEST = "headwater.dev/schema-revision", "headwater.dev/schema-digest"
KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z0-9]+):(?: (?P<rest>.*))?")


@dataclass(frozen=True)
class Value:
    """A key that a user may set, with its default as YAML writes it."""

    path: str
    default: str
    about: str


def main() -> None:
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        file.write_text(numbered(file.read_text(encoding="utf-8")), encoding="utf-8")
    for name, text in crds().items():
        (CHART / "files" / "crds" / name).write_text(text, encoding="utf-8")
    SCHEMAS.write_text(built_in_schemas(), encoding="utf-8")
    README.write_text(readme(), encoding="utf-8")


def crds() -> dict[str, str]:
    """The files of the definitions as the chart has them: by name, byte for byte those of the folder `crds`."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted((ROOT / "crds").glob("*.yaml"))}


def numbered(crd: str) -> str:
    """The definition with the digest of its schema; where that changed, with the next revision."""
    body = yaml.safe_load(crd)
    before, digest = body["metadata"]["annotations"], _digest(_schema(body))
    if before[DIGEST] == digest:
        return crd
    renumbered = crd.replace(f'{REVISION}: "{before[REVISION]}"', f'{REVISION}: "{int(before[REVISION]) + 1}"', 1)
    return renumbered.replace(f"{DIGEST}: {before[DIGEST]}", f"{DIGEST}: {digest}", 1)


def built_in_schemas() -> str:
    """The fields of each kind that the operator is built for, with their defaults: by path, ``[]`` for elements, ``{}`` for values."""
    kinds = {}
    for text in crds().values():
        body = yaml.safe_load(text)
        properties = _schema(body)["properties"]
        fields = dict(_fields({"properties": {name: properties[name] for name in ("spec", "status")}}, ""))
        kinds[body["spec"]["names"]["kind"]] = {"revision": int(body["metadata"]["annotations"][REVISION]), "fields": fields}
    return json.dumps(kinds, indent=1, sort_keys=True) + "\n"


def _schema(crd: dict[str, Any]) -> dict[str, Any]:
    (version,) = crd["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def _digest(schema: dict[str, Any]) -> str:
    text = json.dumps(schema, sort_keys=True, separators=(",", ":"))
    return f"d{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"  # a letter first: YAML reads some digests as numbers


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field below a schema, with its default where it has one."""
    below = {f".{name}": inner for name, inner in schema.get("properties", {}).items()}
    below |= {"[]": schema["items"]} if "items" in schema else {}
    below |= {"{}": schema["additionalProperties"]} if isinstance(schema.get("additionalProperties"), dict) else {}
    for step, inner in below.items():
        yield f"{path}{step}".lstrip("."), {"default": inner["default"]} if "default" in inner else {}
        yield from _fields(inner, f"{path}{step}")


def readme() -> str:
    """The README, its tables anew."""
    text = README.read_text(encoding="utf-8")
    for name, table in {"values": values_table(), "alerts": alerts_table()}.items():
        begin, end = f"<!-- {name}: made by charts/generate.py -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"{README} has lost the marks of its table of {name}"
        text = before + begin + "\n" + table + "\n" + end + after
    return text


def values_table() -> str:
    rows = (f"| `{value.path}` | `{value.default}` | {value.about} |\n" for value in documented_values())
    return "| value | default | what it is |\n| --- | --- | --- |\n" + "".join(rows)


def alerts_table() -> str:
    """What each alert means and asks for."""
    rows = (
        f"| `{one['alert']}` | {one['severity']} | {_plain(one['summary'])} {_plain(one['description'])} | {one['action']} |\n"
        for one in alerts()
        if one["about"] != "worker"
    )
    return "| alert | severity | what it means | what to do |\n| --- | --- | --- | --- |\n" + "".join(rows)


def alerts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))["alerts"]
    return found


def documented_values() -> Iterator[Value]:
    """Each key of values.yaml that stands under a comment, with that comment; keys inside of its default are not told."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    way: list[tuple[int, str]] = []
    about: list[str] = []
    for line in (CHART / "values.yaml").read_text(encoding="utf-8").splitlines():
        found = KEY.fullmatch(line)
        if line.lstrip().startswith("# "):
            about.append(line.strip()[2:])
        elif found is None:
            about = []
        else:
            indent = len(found["indent"])
            way = [(depth, key) for depth, key in way if depth < indent] + [(indent, found["key"])]
            path = [key for _, key in way]
            if about:
                yield Value(".".join(path), _shown(_at(values, path)), " ".join(about))
            about = []


def _at(values: Any, path: list[str]) -> Any:
    for key in path:
        values = values[key]
    return values


def _shown(default: Any) -> str:
    """In the one-line form of YAML."""
    text = yaml.safe_dump(default, default_flow_style=True, width=10_000, sort_keys=False).removesuffix("...\n").strip()
    return "''" if default == "" else text


def _plain(text: str) -> str:
    """Without what Prometheus fills in."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"(\1)", re.sub(r"\{\{ \$value[^}]*\}\}", "N", text))


if __name__ == "__main__":
    main()
