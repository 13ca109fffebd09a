"""Requests with submissions: check the open ones in quarantine, and answer in words."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import NonNegativeInt, ValidationError

from echo_hf._infra.atomic import write_json
from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import escape_markdown, pluralize
from echo_hf.config.checks import Section
from echo_hf.config.sections import SubmissionsOptions
from echo_hf.errors import EchoError, HubError, RunError, SubmissionError
from echo_hf.hub.commitments import Sha256
from echo_hf.hub.remote import PullRequest, Remote, RequestChanges
from echo_hf.hub.submissions import (
    MAX_SHARDS,
    MAX_TEXT_BYTES,
    PLACEMENT_FILE,
    SUBMISSIONS_FOLDER,
    SUBMITTED_PATH,
    Count,
    Refusal,
    Submission,
    check_listing,
    check_submission_name,
    iterate_outputs,
    name_folder,
    read_submission,
)
from echo_hf.images.metadata import MetadataKind
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.submissions.checks import READ_BY_OCR, CheckedOutputs, Remark, check_outputs
from echo_hf.submissions.described import list_counts, list_figures
from echo_hf.submissions.submit import SubmittedTo, check_free, find_known, open_submitted_to
from echo_hf.tables import OUTPUTS, arrow_rows

RECORD_FILE = "submissions.json"
MAX_RECORD_BYTES = 1 << 24
DAYS = 30
TOLERANCE = {"rel_tol": 1e-3, "abs_tol": 1e-3}  # of figures that networks on two machines give


class RecordedAnswer(Section):
    """The answer to a request at a commit; `reason` is null where nothing speaks against it."""

    commit: str
    author: str
    folder: str = ""
    reason: Refusal | None = None
    answer: str = ""
    placement: Sha256 | None = None  # of the place that is about to be added, or was
    accepted: str | None = None  # the commit that added its place
    seen: Count = 0  # the place of its commit in the order in which commits were answered


class Record(Section):
    """The answers of a run to requests, by number."""

    requests: dict[NonNegativeInt, RecordedAnswer] = {}  # noqa: RUF012 - a Section is frozen


@dataclass(frozen=True)
class OpenSubmission:
    """An open request that adds a submission, and the answer to it as it is now."""

    request: PullRequest
    changes: RequestChanges
    answer: RecordedAnswer | None

    @property
    def state(self) -> str:
        if self.answer is None:
            return "not looked at yet"
        if self.answer.reason:
            return f"refused: {self.answer.reason}"
        if self.answer.placement and not self.answer.accepted:
            return "stopped while it was accepted: repeat --accept"
        return "accepted: merge it" if self.answer.accepted else "waits for --accept"

    def precedes(self, other: OpenSubmission, *, by_name: bool = False) -> bool:
        """Return whether its outputs, or its name, are its own against another one's.

        Outputs are those of the commit that was answered first, a name that of the first request.
        """
        if self.answer is None or self.answer.reason or self.request.number == other.request.number:
            return False
        if self.answer.accepted:
            return True
        if by_name:
            return self.request.number < other.request.number
        return other.answer is None or self.answer.seen < other.answer.seen


@dataclass
class SubmissionRequests:
    """The requests of a dataset that add submissions, and the run that keeps the answers."""

    options: SubmissionsOptions
    remote: Remote
    folder: RunFolder
    watch: ProgressListener | None = None
    failed: list[str] = field(default_factory=list)

    def list_open(self) -> list[OpenSubmission]:
        """List the open submissions, the oldest first."""
        if self.remote.read_state() is None:
            return []
        record, submissions = self.read_record(), list[OpenSubmission]()
        history = frozenset(self.remote.list_commits())
        requests = sorted(self.remote.list_requests(), key=attrgetter("number"))
        for request in filter(attrgetter("is_open"), requests):
            try:
                changes = self.remote.read_changes(request, history, MAX_SHARDS + 2)
            except HubError as error:  # one of them is not to hide the others
                self.failed.append(str(error))
                continue
            if any(path.startswith(f"{SUBMISSIONS_FOLDER}/") for path in changes.sizes):
                answer = record.requests.get(request.number)
                if answer and changes.commit not in (answer.commit, answer.accepted):
                    answer = answer if self.read_place(changes, answer) else None
                submissions.append(OpenSubmission(request, changes, answer))
        return submissions

    def read_place(self, changes: RequestChanges, answer: RecordedAnswer | None) -> bytes | None:
        """Read the place that acceptance added to a request; null for none, or other bytes."""
        matches = filter(None, map(SUBMITTED_PATH.fullmatch, changes.sizes))
        path = next((match[0] for match in matches if match[4] == PLACEMENT_FILE), None)
        if path is None or answer is None or changes.sizes[path] > MAX_TEXT_BYTES:
            return None
        if answer.accepted not in (None, changes.commit):  # it has changed since
            return None
        content = self.remote.read_file(changes.commit, path)
        return content if hashlib.sha256(content).hexdigest() == answer.placement else None

    def answer_open(self) -> list[OpenSubmission]:
        """Check the submissions that are new or changed, and answer each in words."""
        submissions, recorded = self.list_open(), self.read_record().requests
        # What has changed since it was answered is newer than what nobody has answered yet.
        changed_last = sorted(
            enumerate(submissions),
            key=lambda entry: entry[1].answer is None and entry[1].request.number in recorded,
        )
        for at, submission in changed_last:
            request, before = submission.request, submission.answer
            if before and before.reason is not Refusal.OVER_QUOTA:  # which may be over
                continue
            try:
                answer = self._answer(submission, submissions)
                if answer != before:
                    self.remote.comment(request, answer.answer)
                    answer = self.record(request.number, answer)
            except EchoError as error:  # no fault of its author: the next turn looks at it again
                self.failed.append(f"{request.url}: {error}")
                continue
            submissions[at] = replace(submission, answer=answer)
        return submissions

    def _answer(
        self, submission: OpenSubmission, submissions: Collection[OpenSubmission]
    ) -> RecordedAnswer:
        request, changes = submission.request, submission.changes
        seen = submission.answer.seen if submission.answer else 0
        known: dict[str, Any] = {"commit": changes.commit, "author": request.author, "seen": seen}
        place = f"`{changes.commit[:10]}`"
        try:
            self.check_quota(request, submissions)
            with self.open_quarantine() as folder:
                read = self.check(submission, folder, submissions)
        except SubmissionError as error:
            reason = Refusal(error.reason)
            text = f"Refused at {place}, {reason}: {escape_markdown(error)}"
            return RecordedAnswer(**known, reason=reason, answer=text)
        folder = name_folder(read.submission.tag, read.submission.name)
        return RecordedAnswer(**known, folder=folder, answer=read.describe(place))

    def check_quota(self, request: PullRequest, submissions: Collection[OpenSubmission]) -> None:
        """Refuse a request of an account that has as many as it may have."""
        open_before = sum(
            each.request.author == request.author and each.request.number < request.number
            for each in submissions
        )
        start = request.created - datetime.timedelta(days=DAYS)
        recorded = self.read_record().requests
        recent = sum(
            each.author == request.author
            and start < each.created
            and each.number < request.number
            and (each.number in recorded or each.title.startswith("Submit "))
            for each in self.remote.list_requests()
        )
        for count, limit, when in (
            (open_before, self.options.open, "open"),
            (recent, self.options.in_30_days, f"in {DAYS} days"),
        ):
            if count >= limit:
                raise SubmissionError(
                    Refusal.OVER_QUOTA,
                    f"{request.author!r} has {pluralize(count, 'submission')} {when}: expected at "
                    f"most {limit:,} with this one; close one, or wait",
                )

    def open_quarantine(self) -> TemporaryDirectory[str]:
        self.folder.cache.mkdir(parents=True, exist_ok=True)
        return TemporaryDirectory(prefix="quarantine-", dir=self.folder.cache)

    def check(
        self, submission: OpenSubmission, folder: str, submissions: Collection[OpenSubmission]
    ) -> CheckedSubmission:
        """Check a submission as its author should have, believing nothing that it says."""
        (tag, name), place = self._check_paths(submission), Path(folder)
        own_folder, author = name_folder(tag, name), submission.request.author
        if any(
            each.answer and each.answer.folder == own_folder
            for each in submissions
            if each.precedes(submission, by_name=True)
        ):
            message = f"an earlier request has {own_folder!r}: choose another name"
            raise SubmissionError(Refusal.NAME_TAKEN, message)
        bundle = self.remote.download(submission.changes.commit, own_folder, place / "downloaded")
        (bundle / PLACEMENT_FILE).unlink(missing_ok=True)  # ours, or it would be refused
        read = read_submission(bundle, name)
        release = self._open_release(read, tag)
        if name in list_systems(release):
            message = f"the release has a system {name!r}: choose another name"
            raise SubmissionError(Refusal.NAME_TAKEN, message)
        own = self._list_own_folders(author, name) - {own_folder}
        rivals = {
            each.changes.commit: each.answer.folder
            for each in submissions
            if each.answer
            and each.precedes(submission)
            and (each.answer.author, each.answer.folder.rpartition("/")[2]) != (author, name)
        }
        known = find_known(release, self.remote, own, rivals)
        sizes = dict[str, tuple[int, int]]()  # as they are stated

        def read_images() -> Iterator[tuple[str, bytes]]:
            for image in iterate_outputs(bundle, read):
                sizes[image.sample_id] = image.size
                yield image.sample_id, image.data

        checked = check_outputs(name, read_images(), known, place / "checked", self.watch)
        return CheckedSubmission(read, checked, release, tuple(_compare(read, sizes, checked)))

    def _list_own_folders(self, author: str, name: str) -> set[str]:
        """List where an account's accepted submissions of this name are, to whichever tag."""
        folders = dict[str, set[str]]()
        for answer in self.read_record().requests.values():
            if answer.accepted and answer.folder.endswith(f"/{name}"):
                folders.setdefault(answer.folder, set()).add(answer.author)
        return {folder for folder, authors in folders.items() if authors == {author}}

    def _check_paths(self, submission: OpenSubmission) -> tuple[str, str]:
        """Return tag and name of the only submission that a request adds, and nothing beside it."""
        changes = submission.changes
        if changes.base is None:
            message = "the main branch has lost the commit that it began at: submit it again"
            raise SubmissionError(Refusal.NO_BASE, message)
        state, first = self.remote.require_state(), f"{SUBMISSIONS_FOLDER}/"
        own = (path.removeprefix(first) for path in sorted(changes.sizes) if path.startswith(first))
        tag, _, rest = next(own).partition("/")
        if tag not in state.tags:
            raise self._make_release_error(f"the request is of {tag[:100]!r}")
        name = check_submission_name(rest.partition("/")[0])
        start = f"{name_folder(tag, name)}/"
        paths = (*changes.sizes, *changes.removed)
        if others := [path for path in paths if not path.startswith(start)]:
            raise SubmissionError(
                Refusal.OTHER_FILES,
                f"the request also changes {sorted(others)[0][:200]!r}: expected files below "
                f"{start!r} alone",
            )
        if changes.is_cut:
            raise SubmissionError(
                Refusal.TOO_MANY_FILES,
                f"the request has more than {len(changes.sizes) - 1:,} files: expected at most "
                f"{MAX_SHARDS + 1}",
            )
        sizes = {path[len(start) :]: size for path, size in changes.sizes.items()}
        if self.read_place(changes, submission.answer):
            sizes.pop(PLACEMENT_FILE)
        check_listing(name, sizes)
        check_free(self.remote, name_folder(tag, name), state.head)
        return tag, name

    def _make_release_error(self, problem: str) -> SubmissionError:
        return SubmissionError(
            Refusal.UNKNOWN_RELEASE,
            f"{problem}: expected a tag of {self.remote.repo_id!r} as it is now",
        )

    def _open_release(self, submission: Submission, tag: str) -> SubmittedTo:
        release = self.remote.repo_id, tag, self.remote.require_state().tags.get(tag)
        if (submission.repo_id, submission.tag, submission.commit) != release:
            raise self._make_release_error(
                f"submission {submission.name!r} is of {submission.repo_id!r} at {submission.tag!r}"
            )
        opened = open_submitted_to(f"{self.remote.repo_id}@{tag}", self.remote.api)
        if opened.manifest != submission.manifest:
            message = f"submission {submission.name!r} is of another manifest than {tag!r} has"
            raise SubmissionError(Refusal.UNKNOWN_RELEASE, f"{message}: submit it again")
        return opened

    def read_record(self) -> Record:
        path = self.folder.root / RECORD_FILE
        try:
            return Record.model_validate_json(read_regular(path, max_bytes=MAX_RECORD_BYTES))
        except FileNotFoundError:
            return Record()
        except (OSError, ValidationError):
            message = f"{str(path)!r} holds no answers to submissions: move it away"
            raise RunError(message) from None

    def record(self, number: int, answer: RecordedAnswer) -> RecordedAnswer:
        """Keep an answer; one to a further commit takes the next place in their order."""
        answers = self.read_record().requests
        if not answer.seen:
            last = max((each.seen for each in answers.values()), default=0)
            answer = answer.model_copy(update={"seen": last + 1})
        self.folder.root.mkdir(parents=True, exist_ok=True)
        content = Record(requests={**answers, number: answer}).model_dump(mode="json")
        write_json(self.folder.root / RECORD_FILE, content)
        return answer


