"""What each stage would read if all stages before it had made no mistake."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel

from echo_hf.answers import Failure
from echo_hf.check.gold_lines import (
    ExtractLine,
    GoldSample,
    PictureAt,
    RelevanceLine,
    RolesLine,
    ScreenshotLine,
)
from echo_hf.check.gold_posts import GoldPosts
from echo_hf.config_sections import Target
from echo_hf.context.answers import (
    LONGEST_FEEDBACK,
    ExtractAnswer,
    PostFeedback,
    SampleAnswer,
)
from echo_hf.context.extract import Extract
from echo_hf.context.parts import parts, rendered
from echo_hf.context.sample_context import SAMPLES_IN_CONTEXT
from echo_hf.context.spans import squeezed
from echo_hf.multimodal.rows import rows_of
from echo_hf.multimodal.tasks import Task
from echo_hf.stage_result import sort_rows
from echo_hf.tables import POSTS, THREADS, Table

ONE_PART = 1_000_000_000
Row = Mapping[str, Any]
Key = tuple[str, str]
"""Names a sample: the root of its thread, and its prompt with white space squeezed."""


def posts_to_score(lines: Sequence[RelevanceLine], posts: GoldPosts) -> Dataset:
    """The posts that people scored, as `relevance` reads them.

    Args:
        lines: The scores.
        posts: The posts.

    Returns:
        One row a post, each to be scored: people only score what a search would have found.
    """
    wanted = {line.url for line in lines}
    rows = (row for row in posts.posts.to_list() if row["url"] in wanted)
    return _dataset(POSTS, [{**row, "keywords": row["keywords"] or None} for row in rows])


def threads_to_read(lines: Sequence[ExtractLine], posts: GoldPosts) -> Dataset:
    """The threads whose samples people wrote down, as `extract` reads them.

    Args:
        lines: The samples.
        posts: The posts and their threads.

    Returns:
        One row a thread.
    """
    wanted = {line.root_url for line in lines}
    rows = [row for row in posts.threads.to_list() if row["root_url"] in wanted]
    return _dataset(THREADS, rows)


def samples_to_look_at(
    lines: Sequence[ExtractLine], roles: Sequence[RolesLine], posts: GoldPosts, target: Target
) -> Dataset:
    """The samples that people wrote down, in context, as `roles` reads them.

    Args:
        lines: The samples.
        roles: What people said about their pictures; a sample without a line is left out.
        posts: The posts and their threads.
        target: The model that people talk about.

    Returns:
        One row a sample, whose provenance names the gold sample it is.
    """
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
    """The samples with the roles that people gave their pictures, as `feedback` reads them.

    Args:
        samples: The samples as `roles` reads them.
        roles: What people said about their pictures.
        posts: The posts.

    Returns:
        One row a sample, of a template one for each completion.
    """
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
    """The samples that show a conversation or a collage, as `screenshots` reads them.

    Args:
        samples: The samples as `roles` reads them.
        roles: What people said about their pictures.
        posts: The posts.

    Returns:
        One row a screenshot.
    """
    rows = samples_to_judge(samples, roles, posts).to_list()
    return _dataset(SAMPLES_IN_CONTEXT, [row for row in rows if row["screenshot"]])


def sample_key(row: Row) -> Key:
    """Which gold sample a row was made from.

    Args:
        row: A row that `samples_to_look_at` gave, or that a stage made of one.

    Returns:
        Root of its thread and squeezed prompt.
    """
    root, prompt = json.loads(row["provenance"])["gold"]
    return root, prompt


def digest_of(picture: PictureAt | ScreenshotLine, posts: GoldPosts) -> str | None:
    """Sha256 of a picture that gold names.

    Args:
        picture: Its post and position.
        posts: The posts.

    Returns:
        The digest; null when its bytes are not there.
    """
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
