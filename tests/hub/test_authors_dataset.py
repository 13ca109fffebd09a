"""The dataset of ECHO's authors, made up in its layout, becomes one with our columns."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Image
from hypothesis import given
from hypothesis import strategies as st

import echo_hf
from echo_hf.collect.fetch import Unfetched
from echo_hf.errors import ReleaseError
from echo_hf.hub.authors_dataset import (
    MissingImagesWarning,
    OfficialImages,
    parse_boxes,
    shrink_box,
)
from echo_hf.images.store import ImageStore
from echo_hf.tables import OFFICIAL_DATASET, release_features
from tests.collect.fetching import BLUE, RED, digest_of, policy_for
from tests.collect.loopback import ImageServer
from tests.local_hub import LocalHub
from tests.local_hub_repository import StoredFile

REPO = "mira/theirs"
JPG = "?format=jpg"
FEEDBACK = [{"post_id": "99", "feedback": "too yellow"}]
TEXT = [
    {
        "id": "ivxXSVAkagWfT6HvE3F6aR",
        "prompt": "a fox of folded paper",
        "prompt_modified": True,
        "prompt_fill_blank": False,
        "input_images": [],
        "output_images": ["TokenRed"],
        "community_feedback": FEEDBACK,
        "has_nsfw": False,
    }
]


@dataclass(frozen=True)
class Place:
    hub: LocalHub
    server: ImageServer
    images: OfficialImages
    cache: Path

    def holds(self, **configs: pa.Table) -> None:
        self.hub.api().create_repo(REPO, repo_type="dataset", exist_ok=True)
        repository = self.hub.repositories[REPO]
        files = {"README.md": StoredFile(b"---\n---\n")}
        for name, table in configs.items():
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            path = f"{name}/test-00000-of-00001.parquet"
            files[path] = StoredFile(sink.getvalue().to_pybytes(), lfs=True)
        repository.branches["main"] = repository.add("theirs", None, files)

    def load(self, config: str, **changes: Any) -> Dataset:
        return echo_hf.load_benchmark(
            REPO,
            config,
            cache_dir=self.cache,
            images=replace(self.images, **changes),
            api=self.hub.api(),
        )


@pytest.fixture
def place(hub: LocalHub, tmp_path: Path) -> Iterator[Place]:
    with ImageServer() as server:
        server.gives("/media/TokenRed?format=jpg", RED)
        server.gives("/media/TokenOld", BLUE)
        server.gives("/shot.png", BLUE)
        media = (server.url("/media/{token}?format=jpg"), server.url("/media/{token}"))
        store = ImageStore(tmp_path / "fetched" / "pictures")
        images = OfficialImages(store, policy_for(server), media)
        yield Place(hub, server, images, tmp_path / "hub-cache")


def test_text_to_image_has_all_columns(place: Place) -> None:
    place.holds(text_to_image=pa.Table.from_pylist(TEXT))
    loaded = place.load("text_to_image")

    assert str(loaded.split) == "test"
    added = ["input_media", "output_media", "missing_images"]
    assert loaded.column_names == [*release_features(), *added]
    assert {name: loaded.features[name] for name in release_features()} == release_features()
    row = loaded[0]
    for name in ("id", "prompt", "prompt_modified", "prompt_fill_blank", "has_nsfw"):
        assert row[name] == TEXT[0][name]
    assert [image.getpixel((0, 0)) for image in row["output_images"]] == [(255, 0, 0)]
    assert (row["input_images"], row["missing_images"]) == ([], [])
    assert row["output_media"] == ["TokenRed"]
    unknown = dict.fromkeys(("author", "sha256", "spans", "verdict", "keyword"))
    said = {**FEEDBACK[0], "post_url": "https://x.com/i/status/99"}
    assert row["community_feedback"] == [{**unknown, **said}]
    canonical = json.dumps(["a fox of folded paper", []])
    assert row["sample_digest"] == hashlib.sha256(canonical.encode()).hexdigest()
    commit = place.hub.repositories[REPO].head
    assert json.loads(row["provenance"]) == {"dataset": REPO, "revision": commit}
    late = ("doubts", "timestamp", "keywords", "engagement")
    for name in ("target", "quality", "task", "kind", "safety", "review", "screenshot", *late):
        assert row[name] is None


BOXES: Mapping[str, tuple[Any, pa.DataType]] = {
    "list": ([[0, 0, 20, 10], [-10, -10, 16, 20]], pa.list_(pa.list_(pa.int64()))),
    "json": ("[[0, 0, 20, 10], [-10, -10, 16, 20]]", pa.string()),
}


@pytest.mark.parametrize(("boxes", "kind"), BOXES.values(), ids=BOXES)
def test_image_to_image_is_fetched_once_and_cut(
    place: Place, boxes: Any, kind: pa.DataType
) -> None:
    names = [["TokenRed", "TokenGone"], [place.server.url("/shot.png")], ["TokenOld"]]
    columns = {
        "id": ["e0", "e1", "e2"],
        "prompt": ["make it blue", "again", "plain"],
        "input_images": names,
        "is_screenshot": [False, True, False],
        "input_bboxs": pa.array([None, boxes, None], kind),
    }
    place.holds(image_to_image=pa.table(columns))
    for _ in range(2):
        with pytest.warns(MissingImagesWarning, match=r"2 images .* \(gone 1, degenerate_box 1\)"):
            loaded = place.load("image_to_image")
    tried = [f"/media/{name}{end}" for name in ("TokenGone", "TokenOld") for end in ("", JPG)]
    assert place.server.asked == dict.fromkeys([f"/media/TokenRed{JPG}", *tried, "/shot.png"], 1)

    whole, cut, old = loaded
    assert [each and each.size for each in whole["input_images"]] == [(20, 10), None]
    assert whole["sample_digest"] is None
    lost = {"column": "input_images", "position": 1, "media": "TokenGone"}
    assert whole["missing_images"] == [{**lost, "reason": "gone", "detail": "status 404"}]
    assert cut["screenshot"].size == (20, 10)
    assert [image.size for image in cut["input_images"]] == [(6, 10)]
    assert cut["input_bboxs"] == [[0.0, 0.0, 20.0, 10.0], [-10.0, -10.0, 16.0, 20.0]]
    assert [lost["reason"] for lost in cut["missing_images"]] == ["degenerate_box"]
    assert cut["sample_digest"] is not None
    assert [image.getpixel((0, 0)) for image in old["input_images"]] == [(0, 0, 255)]
    assert loaded["output_images"][:] == [None] * 3
    plain = loaded.cast_column("screenshot", Image(decode=False))
    assert plain[1]["screenshot"]["bytes"] == BLUE
    assert place.images.store.open(digest_of(RED)) == RED


def test_nothing_private_is_asked_for_and_a_token_is_no_path(place: Place) -> None:
    def holds(name: str) -> None:
        table = pa.table({"id": ["a"], "prompt": ["x"], "input_images": [[name]]})
        place.holds(image_to_image=table)

    holds(place.server.url("/shot.png"))
    policy = policy_for(place.server, allow_addresses=[])
    with pytest.warns(MissingImagesWarning, match="private_address 1"):
        loaded = place.load("image_to_image", policy=policy)
    assert loaded[0]["input_images"] == [None]
    assert place.server.asked == {}
    holds("../../secret?x=/")
    with pytest.warns(MissingImagesWarning, match="gone 1"):
        place.load("image_to_image")
    assert all("/media/..%2F..%2Fsecret%3Fx%3D%2F" in path for path in place.server.asked)


@pytest.mark.parametrize("config", OFFICIAL_DATASET)
def test_no_column_is_lost(place: Place, config: str) -> None:
    values: dict[str, Any] = {
        name: [True] if name.startswith(("is_", "has_", "prompt_")) else ["some words"]
        for name in OFFICIAL_DATASET[config]
    }
    empty = ("input_images", "output_images", "community_feedback", "input_bboxs")
    nothing = pa.array([None], pa.list_(pa.string()))
    values.update({name: nothing for name in empty if name in values})
    values["dense_captions"] = [["a long one"]]
    values["post_id"] = ["1234"]
    place.holds(**{config: pa.table(values)})
    row = place.load(config)[0]

    for name, value in values.items():
        assert row[name] == (value[0].as_py() if isinstance(value, pa.Array) else value[0])
    assert row["post_urls"] == ["https://x.com/i/status/1234"]


def test_bad_boxes_are_named_and_cost_one_sample(place: Place) -> None:
    rows = {
        "id": ["a", "b"],
        "prompt": ["x", "y"],
        "input_images": [["TokenRed"], ["TokenRed"]],
        "is_screenshot": [True, False],
        "input_bboxs": ["[[1, 2]]", "[[1, 2]]"],
    }
    place.holds(image_to_image=pa.table(rows))
    with pytest.warns(MissingImagesWarning, match="bad_field"):
        shot, plain = place.load("image_to_image")
    assert shot["input_images"] == [None]
    assert [image.size for image in plain["input_images"]] == [(20, 10)]
    for row in (shot, plain):
        assert row["input_bboxs"] is None
        assert "input_bboxs" in {lost["column"] for lost in row["missing_images"]}


ODD = {"huggingface": '{"info": {"features": {"odd": {"_type": "Nothing"}}}}'}
LAYOUTS = {
    "no feedback": ({"community_feedback": [[1]]}, r"has another layout .*load_dataset"),
    "a type of nobody's": (
        {"odd": pa.array([None], pa.map_(pa.string(), pa.string()))},
        "has another layout",
    ),
    "embedded": (
        {"input_images": pa.array([[{"bytes": RED}]], pa.list_(pa.struct({"bytes": pa.binary()})))},
        "has another layout .*expected a list of names of images, found {'bytes'",
    ),
    "numbers": ({"input_images": [[7]]}, "expected a list of names of images, found 7"),
    "a name": ({"input_images": ["TokenRed"]}, "expected a list of names of images, found 'T'"),
    "a word": (
        {"input_images": pa.array(["TokenRed"], pa.dictionary(pa.int32(), pa.string()))},
        "expected a list of names",
    ),
}


@pytest.mark.parametrize(("columns", "said"), LAYOUTS.values(), ids=LAYOUTS)
def test_another_layout_is_one_line(place: Place, columns: dict[str, Any], said: str) -> None:
    table = pa.table({"id": ["a"], **columns})
    place.holds(image_to_image=table.replace_schema_metadata(ODD if "odd" in columns else None))
    with pytest.raises(ReleaseError, match=said) as raised:
        place.load("image_to_image")
    assert "\n" not in str(raised.value)


def test_a_config_that_is_not_there_is_told(place: Place) -> None:
    place.holds(text_to_image=pa.Table.from_pylist(TEXT))
    with pytest.raises(ReleaseError, match="'mira/theirs' has no config 'text_to_imag'"):
        place.load("text_to_imag")


SIDES = st.integers(-30, 150)


@given(st.tuples(SIDES, SIDES, SIDES, SIDES))
def test_a_cut_is_what_slicing_an_array_gives(box: tuple[int, int, int, int]) -> None:
    ys, xs = np.mgrid[:50, :100]
    left, top, right, bottom = box
    inside = (xs >= left + 10) & (xs < right - 10) & (ys >= top + 10) & (ys < bottom - 10)
    found = shrink_box(box, (100, 50))
    if found is None:
        assert not inside.any()
    else:
        xs, ys = xs[inside], ys[inside]
        assert found == (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1)


@pytest.mark.parametrize(
    ("box", "found"),
    [
        ([10.7, 20.6, 300.7, 400.6], (21, 31, 291, 391)),
        ([10.2, 20.4, 300.2, 400.4], (20, 30, 290, 390)),
        ([-0.6, -0.4, 30.5, 31.5], (9, 10, 20, 22)),  # a half goes to the even side
        ([-30.7, -5.2, 1e300, 1e300], (0, 5, 500, 500)),
        ([10.6, 0, 30.4, 30], None),
    ],
)
def test_fractions_of_pixels_are_rounded_as_the_authors_script_does(box: Any, found: Any) -> None:
    assert shrink_box(box, (500, 500)) == found


@pytest.mark.parametrize(
    ("value", "boxes"),
    [
        ("", None),
        ("[]", []),
        ([[1, 2, 3, 4]], [[1.0, 2.0, 3.0, 4.0]]),
        ([(1, 2, 3, 4)], [[1.0, 2.0, 3.0, 4.0]]),
        ("[(1, 2, 3, 4), (5, 6, 7.5, 8)]", [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.5, 8.0]]),
        ("((1, 2, 3, 4,),)", [[1.0, 2.0, 3.0, 4.0]]),
        ("[[1, 2", "'[[1, 2': expected a list of boxes"),
        ("[(1, 2, 3, 4)], [", "'[(1, 2, 3, 4)], [': expected a list of boxes"),
        ("__import__('os')", "\"__import__('os')\": expected a list of boxes"),
        ("(" * 10_000, f"{'(' * 80!r}: expected a list of boxes"),
        ([[10**400, 0, 1, 1]], f"{'[[1' + '0' * 77!r}: expected a list of boxes"),
        ("3", "'3': expected a list of boxes"),
        ([[1, 2, 3]], "'[[1, 2, 3]]': expected four finite numbers a box"),
        ("[[NaN, 0, 1, 1]]", "'[[NaN, 0, 1, 1]]': expected four finite numbers a box"),
    ],
)
def test_boxes_are_a_list_or_the_text_of_one_in_json_or_python(value: Any, boxes: Any) -> None:
    assert parse_boxes(value) == boxes


def test_tokens_are_asked_for_where_x_keeps_media(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    async def nobody(host: str, port: int) -> Sequence[Any]:
        asked.append((host, port))
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(huggingface_hub.utils._cache_assets, "HF_ASSETS_CACHE", str(tmp_path))
    images = OfficialImages(resolve=nobody)
    assert images.store.root.is_relative_to(tmp_path / "echo-hf")
    names = ["Gabc_1-x", "https://media.example/a.png"]
    found = images.fetch([*names, "Gabc_1-x"])
    assert sorted(set(asked)) == [("media.example", 443), ("pbs.twimg.com", 443)]
    assert [found[name].reason for name in names] == [Unfetched.UNREACHABLE] * 2
    assert found["Gabc_1-x"].url == "https://pbs.twimg.com/media/Gabc_1-x"
