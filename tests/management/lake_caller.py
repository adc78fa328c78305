"""Asks about the catalog ``lake`` of the realm acme, and reads lists to their ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from managed_office import ManagedOffice

from asgi_client import AsgiAnswer


@dataclass(frozen=True)
class LakeCaller:
    """
    token         None: nobody has to prove who calls
    """

    office: ManagedOffice
    token: str | None = None

    def ask(self, method: str, path: str, body: Any = None) -> AsgiAnswer:
        return self.office.call(method, f"/realms/acme/catalogs/lake{path}", body, token=self.token)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.content
        return answer.data

    def post(self, path: str, body: Any, *, status: int = 200) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status == status, answer.content
        return answer.data

    def pages(self, path: str, *, size: int, most: int = 50) -> list[Any]:
        """All pages of a list."""
        separator, token, pages = "&" if "?" in path else "?", "", list[Any]()
        for _ in range(most):
            pages.append(self.get(f"{path}{separator}pageSize={size}{token}"))
            if pages[-1]["nextPageToken"] is None:
                return pages
            token = f"&pageToken={pages[-1]['nextPageToken']}"
        raise AssertionError(f"{path} has more than {most} pages")

    def names(self, path: str, *, of: str = "entries", size: int = 100) -> list[str]:
        """The names of all things in a list."""
        return [each["name"] for page in self.pages(path, size=size) for each in page[of]]
