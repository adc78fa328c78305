"""The files of a lake: which are live, which are there, and which nobody refers to. Nothing here deletes a file.

What is live is the whole store's: every file that a stored version of any table or view reaches, in any realm. What is there comes from
listings that begin after that. A file that is there, and not live, becomes a candidate only if no rule of ``file_reasons`` keeps it.
"""

from headwater.lake_files.catalog_report import ReadReport, read_last_report, report_files
from headwater.lake_files.file_engine import FileEngine, ProcessEngine
from headwater.lake_files.file_explanation import CODE_SENTENCES, FileReferrer, LakeFileExplanation, explain_lake_file
from headwater.lake_files.file_reasons import FILE_SENTENCES, PLACE_SENTENCES, FileReason, PlaceReason
from headwater.lake_files.file_report import FilePlan, LakeFileReport, find_report
from headwater.lake_files.folder_explanation import FOLDER_SENTENCES, FolderTable, folder_code, folder_table
from headwater.lake_files.marked_files import MarkedFile, choose_marks
from headwater.lake_files.report_summary import summarize_report

__all__ = [
    "CODE_SENTENCES",
    "FILE_SENTENCES",
    "FOLDER_SENTENCES",
    "PLACE_SENTENCES",
    "FileEngine",
    "FilePlan",
    "FileReason",
    "FileReferrer",
    "FolderTable",
    "LakeFileExplanation",
    "LakeFileReport",
    "MarkedFile",
    "PlaceReason",
    "ProcessEngine",
    "ReadReport",
    "choose_marks",
    "explain_lake_file",
    "find_report",
    "folder_code",
    "folder_table",
    "read_last_report",
    "report_files",
    "summarize_report",
]
