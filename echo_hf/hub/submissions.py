"""Submissions in a dataset repository: outputs that others made of a release's samples."""

from __future__ import annotations

import datetime
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from echo_hf._infra.bootstrap import Interval
from echo_hf._infra.parquet import open_parquet
from echo_hf._infra.regular_file import open_regular, read_regular
from echo_hf._infra.summary import SummaryMixin
from echo_hf._infra.text import one_line
from echo_hf.config.checks import Section, Words
from echo_hf.errors import ImageError, SubmissionError
from echo_hf.hub.commitments import Sha256, TagName
from echo_hf.hub.facts import describe_problem
from echo_hf.hub.manifest import READ_ERRORS, canonical_json
from echo_hf.hub.remote import Remote
from echo_hf.hub.run_tables import FiniteFloat, ResultRow
from echo_hf.images.embedded import read_embedded
from echo_hf.reasons import Reason
from echo_hf.scores.votes import ProtocolName

SUBMISSIONS_FOLDER = "submissions"
SUBMISSION_FILE, PLACEMENT_FILE = "submission.json", "result.json"
SHARD_BYTES = 1 << 28
MAX_SHARDS = 32
MAX_BUNDLE_BYTES = 1 << 32
MAX_TEXT_BYTES = 1 << 22
MAX_PLACEMENTS = 200  # of a repository
ROWS_PER_GROUP = 16

# No float holds larger ones exactly, and an int in JSON may have thousands of digits.
Count = Annotated[int, Field(ge=0, le=1 << 53)]
SubmissionName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
NAME = TypeAdapter(SubmissionName)
NAME_RULE = "1 to 64 of a to z, 0 to 9, '.', '_' and '-', a letter or digit first"
SHARD_NAME = re.compile(r"outputs-[0-9]{5}\.parquet")
SUBMITTED_PATH = re.compile(rf"({SUBMISSIONS_FOLDER}/([^/]+)/([^/]+))/([^/]+)")
CODE_PATTERN = r"^https://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[!-~]*)?$"


class Refusal(Reason):
    """Why a whole submission is refused."""

    BAD_NAME = "bad_name", "its name is no name of a folder"
    NAME_TAKEN = "name_taken", "another submission has its name"
    OTHER_FILES = "other_files", "it changes files beside its own"
    NO_BASE = "no_base", "the main branch no longer has the commit that it began at"
    TOO_MANY_FILES = "too_many_files", "there are more files than there may be"
    BUNDLE_TOO_LARGE = "bundle_too_large", "its files are larger than they may be"
    UNREADABLE_BUNDLE = "unreadable_bundle", "its files are not of the form of a submission"
    OTHER_CONTENT = "other_content", "its files are not those that it names"
    UNKNOWN_RELEASE = "unknown_release", "it is of no release that is here"
    TOO_FEW = "too_few", "it has outputs of too few samples"
    FLAWED = "flawed", "too many of its outputs are no outputs of this system for these samples"
    WORDS_TO_JUDGE = "words_to_judge", "words in its outputs speak to the judge"
    OTHER_FIGURES = "other_figures", "its figures are not what its outputs give"
    OVER_QUOTA = "over_quota", "its account has as many submissions as one may have"


def check_submission_name(name: str) -> str:
    """Return a name that may become a folder of the repository."""
    try:
        return NAME.validate_python(name)
    except ValidationError:
        raise SubmissionError(
            Refusal.BAD_NAME, f"the name of a submission is {name[:100]!r}: expected {NAME_RULE}"
        ) from None


def name_folder(tag: str | None, name: str) -> str:
    """Return the folder that a repository has for a submission to a tag."""
    return f"{SUBMISSIONS_FOLDER}/{tag}/{name}"


class SubmittedFile(Section):
    path: Annotated[str, StringConstraints(pattern=rf"^{SHARD_NAME.pattern}$")]
    bytes: Count
    sha256: Sha256


