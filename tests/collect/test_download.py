"""Images of kept threads: fetched once, missing ones named, copies linked."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from datasets import Dataset
from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from echo_hf.builder.build import run_until
from echo_hf.collect.download import Download, ImageSignatures
from echo_hf.config.systems import shipped_config
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.progress import NullProgress
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.tables import THREADS
from tests.collect.fetching import BLUE, RED, digest_of, policy_for
from tests.collect.images_like_posts import photograph, with_words
from tests.collect.loopback import ImageServer
from tests.images_for_tests import encoded
from tests.progress_for_tests import Heard

Row = dict[str, Any]
START = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)


def image(url: str | None = None, sha256: str | None = None, alt_text: str | None = None) -> Row:
    return {"sha256": sha256, "url": url, "alt_text": alt_text}


def post(thread: int, number: int, hour: int, *images: Row) -> Row:
    time = START + datetime.timedelta(hours=hour)
    url = f"https://a.example/{thread}" + (f"/{number}" if number else "")
    return {"url": url, "parent": -1, "depth": 0, "timestamp": time, "pictures": list(images)}


def threads(*trees: Sequence[Row]) -> Dataset:
    rows = [{"root_url": tree[0]["url"], "posts": list(tree)} for tree in trees]
    return Dataset(pa.Table.from_pylist(rows, schema=THREADS.features.arrow_schema))


def each_in_its_thread(*posts: Sequence[Row]) -> Dataset:
    return threads(*([post(number, 0, -number, *images)] for number, images in enumerate(posts)))


def download(
    server: ImageServer,
    store: ImageStore,
    dataset: Dataset,
    *,
    offline: bool = False,
    fetch: bool = True,
    watch: NullProgress | None = None,
    **limits: Any,
) -> StageResult:
    stage = Download(store, fetch, policy_for(server, **limits))
    stage = stage.prepared(dataset, offline=offline, watch=watch or NullProgress())
    return run_stage(stage, dataset)


def links(dataset: Dataset, store: ImageStore) -> list[list[Any]]:
    made = run_stage(Download(store, fetch=False), dataset).dataset.to_list()
    return [
        [one["same_picture_of"] for each in row["posts"] for one in each["pictures"]]
        for row in made
    ]


def shown(result: StageResult) -> list[list[Row]]:
    return [row["posts"][0]["pictures"] for row in result.dataset.to_list()]


def noted(result: StageResult) -> list[tuple[str, str, str]]:
    return [(row["_parent"][0], row["_reason"], row["_detail"]) for row in result.notices.to_list()]


def test_what_is_named_by_address_gets_its_digest(server: ImageServer, store: ImageStore) -> None:
    red, again = server.gives("/red", RED), server.gives("/again", RED)
    posts = (
        [image(red, alt_text="a red sheet"), image(again, alt_text="b")],
        [image(f"{red}#b")],
        [image(red, "0" * 64)],
    )
    result = download(server, store, each_in_its_thread(*posts), watch=(watch := Heard()))
    first, *others = shown(result)

    # Equal bytes within a post are one image.
    whole = image(red, digest_of(RED), "a red sheet\nb")
    assert first == [{**whole, "same_picture_of": None}]
    assert [one["sha256"] for some in others for one in some] == [digest_of(RED), "0" * 64]
    assert store.open(digest_of(RED)) == RED
    assert server.asked == {"/red": 1, "/again": 1}
    steps = [(what, done, total) for what, done, _, total in watch.steps]
    assert (steps[1], steps[-1]) == (("pictures", 2, 2), ("compared", 2, 2))


def test_what_cannot_be_had_is_a_reason(server: ImageServer, store: ImageStore) -> None:
    gone, page = server.url("/gone"), server.gives("/page", b"<!doctype html><p>no", "image/png")
    private, login = "http://10.1.2.3/a.png", "http://me:secret@a.example/b.png"
    dataset = each_in_its_thread(
        [image(gone), image(server.gives("/red", RED))],
        [image(page), image(private), image(login), image(alt_text="only told")],
    )
    result = download(server, store, dataset, ports={server.port, 80})
    first, second = shown(result)
    root = "https://a.example/"

    assert [one["sha256"] for one in first] == [None, digest_of(RED)]
    assert [one["url"] for one in second] == [page, private, login, None]
    assert [(place.removeprefix(root), reason) for place, reason, _ in noted(result)] == [
        ("0", "gone"),
        ("1", "wrong_type"),
        ("1", "private_address"),
        ("1", "not_allowed"),
    ]
    told = zip((gone, page, private, login), noted(result), strict=True)
    assert all(url in detail for url, (_, _, detail) in told)
    assert result.stats.tally == {"copies": 0, "not_there": 5, "pictures": 6}


@pytest.mark.parametrize("switched", [{"fetch": False}, {"offline": True}], ids=["off", "offline"])
def test_nobody_is_asked_without_leave(
    server: ImageServer, store: ImageStore, switched: dict[str, bool]
) -> None:
    dataset = each_in_its_thread([image(server.gives("/red", RED))])
    before = download(server, store, dataset, **switched)

    assert [reason for _, reason, _ in noted(before)] == ["not_requested"]
    assert server.asked == {}
    assert not store.root.parent.exists()

    download(server, store, dataset)
    after = download(server, store, dataset, **switched)
    assert shown(after)[0][0]["sha256"] == digest_of(RED)
    assert server.asked == {"/red": 1}


def test_copies_are_linked_across_posts_and_edits_are_not(store: ImageStore) -> None:
    original = photograph(1, (240, 180))
    gold = Image.blend(original, Image.new("RGB", original.size, "gold"), 0.08)
    again, tinted = encoded(original, "JPEG", quality=85), encoded(gold, "PNG")
    labelled = encoded(with_words(original, "SOLD", (150, 100), 30), "PNG")
    made = (again, tinted, labelled, encoded(original, "PNG"), BLUE)
    copy, tint, label, first, lost = map(store.put, made)
    store.path(lost).unlink()
    # A copy beside its original is not linked.
    posts = ([copy], [tint], [label], [first, copy], [lost])
    dataset = each_in_its_thread(*([image(sha256=one) for one in some] for some in posts))
    result = run_stage(Download(store, fetch=False), dataset)
    ((place, reason, detail),) = noted(result)

    assert links(dataset, store) == [[first], [None], [None], [None, None], [None]]
    assert result.stats.tally == {"copies": 1, "not_there": 0, "pictures": 6}
    assert (place, reason) == ("https://a.example/4", "broken_picture")
    assert lost in detail


@pytest.mark.parametrize("seed", [0, 1])
def test_links_within_a_thread_depend_on_no_other(store: ImageStore, seed: int) -> None:
    draw = random.Random(seed)
    # Each is a copy of the next, and of none but the next.
    greys = [encoded(Image.new("RGB", (64, 64), (level,) * 3), "PNG") for level in range(100, 108)]
    levels = [image(sha256=store.put(one)) for one in greys]
    trees = [
        [
            post(n, m, draw.randrange(99), *draw.sample(levels, draw.choice((1, 2))))
            for m in range(4)
        ]
        for n in range(3)
    ]

    def inner(*given: Sequence[Row]) -> list[list[Any]]:
        own = [{one["sha256"] for each in tree for one in each["pictures"]} for tree in given]
        pairs = zip(links(threads(*given), store), own, strict=True)
        return [[one if one in there else None for one in some] for some, there in pairs]

    assert inner(*trees) == [some for tree in trees for some in inner(tree)]


def test_a_copy_is_linked_in_its_own_thread_before_others(store: ImageStore) -> None:
    first, second, third = (
        store.put(encoded(photograph(1, (240, 180)), "JPEG", quality=quality))
        for quality in (95, 90, 85)
    )
    one, two, three = (image(sha256=digest) for digest in (first, second, third))
    trees = [post(0, 0, 0, one)], [post(1, 0, 1, two), post(1, 1, 2, three)]

    assert links(threads(*trees), store) == [[None], [first, second]]


def test_the_digest_follows_what_was_fetched(server: ImageServer, store: ImageStore) -> None:
    stage = Download(store, True, policy_for(server, max_attempts=1))
    dataset = each_in_its_thread([image(server.says("/late", 503, 503, then=RED))])
    digests = [stage.digest()]
    for _ in range(3):
        stage.prepared(dataset, offline=False, watch=NullProgress())
        digests.append(stage.digest())

    assert len(set(digests)) == 3
    assert digests[1] == digests[2]


def test_a_build_fetches_what_posts_name(server: ImageServer, tmp_path: Path) -> None:
    data = encoded(photograph(2), "PNG")
    urls = [server.gives("/fox.png", data), server.url("/gone.png")]
    text = "Made with Lumen Image. Prompt: a fox of folded paper, teal background"
    named = {"url": "https://a.example/1", "author": "mira", "text": text, "keywords": ["lumen"]}
    posts = tmp_path / "posts.jsonl"
    posts.write_text(json.dumps({**named, "pictures": [{"url": url} for url in urls]}))
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config["engines"] = {"reader": {"kind": "rules"}}
    config["posts"] = [{"source": "jsonl", "path": "posts.jsonl"}]
    limits = {"ports": [server.port], "allow_addresses": ["127.0.0.1/32"]}
    config["stages"] = {**config.get("stages", {}), "download": {"limits": limits}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    results = run_until(tmp_path / "config.yaml", "extract", runs=tmp_path / "runs")
    again = run_until(tmp_path / "config.yaml", "extract", runs=tmp_path / "runs")

    (sample,) = results[-1].dataset.to_list()
    assert sample["output_images"] == [digest_of(data)]
    assert results[-2].stats.noted == {"gone": 1}
    assert again[-1].dataset.to_list() == [sample]
    assert server.asked == {"/fox.png": 1, "/gone.png": 1}


def test_large_images_are_compared_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes may be a hundred million pixels, of which each thread would hold one."""
    decoding: list[int] = []
    most: list[int] = []
    load = PngImageFile.load

    def watched(self: Any) -> Any:
        decoding.append(1)
        most.append(len(decoding))
        try:
            return load(self)
        finally:
            decoding.pop()

    images = {}
    for number in range(6):
        path = images[str(number)] = tmp_path / f"{number}.png"
        Image.new("RGB", (4200, 4200), (40 * number, 0, 0)).save(path)
    monkeypatch.setattr(PngImageFile, "load", watched)
    ImageSignatures(images, lambda *_: None)
    assert max(most) == 1