@dataclass(frozen=True)
class CheckedSubmission:
    """A submission that nothing speaks against, its outputs and its release."""

    submission: Submission
    checked: CheckedOutputs
    release: SubmittedTo
    unverified: tuple[str, ...]  # what it says, and what could not be computed again here

    def describe(self, place: str) -> str:
        checked = self.checked
        parts = [
            f"Checked at {place}: outputs of {len(checked.images):,} of {checked.asked:,} "
            "samples, and nothing speaks against them.",
            list_counts(checked.counts).to_markdown(),
        ]
        if checked.figures:
            parts.append(list_figures(checked.figures).to_markdown())
        if self.unverified:
            parts.append(f"Not computed again: {escape_markdown(', '.join(self.unverified))}.")
        if checked.passed_over:
            files = pluralize(checked.passed_over, "file")
            parts.append(f"Of {files} with outputs of others only digests were compared.")
        if checked.speech.missing:
            parts.append(
                f"Words in them were not looked at ({escape_markdown(checked.speech.missing)}), "
                "and nothing is judged before they are."
            )
        parts.append("Nothing is judged before a maintainer accepts it.")
        return "\n\n".join(parts)


def list_systems(release: SubmittedTo) -> set[str]:
    """List the systems that a release has outputs of."""
    if OUTPUTS.name not in release.benchmark.read_manifest().configs:
        return set()
    rows = arrow_rows(release.benchmark.load(OUTPUTS.name), ["system"])
    return {*rows["system"].to_pylist()}