class Submission(SummaryMixin, Section):
    """The system and release of a submission, its figures and files, and a digest over all.

    Attributes:
        name: The name of its folder, and of the system on the board.
        model: Repository or name of the model.
        developer: The maker of the model; a judge by the same maker is looked at with care.
        code: Address of the code that made the outputs.
        repo_id: The dataset of the release; null for a release in a folder.
        tag: Tag of the release.
        commit: Commit of that tag.
        manifest: sha256 of the release's manifest.
        echo_hf: The version that wrote it.
        samples: How many samples an output was asked for; sealed ones are not.
        counts: Outputs by what is to be said of them.
        figures: Metrics that need no judge.
        files: Its tables of outputs.
        digest: sha256 of the canonical JSON of everything else.
    """

    format: Literal[1] = 1
    name: SubmissionName
    model: Words
    developer: Words
    code: Annotated[str, StringConstraints(pattern=CODE_PATTERN, max_length=500)] | None = None
    repo_id: Annotated[str, StringConstraints(max_length=200)] | None
    tag: TagName | None
    commit: Annotated[str, StringConstraints(max_length=64)] | None
    manifest: Sha256
    echo_hf: Annotated[str, StringConstraints(max_length=100)]
    samples: Count
    counts: Annotated[Mapping[str, Count], Field(max_length=100)]
    figures: Annotated[tuple[ResultRow, ...], Field(max_length=1000)]
    files: Annotated[tuple[SubmittedFile, ...], Field(max_length=MAX_SHARDS)]
    digest: str = ""

    def compute_digest(self) -> str:
        content = self.model_dump(mode="json", exclude={"digest"})
        return hashlib.sha256(canonical_json(content)).hexdigest()


class PlacedSplit(Section):
    """The strength of a system on the scale of a release's board.

    Attributes:
        strength: Bradley-Terry strength, in log odds; null where there is none.
        low: Lower end of its 95 % interval.
        high: Upper end.
        rank: The place among the systems of the release, from 1.
        systems: How many systems the release has, with this one.
        rated: Samples of which an output was rated.
        asked: Samples of which one was asked for; those without one of its own have lost.
    """

    strength: FiniteFloat | None = None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    rank: Count | None = None
    systems: Count
    rated: Count
    asked: Count

    @property
    def ends(self) -> Interval | None:
        """The ends of the interval; null without one."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class Placement(SummaryMixin, Section):
    """The place of a submission on the board of a release, as `result.json` has it."""

    format: Literal[1] = 1
    name: SubmissionName
    model: Words
    developer: Words
    repo_id: Annotated[str, StringConstraints(max_length=200)]
    tag: TagName
    manifest: Sha256  # of the release that it was placed on, whatever its tag names later
    submission: Sha256  # its digest
    protocol: ProtocolName
    judges: Annotated[tuple[Words, ...], Field(max_length=50)]
    splits: Annotated[Mapping[Words, PlacedSplit], Field(max_length=10)]
    day: datetime.date
    sealed_asked: Literal[False] = False

    def to_text(self) -> str:
        return self.model_dump_json(indent=2) + "\n"


class SubmittedImage(NamedTuple):
    """An output as it is submitted, cleaned of metadata."""

    sample_id: str
    data: bytes
    sha256: str
    size: tuple[int, int]


IMAGE_TYPE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
OUTPUTS_SCHEMA = pa.schema(
    {
        "sample_id": pa.string(),
        "image": IMAGE_TYPE,
        "sha256": pa.string(),
        "width": pa.int32(),
        "height": pa.int32(),
    }
)


def write_outputs(folder: Path, images: Iterable[SubmittedImage]) -> tuple[SubmittedFile, ...]:
    """Write outputs into tables of limited size, and return those."""
    folder.mkdir(parents=True)
    remaining, paths = iter(images), list[Path]()
    groups = iter(lambda: list(islice(remaining, ROWS_PER_GROUP)), [])
    group = next(groups, None)
    while group:
        paths.append(folder / f"outputs-{len(paths):05d}.parquet")
        size = 0
        # Images are compressed already.
        with pq.ParquetWriter(paths[-1], OUTPUTS_SCHEMA, compression="none") as writer:
            while group and size < SHARD_BYTES:
                writer.write_table(pa.Table.from_pylist([*map(_make_row, group)], OUTPUTS_SCHEMA))
                size += sum(len(image.data) for image in group)
                group = next(groups, None)
    return tuple(_describe_file(path) for path in paths)


def _make_row(image: SubmittedImage) -> dict[str, Any]:
    cell = {"bytes": image.data, "path": image.sha256}
    width, height = image.size
    columns = {"sample_id": image.sample_id, "image": cell, "sha256": image.sha256}
    return {**columns, "width": width, "height": height}


def _describe_file(path: Path) -> SubmittedFile:
    with open_regular(path, path.parent) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SubmittedFile(path=path.name, bytes=path.stat().st_size, sha256=digest)


def check_listing(name: str, sizes: Mapping[str, int]) -> None:
    """Check names and sizes of a submission's files, before any of them is read."""
    check_submission_name(name)
    if strange := sorted(
        path for path in sizes if path != SUBMISSION_FILE and not SHARD_NAME.fullmatch(path)
    ):
        raise SubmissionError(
            Refusal.OTHER_FILES,
            f"submission {name!r} has a file {strange[0][:200]!r}: expected {SUBMISSION_FILE} and "
            "outputs-00000.parquet alone",
        )
    if len(sizes) > MAX_SHARDS + 1:
        raise SubmissionError(
            Refusal.TOO_MANY_FILES,
            f"submission {name!r} has {len(sizes):,} files: expected at most {MAX_SHARDS + 1}",
        )
    size, text = sum(sizes.values()), sizes.get(SUBMISSION_FILE, 0)
    if size > MAX_BUNDLE_BYTES or text > MAX_TEXT_BYTES:
        size, limit = (text, MAX_TEXT_BYTES) if text > MAX_TEXT_BYTES else (size, MAX_BUNDLE_BYTES)
        raise SubmissionError(
            Refusal.BUNDLE_TOO_LARGE,
            f"submission {name!r} has {size:,} bytes: expected at most {limit:,}; save images as "
            "JPEG or WebP",
        )
    if SUBMISSION_FILE not in sizes:
        message = f"submission {name!r} has no {SUBMISSION_FILE}: run `echo-hf submit` again"
        raise SubmissionError(Refusal.UNREADABLE_BUNDLE, message)


