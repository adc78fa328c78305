"""What the commands of one call share: the cluster, the namespace, how to print, and how to wait."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

import click

from headwater.console import json_text, yaml_text
from headwater.errors import MissingError, RefusedError
from headwater_operator.kube import KubeApi, connect, kubeconfig_connection, resource_path
from headwater_operator.plugin.kubeconfigs import find_kubeconfig, namespace_of
from headwater_operator.plugin.naming import Target, realm_id_of

__all__ = ["OUTPUTS", "Session"]

T = TypeVar("T")
OUTPUTS = ("table", "json", "yaml")
_PAUSE_SECONDS = 0.5


class Session:
    """Set by the options of the command line, before and behind the command's name; the cluster is reached when it is first needed."""

    def __init__(self) -> None:
        self.context: str | None = None
        self.kubeconfig: str | None = None
        self.named_namespace: str | None = None
        self.output = "table"
        self.debug = False

    @cached_property
    def api(self) -> KubeApi:
        paths = find_kubeconfig(self.kubeconfig, os.environ)
        return KubeApi(connect(self.context) if paths is None else kubeconfig_connection(paths, self.context))

    @cached_property
    def namespace(self) -> str:
        return self.named_namespace or namespace_of(find_kubeconfig(self.kubeconfig, os.environ), self.context)

    def read(self, target: Target) -> dict[str, Any]:
        """The resource that is meant.

        raises        MissingError, which names the Realm of that realm id where there is one
        """
        found = self.api.find(target.path(self.namespace))
        if found is not None:
            return found
        raise MissingError(f"there is no {target.kind} {target.name!r} in namespace {self.namespace!r}{self._near(target)}")

    def show(self, data: Any, lines: Callable[[], Sequence[str]]) -> None:
        """Print a result as the caller wants it: plain data, or lines for people."""
        if self.output == "json":
            click.echo(json_text(data), nl=False)
        elif self.output == "yaml":
            click.echo(yaml_text(data), nl=False)
        else:
            click.echo("\n".join(lines()))

    def say(self, line: str) -> None:
        """A word beside the result, which must stay readable for programs."""
        click.echo(line, err=self.output != "table")

    def now(self) -> datetime:
        return datetime.now(UTC)

    def wait_for(self, look: Callable[[], T | None], seconds: float) -> T | None:
        """What ``look`` gives at last; None when it gave nothing for so long."""
        end = time.monotonic() + seconds
        while True:
            found = look()
            if found is not None or time.monotonic() >= end:
                return found
            time.sleep(_PAUSE_SECONDS)

    def confirm_word(self, word: str, question: str, advice: str) -> None:
        """Have a person type a word.

        raises        RefusedError for another word, or when nobody is there to type
        """
        if not sys.stdin.isatty():
            raise RefusedError(f"nothing was done: {advice}")
        if click.prompt(question, default="", show_default=False, err=True) != word:
            raise RefusedError(f"nothing was done: that is not {word!r}")

    def _near(self, target: Target) -> str:
        if target.kind != "Realm":
            return ""
        found = self.api.list(resource_path("Realm", self.namespace, None))
        names = [realm["metadata"]["name"] for realm in found if realm_id_of(realm) == target.name]
        return f"; the realm of that id is that of the Realm {names[0]!r}" if names else ""
