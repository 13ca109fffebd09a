"""What each stage reads when the stages before it are right, and what an engine said to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel

from echo_hf.builder.gold.folder import GoldPosts
from echo_hf.builder.gold.lines import (
    ExtractLine,
    GoldSample,
    PictureAt,
    RelevanceLine,
    RolesLine,
    ScreenshotLine,
    folded,
)
from echo_hf.config.sections import Target
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageResult, sort_rows
from echo_hf.samples.boxes import Pixels
from echo_hf.samples.extract import Extract
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.samples.spans import squeezed
from echo_hf.samples.tasks import Task, rows_of
from echo_hf.samples.thread_parts import (
    LONGEST_FEEDBACK,
    ExtractAnswer,
    PostFeedback,
    SampleAnswer,
    parts,
    rendered,
)
from echo_hf.tables import POSTS, THREADS, Table

ONE_PART = 1_000_000_000
Row = Mapping[str, Any]
Key = tuple[str, str]
"""Names a sample: the root of its thread, and its prompt with white space squeezed."""


def posts_to_score(lines: Sequence[RelevanceLine], posts: GoldPosts) -> Dataset:
    """The posts that people scored, as `relevance` reads them."""
    wanted = {line.url for line in lines}
    rows = (row for row in posts.posts.to_list() if row["url"] in wanted)
    return _dataset(POSTS, [{**row, "keywords": row["keywords"] or None} for row in rows])


def threads_to_read(lines: Sequence[ExtractLine], posts: GoldPosts) -> Dataset:
    """The threads whose samples people wrote down, as `extract` reads them."""
    wanted = {line.root_url for line in lines}
    rows = [row for row in posts.threads.to_list() if row["root_url"] in wanted]
    return _dataset(THREADS, rows)


def samples_to_look_at(
    lines: Sequence[ExtractLine], roles: Sequence[RolesLine], posts: GoldPosts, target: Target
) -> Dataset:
    """The samples that people wrote down, in context, as `roles` reads them."""
    threads = threads_to_read(lines, posts)
    said = {line.root_url: line.samples for line in lines}
    stage = Extract(target, ONE_PART)
    answers: list[list[BaseModel | Failure]] = [
        [_answer(said[row["root_url"]], row["posts"], shown) for shown in _parts(row["posts"])]
        for row in threads.to_list()
    ]
    made = stage.finish(threads.with_format("arrow")[:], answers) if len(threads) else None
    rows = [] if made is None else sort_rows(stage, threads, Dataset(made)).dataset.to_list()
    wanted = {line.key for line in roles}
    named = ((row, (posts.root_of[row["post_urls"][0]], squeezed(row["prompt"]))) for row in rows)
    return _dataset(
        SAMPLES_IN_CONTEXT,
        [{**row, "provenance": _provenance(key)} for row, key in named if key in wanted],
    )


def samples_to_judge(samples: Dataset, roles: Sequence[RolesLine], posts: GoldPosts) -> Dataset:
    """The samples with the roles that people gave their pictures, as `feedback` reads them."""
    said = {line.key: line for line in roles}
    rows = [
        row
        for sample in samples.to_list()
        for row in _with_roles(sample, said[sample_key(sample)], posts)
    ]
    return _dataset(SAMPLES_IN_CONTEXT, rows)


def samples_to_take_apart(
    samples: Dataset, roles: Sequence[RolesLine], posts: GoldPosts
) -> Dataset:
    """The samples that show a conversation or a collage, as `screenshots` reads them."""
    rows = samples_to_judge(samples, roles, posts).to_list()
    return _dataset(SAMPLES_IN_CONTEXT, [row for row in rows if row["screenshot"]])


def sample_key(row: Row) -> Key:
    """Which gold sample a row was made from."""
    root, prompt = json.loads(row["provenance"])["gold"]
    return root, prompt


def digest_of(picture: PictureAt | ScreenshotLine, posts: GoldPosts) -> str | None:
    """Sha256 of a picture that gold names."""
    return posts.pictures[picture.post_url][picture.index]


def _provenance(key: Key) -> str:
    return json.dumps({"gold": list(key)})


def _parts(posts: Sequence[Row]) -> list[list[int]]:
    return parts(rendered(posts, ONE_PART), ONE_PART)


def _answer(
    samples: Sequence[GoldSample], posts: Sequence[Row], shown: Sequence[int]
) -> ExtractAnswer:
    number = {posts[place]["url"]: place for place in shown}
    return ExtractAnswer(
        samples=[
            SampleAnswer(
                prompt=sample.prompt,
                quality=sample.quality,
                posts=[number[url] for url in sample.post_urls if url in number],
                feedback=list(_said(sample, posts, number)),
            )
            for sample in samples
            if sample.post_urls[0] in number
        ]
    )


def _said(
    sample: GoldSample, posts: Sequence[Row], number: Mapping[str, int]
) -> Iterator[PostFeedback]:
    listed = {*sample.feedback, *sample.feedback_optional}
    for place in sorted(number[url] for url in listed if url in number):
        text = (posts[place]["text"] or "").strip()[:LONGEST_FEEDBACK]
        yield PostFeedback(post=place, feedback=text)


def _with_roles(sample: Row, line: RolesLine, posts: GoldPosts) -> list[Row]:
    tasks = _tasks(sample, line, posts) if sample["output_images"] else []
    return list(rows_of(sample, tasks, {})) if tasks else [sample]


def _tasks(sample: Row, line: RolesLine, posts: GoldPosts) -> list[Task]:
    candidates = set(sample["output_images"])
    pictures = {
        role: _digests((one for one in line.pictures if one.role == role), posts, candidates)
        for role in ("input", "output")
    }
    if line.filled:
        return _completions(line, pictures["input"], posts, candidates)
    shots = (one for one in (line.conversation, line.collage) if one)
    shot = next(iter(_digests(shots, posts, candidates)), None)
    return [
        Task(
            sample["prompt"],
            inputs=pictures["input"],
            outputs=pictures["output"],
            screenshot=shot,
        )
    ]


def _completions(
    line: RolesLine, inputs: list[str], posts: GoldPosts, candidates: set[str]
) -> list[Task]:
    tasks: dict[str, Task] = {}
    for one in line.filled:
        blanks = tuple(one.blanks.items()) or (("", ""),)  # without a blank it would be no filling
        task = tasks.setdefault(one.prompt, Task(one.prompt, blanks, list(inputs)))
        task.outputs += _digests([one.output], posts, candidates)
    return [task for task in tasks.values() if task.outputs]


def _digests(pictures: Iterable[PictureAt], posts: GoldPosts, candidates: set[str]) -> list[str]:
    found = (digest_of(one, posts) for one in pictures)
    return [one for one in dict.fromkeys(found) if one and one in candidates]


def _dataset(table: Table, rows: Sequence[Row]) -> Dataset:
    return Dataset(pa.Table.from_pylist(list(rows), schema=table.features.arrow_schema))


Answered = tuple[str, str]
"""A picture, and the prompt that it shows the completion of, folded."""


@dataclass(frozen=True)
class FoundSample:
    """A sample that an engine found."""

    primary: str
    prompt: str
    quality: str
    feedback: tuple[str, ...] = ()


@dataclass
class FoundRoles:
    """What an engine made of a sample's pictures, by their digests."""

    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    screenshots: set[str] = field(default_factory=set)
    completions: set[Answered] = field(default_factory=set)

    def role_of(self, digest: str) -> str:
        """What a picture is."""
        if digest in self.outputs:
            return "output"
        return "input" if digest in self.inputs else "neither"


