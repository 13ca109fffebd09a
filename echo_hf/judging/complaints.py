"""Complaints and praise: the outputs in posts, by what people commented on them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from datasets import Dataset

from echo_hf.curate.feedback import KEYWORD_VERDICTS, normalize_keyword
from echo_hf.curate.splits import ANALYSIS, BENCHMARKS
from echo_hf.errors import ImageError, RunError
from echo_hf.hub.manifest import NoManifestError
from echo_hf.hub.release import iterate_rows
from echo_hf.images.embedded import read_embedded
from echo_hf.images.store import ImageStore
from echo_hf.judging.rate import compute_random_key
from echo_hf.metrics.result import describe_error
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Reason
from echo_hf.scores.certificate import MIN_THREADS
from echo_hf.systems.benchmark import Benchmark, NoTask
from echo_hf.systems.checks import Evidence
from echo_hf.tables import Row

MAX_WRITING_THREADS = 20
WRITING_SEED = 0
SUCCESS = "success"
TREND_DAYS = 90
COLUMNS = (
    *("id", "prompt", "post_urls", "community_feedback", "timestamp", "sample_digest"),
    *("dehydrated", "missing_images", "picture_sources"),
)
IMAGE_COLUMNS = ("input_images", "output_images")


class NotEvidence(Reason):
    """Why a sample with comments says nothing of what outputs people complain about."""

    NO_VERDICT = "no_verdict", "no comment praises it or names a failure"
    NOTHING_SHOWN = "nothing_shown", "its posts show no output"


class Comment(NamedTuple):
    """One comment, and the form that the spellings of its keyword share."""

    url: str | None
    text: str
    form: str | None
    keyword: str | None


class StoredImages(Sequence[str]):
    """Digests of a sample's images, which are read and stored when they are first looked at.

    Most comments are only counted: of a large benchmark few images are needed. None where one
    cannot be read.
    """

    def __init__(self, read: Callable[[], Sequence[str]]) -> None:
        self._read = read

    @cached_property
    def _digests(self) -> tuple[str, ...]:
        return tuple(self._read())

    def __getitem__(self, index: Any) -> Any:
        """Return a digest, or several."""
        return self._digests[index]

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._digests)


@dataclass(frozen=True)
class CommentedSample:
    """A sample with outputs that people complained about or praised; images are digests."""

    sample_id: str
    thread: str
    prompt: str
    digest: str
    urls: tuple[str, ...]
    inputs: Sequence[str]
    outputs: Sequence[str]
    comments: tuple[Comment, ...]
    is_praised: bool
    time: datetime | None = None

    @property
    def split(self) -> str:
        """The benchmark split whose kind of task it is, in it or not."""
        return BENCHMARKS[0] if self.inputs else BENCHMARKS[1]

    @property
    def forms(self) -> frozenset[str]:
        """The keywords of its complaints, each in the form that its spellings share."""
        return frozenset(comment.form for comment in self.comments if comment.form)


@dataclass(frozen=True)
class Complaints:
    """The samples that people complained about or praised, and the number of the others."""

    samples: tuple[CommentedSample, ...]
    left_out: Mapping[Reason, int]

    @property
    def praised(self) -> list[CommentedSample]:
        return [sample for sample in self.samples if sample.is_praised]

    @property
    def newest(self) -> datetime | None:
        return max((sample.time for sample in self.samples if sample.time), default=None)


def read_complaints(benchmark: Benchmark, folder: RunFolder) -> Complaints:
    """Read what people said of the outputs in a benchmark's posts.

    Images are stored in the folder. A sample's thread is the one that the run has found; without a
    run, samples that share a post are of one.
    """
    samples, left_out = dict[str, CommentedSample](), Counter[Reason]()
    try:
        names = set(benchmark.read_manifest().configs)
    except NoManifestError:
        names = {ANALYSIS}
    configs = [ANALYSIS] if ANALYSIS in names else [name for name in BENCHMARKS if name in names]
    for dataset in map(benchmark.load, configs):
        columns = [name for name in COLUMNS if name in dataset.column_names]
        for number, row in enumerate(iterate_rows(dataset, columns=columns)):
            if row["id"] not in samples:
                sample = _read_sample(row, dataset, number, folder.images)
                if isinstance(sample, CommentedSample):
                    samples[row["id"]] = sample
                elif row.get("community_feedback"):
                    left_out[sample] += 1
    return Complaints(tuple(_add_threads(list(samples.values()), folder)), left_out)


def _read_sample(
    row: Row, dataset: Dataset, number: int, images: ImageStore
) -> CommentedSample | Reason:
    comments, is_praised = _read_comments(row)
    if not (is_praised or any(comment.form for comment in comments)):
        return NotEvidence.NO_VERDICT
    if row.get("dehydrated") or row["prompt"] is None or row.get("missing_images"):
        return NoTask.DEHYDRATED
    inputs, outputs = (
        StoredImages(partial(_read_images, dataset, number, name, images)) for name in IMAGE_COLUMNS
    )
    sources = row.get("picture_sources")
    has_output = [each for each in sources if each["role"] == "output"] if sources else outputs
    if not has_output:
        return NotEvidence.NOTHING_SHOWN
    return CommentedSample(
        row["id"],
        "",
        row["prompt"],
        row.get("sample_digest") or "",
        tuple(row.get("post_urls") or ()),
        inputs,
        outputs,
        tuple(comments),
        is_praised,
        row.get("timestamp"),
    )


def _read_images(dataset: Dataset, number: int, column: str, images: ImageStore) -> Sequence[str]:
    """Store the images in a column of a row, and return their digests; none if one is broken."""
    if column not in dataset.column_names:
        return ()
    row = next(iterate_rows(dataset.select([number]), 1, [column]))
    try:
        return [images.put(read_embedded(image, number)) for image in row[column] or ()]
    except ImageError:
        return ()


def _read_comments(row: Row) -> tuple[list[Comment], bool]:
    """Return the comments on a sample, and whether they praise it and complain of nothing."""
    comments, verdicts = [], set()
    for each in row.get("community_feedback") or ():
        verdict, keyword = each.get("verdict"), each.get("keyword")
        verdicts.add(verdict)
        form = normalize_keyword(keyword) if verdict in KEYWORD_VERDICTS and keyword else ""
        comments.append(
            Comment(each.get("post_url"), each.get("feedback") or "", form or None, keyword)
        )
    return comments, SUCCESS in verdicts and not verdicts & KEYWORD_VERDICTS


def _add_threads(
    samples: Sequence[CommentedSample], folder: RunFolder
) -> Iterator[CommentedSample]:
    roots = read_roots(folder, {sample.urls[0] for sample in samples if sample.urls})
    parents: dict[str, str] = {}

    def find(url: str) -> str:
        while parents.setdefault(url, url) != url:
            url = parents[url]
        return url

    for sample in samples:
        urls = [*sample.urls, *(comment.url for comment in sample.comments if comment.url)]
        for url in urls[1:]:
            first, second = sorted((find(urls[0]), find(url)))
            parents[second] = first
    for sample in samples:
        primary = sample.urls[0] if sample.urls else sample.sample_id
        thread = roots.get(primary) or find(primary)
        yield replace(sample, thread=thread)


def read_roots(folder: RunFolder, posts: Collection[str]) -> dict[str, str]:
    """Read the roots of some posts' threads, as a run has found them; empty without a run."""
    path: Path = folder.stage_folder("threads") / "kept.parquet"
    if not path.exists():
        return {}
    roots: dict[str, str] = {}
    try:
        for batch in pq.ParquetFile(path).iter_batches(
            columns=["root_url", "posts.list.element.url"]
        ):
            for row in batch.to_pylist():
                urls = (post["url"] for post in row["posts"] if post["url"] in posts)
                roots |= dict.fromkeys(urls, row["root_url"])
    except (OSError, ValueError) as error:
        raise RunError(
            f"cannot read {str(path)!r} ({describe_error(error)}): build again"
        ) from None
    return roots


