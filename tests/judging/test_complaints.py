"""What people said of outputs in posts: who complains, who praises, in which thread."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.judging.complaints import (
    Comment,
    CommentedSample,
    Complaints,
    count_missing,
    group_complaints,
    name_check,
    read_complaints,
)
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.checks import Evidence
from echo_hf.tables import SAMPLES, THREADS
from tests.judging.run_for_tests import TARGET, sample, stripes

DAY = datetime(2026, 4, 1, tzinfo=UTC)
PIXELS = stripes((10, 20, 30), (200, 100, 50))


def make_comment(verdict: str, keyword: str | None = None, url: str = "https://p.example/r") -> Any:
    text = f"{verdict} {keyword}"
    return {"post_url": url, "feedback": text, "verdict": verdict, "keyword": keyword}


def release(folder: Path, **comments: list[Any]) -> tuple[Benchmark, RunFolder]:
    """A release with a sample for each name, each with a post of its own and an output."""
    images = ImageStore(folder / "made")
    rows = [
        {
            **sample(name, []),
            "post_urls": [f"https://p.example/{name}"],
            "community_feedback": feedback,
            "output_images": [images.put(PIXELS)],
        }
        for name, feedback in comments.items()
    ]
    return write(folder, rows, images)


def write(folder: Path, rows: list[Any], images: ImageStore) -> tuple[Benchmark, RunFolder]:
    dataset = Dataset(pa.Table.from_pylist(rows, SAMPLES.features.arrow_schema))
    configs = {"text_to_image": dataset.select([]), "analysis": dataset}
    write_release(folder / "release", configs, images, ReleaseFacts("lumen", TARGET))
    return Benchmark(str(folder / "release")), RunFolder(folder / "run")


def test_praise_is_success_without_any_complaint(tmp_path: Path) -> None:
    read = read_complaints(
        *release(
            tmp_path,
            liked=[make_comment("success"), make_comment("none")],
            torn=[make_comment("success"), make_comment("mixed", "Colour casts")],
            bad=[make_comment("failure", "color cast")],
            vague=[make_comment("failure"), make_comment("success")],
            silent=[make_comment("none")],
            unread=[],
        )
    )
    praised = {each.sample_id: each.is_praised for each in read.samples}
    assert praised == {"liked": True, "torn": False, "bad": False}
    # One form for both spellings; a failure without a name is neither praise nor a complaint.
    (group,) = group_complaints(read)
    assert group.spellings == {"Colour casts": 1, "color cast": 1}
    assert {reason.value: count for reason, count in read.left_out.items()} == {"no_verdict": 2}


def test_what_a_release_leaves_out_is_counted(tmp_path: Path) -> None:
    images = ImageStore(tmp_path / "made")
    rows = [
        {
            **sample(name, []),
            "community_feedback": [make_comment("success")],
            "output_images": outputs,
            "dehydrated": name == "dry",
        }
        for name, outputs in (("dry", [images.put(PIXELS)]), ("bare", []))
    ]
    read = read_complaints(*write(tmp_path, rows, images))
    assert not read.samples
    counts = {reason.value: count for reason, count in read.left_out.items()}
    assert counts == {"dehydrated": 1, "nothing_shown": 1}


def test_samples_that_share_a_post_are_of_one_thread(tmp_path: Path) -> None:
    shared = "https://p.example/shared"
    parts = release(
        tmp_path,
        first=[make_comment("success", url=shared)],
        second=[make_comment("success", url=shared)],
        third=[make_comment("success", url="https://p.example/own")],
    )
    threads = {each.sample_id: each.thread for each in read_complaints(*parts).samples}
    assert threads["first"] == threads["second"] != threads["third"]


def test_a_run_knows_the_threads_of_its_posts(tmp_path: Path) -> None:
    benchmark, folder = release(tmp_path, a=[make_comment("success")], b=[make_comment("success")])
    posts = [{"url": f"https://p.example/{name}"} for name in "ab"]
    rows = [{"root_url": "https://p.example/root", "posts": posts}]
    file = folder.stage_folder("threads") / "kept.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, THREADS.schema), file)
    read = read_complaints(benchmark, folder)
    assert {each.thread for each in read.samples} == {"https://p.example/root"}


def commented(number: int, form: str | None, days: int = 0) -> CommentedSample:
    comments = (Comment("u", "text", form, form),) if form else ()
    time = DAY + timedelta(days=days)
    name = f"{form}{number}"
    return CommentedSample(name, name, "draw", "d", (), (), ("o",), comments, form is None, time)


def test_groups_come_by_threads_then_rising_then_new() -> None:
    plan = {"many": [0, 0, 0], "fading": [-100, -1], "rising": [-2, -1], "newer": [-2, 0]}
    samples = [
        commented(number, form, day)
        for form, days in plan.items()
        for number, day in enumerate(days)
    ]
    groups = group_complaints(Complaints(tuple(samples), {}))
    assert [group.keyword for group in groups] == ["many", "newer", "rising", "fading"]
    assert {group.keyword: group.trend for group in groups}["fading"] == 0


def test_merged_keywords_are_one_group() -> None:
    samples = (commented(0, "yellow tint"), commented(1, "cast"), commented(2, "cast"))
    (group,) = group_complaints(Complaints(samples, {}), lambda counts: [counts])
    assert list(group.spellings) == ["cast", "yellow tint"]
    assert len(group.threads) == 3


@pytest.mark.parametrize("threads", [3, 21, 22, 59, 60, 61, 300])
def test_a_third_of_the_threads_is_for_writing_and_the_draw_stays(threads: int) -> None:
    samples = [commented(number, "cast") for number in range(threads)]
    praise = [commented(number, None) for number in range(15)]
    (group,) = group_complaints(Complaints((*samples, *praise), {}))
    evidence = group.split_evidence()
    writing = {each.sample_id for each in evidence if each.part == "writing"}
    assert len(writing) == min(threads // 3, 20)
    # What a question was written from stays out of the proof: with more threads, with samples of
    # other names, and where what was complained about is praised.
    numbers = {each.thread for each in evidence if each.part == "writing"}
    threads_of = {each.sample_id: each.thread for each in evidence}
    more = [
        replace(commented(number, "cast"), sample_id=f"new {number}")
        for number in range(threads + 10)
    ]
    renamed = [
        replace(sample, sample_id=f"praised {sample.sample_id}", comments=(), is_praised=True)
        for sample in more
    ]
    (grown,) = group_complaints(Complaints((*more, *praise, *renamed), {}))
    again = grown.split_evidence(numbers)
    assert {each.thread for each in again if each.part == "writing"} == numbers
    assert not {each.thread for each in again if each.part == "proof"} & numbers
    assert numbers <= set(threads_of.values())


def test_missing_threads_are_those_that_a_count_finds() -> None:
    for complaints, praise in itertools.product((0, 5, 21, 22, 80), (0, 14, 15, 30)):
        samples = [commented(number, "cast") for number in range(complaints)]
        praised = [commented(number, None) for number in range(praise)]
        groups = group_complaints(Complaints((*samples, *praised), {}))
        evidence: tuple[Evidence, ...] = groups[0].split_evidence() if groups else ()
        if not groups:
            continue
        missing = count_missing(evidence)
        # Counted one by one, with the shares as they are stated.
        enough = next(n for n in itertools.count(complaints) if n - min(n // 3, 20) >= 15)
        assert missing == (enough - complaints, max(0, 15 - praise))


@pytest.mark.parametrize(
    ("keyword", "name"),
    [
        ("Colour cast", "colour_cast"),
        ("text: mis-spelt!", "text_misspelt"),
        ("../../etc", "etc"),
        ("3 arms", "check_"),
        ("偏黄", "check_"),
    ],
)
def test_a_keyword_names_a_file_that_stays_in_its_folder(keyword: str, name: str) -> None:
    file_name = name_check(keyword)
    assert file_name.startswith(name)
    assert file_name.replace("_", "").isalnum()
    assert file_name.isascii()
