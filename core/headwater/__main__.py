"""``python -m headwater``: the command line."""

from headwater.entry import run

run()