@dataclass(frozen=True)
class ComplaintGroup:
    """A failure that people name, in all its spellings, and the samples that say so."""

    spellings: Mapping[str, int]
    forms: frozenset[str]
    complaints: tuple[CommentedSample, ...]
    praised: tuple[CommentedSample, ...] = field(repr=False)
    trend: int = 0  # threads of the newest 90 days less those of the 90 before
    newest: datetime | None = None

    @property
    def keyword(self) -> str:
        return next(iter(self.spellings))

    @property
    def threads(self) -> list[str]:
        return sorted({sample.thread for sample in self.complaints})

    @property
    def missing(self) -> MissingThreads:
        """The threads that a check would take and that there are not."""
        threads, praised = len(self.threads), len({sample.thread for sample in self.praised})
        few = MissingThreads(_count_complaints_missing(threads), max(0, MIN_THREADS - praised))
        return few or count_missing(self.split_evidence())

    def split_evidence(
        self, writing: Set[int] | None = None, most: int | None = None
    ) -> tuple[Evidence, ...]:
        """Return the samples with complaints and praise, and which are for writing.

        A third of the threads with complaints, at most 20, are drawn by a hash of each; or
        `writing` are the numbers of the threads that a question was written from before. No thread
        is for both. With `most` so many threads of each kind are drawn for proof.
        """

        def order_threads(threads: Iterable[str], part: str) -> list[str]:
            return sorted(threads, key=lambda name: compute_random_key(WRITING_SEED, part, name))

        threads = {sample.thread for sample in (*self.complaints, *self.praised)}
        numbers = {thread: number_thread(thread) for thread in threads}
        if writing is None:
            order = order_threads(self.threads, "writing")
            drawn = set(order[: min(len(order) // 3, MAX_WRITING_THREADS)])
        else:
            drawn = {thread for thread in threads if numbers[thread] in writing}
        evidence = []
        for label, samples in (("complaint", self.complaints), ("praise", self.praised)):
            left = order_threads({sample.thread for sample in samples} - drawn, label)
            proof = set(left[:most])
            for sample in samples:
                part = "proof" if sample.thread in proof else "writing"
                if part == "proof" or (sample.thread in drawn and label == "complaint"):
                    fields = {"sample_id": sample.sample_id, "thread": numbers[sample.thread]}
                    evidence.append(Evidence(**fields, label=label, part=part))
        return tuple(evidence)


def number_thread(thread: str) -> int:
    """Return the number by which evidence knows a thread, whatever becomes of its samples."""
    return int.from_bytes(hashlib.sha256(thread.encode()).digest()[:6])


class MissingThreads(NamedTuple):
    """How many more threads a check would take."""

    complaint: int
    praise: int

    def __bool__(self) -> bool:
        return self.complaint > 0 or self.praise > 0


def count_missing(evidence: Sequence[Evidence]) -> MissingThreads:
    """Count the threads that are missing before a question can be written and proven."""
    threads = {
        name: {each.thread for each in evidence if (each.label, each.part) == name}
        for name in (("complaint", "proof"), ("praise", "proof"), ("complaint", "writing"))
    }
    proof, writing = len(threads["complaint", "proof"]), len(threads["complaint", "writing"])
    complaint = _count_complaints_missing(proof + writing)
    if writing:
        complaint = max(complaint, MIN_THREADS - proof)
    return MissingThreads(complaint, max(0, MIN_THREADS - len(threads["praise", "proof"])))


def _count_complaints_missing(threads: int) -> int:
    """Count the threads that are missing for enough of them to be left for proof."""
    enough = threads
    while enough - min(enough // 3, MAX_WRITING_THREADS) < MIN_THREADS:
        enough += 1
    return enough - threads


def group_complaints(
    complaints: Complaints,
    merge: Callable[[Mapping[str, int]], Iterable[Iterable[str]]] | None = None,
) -> tuple[ComplaintGroup, ...]:
    """Group complaints by keyword, those of the most threads first, then the rising and new ones.

    `merge` takes the forms of keywords with their counts, and returns groups of forms.
    """
    by_form: dict[str, list[CommentedSample]] = {}
    for sample in complaints.samples:
        for form in sample.forms:
            by_form.setdefault(form, []).append(sample)
    counts = {form: len(samples) for form, samples in by_form.items()}
    merged = (
        [[form] for form in counts] if merge is None else [list(forms) for forms in merge(counts)]
    )
    praised, newest = tuple(complaints.praised), complaints.newest
    groups = [_make_group(frozenset(forms), by_form, praised, newest) for forms in merged]
    return tuple(sorted(groups, key=_order_key))


def _make_group(
    forms: frozenset[str],
    by_form: Mapping[str, Sequence[CommentedSample]],
    praised: tuple[CommentedSample, ...],
    newest: datetime | None,
) -> ComplaintGroup:
    samples = {sample.sample_id: sample for form in sorted(forms) for sample in by_form[form]}
    spellings = Counter(
        comment.keyword
        for sample in samples.values()
        for comment in sample.comments
        if comment.form in forms and comment.keyword
    )
    ranked = dict(sorted(spellings.items(), key=lambda pair: (-pair[1], pair[0])))
    times = [sample.time for sample in samples.values() if sample.time]
    trend = 0
    if newest is not None:
        day = timedelta(days=1)
        for start, sign in ((0, 1), (TREND_DAYS, -1)):
            until = newest - start * day
            trend += sign * len(
                {
                    sample.thread
                    for sample in samples.values()
                    if sample.time and until - TREND_DAYS * day < sample.time <= until
                }
            )
    ordered = tuple(samples[name] for name in sorted(samples))
    return ComplaintGroup(ranked, forms, ordered, praised, trend, max(times, default=None))


def _order_key(group: ComplaintGroup) -> tuple[Any, ...]:
    age = -group.newest.timestamp() if group.newest else 0.0
    return -len(group.threads), -group.trend, age, group.keyword


def name_check(keyword: str) -> str:
    """Return the name of a keyword's check: its letters and digits, or a digest of others."""
    words = [
        "".join(char for char in word if char.isascii() and char.isalnum())
        for word in keyword.lower().split()
    ]
    name = "_".join(filter(None, words))[:60].strip("_")
    if not name or not name[0].isalpha():
        name = f"check_{hashlib.sha256(keyword.encode()).hexdigest()[:8]}"
    return name
