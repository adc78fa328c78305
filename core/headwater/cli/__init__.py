"""The command line: it reads arguments, calls the packages below, and prints their results.

It holds no rules of its own: it refuses only what a package below refuses, or what a person has to confirm.
"""

from headwater.cli.application import main
from headwater.cli.cli_session import CliSession

__all__ = ["CliSession", "main"]
