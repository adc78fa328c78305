"""File references as a dictionary, written from the rules and not from the library: what a store has to answer."""

from __future__ import annotations

from headwater.files import AddFiles, AssignJob, CommitJob, FileRequest, ForgetFiles, SplitReference

Place = tuple[str, str]


class ReferenceModel:
    """Tracked files, and the job of every reference. ``apply`` returns the name of the refusal, or an empty text."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.jobs: dict[Place, str | None] = {}
        self.marks: dict[str, int] = {}
        self.outcomes: dict[str, tuple[FileRequest, str]] = {}

    def apply(self, request: FileRequest) -> str:
        if request.request in self.outcomes:
            first, refusal = self.outcomes[request.request]
            return refusal if first == request else "RequestIdReusedError"
        files, jobs = set(self.files), dict(self.jobs)
        refusal = self._change(request, files, jobs)
        if not refusal:
            self.files, self.jobs = files, jobs
            self.marks = {name: time for name, time in self.marks.items() if name in files}
        if request.request:
            self.outcomes[request.request] = (request, refusal)
        return refusal

    def referenced(self, filename: str) -> bool:
        return any(place[0] == filename for place in self.jobs)

    def mark(self, now: int) -> int:
        fresh = [name for name in self.files if name not in self.marks and not self.referenced(name)]
        self.marks.update(dict.fromkeys(fresh, now))
        return len(fresh)

    def collectable(self, before: int) -> list[str]:
        return sorted(name for name, time in self.marks.items() if time < before)

    def _change(self, request: FileRequest, files: set[str], jobs: dict[Place, str | None]) -> str:
        if isinstance(request, AddFiles):
            for each in request.files:
                if each.filename in files:
                    return "FileExistsInTableError"
                files.add(each.filename)
                jobs.update({(each.filename, reference.partition): None for reference in each.references})
        elif isinstance(request, SplitReference):
            return self._split(request, files, jobs)
        elif isinstance(request, AssignJob):
            for filename in request.filenames:
                if (filename, request.partition) not in jobs:
                    return "ReferenceNotFoundError"
                if jobs[filename, request.partition] is not None:
                    return "ReferenceAssignedError"
                jobs[filename, request.partition] = request.job
        elif isinstance(request, CommitJob):
            return self._commit(request, files, jobs)
        else:
            assert isinstance(request, ForgetFiles)
            for filename in request.filenames:
                if filename not in self.files:
                    return "FileNotTrackedError"
                if self.referenced(filename):
                    return "FileHasReferencesError"
                files.discard(filename)
        return ""

    def _split(self, request: SplitReference, files: set[str], jobs: dict[Place, str | None]) -> str:
        source = (request.source.filename, request.source.partition)
        if source[0] not in files:
            return "FileNotTrackedError"
        if source not in jobs:
            return "ReferenceNotFoundError"
        if jobs[source] is not None:
            return "ReferenceAssignedError"
        for target in request.targets:
            if (target.filename, target.partition) in jobs:
                return "ReferenceExistsError"
            jobs[target.filename, target.partition] = None
        del jobs[source]
        return ""

    def _commit(self, request: CommitJob, files: set[str], jobs: dict[Place, str | None]) -> str:
        output = request.output.filename
        if output in request.inputs:
            return "OutputIsInputError"
        for filename in request.inputs:
            if filename not in files:
                return "FileNotTrackedError"
            if (filename, request.partition) not in jobs:
                return "ReferenceNotFoundError"
            if jobs[filename, request.partition] != request.job:
                return "ReferenceNotAssignedError"
        if output in files:
            return "FileExistsInTableError"
        for filename in request.inputs:
            del jobs[filename, request.partition]
        files.add(output)
        jobs[output, request.partition] = None
        return ""
