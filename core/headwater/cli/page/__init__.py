"""The report of maintenance as one page of HTML that needs nothing beside itself.

Knows what runs count; must not know where they are kept, nor what the command line is.
"""

from headwater.cli.page.rendering import report_page

__all__ = ["report_page"]
