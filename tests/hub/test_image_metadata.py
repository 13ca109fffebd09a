"""What images say beside their pixels is in no release; releases from before stay as they were."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset

from echo_hf.builder.build import build
from echo_hf.builder.review import decide, open_reviews
from echo_hf.builder.takedown import forget
from echo_hf.config.systems import shipped_config
from echo_hf.errors import ReleaseError
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.redistribution import dehydrate
from echo_hf.hub.release import read_release, verify_release
from echo_hf.images.loader import load_rgb
from echo_hf.images.store import ImageStore
from echo_hf.samples.sample import sample_digest
from echo_hf.tables import ADDED_COLUMNS, OUTPUTS, RATINGS
from tests.hub.quickstart_release import entry, released
from tests.images.test_image_metadata import NOTED, SECRETS, camera_notes, saved
from tests.images.test_image_metadata import texts as notes
from tests.images_for_tests import encoded, noise

# Posts with a config, and the release that the toolkit made of them while images went into it as
# posted, in full and dehydrated. `pier.jpg` alone has metadata: EXIF with GPS, and a comment.
AS_POSTED = Path(__file__).parent.parent / "data" / "release_as_posted.tar.xz"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("as_posted")
    with tarfile.open(AS_POSTED) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_a_release_from_before_loads_and_is_hydrated_to_its_very_bytes(
    before: Path, tmp_path: Path
) -> None:
    verify_release(before / "full")
    assert len(load_dataset(str(before / "full"), "analysis", split="test")) == 5
    found = hydrate(before / "dehydrated", tmp_path / "wet", [entry(before / "posts.jsonl")])
    assert {sample.match.value for sample in found.samples} == {"exact"}
    full, wet = released(before / "full"), released(tmp_path / "wet")
    for name, rows in full.items():
        assert [
            {key: row[key] for key in row if key not in ADDED_COLUMNS} for row in wet[name]
        ] == rows
    lines = (before / "posts.jsonl").read_text("utf-8").splitlines()
    posts = {post["url"].rpartition("/")[2]: post for post in map(json.loads, lines)}
    dry = {row["id"] for row in released(before / "dehydrated")["analysis"] if row["dehydrated"]}
    assert len(dry) > 1
    for row in (row for row in wet["analysis"] if row["id"] in dry):
        post = posts[row["post_urls"][0].rpartition("/")[2]]
        assert row["timestamp"] == datetime.datetime.fromisoformat(post["timestamp"])
        assert row["keywords"] == post["keywords"]
        assert (row["doubts"], row["task_phrase"]) == (None, None)  # nobody looked


# Files with all that they can say; the last two cannot be cleaned.
FILES = {
    **{name: NOTED[name][0] for name in ("jpeg", "png", "webp")},
    "bmp": saved("BMP"),
    "tiff": saved("TIFF", exif=camera_notes()),
    "bmp_with_more": saved("BMP") + SECRETS[0],
}
STUCK = ("tiff", "bmp_with_more")
URL = "https://x.com/i/status/99000000000000000%02d"


def write_posts(folder: Path, count: int = len(FILES), **privacy: str) -> Path:
    (folder / "pictures").mkdir(parents=True)
    posts = []
    for number, (name, data) in enumerate(list(FILES.items())[:count]):
        drawn = encoded(noise((64 + number, 48)).rotate(180), "PNG")
        (folder / "pictures" / name).write_bytes(data)
        (folder / "pictures" / f"{name}_drawn").write_bytes(drawn)
        shown = [("A pier in daylight", name), ("The same pier under snow", f"{name}_drawn")]
        posts.append(
            {
                "url": URL % number,
                "author": "ines_example",
                "text": "before / after with Lumen Image. 1st is my photo, 2nd is the edit\n\n"
                f"Prompt: Put snow on this pier and leave its {number + 2} boats as they are",
                "timestamp": "2026-03-05T12:00:00Z",
                "keywords": ["lumen image"],
                "pictures": [{"path": f"pictures/{at}", "alt_text": alt} for alt, at in shown],
            }
        )
    lines = [json.dumps(post) for post in posts]
    (folder / "posts.jsonl").write_text("\n".join(lines), "utf-8")
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config |= {"name": "noted", "engines": {"reader": {"kind": "rules"}}}
    config |= {"posts": [{"source": "jsonl", "path": "posts.jsonl"}]}
    config["stages"]["privacy"] = privacy
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    return folder / "config.yaml"


def write_outputs(run: Path) -> None:
    samples = pq.read_table(run / "stages" / "splits" / "kept.parquet").to_pylist()
    store, outputs, ratings = ImageStore(run / "pictures"), [], []
    for sample, data in zip(samples, list(FILES.values())[2:], strict=True):
        of = {"sample_id": sample["id"], "sample_digest": sample["sample_digest"]}
        of["system"], digest = "painter", store.put(data)
        outputs.append({**of, "image": digest, "outcome": "ok"})
        ratings.append({**of, "judge": "j", "output_sha256": digest, "rating": 7.0})
    for table, rows in ((OUTPUTS, outputs), (RATINGS, ratings)):
        whole = [{**dict.fromkeys(table.columns), **row} for row in rows]
        made = pa.Table.from_pylist(whole, schema=table.schema)
        pq.write_table(made, run / f"{table.name}.parquet")


class Noted(NamedTuple):
    """A run of posts whose images have metadata, and its release without posted content."""

    root: Path
    dry: Path

    @property
    def posts(self) -> Path:
        return self.root / "posts"

    @property
    def run(self) -> Path:
        return self.root / "runs" / "noted"

    @property
    def release(self) -> Path:
        return self.run / "release"


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> Noted:
    folder = tmp_path_factory.mktemp("noted")
    config = write_posts(folder / "root" / "posts")
    build(config, runs=folder / "root" / "runs")
    write_outputs(folder / "root" / "runs" / "noted")
    release = build(config, runs=folder / "root" / "runs")
    dehydrate(release.path, folder / "dry")
    return Noted(folder / "root", folder / "dry")


def rows_of(release: Path) -> dict[int, dict[str, Any]]:
    rows = released(release)["analysis"]
    return {int(row["post_urls"][0][-2:]): row for row in rows}


def texts(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)
    elif isinstance(value, str | bytes):
        yield value if isinstance(value, bytes) else value.encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_every_image_is_released_without_what_it_says(noted: Noted) -> None:
    rows = rows_of(noted.release)
    assert list(rows) == [0, 1, 2, 3]
    for number, data in enumerate(list(FILES.values())[:3]):
        (image,) = rows[number]["input_images"]
        digest = sha256(image["bytes"])
        assert load_rgb(image["bytes"]).tobytes() == load_rgb(data).tobytes()
        assert rows[number]["sample_digest"] == sample_digest(rows[number]["prompt"], [digest])
        source = rows[number]["picture_sources"][0]
        assert (source["sha256"], source["post_url"]) == (digest, URL % number)
    files = [path.read_bytes() for path in noted.release.rglob("*") if path.is_file()]
    every = [*files, *texts(released(noted.release))]
    posted = [sha256(data).encode() for data in list(FILES.values())[:3]]
    assert not [word for word in (*SECRETS, *posted) for one in every if word in one]


def test_outputs_of_systems_lose_it_too_and_ratings_follow(noted: Noted) -> None:
    run = noted.run
    rows, release = released(run / "release"), read_release(run / "release")
    shown = {row["sample_id"]: row["image"] and row["image"]["bytes"] for row in rows["outputs"]}
    assert sum(image is None for image in shown.values()) == len(STUCK)
    assert release.stats["left_out"]["outputs"] == {"output_not_cleaned": len(STUCK)}
    assert {
        row["output_sha256"] == sha256(shown[row["sample_id"]])
        for row in rows["ratings"]
        if shown[row["sample_id"]]
    } == {True}
    kept = pq.read_table(run / "outputs.parquet")["image"].to_pylist()
    assert set(kept) == {sha256(data) for data in list(FILES.values())[2:]}


def test_what_was_found_is_counted_by_kind(noted: Noted) -> None:
    stats = json.loads((noted.run / "stages/privacy/stats.json").read_text("utf-8"))
    kinds = Counter(kind for name in list(FILES)[:3] for kind in NOTED[name][1].split())
    found = {f"removed_{kind}": count for kind, count in kinds.items()}
    found |= {"image_not_cleaned": len(STUCK), "no_author_key": len(FILES)}
    assert stats["noted"] == found


def test_what_was_left_out_is_put_back_without_metadata(noted: Noted, tmp_path: Path) -> None:
    """From images beside the posts, in a folder of their own, or packed anew."""
    shutil.copytree(noted.posts, tmp_path / "anew")
    (tmp_path / "anew/pictures/bmp").write_bytes(
        saved("PNG", exif=camera_notes(1), pnginfo=notes())
    )
    (tmp_path / "bare").mkdir()
    shutil.copy(noted.posts / "posts.jsonl", tmp_path / "bare")
    found = {}
    for folder in (noted.posts, tmp_path / "bare", tmp_path / "anew"):
        to, images = tmp_path / "wet" / folder.name, noted.posts / "pictures"
        posts = [entry(folder / "posts.jsonl")]
        hydration = hydrate(noted.dry, to, posts, images=images if "bare" in to.name else None)
        found[folder.name] = {sample.match.value for sample in hydration.samples}
        same = released(to)["analysis"] == released(noted.release)["analysis"]
        assert same is (folder.name != "anew")
    assert found["posts"] == found["bare"] == {"exact"}
    assert found["anew"] == {"exact", "same_picture"}
    every = list(texts(released(tmp_path / "wet" / "anew")))
    assert not [secret for secret in SECRETS for one in every if secret in one]


def test_another_version_of_what_removes_metadata_is_told(noted: Noted, tmp_path: Path) -> None:
    shutil.copytree(noted.dry, tmp_path / "dry")
    manifest = tmp_path / "dry" / "manifest.json"
    said = manifest.read_text("utf-8")
    assert '"metadata_stripper": 1' in said
    manifest.write_text(said.replace('"metadata_stripper": 1', '"metadata_stripper": 99'), "utf-8")
    with pytest.raises(ReleaseError, match="to version 99 of what removes it"):
        hydrate(tmp_path / "dry", tmp_path / "wet", [entry(noted.posts / "posts.jsonl")])


def test_what_cannot_be_cleaned_waits_until_a_reviewer_keeps_it(
    noted: Noted, tmp_path: Path
) -> None:
    shutil.copytree(noted.root, tmp_path / "noted")
    config, runs = tmp_path / "noted" / "posts" / "config.yaml", tmp_path / "noted" / "runs"
    waiting = open_reviews(config, runs=runs).open
    assert [one.reasons for one in waiting] == [("image_metadata",)] * len(STUCK)
    rejects = pq.read_table(runs / "noted/stages/splits/rejects.parquet")["_reason"].to_pylist()
    assert rejects == ["not_cleaned"] * len(STUCK)

    every = pq.read_table(runs / "noted/stages/privacy/kept.parquet")["id"].to_pylist()
    decide(config, keep=every, runs=runs)
    assert open_reviews(config, runs=runs).open == ()
    rows = rows_of(build(config, runs=runs).path)
    assert [rows[number]["input_images"][0]["bytes"] for number in (4, 5)] == [
        FILES[name] for name in STUCK
    ]
    # A forgotten post leaves no image, with or without metadata.
    store = ImageStore(runs / "noted" / "pictures")
    cleaned = rows[0]["input_images"][0]["bytes"]
    both = [store.path(sha256(one)) for one in (FILES["jpeg"], cleaned)]
    assert all(path.exists() for path in both)
    forget([URL % 0], config, runs=runs)
    assert not any(path.exists() for path in both)


def test_images_are_kept_as_posted_where_the_config_says_so(tmp_path: Path) -> None:
    count = 2
    config = write_posts(tmp_path / "posts", count, image_metadata="keep")
    release = build(config, runs=tmp_path / "runs")
    rows = rows_of(release.path)
    given = [rows[number]["input_images"][0]["bytes"] for number in range(count)]
    assert given == list(FILES.values())[:count]
    assert release.manifest.statements.metadata_stripper is None
    card = " ".join((release.path / "README.md").read_text("utf-8").split())
    assert "**Images are the very bytes that were posted or drawn**" in card
    assert "in files without metadata" not in card
