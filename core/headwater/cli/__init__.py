"""The command line: a door. It reads arguments, calls the floors below, and prints what they answer.

It holds no rules: whatever it refuses, it refuses because a floor below did, or because a person has to confirm.
"""

from headwater.cli.application import main
from headwater.cli.cli_session import CliSession

__all__ = ["CliSession", "main"]
