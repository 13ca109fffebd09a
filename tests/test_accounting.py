"""Whatever people post and models answer: nothing is lost, and nothing stands in two samples."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echo_hf.collect.collect import READ_POSTS, PostMerge
from echo_hf.collect.relevance import Relevance
from echo_hf.curate.feedback import Feedback, PhraseAnswer
from echo_hf.curate.privacy import Privacy
from echo_hf.curate.splits import Splits
from echo_hf.engines.base import Failed
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage
from echo_hf.samples.extract import Extract
from echo_hf.samples.roles import Roles
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.samples.threads import Threads
from echo_hf.tables import POSTS, SAMPLES, Table
from tests.samples_for_tests import ROLES_SAMPLES, TARGET, TEMPLATE, kept

Rows = list[dict[str, Any]]
FAILURE = Failure(Failed.CUT, "length", "ff")
URLS = [f"https://example.org/{number}" for number in range(20)]
IMAGES = ["aa" * 32, "bb" * 32, "cc" * 32]
PROMPTS = ["a fox in the snow", "a bear in the sand", "a fox in the snow at night", "owl", " "]
PROMPTS += [TEMPLATE, TEMPLATE]
TEXTS = [None, "@mira_draws", "a fox in the snow, or a bear in the sand", "stunning", "x" * 3000]
TEXTS += ["a bear in the sand\na fox in the snow " + "at night " * 40]
RAW_POST = st.fixed_dictionaries(
    {
        "url": st.sampled_from(URLS),
        "parent_url": st.sampled_from(
            [None, *URLS[:2] * 3, URLS[2], "https://example.org/unknown"]
        ),
        "author": st.sampled_from(["mira_draws", "ovi.art"]),
        "text": st.sampled_from(TEXTS),
        "pictures": st.lists(st.sampled_from([None, *IMAGES]), max_size=3),
        "missing": st.sampled_from([None, None, None, "deleted"]),
    }
)
# Enough long replies to one root that the thread is cut in parts.
LONG_THREAD = st.lists(
    st.builds(
        lambda post: {**post, "parent_url": URLS[0], "text": "x" * 700, "missing": None}, RAW_POST
    ),
    min_size=10,
    max_size=30,
)
NUMBER = st.integers(-1, 20)
SAMPLE = st.fixed_dictionaries(
    {
        "prompt": st.sampled_from(PROMPTS),
        "quality": st.sampled_from(["Benchmark", "Analysis", "Trash"]),
        "posts": st.lists(NUMBER, max_size=6),
        "feedback": st.lists(
            st.fixed_dictionaries({"post": NUMBER, "feedback": st.sampled_from(["stunning", "x"])}),
            max_size=4,
        ),
    }
)
# A null is a call that failed.
SCORES = st.lists(st.sampled_from([None, 1, 3, 4, 5]), min_size=1, max_size=12)
ANSWERS = st.lists(
    st.none() | st.lists(SAMPLE, max_size=4) | st.lists(SAMPLE, min_size=1, max_size=4),
    min_size=1,
    max_size=6,
)
ROLES = st.lists(st.none() | ROLES_SAMPLES | ROLES_SAMPLES, min_size=1, max_size=6)
JUDGED = st.fixed_dictionaries(
    {"comment": st.integers(0, 3), "verdict": st.sampled_from(["success", "failure", "none"])}
)
JUDGEMENTS = st.lists(st.none() | st.lists(JUDGED, max_size=4), min_size=1, max_size=3)


class Build(NamedTuple):
    merged: Rows
    threads: Rows
    samples: Rows
    told: Rows
    judged: Rows
    split: Rows


def parents(rows: Rows, *statuses: str) -> Counter[str]:
    return Counter(key for row in rows if row["_status"] in statuses for key in row["_parent"])


def built(
    posts: Rows,
    scores: list[int | None],
    answers: list[Rows | None],
    roles: list[Rows | None],
    judgements: list[Rows | None],
) -> Build:
    merged = PostMerge()(_raw_table(posts))
    scored = _asked(Relevance(TARGET), merged, [score and {"score": score} for score in scores])
    threads = Threads()(_next(scored, POSTS))
    samples = _asked(Extract(TARGET, 2000), threads, answers, "samples")
    look = Roles(TARGET, ImageStore(Path("pictures")), most_pictures=2)
    told = _asked(look, samples, roles, "samples")
    judged = _asked(Feedback(TARGET), told, judgements, "feedback")
    masked = Privacy()(_next(judged, SAMPLES_IN_CONTEXT))
    split = Splits(cap=2)(_next(masked, SAMPLES))
    made = (merged, threads, samples, told, judged, split)
    return Build(*(table.to_pylist() for table in made))


def _asked(stage: ModelStage, before: pa.Table, answers: list[Any], key: str = "") -> pa.Table:
    """What a stage makes of rows: its questions answered in turn, null fails, no phrase told."""
    rows = _next(before, stage.inputs)
    said = [{key: one} if key and one is not None else one for one in answers]
    turns = cycle([FAILURE if one is None else stage.answer.model_validate(one) for one in said])
    return stage.finish(
        rows,
        [
            [next(turns) if one.answer is stage.answer else PhraseAnswer() for one in row]
            for row in stage.requests(rows)
        ],
    )


def _raw_table(posts: Rows) -> pa.Table:
    rows = [
        {
            "keywords": ["lumen"],
            **post,
            "text": None if post["missing"] else post["text"],
            "pictures": [
                {"sha256": digest, "url": f"https://example.org/{at}.png", "alt_text": None}
                for at, digest in enumerate(post["pictures"])
            ],
        }
        for post in posts
    ]
    return pa.Table.from_pylist(rows, schema=READ_POSTS.schema)


def _next(table: pa.Table, declared: Table) -> pa.Table:
    return table.filter(pc.equal(table["_status"], "kept")).select(list(declared.columns))


@given(st.lists(RAW_POST, max_size=24) | LONG_THREAD, SCORES, ANSWERS, ROLES, JUDGEMENTS)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_row_and_image_is_accounted_for(
    posts: Rows,
    scores: list[int | None],
    answers: list[Rows | None],
    roles: list[Rows | None],
    judgements: list[Rows | None],
) -> None:
    build = built(posts, scores, answers, roles, judgements)
    samples, threads, told = kept(build.samples), kept(build.threads), kept(build.told)
    _each_post_has_one_fate(posts, build)
    _each_thread_has_one_fate(threads, build)
    _nothing_stands_in_two_samples(samples, threads)
    _each_sample_has_one_fate(samples, build)
    assert parents(build.judged, "kept") == Counter(row["id"] for row in told)
    assert parents(build.split, "kept", "rejected") == Counter(row["id"] for row in told)
    for rows in (samples, told):
        assert len({row["id"] for row in rows}) == len(rows)


def _each_post_has_one_fate(posts: Rows, build: Build) -> None:
    urls = {post["url"] for post in posts}
    assert Counter(row["url"] for row in kept(build.merged)) == Counter(urls)
    assert parents(build.threads, "kept", "rejected") == Counter(urls)
    rejected = [row for row in build.threads if row["_status"] == "rejected"]
    assert all(row["_reason"] for row in rejected)
    shown = Counter(post["url"] for row in kept(build.threads) for post in row["posts"])
    assert all(times == 1 for times in shown.values())
    assert set(parents(build.threads, "kept")) == set(shown) & urls


def _each_thread_has_one_fate(threads: Rows, build: Build) -> None:
    gave = set(parents(build.samples, "kept"))
    stopped = parents(build.samples, "rejected", "quarantined")
    assert gave | set(stopped) == {row["root_url"] for row in threads}
    assert not gave & set(stopped)
    assert all(times == 1 for times in stopped.values())


def _nothing_stands_in_two_samples(samples: Rows, threads: Rows) -> None:
    images = Counter(
        (row["_parent"][0], digest) for row in samples for digest in row["output_images"]
    )
    said = Counter(one["post_url"] for row in samples for one in row["community_feedback"])
    assert all(times == 1 for times in (images | said).values())
    shown = {
        (thread["root_url"], image["sha256"])
        for thread in threads
        for post in thread["posts"]
        for image in post["pictures"]
    }
    assert set(images) <= shown
    assert all(one["feedback"] for row in samples for one in row["community_feedback"])


def _each_sample_has_one_fate(samples: Rows, build: Build) -> None:
    waiting = parents(build.told, "quarantined")
    assert set(parents(build.told, "kept")) | set(waiting) == {row["id"] for row in samples}
    assert not set(parents(build.told, "kept")) & set(waiting)
    assert not parents(build.told, "rejected")
