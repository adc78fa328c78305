"""What may be set: all of it documented, and everything else refused by name."""

from __future__ import annotations

import dataclasses
import json
import runpy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from rendered_chart import CHART, ROOT, VALUE_SETS, refusal, render

from headwater.settings import Settings, variable_of
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.runtime.operator_settings import operator_variable as operator_variable_of

OWN_KEYS = {"store", "broker", "log_format", "spark_master"}
"""Settings of the core that have keys of their own in the values."""


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "charts" / "generate.py"))


def leaves(values: Any, schema: dict[str, Any], way: str = "") -> Iterator[str]:
    """The paths down to where the schema has no more fixed keys."""
    if isinstance(values, dict) and "properties" in schema and way != "settings" and not way.endswith(".resources"):
        for key, inner in values.items():
            yield from leaves(inner, schema["properties"][key], f"{way}.{key}" if way else key)
    else:
        yield way


def resolved(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        if "$ref" in schema:
            return resolved(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
        return {key: resolved(inner, definitions) for key, inner in schema.items() if key != "$defs"}
    return [resolved(inner, definitions) for inner in schema] if isinstance(schema, list) else schema


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "properties" in schema and isinstance(schema["properties"], dict):
            yield schema
        for inner in schema.values():
            yield from objects(inner)


def test_schema_is_one(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


def test_no_unknown_key_is_let_through_anywhere(schema: dict[str, Any]) -> None:
    found = list(objects(schema))

    assert len(found) > 30
    assert [sorted(one["properties"]) for one in found if one.get("additionalProperties") is not False] == []


def test_values_and_the_schema_have_the_same_keys(schema: dict[str, Any], values: dict[str, Any]) -> None:
    def same(known: Any, given: Any, way: str) -> list[str]:
        if "properties" not in known or way == ".settings" or way.endswith(".resources"):
            return []
        differing = [f"{way}.{key}" for key in set(known["properties"]) ^ set(given) - {"global"}]
        return differing + [fault for key in given for fault in same(known["properties"][key], given[key], f"{way}.{key}")]

    whole = resolved(schema, schema["$defs"])
    del whole["properties"]["global"]

    assert [fault for fault in same(whole, values, "") if fault != ".redis.image"] == []


def test_every_value_is_documented(schema: dict[str, Any], values: dict[str, Any], generator: dict[str, Any]) -> None:
    told = {value.path: value.about for value in generator["documented_values"]()}

    assert set(told) == set(leaves(values, resolved(schema, schema["$defs"])))
    assert [path for path, about in told.items() if not about.endswith((".", ")"))] == []


def test_readme_says_what_the_values_and_alerts_say(generator: dict[str, Any]) -> None:
    assert (CHART / "README.md").read_text(encoding="utf-8") == generator["readme"](), "run `python charts/generate.py`"


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("opertor.replicas=2", "/"),
        ("operator.replica=2", "/operator"),
        ("operator.replicas=0", "/operator/replicas"),
        ("operator.resync=5 minutes", "/operator/resync"),
        ("operator.image.digest=sha256:abc", "/operator/image/digest"),
        ("operator.image.tag=a b", "/operator/image/tag"),
        ("operator.concurrency=many", "/operator/concurrency"),
        ("operator.resources.limits.memory=1 GiB", "/operator/resources/limits/memory"),
        ("operator.podLabels.a=b c", "/operator/podLabels/a"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("image.pullSecrets[0].nam=a", "/image/pullSecrets/0"),
        ("store.existingSecret=Headwater_Store", "/store/existingSecret"),
        ("broker.url=http://redis", "/broker/url"),
        ("broker.url=redis://:password@redis:6379/0", "/broker/url"),
        ("settings.HEADWATER_STORE=sqlite:///a.db", "/settings"),
        ("settings.HEADWATER_WRITER_GRACE=3 hours", "/settings/HEADWATER_WRITER_GRACE"),
        ("settings.HEADWATER_WRITERS_GRACE=3h", "/settings"),
        ("logFormat=xml", "/logFormat"),
        ("watch.namespaces={Team_A}", "/watch/namespaces/0"),
        ("worker.concurrency=0", "/worker/concurrency"),
        ("worker.autoscaling.provider=none", "/worker/autoscaling/provider"),
        ("worker.liveness.timeoutSeconds=1", "/worker/liveness/timeoutSeconds"),
        ("spark.mode=yarn", "/spark/mode"),
        ("spark.conf.master=local", "/spark/conf"),
        ("spark.kubernetes.memory=1Gi", "/spark/kubernetes/memory"),
        ("metrics.serviceMonitor.interval=often", "/metrics/serviceMonitor/interval"),
        ("networkPolicy.apiServer.ports={0}", "/networkPolicy/apiServer/ports/0"),
        ("networkPolicy.apiServer.cidrs={10.0.0.1}", "/networkPolicy/apiServer/cidrs/0"),
        ("crds.keep=1", "/crds/keep"),
    ],
)
def test_wrong_value_is_refused_where_it_stands(setting: str, path: str) -> None:
    said = refusal(setting)

    assert "values don't meet the specifications of the schema" in said
    assert f"at '{path}'" in said.replace("at ''", "at '/'")


def test_settings_that_may_be_given_are_those_of_the_core(schema: dict[str, Any]) -> None:
    fields = {variable_of(field.name) for field in dataclasses.fields(Settings) if field.name not in OWN_KEYS}

    assert set(schema["properties"]["settings"]["properties"]) == fields


@pytest.mark.parametrize("values", VALUE_SETS)
def test_every_variable_of_a_pod_is_a_setting(values: str) -> None:
    known = {variable_of(field.name) for field in dataclasses.fields(Settings)}
    known |= {operator_variable_of(field.name) for field in dataclasses.fields(OperatorSettings)}
    rendered = render(values)
    given = {name for pod in rendered.pods() for name in pod.environment if name.startswith("HEADWATER_")}
    given |= set(rendered.one("ConfigMap", "-settings")["data"])

    assert "HEADWATER_STORE" in given
    assert given <= known


@pytest.mark.parametrize("values", VALUE_SETS)
def test_operator_and_workers_accept_their_settings(values: str) -> None:
    for pod in render(values).pods():
        plain = {name: value for name, value in pod.environment.items() if isinstance(value, str)}
        given = plain | dict(render(values).one("ConfigMap", "-settings")["data"])

        assert Settings.from_environment(given).faults() == []
        assert OperatorSettings.from_environment(given | {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}).faults() == []


def test_operators_defaults_are_those_of_its_settings() -> None:
    pod = render().pod("-operator")
    plain = {name: value for name, value in pod.environment.items() if isinstance(value, str)}

    assert OperatorSettings.from_environment(plain) == OperatorSettings.from_environment({})


@pytest.mark.parametrize(("component", "values"), [("operator", "default"), ("worker", "default"), ("server", "identity")])
def test_names_that_the_chart_sets_are_refused_in_extra_variables(component: str, values: str) -> None:
    (container,) = [one for one in render(values).pod(f"-{component}").spec["containers"] if one["name"] == component]
    names = [one["name"] for one in container["env"]]

    for name in (names[0], names[-1]):
        why = refusal(f"{component}.extraEnv[0].name={name}", f"{component}.extraEnv[0].value=x", values=values)
        assert f"{component}.extraEnv has {name}, which the chart sets itself" in why
    assert render(values, f"{component}.extraEnv[0].name=MINE", f"{component}.extraEnv[0].value=x")