# What the maintainer's copy no longer shows, and what others' outputs since may have changed.
NOT_SENT = (Remark.NO_SUCH_SAMPLE, Remark.UNASKED_SAMPLE, Remark.OTHER_DRAW)
GONE = {*map(str, NOT_SENT), *(f"metadata_{kind}" for kind in MetadataKind)}
CHANGING = {str(Remark.COPIED_OUTPUT)}


def _compare(
    submission: Submission, sizes: Mapping[str, tuple[int, int]], checked: CheckedOutputs
) -> Iterator[str]:
    """Refuse claims that the outputs do not bear out, and yield those that nobody can check here.

    Every count is compared, and every figure that can be measured here.
    """
    claims: list[tuple[str, float | None, float | None]] = [
        ("samples", submission.samples, checked.asked)
    ]
    for name in sorted({*submission.counts, *checked.counts} - CHANGING):
        stated = submission.counts.get(name, 0)
        if name == READ_BY_OCR and not stated:
            continue  # the author could read none, and says so
        if name in GONE or (name == READ_BY_OCR and checked.speech.missing):
            yield f"{name} {stated:,}"
        else:
            claims.append((name, stated, checked.counts.get(name, 0)))
    own = {row.key: row for row in checked.figures}
    for row in submission.figures:
        name, figure = f"{row.metric!r} of {row.split!r}", own.get(row.key)
        if row.system == submission.name and row.key in checked.unmeasured:
            yield f"{row.metric} of {row.split}"
        elif figure is None or row.system != submission.name:
            claims.append((name, row.value or 0.0, None))
        else:
            claims.append((name, row.value, figure.value))
            claims += (
                (f"{part} of {name}", getattr(row, part), getattr(figure, part))
                for part in ("low", "high", "n", "coverage")
            )
    for name, claim, value in claims:
        if claim != value and (
            None in (claim, value) or not math.isclose(claim or 0, value or 0, **TOLERANCE)
        ):
            raise SubmissionError(
                Refusal.OTHER_FIGURES,
                f"submission {submission.name!r} says that {name} is {claim!r}, and it is "
                f"{'none' if value is None else repr(value)}: submit it as `echo-hf submit` "
                "writes it",
            )
    if checked.metadata or {*NOT_SENT} & checked.remarks.keys() or sizes != checked.sizes:
        raise SubmissionError(
            Refusal.OTHER_CONTENT,
            f"submission {submission.name!r} has images with metadata, of other sizes than it says "
            "or of no sample: submit it as `echo-hf submit` writes it",
        )
