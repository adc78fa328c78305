"""HTML reports of maintenance and of an import, each one page that loads no other file.

It takes runs and rows as arguments, and must not import the store or the command line.
"""

from headwater.cli.html_report.html_page import import_page, report_page
from headwater.cli.html_report.report_figures import ImportFigures, ImportGatherer

__all__ = ["ImportFigures", "ImportGatherer", "import_page", "report_page"]
