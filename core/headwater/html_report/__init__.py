"""HTML reports of maintenance and of an import, each one page that loads no other file.

It takes runs and rows as arguments, and must not import the store or the command line.
"""

from headwater.html_report.report_pages import ImportGatherer, report_page

__all__ = ["ImportGatherer", "report_page"]
