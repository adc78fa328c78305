"""Reports, of maintenance and of an import, each as one page of HTML that needs nothing beside itself.

Knows what runs count; must not know where they are kept, nor what the command line is.
"""

from headwater.cli.page.rendering import import_page, report_page
from headwater.cli.page.surveys import ImportFigures, ImportGatherer

__all__ = ["ImportFigures", "ImportGatherer", "import_page", "report_page"]