@dataclass(frozen=True)
class FoundScreenshot:
    """What an engine said about one screenshot."""

    inputs: tuple[Pixels, ...]
    outputs: tuple[Pixels, ...]
    prompt: str | None


@dataclass(frozen=True)
class FoundSafety:
    """What an engine said about one sample."""

    removed: bool
    categories: tuple[str, ...]


@dataclass(frozen=True)
class FoundTask:
    """What an engine said about one sample."""

    key: Key
    kind: str | None
    task: str | None


@dataclass(frozen=True)
class FoundVerdict:
    """What an engine said about one comment."""

    verdict: str
    keyword: str | None


def found_scores(result: StageResult) -> dict[str, int]:
    """The scores of `relevance`, by post; one without an answer is left out."""
    rows = result.dataset.select_columns(["url", "relevance"]).to_list()
    given = ((row["url"], row["relevance"]) for row in rows)
    return {url: said["score"] for url, said in given if said and said["score"] is not None}


def found_samples(
    result: StageResult, roots: Sequence[str], root_of: Mapping[str, str]
) -> dict[str, list[FoundSample]]:
    """The samples of `extract`, by thread; one that was not answered is left out."""
    failed = set(result.quarantine.select_columns(["root_url"])["root_url"])
    found: dict[str, list[FoundSample]] = {root: [] for root in roots if root not in failed}
    for row in result.dataset.to_list():
        primary = row["post_urls"][0]
        said = tuple(one["post_url"] for one in row["community_feedback"])
        sample = FoundSample(primary, row["prompt"], row["quality"], said)
        found[root_of[primary]].append(sample)
    return found


