"""The page about resources, written from ``crds/``: fields, bounds, rules, status, columns and annotations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from headwater.reconcile.manifests import (
    ADOPT,
    CONFIRM_PURGE,
    DELETE,
    PLAN,
    RELEASE_TO,
    ROTATE_CREDENTIALS,
    ROTATE_PRINCIPAL,
    RUN_NOW,
)

CRDS = Path(__file__).parent.parent / "crds"
FILES = ("headwater.dev_realms.yaml", "headwater.dev_catalogs.yaml")
HEAD = """\
# Resources

What may stand in a Realm and in a Catalog, and what the operator answers.
This page is written from `crds/` by `make docs`; `kubectl explain realm.spec --recursive` shows the same in a terminal.
[Headwater on Kubernetes](../operate/kubernetes.md) tells how the two are used, and `examples/kubernetes/` has some to copy.

The API server refuses what breaks a bound or a rule, before the operator sees it, and says what would be right.
A resource that was let in and cannot be followed all the same has the condition `Accepted` at `False`, with the reason.
"""
ANNOTATIONS = (
    (
        CONFIRM_PURGE,
        "Realm, Catalog",
        "the realm's id; for a Catalog `<realm id>/<catalog name>`",
        "Allows a deletion under `deletionPolicy: Purge` to go on. Without it the deletion waits, and nothing is lost.",
    ),
    (
        RUN_NOW,
        "Realm, Catalog",
        "of a Realm `gc`; of a Catalog `expire-snapshots` or `report-files`; with `:<any word of at most 63 characters>` to ask again",
        "Collects garbage now, expires snapshots, or reports files that nobody refers to, also while schedules are suspended. Each value "
        "acts once.",
    ),
    (
        ADOPT,
        "Realm, Catalog",
        "the realm's id; for a Catalog `<realm id>/<catalog name>`",
        "On a Realm: takes over a realm that a Realm of this namespace has or had, that no resource ever had, or that was released; "
        "one of another namespace only if its Realm agrees by `release-to`. Each value acts once, and only on a realm that is ACTIVE "
        "or INACTIVE. On a Catalog: takes over a catalog that another Catalog has left, or that was made by hand with another "
        "location or default branch. A Realm that was made again under its name needs it only if its cluster has no name "
        "(`cluster`) and the realm was never let go.",
    ),
    (
        RELEASE_TO,
        "Realm",
        "`<namespace>/<name>` of another Realm",
        "Agrees that the other Realm may adopt this one's realm, for as long as it stands here.",
    ),
    (
        ROTATE_CREDENTIALS,
        "Realm, Catalog",
        "a word of 1 to 63 of the characters A-Z a-z 0-9 . _ -",
        "On a Realm: gives the realm's root a new secret, and puts it into the Secret. On a Catalog: the principal of its connection. "
        "Each word acts once.",
    ),
    (
        ROTATE_PRINCIPAL,
        "Realm",
        "`<principal>:<word>`; the word has 1 to 63 of the characters A-Z a-z 0-9 . _ -",
        "Gives a principal that the Realm declares a new secret, and puts it into its Secret. Each value acts once.",
    ),
    (
        PLAN,
        "Realm, Catalog",
        '`{"token": "<any word>"}`',
        "Asks what the operator would do; `status.plan` answers, and nothing is done. `kubectl headwater plan` writes it.",
    ),
    (
        DELETE,
        "files only",
        '`"true"`',
        "Makes a manifest in a file a deletion, for `headwater up`. A resource is deleted by `kubectl delete`, and refused with it.",
    ),
)
FOOT = """
## What files have besides

`headwater up` and `headwater apply` read the same manifests, with these differences.

- A location may begin with `./`: a folder beside the file.
  A resource lies beside nothing, so there it is refused.
- Durations may have their units in any order, and a schedule tabs and blanks at its ends.
  The rules of a resource want the plain form.
- `HEADWATER_UNSAFE_SHORT_GRACES` lets files go below the floor of `purgeHold`; the API server knows no settings.
- The bounds on sizes (64 properties, 20 imports, 50 patterns, and the like) are those of resources.

