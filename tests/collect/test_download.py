"""Images of kept threads: fetched once, missing ones named, copies linked."""

from __future__ import annotations

import datetime
import io
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

from echo_hf.builder.build import run_until
from echo_hf.collect.download import Download
from echo_hf.config.systems import shipped_config
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.progress import NullProgress
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.tables import THREADS
from tests.collect.fetching import BLUE, RED, digest_of, policy_for
from tests.collect.images_like_posts import photograph, with_words
from tests.collect.server_for_tests import ImageServer
from tests.images_for_tests import encoded
from tests.progress_for_tests import Heard

Row = dict[str, Any]
PHOTOGRAPH = encoded(photograph(1), "PNG")


def image(url: str | None = None, sha256: str | None = None, alt_text: str | None = None) -> Row:
    return {"sha256": sha256, "url": url, "alt_text": alt_text}


def threads(*posts: Sequence[Row]) -> Dataset:
    base = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
    rows = [
        {
            "root_url": f"https://a.example/{number}",
            "posts": [
                {
                    "url": f"https://a.example/{number}",
                    "parent": -1,
                    "depth": 0,
                    "timestamp": base - datetime.timedelta(hours=number),
                    "pictures": list(images),
                }
            ],
        }
        for number, images in enumerate(posts)
    ]
    return Dataset(pa.Table.from_pylist(rows, schema=THREADS.features.arrow_schema))


def download(
    server: ImageServer,
    store: ImageStore,
    dataset: Dataset,
    watch: NullProgress | None = None,
    **options: Any,
) -> StageResult:
    offline = options.pop("offline", False)
    stage = Download(store, options.pop("fetch", True), policy_for(server, **options))
    stage = stage.prepared(dataset, offline=offline, watch=watch or NullProgress())
    return run_stage(stage, dataset)


def shown(result: StageResult) -> list[list[Row]]:
    return [row["posts"][0]["pictures"] for row in result.dataset.to_list()]


def noted(result: StageResult) -> list[tuple[str, str, str]]:
    return [(row["_parent"][0], row["_reason"], row["_detail"]) for row in result.notices.to_list()]


def test_what_is_named_by_address_gets_its_digest(server: ImageServer, store: ImageStore) -> None:
    red = server.gives("/red", RED)
    dataset = threads(
        [image(red, alt_text="a red sheet")], [image(f"{red}#b")], [image(red, "0" * 64)]
    )
    result = download(server, store, dataset, watch := Heard())

    assert [[one["sha256"] for one in some] for some in shown(result)] == [
        [digest_of(RED)],
        [digest_of(RED)],
        ["0" * 64],
    ]
    assert shown(result)[0][0]["alt_text"] == "a red sheet"
    assert store.open(digest_of(RED)) == RED
    assert server.asked == {"/red": 1}
    images, *_, compared = [(what, done, total) for what, done, _, total in watch.steps]
    assert (images, compared) == (("pictures", 1, 1), ("compared", 2, 2))


def test_what_cannot_be_had_is_a_reason(server: ImageServer, store: ImageStore) -> None:
    gone, page = server.url("/gone"), server.gives("/page", b"<!doctype html><p>no", "image/png")
    private, login = "http://10.1.2.3/a.png", "http://me:secret@a.example/b.png"
    dataset = threads(
        [image(gone), image(server.gives("/red", RED))],
        [image(page), image(private), image(login), image(alt_text="only told")],
    )
    result = download(server, store, dataset, ports={server.port, 80})

    first, second = shown(result)
    assert [one["sha256"] for one in first] == [None, digest_of(RED)]
    assert [one["url"] for one in second] == [page, private, login, None]
    root = "https://a.example/"
    assert [(place.removeprefix(root), reason) for place, reason, _ in noted(result)] == [
        ("0", "gone"),
        ("1", "wrong_type"),
        ("1", "private_address"),
        ("1", "not_allowed"),
    ]
    assert all(url in detail for url, (_, _, detail) in zip(
        (gone, page, private, login), noted(result), strict=True
    ))  # fmt: skip
    assert result.stats.tally == {"copies": 0, "not_there": 5, "pictures": 6}


@pytest.mark.parametrize("switched", [{"fetch": False}, {"offline": True}], ids=["off", "offline"])
def test_nobody_is_asked_without_leave(
    server: ImageServer, store: ImageStore, switched: dict[str, bool]
) -> None:
    dataset = threads([image(server.gives("/red", RED))])
    before = download(server, store, dataset, **switched)

    assert [reason for _, reason, _ in noted(before)] == ["not_requested"]
    assert server.asked == {}
    assert not store.root.parent.exists()

    download(server, store, dataset)
    after = download(server, store, dataset, **switched)
    assert shown(after)[0][0]["sha256"] == digest_of(RED)
    assert server.asked == {"/red": 1}


def test_one_image_under_two_addresses_is_one(server: ImageServer, store: ImageStore) -> None:
    red, again = server.gives("/red", RED), server.gives("/again", RED)
    dataset = threads([image(red, alt_text="a"), image(again, alt_text="b")])
    both = image(red, digest_of(RED), "a\nb")

    assert shown(download(server, store, dataset)) == [[{**both, "same_picture_of": None}]]