def found_roles(result: StageResult) -> dict[Key, FoundRoles]:
    """What `roles` made of each sample's pictures; one that waits for its answer is left out."""
    found: dict[Key, FoundRoles] = {}
    for row in result.dataset.to_list():
        mine = found.setdefault(sample_key(row), FoundRoles())
        mine.inputs.update(row["input_images"])
        mine.outputs.update(row["output_images"])
        shots = [row["screenshot"]] if row["screenshot"] else []
        mine.screenshots.update(shots)
        if row["prompt_fill_blank"]:
            shown = row["output_images"] or shots
            mine.completions.update((digest, folded(row["prompt"])) for digest in shown)
    return found


def found_screenshots(result: StageResult) -> dict[str, FoundScreenshot]:
    """What `screenshots` said, by id of the sample; one without an answer is left out."""
    said = (
        (row, json.loads(row["provenance"]).get("screenshots")) for row in result.dataset.to_list()
    )
    return {
        row["id"]: FoundScreenshot(
            _pixels(row["input_bboxs"]), _pixels(row["output_bboxs"]), read["prompt_read"]
        )
        for row, read in said
        if read
    }


def found_safety(result: StageResult) -> dict[str, FoundSafety]:
    """What `safety` said, by id of the sample; one that is unscreened is left out."""
    rows = result.dataset.select_columns(["id", "has_nsfw", "safety"]).to_list()
    return {
        row["id"]: FoundSafety(row["has_nsfw"], tuple(row["safety"]["categories"]))
        for row in rows
        if row["has_nsfw"] is not None
    }


def found_tasks(result: StageResult) -> dict[str, FoundTask]:
    """What `feedback` said each sample asks for, by its id; one without an answer is left out."""
    return {
        row["id"]: FoundTask(sample_key(row), row["kind"], row["task"])
        for row in result.dataset.to_list()
        if "feedback" in json.loads(row["provenance"])
    }


def found_verdicts(result: StageResult) -> dict[str, FoundVerdict]:
    """The verdicts of `feedback`, by post; one without an answer is left out."""
    said = (one for row in result.dataset.to_list() for one in row["community_feedback"])
    return {
        one["post_url"]: FoundVerdict(one["verdict"], one["keyword"])
        for one in said
        if one["verdict"] is not None
    }


def _pixels(boxes: Sequence[Sequence[float]]) -> tuple[Pixels, ...]:
    return tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in boxes)
