"""The files of a lake: which are live, which are there, and which nobody refers to. Nothing here deletes a file.

What is live is the whole store's: every file that a stored version of any table or view reaches, in any realm. What is there comes from
listings that begin after that. A file that is there, and not live, becomes a candidate only if no rule of ``file_reasons`` keeps it.
"""
