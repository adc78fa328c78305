"""The rule for every location that a catalog is given: by a manifest, the command line, Python or HTTP."""

from __future__ import annotations

import re

import fsspec

from headwater.errors import RefusedError
from headwater.iceberg.file_drivers import ARROW_SCHEMES
from headwater.iceberg.location import plain_location

EXAMPLE = "write a URL such as s3://bucket/folder/"
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)


def check_catalog_location(text: str) -> None:
    """Check a base location, an allowed location, a place for files or a location of an import: a URL that all drivers read alike.

    It is taken as it is written: no variable is filled in, nothing is percent-decoded.

    raises        RefusedError that says what is wrong, and what to write
    """
    fault = _fault(text)
    if fault:
        raise RefusedError(f'"{text[:200]}" {fault}')
    plain_location(text)


def _fault(text: str) -> str | None:
    if re.search(r"\s|[\x00-\x1f]", text):
        return f"is not a location: it has a space in it; {EXAMPLE}"
    if re.search(r"[${}]", text):
        return "is not a location: variables are not filled in; write the value itself"
    if {"..", "."} & set(text.split("/")):
        return 'is not a location: it must not have the segments "." and ".."; write where it leads'
    url = _URL.fullmatch(text)
    if url is None:
        return f"is not a location; write file://{text}" if text.startswith("/") else f"is not a location; {EXAMPLE}"
    return _url_fault(*url.groups())


def _url_fault(scheme: str, rest: str) -> str | None:
    if "?" in rest or "#" in rest:
        return "is not a location: it must not have a query or a fragment"
    if scheme == "file" and not rest.startswith("/"):
        return f"is not a location: a file URL has three slashes; write file:///{rest}"
    if scheme != "file" and (not rest or rest.startswith("/")):
        return f"is not a location: the name after {scheme}:// is missing"
    if scheme not in ARROW_SCHEMES and scheme not in fsspec.available_protocols():
        return f"cannot be reached: no driver here knows the scheme {scheme}://; {EXAMPLE}"
    return None
