"""The folder of manifests that `up` watches. The last good state is kept while files are wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from headwater.errors import HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.reconcile import KnownRealms, Manifest, load_manifests
from headwater.settings import Settings

__all__ = ["ManifestFolder"]


class ManifestFolder:
    """Reads a folder again when what is in it has changed.

    known_realms  asked at each reading for the realms that manifests may name
    """

    def __init__(self, folder: Path, settings: Settings, known_realms: Callable[[], KnownRealms]) -> None:
        self._folder = folder
        self._settings = settings
        self._known_realms = known_realms
        self._digest = ""
        self.manifests: tuple[Manifest, ...] = ()

    def load(self) -> bool:
        """Read it if it changed; whether it did.

        raises        ManifestError and MissingError, once for each change; ``manifests`` stay as they were
        """
        digest = self._digest_now()
        if digest == self._digest:
            return False
        known = self._known_realms()  # where the store does not answer, the change is not taken for read
        self._digest = digest
        self.manifests = load_manifests(self._folder, settings=self._settings, known_realms=known)
        return True

    def load_or_tell(self, tell: Callable[[str], None]) -> bool:
        """The same for a folder that a person is editing: what is wrong is told, and only a store that does not answer is raised."""
        try:
            return self.load()
        except (UnavailableError, UnknownOutcomeError):
            raise
        except HeadwaterError as error:
            for line in str(error).splitlines():
                tell(line)
            tell("the manifests stay as they were before")
            return False

    def _digest_now(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        files = sorted(path for path in self._folder.iterdir() if path.is_file()) if self._folder.is_dir() else []
        for path in files:
            try:
                content = path.read_bytes()
            except OSError:
                content = b"?"  # it vanished, or may not be read: the reading will say so
            digest.update(b"%d:%s %d:" % (len(path.name.encode()), path.name.encode(), len(content)) + content)
        return digest.hexdigest()
