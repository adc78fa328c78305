"""What the command lines of the core, the operator and the kubectl plugin share: how they end, and how they print.

Knows errors and exit codes, but no store.
"""

from headwater.console.plain_text import bytes_text, cell, count_text, json_text, text_table, yaml_text
from headwater.console.program import Program

__all__ = ["Program", "bytes_text", "cell", "count_text", "json_text", "text_table", "yaml_text"]
