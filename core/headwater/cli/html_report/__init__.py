"""Reports, of maintenance and of an import, each as one page of HTML that needs nothing beside itself.

Knows what runs count; must not know where they are kept, nor what the command line is.
"""

from headwater.cli.html_report.html_page import import_page, report_page
from headwater.cli.html_report.report_figures import ImportFigures, ImportGatherer

__all__ = ["ImportFigures", "ImportGatherer", "import_page", "report_page"]
