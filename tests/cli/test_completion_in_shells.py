"""The installed program in real shells: what each offers while a command is typed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

BASH = """
eval "$(headwater completion bash)"
COMP_WORDS=({line}) COMP_CWORD={last}
_headwater_completion headwater
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# Outside of its line editor zsh has no completion: what the script hands to it is printed.
ZSH = """
compdef() {{ : }}
compadd() {{ print -l -- "${{(@P)@[-1]}}" }}
_describe() {{ print -l -- "${{(@P)3}}" }}
eval "$(headwater completion zsh)"
words=({line}) CURRENT=$(({last} + 1))
_headwater_completion
"""
FISH = """
headwater completion fish | source
complete -C '{line}'
"""
SHELLS = {
    "bash": (["bash", "--norc", "-c"], BASH),
    "zsh": (["zsh", "-f", "-c"], ZSH),
    "fish": (["fish", "--no-config", "-c"], FISH),
}


def offered(shell: str, line: str, folder: Path) -> list[str]:
    """The first word of each offer."""
    command, script = SHELLS[shell]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{shell} is not on the PATH: install it, for example by `apt-get install {shell}`")
    place = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": f"{place}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "HEADWATER_STORE": f"sqlite:///{folder}/none.db",
    }
    text = script.format(line=line, last=len(line.split()) - 1)
    done = subprocess.run([*command, text], env=environment, cwd=folder, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return [entry.replace(":", "\t").split("\t")[0] for entry in done.stdout.splitlines() if entry]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("line", "name"), [("headwater cat", "catalog"), ("headwater catalog mer", "merge")])
def test_installed_program_completes_commands(shell: str, line: str, name: str, tmp_path: Path) -> None:
    """Also the first word: the program used to print its help instead."""
    assert offered(shell, line, tmp_path) == [name]
