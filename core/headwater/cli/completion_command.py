"""``headwater completion``: the script that lets a shell complete commands, options and live names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from headwater.help_pages import COMPLETE_VARIABLE

_SHELLS = ("bash", "zsh", "fish")
_BASH_WORDS = """\
# an address such as acme/lake@dev is one word
COMP_WORDBREAKS=${COMP_WORDBREAKS//@/}
"""


@click.command(name="completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(_SHELLS))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script that lets SHELL (bash, zsh or fish) complete commands, options and names.

    Realms, catalogs, branches, tags and tasks are those that the store has at that moment; a store that does not answer within a second
    offers none.

    \b
    bash: add to ~/.bashrc    eval "$(headwater completion bash)"
    zsh:  add to ~/.zshrc     eval "$(headwater completion zsh)"
    fish: run once            headwater completion fish > ~/.config/fish/completions/headwater.fish
    """
    program = ctx.find_root()
    kind = get_completion_class(shell)
    assert kind is not None, shell  # click knows all three
    script = kind(program.command, {}, "headwater", COMPLETE_VARIABLE).source()
    click.echo((_BASH_WORDS if shell == "bash" else "") + script)