def read_submission(folder: Path, name: str) -> Submission:
    """Read what a submission says of itself, and compare its files with that."""
    with _reading(name):
        paths = [*folder.iterdir()]
        check_listing(name, {path.name: path.lstat().st_size for path in paths})
        text = read_regular(folder / SUBMISSION_FILE, folder, max_bytes=MAX_TEXT_BYTES)
        submission = Submission.model_validate_json(text, strict=True)
        names = {path.name for path in paths} - {SUBMISSION_FILE}
        actual = {_describe_file(folder / file) for file in names}
    problem = None
    if submission.name != name:
        problem = f"calls itself {submission.name!r}"
    elif submission.compute_digest() != submission.digest:
        problem = "has another digest than its content gives"
    elif actual != {*submission.files}:
        problem = "has other files than it names"
    if problem:
        message = f"submission {name!r} {problem}: run `echo-hf submit` again"
        raise SubmissionError(Refusal.OTHER_CONTENT, message)
    return submission


def iterate_outputs(folder: Path, submission: Submission) -> Iterator[SubmittedImage]:
    """Yield the image of each row, its size as the row states it; no path of a row is opened."""
    for entry in submission.files:
        with _reading(submission.name), open_parquet(folder / entry.path, folder) as file:
            if file.schema != OUTPUTS_SCHEMA:
                raise ValueError(f"{entry.path} has other columns than a table of outputs")
            for batch in file.iterate_batches(rows=ROWS_PER_GROUP):
                for row in batch.to_pylist():
                    if not isinstance(name := row["sample_id"], str):
                        raise ValueError(f"{entry.path} has a row without a sample_id")
                    image = read_embedded(row["image"], name)
                    digest = hashlib.sha256(image).hexdigest()
                    if digest != row["sha256"]:  # others are told by it
                        raise ValueError(f"the image of {name[:80]!r} has another sha256")
                    if row["image"]["path"] not in (None, digest):
                        raise ValueError(f"the image of {name[:80]!r} has a path of its own")
                    yield SubmittedImage(name, image, digest, (row["width"], row["height"]))


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except (*READ_ERRORS, ImageError) as error:
        problem = one_line(error)
        if isinstance(error, ValidationError):
            problem = describe_problem(error)
        elif isinstance(error, OSError) and error.errno is not None:  # its text has a path of here
            problem = os.strerror(error.errno)
        raise SubmissionError(
            Refusal.UNREADABLE_BUNDLE,
            f"submission {name!r} cannot be read ({problem[:300]}): run `echo-hf submit` again",
        ) from None


def read_placements(remote: Remote, commit: str) -> list[Placement]:
    """Read the places of merged submissions; one that cannot be read, or is of others, is none."""
    files, placements = remote.list_files(commit), list[Placement]()
    matches = filter(None, map(SUBMITTED_PATH.fullmatch, sorted(files)))
    folders = [match[1] for match in matches if match[4] == PLACEMENT_FILE]
    for folder in folders[:MAX_PLACEMENTS]:
        path = f"{folder}/{PLACEMENT_FILE}"
        if files[path].size <= MAX_TEXT_BYTES:
            with suppress(ValidationError):
                placed = Placement.model_validate_json(remote.read_file(commit, path))
                place = placed.repo_id, name_folder(placed.tag, placed.name)
                placements += [placed] if place == (remote.repo_id, folder) else []
    return placements
