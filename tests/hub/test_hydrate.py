"""Who has the posts gets back what was left out, and is told what differs."""

from __future__ import annotations

import filecmp
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from datasets import Dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from echo_hf.collect.fetch import FetchStats
from echo_hf.hub.hydrate import (
    Archive,
    HydrationResult,
    Match,
    Restored,
    hydrate,
    hydrate_sample,
    read_archive,
    restore_images,
)
from echo_hf.hub.redistribution import dehydrate, encode_signature, iterate_post_urls
from echo_hf.hub.release import (
    read_release,
    read_release_facts,
    unpack_release,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from echo_hf.samples.sample import sample_digest
from echo_hf.samples.spans import SourceSpan
from echo_hf.tables import POSTS, SAMPLES
from tests.collect.fetching import policy_for
from tests.collect.images_like_posts import photograph, with_words
from tests.collect.loopback import ImageServer
from tests.hub.conftest import Command
from tests.hub.quickstart_release import CORPUS, Row, by_id, copied, entry, released
from tests.images_for_tests import encoded

LAKE = "https://x.com/i/status/9900316480787844284"  # a photo, what became of it, two comments
ROOM = "https://x.com/i/status/9900316480676340390"
CHAIR = "https://x.com/i/status/9900316482731991837"  # two images, cut out of one
COMMENT = "https://x.com/i/status/9900316480789998101"
Edit = Callable[[Row], Row | None]


class Few(NamedTuple):
    """Some samples of the bundled benchmark, with and without their words, and their posts."""

    full: Path
    dry: Path
    ids: frozenset[str]

    def posts(self, folder: Path, edit: Edit = lambda post: post) -> Path:
        return copied(
            folder, lambda post: edit(post) if post["url"].rpartition("/")[2] in self.ids else None
        )


def few_of(quickstart: Path, folder: Path, edit: Callable[[Row], Row] = lambda row: row) -> Few:
    release = read_release(quickstart / "runs" / "quickstart" / "release")
    store = ImageStore(folder / "pictures")
    every = unpack_release(release, store)["analysis"].with_format("arrow")[:].to_pylist()
    template = next(row["post_urls"][0] for row in every if row["prompt_fill_blank"])
    free = next(url for row in every for url in row["post_urls"] if "//x.com" not in url)
    chosen = {LAKE, ROOM, CHAIR, template, free}
    rows = [edit(row) for row in every if row["post_urls"][0] in chosen]
    urls = [url for row in rows for url in iterate_post_urls(row) if url]
    table = pa.Table.from_pylist(rows, SAMPLES.features.arrow_schema)
    write_release(folder / "full", {"analysis": Dataset(table)}, store, read_release_facts(release))
    dehydrate(folder / "full", folder / "dry")
    ids = frozenset(url.rpartition("/")[2] for url in urls)
    return Few(folder / "full", folder / "dry", ids)


@pytest.fixture(scope="module")
def few(quickstart: Path, tmp_path_factory: pytest.TempPathFactory) -> Few:
    return few_of(quickstart, tmp_path_factory.mktemp("few"))


def matches(found: HydrationResult) -> dict[str, str]:
    return {sample.id: sample.match.value for sample in found.samples}


def parts(found: HydrationResult, sample: str) -> dict[str, tuple[str, str]]:
    (one,) = [each for each in found.samples if each.id == sample]
    return {name: (part.match.value, part.detail) for name, part in one.parts.items()}


def of_post(release: Path, url: str) -> Row:
    (row,) = [row for row in by_id(release).values() if row["post_urls"][0] == url]
    return row


def opened(image: Row) -> Image.Image:
    return Image.open(io.BytesIO(image["bytes"]))


def test_the_same_posts_give_the_same_release(
    full: Path, dry: Path, quickstart: Path, tmp_path: Path
) -> None:
    hydration = hydrate(dry, tmp_path / "wet", [entry(quickstart / "posts" / "posts.jsonl")])
    names = [path.relative_to(full) for path in full.rglob("*") if path.is_file()]
    assert len(names) == 7
    for name in names:
        assert filecmp.cmp(full / name, tmp_path / "wet" / name, shallow=False), name
    assert list(matches(hydration).values()) == ["exact"] * 37
    verify_release(tmp_path / "wet")
    assert {path.name for path in tmp_path.iterdir()} == {"wet"}


def jpeg(image: Image.Image) -> bytes:
    return encoded(image.convert("RGB"), "JPEG", quality=92)


def less_blue(image: Image.Image) -> bytes:
    red, green, blue = image.convert("RGB").split()
    return encoded(Image.merge("RGB", (red, green, blue.point(lambda level: level * 0.8))), "PNG")


ANEW = {"lake_night.jpg": less_blue, "iso_room.png": jpeg, "collage_chair.jpg": jpeg}


@pytest.fixture(scope="module")
def changed(few: Few, tmp_path_factory: pytest.TempPathFactory) -> tuple[HydrationResult, Path]:
    """What comes of posts of which one has another text, three other images, and one is gone."""
    folder = tmp_path_factory.mktemp("changed")

    def edited(post: Row) -> Row | None:
        post["text"] = post["text"].replace("full moon", "thin moon")
        for one in post.get("pictures") or []:
            if Path(one.get("path") or "").name in ANEW:
                one["path"] += ".anew"
        return None if post["url"].endswith(COMMENT[-19:]) else post

    path = few.posts(folder / "posts", edited)
    for name, change in ANEW.items():
        image = Image.open(folder / "posts" / "pictures" / name)
        (folder / "posts" / "pictures" / f"{name}.anew").write_bytes(change(image))
    return hydrate(few.dry, folder / "wet", [entry(path)]), folder / "wet"


def test_another_text_or_image_stays_out_and_costs_no_other(
    few: Few, changed: tuple[HydrationResult, Path]
) -> None:
    found, wet = changed
    lake, after = of_post(few.full, LAKE), of_post(wet, LAKE)
    told = parts(found, lake["id"])
    assert told["prompt"] == ("different", "other words stand there now")
    assert told["output.0"] == ("different", f"{LAKE} shows another image")
    assert told["feedback.0"] == ("missing", f"no post {COMMENT}")
    assert (after["dehydrated"], after["prompt"], after["output_images"]) == (True, None, [])
    assert after["community_feedback"][0]["feedback"] is None
    assert after["picture_sources"][1]["signature"]
    for name in ("timestamp", "keywords", "engagement", "input_images"):
        assert not of_post(few.dry, LAKE)[name]
        assert after[name] == lake[name]
    before, rows = by_id(few.full), by_id(wet)
    exact = {name for name, match in matches(found).items() if match == "exact"}
    assert len(exact) > 1
    assert all(rows[name] == before[name] for name in exact)


def test_an_image_that_was_packed_anew_is_the_same_image(
    few: Few, changed: tuple[HydrationResult, Path]
) -> None:
    found, wet = changed
    same = {name for name, match in matches(found).items() if match == "same_picture"}
    assert same == {of_post(few.full, url)["id"] for url in (ROOM, CHAIR)}
    for url in (ROOM, CHAIR):
        row, old = of_post(wet, url), of_post(few.full, url)
        assert (row["dehydrated"], row["prompt"]) == (False, old["prompt"])
        inputs = [one["path"].partition(".")[0] for one in row["input_images"]]
        assert row["sample_digest"] == sample_digest(row["prompt"], inputs)
        copies = [*row["input_images"], *row["output_images"]]
        assert [opened(one).size for one in copies] == [
            opened(one).size for one in (*old["input_images"], *old["output_images"])
        ]
        assert url == CHAIR or any(opened(one).format == "JPEG" for one in copies)


def test_a_missing_post_may_come_later(command: Command, few: Few, tmp_path: Path) -> None:
    """The command prints what is there now."""
    left: list[Row] = []

    def without(post: Row) -> Row | None:
        if post["url"].endswith(COMMENT[-19:]):
            left.append(post)
        return None if post in left else post

    path = few.posts(tmp_path / "posts", without)
    done = command("hydrate", few.dry, "--posts", path, "--to", tmp_path / "wet")
    assert (done.code, done.errors) == (0, "")
    rows = {line.split()[0]: line.split()[1:4] for line in done.output.splitlines() if line.split()}
    counts = json.loads((tmp_path / "wet" / "hydration.json").read_text("utf-8"))["counts"]
    assert counts["samples"] == {"exact": 5, "same_picture": 0, "different": 0, "missing": 1}
    for match in map(str, Match):
        assert rows[match] == [str(counts[kind][match]) for kind in counts]
    assert f"1 x missing: no post {COMMENT}" in " ".join(done.output.split())
    assert read_release(tmp_path / "wet").manifest.configs["analysis"].dehydrated == 1

    (tmp_path / "reply.jsonl").write_text(json.dumps(left[0]), "utf-8")
    later = hydrate(tmp_path / "wet", tmp_path / "all", [entry(tmp_path / "reply.jsonl")])
    assert set(matches(later).values()) == {"exact"}
    assert released(tmp_path / "all") == released(few.full)


def test_images_may_lie_in_a_folder_of_their_own(few: Few, tmp_path: Path) -> None:
    path = few.posts(tmp_path / "posts")
    images = (tmp_path / "posts" / "pictures").rename(tmp_path / "images")
    bare = hydrate(few.dry, tmp_path / "bare", [entry(path)])
    assert set(matches(bare).values()) == {"missing"}
    lacking = {name for one in bare.samples for name, part in one.parts.items() if part.detail}
    assert {name.partition(".")[0] for name in lacking} == {"input", "output", "screenshot"}
    hydrate(few.dry, tmp_path / "wet", [entry(path)], images=images)
    assert released(tmp_path / "wet") == released(few.full)


@pytest.fixture(scope="module")
def server() -> Iterator[ImageServer]:
    with ImageServer() as running:
        yield running


def test_images_are_fetched_once_from_where_the_posts_show_them(
    server: ImageServer, quickstart: Path, tmp_path: Path
) -> None:
    """Nobody is asked without `fetch`, and after a stop only for the rest."""

    def addressed(row: Row) -> Row:
        for one in row["picture_sources"]:
            one["url"] = one["url"] or (None if one["of"] else server.url(f"/{one['sha256']}"))
        return row

    def post(one: Row) -> Row:
        pictures = [
            hashlib.sha256((CORPUS / each["path"]).read_bytes()).hexdigest()
            for each in one.get("pictures") or []
            if "path" in each
        ]
        return {**one, "pictures": [{"url": server.url(f"/{digest}")} for digest in pictures]}

    few = few_of(quickstart, tmp_path / "few", addressed)
    posts = [entry(few.posts(tmp_path / "posts", post))]
    for image in (CORPUS / "pictures").iterdir():
        data = image.read_bytes()
        server.gives(f"/{hashlib.sha256(data).hexdigest()}", data)
    none = hydrate(few.dry, tmp_path / "to" / "none", posts)
    assert not server.asked
    assert "missing" in matches(none).values()
    policy = policy_for(server, concurrency=1)

    def stop(stats: FetchStats) -> None:
        if stats.fetched == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hydrate(few.dry, tmp_path / "to" / "wet", posts, fetch=policy, progress=stop)
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"none", ".wet.hydrating"}
    every = hydrate(few.dry, tmp_path / "to" / "wet", posts, fetch=policy)
    assert set(matches(every).values()) == {"exact"}
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"none", "wet"}
    rows = [row for row in by_id(few.dry).values() if row["dehydrated"]]
    shown = {one["url"] for row in rows for one in row["picture_sources"] if one["url"]}
    assert {server.url(name) for name in server.asked} == shown
    # The one that was under way when it stopped may be asked for again.
    assert server.asked.total() - len(server.asked) <= 1