And the other way round, some things are let in by the API server, because a rule cannot see them, and then refused by the operator:
a time zone that does not exist, a range that runs backwards such as `5-1`, a date that never comes such as the 31st of February,
a `path` that uses one name in braces twice, a place in `files` that lies in none of the catalog's locations,
and a `namespace` that leaves no room in a key for a table.
A `purgeHold` below the operator's own floor is such a case, too, where its settings are longer than the defaults.
"""


def page() -> str:
    """The whole page."""
    kinds = [yaml.safe_load((CRDS / file).read_text(encoding="utf-8"))["spec"] for file in FILES]
    return HEAD + "".join(map(_kind_chapter, kinds)) + _annotations_chapter() + FOOT


def _kind_chapter(definition: Mapping[str, Any]) -> str:
    names, (version,) = definition["names"], definition["versions"]
    kind, schema = names["kind"], version["schema"]["openAPIV3Schema"]
    spec, status = schema["properties"]["spec"], schema["properties"]["status"]
    return (
        f"\n## {kind}\n\n{_sentences(schema['description'])}\n"
        f"`apiVersion: {definition['group']}/{version['name']}`, `kind: {kind}`; for `kubectl get`: "
        f"`{names['plural']}`, `{names['singular']}`, `{names['shortNames'][0]}`, "
        f"and `{names['categories'][0]}` for both kinds.\n"
        f"\n### Fields of a {kind}\n\n{_table(('field', 'type', 'default', 'bounds', 'what it is'), _field_rows(spec))}"
        f"\n### Rules of a {kind}\n\n{_table(('field', 'message for a value that breaks it'), _rule_rows(schema))}"
        f"\n### Status of a {kind}\n\nConditions and their reasons are on the page about [operating](../operate/operating.md#conditions).\n"
        f"\n{_table(('field', 'type', 'what it is'), _status_rows(status))}"
        f"\n### Columns of a {kind}\n\n{_columns_text(version)}\n"
    )


def _annotations_chapter() -> str:
    head = ("annotation", "on", "value", "what it does")
    rows = [(f"`{name}`", *cells) for name, *cells in ANNOTATIONS]
    return (
        "\n## Annotations\n\n"
        "A resource with any other annotation of `headwater.dev/` is not accepted, so that a slip of the pen is seen.\n"
        f"\n{_table(head, rows)}"
    )


def _field_rows(spec: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for path, schema, is_required in _fields(spec):
        default = f"`{json.dumps(schema['default'])}`" if "default" in schema and schema["type"] != "object" else ""
        bounds = ", ".join([*(["required"] if is_required else []), *_bounds(schema)])
        yield f"`{path}`", _type(schema), default, bounds, schema["description"]


def _status_rows(status: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for path, schema, _ in _fields(status):
        yield f"`{path}`", _type(schema), schema["description"]


def _rule_rows(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each sentence once, with the field that it is told of."""
    for path, inner in _all(schema):
        for rule in inner.get("x-kubernetes-validations", ()):
            yield f"`{(path + rule.get('fieldPath', '')).removeprefix('.').removeprefix('spec.')}`", rule["message"]


def _columns_text(version: Mapping[str, Any]) -> str:
    columns = version["additionalPrinterColumns"]
    usual, wide = ([one["name"] for one in columns if bool(one.get("priority")) == is_wide] for is_wide in (False, True))
    paths = ", ".join(f"`{one['jsonPath'].removeprefix('.')}`" for one in version["selectableFields"])
    return (
        f"`kubectl get` shows {', '.join(usual)}; with `-o wide` also {', '.join(wide)}.\n"
        f"`--field-selector` knows {paths}, from Kubernetes 1.31 on."
    )


def _fields(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Each named field with its path and whether it must be given where its parent is; what a list holds follows the list."""
    for name, inner in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        yield where, inner, name in schema.get("required", ())
        yield from _fields(inner, where)
        yield from _fields(inner.get("items", {}), f"{where}[]")


def _all(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _all(inner, f"{path}.{name}")
    if "items" in schema:
        yield from _all(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from _all(schema["additionalProperties"], f"{path}.*")


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"enum": words}:
            return ", ".join(f"`{word}`" for word in words)
        case {"type": "array", "items": items}:
            return f"list of {_plural(items)}"
        case {"additionalProperties": values}:
            return f"{_plural(values)} by name"
        case {"format": "date-time"}:
            return "time"
    return _WORDS[schema["type"]]


_WORDS = {"string": "text", "integer": "number", "boolean": "true or false", "object": "block"}


def _plural(schema: Mapping[str, Any]) -> str:
    return f"{_type(schema)}s"


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    inner = schema.get("items") or schema.get("additionalProperties") or {}
    match schema:
        case {"minimum": least, "maximum": most}:
            yield f"{least} to {most}"
        case {"type": "string", "maxLength": most}:
            yield f"at most {most} characters"
        case {"minItems": least, "maxItems": most}:
            yield f"{least} to {most} of them"
        case {"maxItems": most} | {"maxProperties": most}:
            yield f"at most {most} of them"
    if "maxLength" in inner:
        yield f"each at most {inner['maxLength']} characters"


def _sentences(text: str) -> str:
    """One a line."""
    return text.replace(". ", ".\n")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
