"""Where tables lie: a URL, or a folder beside the manifest."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.catalogs import normalise_location
from headwater.errors import RefusedError
from headwater.reconcile.reading import Value

__all__ = ["checked_location"]

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)")
_EXAMPLE = "write a URL such as s3://bucket/folder/, or ./folder for one beside this file"


def checked_location(value: Value, folder: Path | None) -> str:
    """The location as an absolute URL; one that begins with `./` is taken from the folder of the manifest. Faults are noted in the value.

    folder        None for a manifest that lies in none

    No variable is filled in, and nothing in a location is percent-decoded: what stands there is the name.
    """
    text = value.text()
    if not text.strip():
        return text
    if re.match(r"[^/]*://[^/]*:[^/]*@", text):
        value.fault("must not carry a password; give the process that reads it credentials of its own")
        return ""  # nor is it shown
    fault = "is beside no file here; write the whole URL" if folder is None and text.startswith("./") else _fault(text)
    if fault:
        value.fault(f'"{text}" {fault}')
        return text
    location = text
    if folder is not None and text.startswith("./"):
        location = f"file://{folder.as_posix()}/{text.removeprefix('./')}"
    try:
        normalise_location(location)
    except RefusedError as error:
        value.fault(str(error))
    return location


def _fault(text: str) -> str | None:
    if re.search(r"\s|[\x00-\x1f]", text):
        return f"is not a location: it has a space in it; {_EXAMPLE}"
    if re.search(r"[${}]", text):
        return "is not a location: variables are not filled in; write the value itself"
    if {"..", "."} & set(text.removeprefix("./").split("/")):
        return 'is not a location: it must not have the segments "." and ".."; write where it leads'
    return None if text.startswith("./") else _url_fault(text)


def _url_fault(text: str) -> str | None:
    url = _URL.fullmatch(text)
    if url is None:
        return f"is not a location; write file://{text}" if text.startswith("/") else f"is not a location; {_EXAMPLE}"
    scheme, rest = url.groups()
    if "?" in rest or "#" in rest:
        return "is not a location: it must not have a query or a fragment"
    if scheme == "file" and not rest.startswith("/"):
        return f"is not a location: a file URL has three slashes; write file:///{rest}"
    if scheme != "file" and (not rest or rest.startswith("/")):
        return f"is not a location: the name after {scheme}:// is missing"
    return None