def test_copies_are_linked_across_posts_and_edits_are_not(
    server: ImageServer, store: ImageStore
) -> None:
    original = photograph(1)
    again = encoded(original, "JPEG", quality=85)
    tinted = encoded(Image.blend(original, Image.new("RGB", original.size, "gold"), 0.08), "PNG")
    labelled = encoded(with_words(original, "SOLD", (300, 200), 30), "PNG")
    copy, tint, label, first = (store.put(one) for one in (again, tinted, labelled, PHOTOGRAPH))
    lost = store.put(BLUE)
    store.path(lost).unlink()
    # A copy beside its original is not linked.
    posts = ([copy], [tint], [label], [first, copy], [lost])
    dataset = threads(*([image(sha256=one) for one in some] for some in posts))
    result = download(server, store, dataset)
    ((place, reason, detail),) = noted(result)

    assert [[one["same_picture_of"] for one in some] for some in shown(result)] == [
        [first], [None], [None], [None, None], [None]
    ]  # fmt: skip
    assert result.stats.tally == {"copies": 1, "not_there": 0, "pictures": 6}
    assert (place, reason) == ("https://a.example/4", "broken_picture")
    assert lost in detail


@pytest.mark.parametrize("seed", range(4))
def test_links_within_a_thread_depend_on_no_other(store: ImageStore, seed: int) -> None:
    draw = random.Random(seed)
    # Each is a copy of the next, and of none but the next.
    greys = [encoded(Image.new("RGB", (64, 64), (level,) * 3), "PNG") for level in range(100, 108)]
    levels = [store.put(one) for one in greys]
    start = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
    rows = []
    for root in (f"https://a.example/{number}" for number in range(3)):
        posts = [
            {
                "url": f"{root}/{n}",
                "timestamp": start + datetime.timedelta(hours=draw.randrange(99)),
                "pictures": [image(sha256=one) for one in draw.sample(levels, draw.choice((1, 2)))],
            }
            for n in range(4)
        ]
        rows.append({"root_url": root, "posts": posts})

    def linked(given: Sequence[Row]) -> list[list[Any]]:
        table = pa.Table.from_pylist(list(given), schema=THREADS.features.arrow_schema)
        made = run_stage(Download(store, fetch=False), Dataset(table)).dataset.to_list()
        every = [[one for post in row["posts"] for one in post["pictures"]] for row in made]
        own = [{one["sha256"] for one in some} for some in every]
        firsts = [[one["same_picture_of"] for one in some] for some in every]
        return [
            [one if one in there else None for one in some]
            for some, there in zip(firsts, own, strict=True)
        ]

    assert linked(rows) == [some for row in rows for some in linked([row])]


def test_a_copy_is_linked_in_its_own_thread_before_others(store: ImageStore) -> None:
    first, *copies = (
        store.put(encoded(photograph(1), "JPEG", quality=quality)) for quality in (95, 90, 85)
    )
    base = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
    hours = (base + datetime.timedelta(hours=hour) for hour in range(3))
    one, two, three = (
        {"url": f"https://a.example/{n}", "timestamp": hour, "pictures": [image(sha256=digest)]}
        for n, (hour, digest) in enumerate(zip(hours, (first, *copies), strict=True))
    )
    rows = [
        {"root_url": one["url"], "posts": [one]},
        {"root_url": two["url"], "posts": [two, three]},
    ]
    table = pa.Table.from_pylist(rows, schema=THREADS.features.arrow_schema)
    made = run_stage(Download(store, fetch=False), Dataset(table)).dataset.to_list()

    links = [post["pictures"][0]["same_picture_of"] for row in made for post in row["posts"]]
    assert links == [None, first, copies[0]]


def test_the_digest_follows_what_was_fetched(server: ImageServer, store: ImageStore) -> None:
    stage = Download(store, True, policy_for(server, max_attempts=1))
    dataset = threads([image(server.says("/late", 503, 503, then=RED))])
    digests = [stage.digest()]
    for _ in range(3):
        stage.prepared(dataset, offline=False, watch=NullProgress())
        digests.append(stage.digest())

    assert len(set(digests)) == 3
    assert digests[1] == digests[2]


def test_a_build_fetches_what_posts_name(server: ImageServer, tmp_path: Path) -> None:
    pixels = io.BytesIO()
    photograph(2).save(pixels, "PNG")
    urls = [server.gives("/fox.png", pixels.getvalue()), server.url("/gone.png")]
    post = {
        "url": "https://a.example/1",
        "author": "mira",
        "text": "Made with Lumen Image. Prompt: a fox of folded paper, teal background",
        "keywords": ["lumen"],
        "pictures": [{"url": url} for url in urls],
    }
    (tmp_path / "posts.jsonl").write_text(json.dumps(post))
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config["engines"] = {"reader": {"kind": "rules"}}
    config["posts"] = [{"source": "jsonl", "path": "posts.jsonl"}]
    limits = {"ports": [server.port], "allow_addresses": ["127.0.0.1/32"]}
    config["stages"] = {**config.get("stages", {}), "download": {"limits": limits}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    results = run_until(tmp_path / "config.yaml", "extract", runs=tmp_path / "runs")
    again = run_until(tmp_path / "config.yaml", "extract", runs=tmp_path / "runs")

    (sample,) = results[-1].dataset.to_list()
    assert sample["output_images"] == [digest_of(pixels.getvalue())]
    assert results[-2].stats.noted == {"gone": 1}
    assert again[-1].dataset.to_list() == [sample]
    assert server.asked == {"/fox.png": 1, "/gone.png": 1}
