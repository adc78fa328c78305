"""Options that many commands share. They exist on the root and on each command, so that they may come before or after its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from headwater.errors import RefusedError
from headwater.settings import parse_duration
from headwater_operator.plugin.cluster_session import OUTPUTS, ClusterSession

F = TypeVar("F", bound=Callable[..., Any])


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_duration(value)
        except RefusedError as wrong:
            self.fail(str(wrong), param, ctx)


DURATION = _Duration()


def _kept(attribute: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None:
            setattr(ctx.ensure_object(ClusterSession), attribute, value)

    return keep


def _shared(*names: str, attribute: str, **options: Any) -> Callable[[F], F]:
    return click.option(*names, attribute, callback=_kept(attribute), expose_value=False, **options)


def cluster_options(function: F) -> F:
    """``--context``, ``--kubeconfig`` and ``--namespace``, as kubectl has them."""
    for option in (
        _shared("-n", "--namespace", attribute="named_namespace", metavar="NAME", help="Default: that of the context."),
        _shared("--kubeconfig", attribute="kubeconfig", metavar="FILE", help="Default: $KUBECONFIG, or ~/.kube/config."),
        _shared("--context", attribute="context", metavar="NAME", help="Of the kubeconfig; default: the current one."),
    ):
        function = option(function)
    return function


def output_option(function: F) -> F:
    help_text = "How to print results: table (default), json or yaml."
    return _shared("-o", "--output", attribute="output", type=click.Choice(OUTPUTS), help=help_text)(function)


def timeout_option(default: str, about: str) -> Callable[[F], F]:
    return click.option("--timeout", type=DURATION, default=default, show_default=True, metavar="DURATION", help=about)