@pytest.fixture(scope="module")
def archive(few: Few, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("archive")
    return read_archive([entry(few.posts(folder / "posts"))], ImageStore(folder / "pictures"))


@pytest.fixture(scope="module")
def rows(few: Few, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Dehydrated rows: a template, and others."""
    store = ImageStore(tmp_path_factory.mktemp("rows"))
    every = (
        unpack_release(read_release(few.dry), store)["analysis"].with_format("arrow")[:].to_pylist()
    )
    some = [json.loads(json.dumps(row)) for row in every if row["dehydrated"]]
    return sorted(some, key=lambda row: not row["prompt_fill_blank"])


HOSTILE_SPAN = st.fixed_dictionaries(
    {
        "post_url": st.sampled_from([None, LAKE, COMMENT, "https://x.com/i/status/1", "", "\0"]),
        "field": st.sampled_from([None, "text", "pictures.0.alt_text", "pictures.-1.alt_text"]),
        "start": st.sampled_from([None, -1, 0, 5, 10**18, -(2**63)]),
        "end": st.sampled_from([None, -1, 0, 7, 2**63 - 1]),
        "text": st.sampled_from([None, "", "a fox", "\0" * 100]),
    }
)
HOSTILE_IMAGE = st.fixed_dictionaries(
    {
        "sha256": st.sampled_from([None, "", "../../etc/passwd", "ab" * 32]),
        "role": st.sampled_from([None, "input", "output", "screenshot", "feedback", "prompt", "x"]),
        "post_url": st.sampled_from([None, LAKE, "file:///etc/passwd"]),
        "url": st.sampled_from([None, "file:///etc/passwd", "http://127.0.0.1/"]),
        "of": st.sampled_from([None, "ab" * 32, "../x"]),
        "box": st.sampled_from(
            [None, [], [0], [None] * 4, [0, 0, 10**18, 10**18], [-5, -5, 5, 5], [9, 9, 3, 3]]
        ),
        "signature": st.sampled_from([None, "", "x", "1x1:AAAA", f"9x9:{'/' * 4096}"]),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_hostile_row_is_told_and_fills_nothing(
    rows: list[Row], archive: Archive, data: st.DataObject
) -> None:
    row = dict(data.draw(st.sampled_from(rows)))
    spans = st.none() | st.lists(HOSTILE_SPAN, max_size=4)
    row["prompt_spans"] = data.draw(spans)
    row["community_feedback"] = [
        {**one, "spans": data.draw(spans)} for one in row["community_feedback"]
    ]
    row["picture_sources"] = data.draw(st.none() | st.lists(HOSTILE_IMAGE, max_size=3))
    new, match = hydrate_sample(row, archive)
    assert (new["prompt"], new["dehydrated"], new["screenshot"]) == (None, True, None)
    assert all(one["feedback"] is None for one in new["community_feedback"])
    assert match.match in (Match.DIFFERENT, Match.MISSING)
    assert not [one for one in (*new["input_images"], *new["output_images"]) if one is not None]
    pa.Table.from_pylist([new], schema=SAMPLES.schema)


@pytest.mark.parametrize(
    "provenance", [None, "no json", "[]", '{"quoted": 3}', '{"quoted": [{"path": ["x"]}]}']
)
def test_a_hostile_provenance_is_told(
    rows: list[Row], archive: Archive, provenance: str | None
) -> None:
    new, match = hydrate_sample({**rows[0], "provenance": provenance}, archive)
    assert new["provenance"] == provenance
    assert new["prompt"]
    assert match.match is (Match.EXACT if provenance is None else Match.DIFFERENT)
    # A digest protects the posts that somebody has.
    other = {"prompt_spans": [SourceSpan(COMMENT, "text", 0, 5)._asdict()]}
    for values in (other, {**other, "prompt_sha256": None}):
        assert hydrate_sample({**rows[0], **values}, archive)[0]["prompt"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope", "--posts", "p.jsonl", "--to", "wet"], "/nope': expected a folder with manifest"),
        (["{dry}", "--posts", "n.jsonl", "--to", "wet"], "n.jsonl' holds no post"),
        (["{dry}", "--posts", "p.jsonl", "--pictures", "no", "--to", "wet"], "no folder 'no'"),
        (["{dry}", "--posts", "p.jsonl", "--to", "{dry}"], "is the release itself"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    few: Few,
    tmp_path: Path,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    post = {"url": POST, "author": "a", "text": "b", "timestamp": "2026-03-05T09:20:00Z"}
    (tmp_path / "p.jsonl").write_text(json.dumps(post), "utf-8")
    (tmp_path / "n.jsonl").write_text("{}\n", "utf-8")
    done = command("hydrate", *(one.replace("{dry}", str(few.dry)) for one in arguments))
    assert (done.code, done.errors.count("\n")) == (2, 1), done.errors
    assert said in done.errors
    assert {path.name for path in tmp_path.iterdir()} == {"n.jsonl", "p.jsonl"}


POST = "https://x.com/i/status/1"
# Twins: one word was changed, which no signature shows for sure.
ONE, TWIN = (with_words(photograph(5), word, (60, 200), 36) for word in ("blue hour", "blue huor"))
ENTRY = {"role": "output", "post_url": POST, "url": None, "of": None, "box": None}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archive_of(folder: Path, *images: tuple[bytes, str | None]) -> Archive:
    store = ImageStore(folder / "pictures")
    shown = [{"sha256": store.put(data), "url": url} for data, url in images]
    table = pa.Table.from_pylist([{"url": POST, "pictures": shown}], schema=POSTS.schema)
    return Archive(table, store)


def rebuilt(entries: list[dict[str, Any]], here: Archive) -> list[Restored]:
    row = {"picture_sources": entries, "input_images": [], "output_images": [], "screenshot": None}
    return restore_images(row, here)["output"]


def left_out(folder: Path, image: Image.Image, **values: Any) -> dict[str, Any]:
    data = encoded(image, "PNG")
    (folder / "original").write_bytes(data)
    signature = encode_signature(folder / "original")
    return {**ENTRY, "sha256": digest(data), "signature": signature, **values}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_copies_the_nearer_one_is_taken(tmp_path: Path, order: tuple[int, int]) -> None:
    copies = [encoded(one, "JPEG", quality=90) for one in (ONE, TWIN)]
    here = archive_of(tmp_path, *((copies[number], None) for number in order))
    for image, copy in zip((ONE, TWIN), copies, strict=True):
        (found,) = rebuilt([left_out(tmp_path, image)], here)
        assert found == Restored(digest(copy), Match.SAME_IMAGE)
    # Without a signature only the very bytes will do.
    (found,) = rebuilt([{**left_out(tmp_path, ONE), "signature": None}], here)
    assert (found.value, found.match) == (None, Match.DIFFERENT)


def test_the_address_says_which_image_is_meant(tmp_path: Path) -> None:
    copy, other = encoded(ONE, "JPEG", quality=90), encoded(photograph(6), "PNG")
    here = archive_of(tmp_path, (copy, "https://p.example/1"), (other, "https://p.example/2"))
    entries = [left_out(tmp_path, ONE, url=f"https://p.example/{number}") for number in (1, 2)]
    assert [one.match for one in rebuilt(entries, here)] == [Match.SAME_IMAGE, Match.DIFFERENT]


def test_an_image_of_another_entry_is_not_taken_for_a_copy(tmp_path: Path) -> None:
    twin = encoded(TWIN, "PNG")
    here = archive_of(tmp_path, (twin, None))
    entries = [left_out(tmp_path, ONE), {**ENTRY, "sha256": digest(twin), "signature": None}]
    assert [(one.match, one.detail) for one in rebuilt(entries, here)] == [
        (Match.MISSING, f"no image of {POST} is available"),
        (Match.EXACT, ""),
    ]


def test_a_crop_needs_its_screenshot(tmp_path: Path) -> None:
    shot, crop = encoded(ONE, "PNG"), encoded(ONE.crop((10, 10, 60, 60)), "BMP")
    here = archive_of(tmp_path)
    entry = {**ENTRY, "sha256": digest(crop), "of": digest(shot), "box": [10, 10, 60, 60]}
    entry["signature"] = None
    (found,) = rebuilt([entry], here)
    said = f"its screenshot {digest(shot)} stays left out"
    assert (found.match, found.detail) == (Match.MISSING, said)
    here.images.put(crop)
    assert rebuilt([entry], here) == [Restored(digest(crop), Match.EXACT)]


def test_a_crop_is_cut_out_of_the_screenshot_that_is_there(tmp_path: Path) -> None:
    here = archive_of(tmp_path, (encoded(ONE, "JPEG", quality=90), None))
    shot = left_out(tmp_path, ONE)
    lost = {**shot, "post_url": "https://p.example/gone"}
    crop = {**left_out(tmp_path, TWIN.crop((10, 10, 60, 60))), "signature": None}
    crop |= {"of": shot["sha256"], "box": [10, 10, 60, 60]}
    for shots in ([lost, shot], [shot, lost]):
        assert rebuilt([*shots, crop], here)[-1].detail == "another image stands in the box now"
    half = encoded(ONE.resize((ONE.width // 2, ONE.height // 2)), "JPEG", quality=90)
    found = rebuilt([shot, crop], archive_of(tmp_path / "half", (half, None)))
    assert (found[0].match, found[1].match) == (Match.SAME_IMAGE, Match.DIFFERENT)
    assert "its screenshot was of" in found[1].detail
