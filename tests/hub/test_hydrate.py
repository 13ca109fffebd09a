"""Who has the posts gets back what was left out, and is told what differs."""

from __future__ import annotations

import filecmp
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from echo_hf.collect.fetch import FetchStats
from echo_hf.errors import ImageError, ReleaseError
from echo_hf.hub.dehydrate import dehydrate, image_signature
from echo_hf.hub.hydrate import (
    Archive,
    Rebuilt,
    SampleMatch,
    hydrate,
    hydrated,
    read_archive,
    rebuilt_images,
)
from echo_hf.hub.manifest import file_entry
from echo_hf.hub.release import (
    read_release,
    released_facts,
    unpacked,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Match
from echo_hf.samples.sample import sample_digest
from echo_hf.samples.spans import SourceSpan
from echo_hf.tables import POSTS, SAMPLES
from tests.collect.fetching import policy_for
from tests.collect.images_like_posts import photograph, with_words
from tests.collect.server_for_tests import ImageServer
from tests.hub.conftest import Command
from tests.hub.quickstart_release import Row, built, by_id, copied, entry, released
from tests.images_for_tests import encoded

LAKE = "https://x.com/i/status/9900316480787844284"  # a photo, what became of it, two comments
COMMENT = "https://x.com/i/status/9900316480789998101"
Change = Callable[[Image.Image], bytes]


@pytest.fixture
def posts(quickstart: Path) -> Path:
    return quickstart / "posts" / "posts.jsonl"


def matches(some: tuple[SampleMatch, ...]) -> dict[str, str]:
    return {sample.id: sample.match.value for sample in some}


def parts(some: tuple[SampleMatch, ...], sample: str) -> dict[str, tuple[str, str]]:
    (one,) = [each for each in some if each.id == sample]
    return {part.name: (part.match.value, part.detail) for part in one.parts}


def of_post(release: Path, url: str) -> Row:
    (row,) = [row for row in by_id(release).values() if row["post_urls"][0] == url]
    return row


def changed_images(folder: Path, names: set[str], change: Change) -> Path:
    def renamed(post: Row) -> Row:
        for one in post.get("pictures") or []:
            if Path(one.get("path") or "").name in names:
                one["path"] += ".anew"
        return post

    path = copied(folder, renamed)
    for name in names:
        image = Image.open(folder / "pictures" / name)
        (folder / "pictures" / f"{name}.anew").write_bytes(change(image))
        (folder / "pictures" / name).unlink()
    return path


def jpeg(image: Image.Image) -> bytes:
    return encoded(image.convert("RGB"), "JPEG", quality=92)


def tinted(image: Image.Image) -> bytes:
    red, green, blue = image.convert("RGB").split()
    return encoded(Image.merge("RGB", (red, green, blue.point(lambda level: level * 0.8))), "PNG")


def test_the_same_posts_give_the_same_release(
    full: Path, dry: Path, posts: Path, tmp_path: Path
) -> None:
    hydration = hydrate(dry, tmp_path / "wet", [entry(posts)])
    assert released(tmp_path / "wet") == released(full)
    names = [path.relative_to(full) for path in full.rglob("*") if path.is_file()]
    assert len(names) == 7
    for name in names:
        assert filecmp.cmp(full / name, tmp_path / "wet" / name, shallow=False), name
    assert set(matches(hydration.samples).values()) == {"exact"}
    assert len(hydration.samples) == 37
    verify_release(tmp_path / "wet")
    assert {path.name for path in tmp_path.iterdir()} == {"wet"}


def test_a_changed_text_is_different(full: Path, dry: Path, tmp_path: Path) -> None:
    def edited(post: Row) -> Row:
        if post["url"].endswith(LAKE[-19:]):
            post["text"] = post["text"].replace("full moon", "thin moon")
        return post

    path = copied(tmp_path / "posts", edited)
    hydration = hydrate(dry, tmp_path / "wet", [entry(path)])
    before, after = of_post(full, LAKE), of_post(tmp_path / "wet", LAKE)
    assert [name for name, match in matches(hydration.samples).items() if match != "exact"] == [
        before["id"]
    ]
    assert parts(hydration.samples, before["id"])["prompt"] == (
        "different",
        "other words stand there now",
    )
    assert (after["dehydrated"], after["prompt"]) == (True, None)
    assert after["output_images"] == before["output_images"]
    assert after["community_feedback"] == before["community_feedback"]
    others = by_id(full).keys() - {before["id"]}
    assert all(by_id(tmp_path / "wet")[name] == by_id(full)[name] for name in others)


def test_a_missing_post_is_named(full: Path, dry: Path, posts: Path, tmp_path: Path) -> None:
    def without(post: Row) -> Row | None:
        return None if post["url"].endswith(COMMENT[-19:]) else post

    path = copied(tmp_path / "posts", without)
    hydration = hydrate(dry, tmp_path / "some", [entry(path)])
    before, after = of_post(full, LAKE), of_post(tmp_path / "some", LAKE)
    assert parts(hydration.samples, before["id"])["feedback.0"] == ("missing", f"no post {COMMENT}")
    assert (after["prompt"], after["dehydrated"]) == (before["prompt"], True)
    assert after["community_feedback"][0]["feedback"] is None
    assert read_release(tmp_path / "some").manifest.configs["analysis"].dehydrated == 1

    reply = [line for line in posts.read_text("utf-8").splitlines() if COMMENT[-19:] in line]
    (tmp_path / "reply.jsonl").write_text(reply[0], "utf-8")
    later = hydrate(tmp_path / "some", tmp_path / "all", [entry(tmp_path / "reply.jsonl")])
    assert matches(later.samples) == {before["id"]: "exact"}
    assert released(tmp_path / "all") == released(full)


def test_a_copy_that_was_packed_anew_is_the_same_image(
    full: Path, dry: Path, tmp_path: Path
) -> None:
    names = {"lake_day.jpg", "iso_room.png"}
    path = changed_images(tmp_path / "posts", names, jpeg)
    hydration = hydrate(dry, tmp_path / "wet", [entry(path)])
    assert set(matches(hydration.samples).values()) == {"exact", "same_picture"}
    rows, before = by_id(tmp_path / "wet"), by_id(full)
    same = [name for name, match in matches(hydration.samples).items() if match != "exact"]
    assert len(same) == 2
    for name in same:
        row, old = rows[name], before[name]
        assert row["dehydrated"] is False
        assert row["prompt"] == old["prompt"]
        inputs = [one["path"].partition(".")[0] for one in row["input_images"]]
        assert row["sample_digest"] == sample_digest(row["prompt"], inputs)
        assert (row["sample_digest"] == old["sample_digest"]) is (
            row["input_images"] == old["input_images"]
        )
        copies = [*row["input_images"], *row["output_images"]]
        assert any(Image.open(io.BytesIO(one["bytes"])).format == "JPEG" for one in copies)
    assert any(rows[name]["sample_digest"] != before[name]["sample_digest"] for name in same)


def test_another_image_is_different(full: Path, dry: Path, tmp_path: Path) -> None:
    path = changed_images(tmp_path / "posts", {"lake_night.jpg"}, tinted)
    hydration = hydrate(dry, tmp_path / "wet", [entry(path)])
    before, after = of_post(full, LAKE), of_post(tmp_path / "wet", LAKE)
    assert parts(hydration.samples, before["id"])["output.0"] == (
        "different",
        f"{LAKE} shows another image",
    )
    assert (after["prompt"], after["output_images"]) == (before["prompt"], [])
    assert after["input_images"] == before["input_images"]
    assert after["picture_sources"][1]["signature"]


def test_the_parts_of_a_screenshot_are_cut_out_again(full: Path, dry: Path, tmp_path: Path) -> None:
    shots = [row for row in by_id(full).values() if row["is_screenshot"]]
    (cut,) = [row for row in shots if row["post_urls"][0].startswith("https://x.com/")]
    names = {"collage_chair.jpg"}

    path = changed_images(tmp_path / "posts", names, jpeg)
    hydration = hydrate(dry, tmp_path / "wet", [entry(path)])
    found = {name: each for name, (each, _) in parts(hydration.samples, cut["id"]).items()}
    assert (found["input.0"], found["screenshot.0"]) == ("same_picture", "same_picture")
    row = by_id(tmp_path / "wet")[cut["id"]]
    sizes = [Image.open(io.BytesIO(one["bytes"])).size for one in row["input_images"]]
    assert sizes == [Image.open(io.BytesIO(one["bytes"])).size for one in cut["input_images"]]

    half = changed_images(
        tmp_path / "half",
        names,
        lambda image: jpeg(image.resize((image.width // 2, image.height // 2))),
    )
    found_half = parts(hydrate(dry, tmp_path / "less", [entry(half)]).samples, cut["id"])
    assert found_half["screenshot.0"][0] == "same_picture"
    assert found_half["input.0"][0] == "different"
    assert "its screenshot was of" in found_half["input.0"][1]


def test_images_may_lie_in_a_folder_of_their_own(
    full: Path, dry: Path, posts: Path, quickstart: Path, tmp_path: Path
) -> None:
    shutil.copy(posts, tmp_path / "posts.jsonl")
    bare = hydrate(dry, tmp_path / "bare", [entry(tmp_path / "posts.jsonl")])
    assert "missing" in matches(bare.samples).values()
    assert all(sample.match is Match.EXACT or "image" in sample.parts[-1].detail
               for sample in bare.samples)  # fmt: skip

    images = quickstart / "runs" / "quickstart" / "pictures"
    hydrate(dry, tmp_path / "wet", [entry(tmp_path / "posts.jsonl")], images=images)
    assert released(tmp_path / "wet") == released(full)


@pytest.fixture(scope="module")
def server() -> Iterator[ImageServer]:
    with ImageServer() as running:
        yield running


@pytest.fixture(scope="module")
def addresses(server: ImageServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("addresses")

    def addressed(post: Row) -> Row:
        for one in post.get("pictures") or []:
            if "path" in one:
                one["url"] = server.url(f"/{one['path']}")
        return post

    path = copied(folder / "posts", addressed)
    for image in (folder / "posts" / "pictures").iterdir():
        server.gives(f"/pictures/{image.name}", image.read_bytes())
    dehydrate(built(folder / "build", path) / "release", folder / "dry")
    shutil.rmtree(folder / "posts" / "pictures")
    return folder


def test_images_are_fetched_from_where_the_posts_show_them(
    server: ImageServer, addresses: Path, tmp_path: Path
) -> None:
    server.asked.clear()
    posts = [entry(addresses / "posts" / "posts.jsonl")]
    none = hydrate(addresses / "dry", tmp_path / "none", posts)
    assert not server.asked
    assert "missing" in matches(none.samples).values()

    every = hydrate(addresses / "dry", tmp_path / "wet", posts, fetch=policy_for(server))
    full = addresses / "build" / "runs" / "quickstart" / "release"
    assert set(matches(every.samples).values()) == {"exact"}
    assert released(tmp_path / "wet") == released(full)
    shown = [one["url"] for row in by_id(addresses / "dry").values() if row["dehydrated"]
             for one in row["picture_sources"]]  # fmt: skip
    assert {server.url(name) for name in server.asked} == set(shown)
    assert set(server.asked.values()) == {1}


def test_a_stopped_hydration_asks_for_the_rest_alone(
    server: ImageServer, addresses: Path, tmp_path: Path
) -> None:
    server.asked.clear()
    posts = [entry(addresses / "posts" / "posts.jsonl")]
    policy = policy_for(server, concurrency=1)

    def stop(stats: FetchStats) -> None:
        if stats.fetched == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hydrate(addresses / "dry", tmp_path / "wet", posts, fetch=policy, progress=stop)
    assert {path.name for path in tmp_path.iterdir()} == {".wet.hydrating"}
    before = server.asked.total()
    hydration = hydrate(addresses / "dry", tmp_path / "wet", posts, fetch=policy)
    assert set(matches(hydration.samples).values()) == {"exact"}
    assert {path.name for path in tmp_path.iterdir()} == {"wet"}
    # The one that was under way when it stopped may be asked for again.
    assert server.asked.total() - len(server.asked) <= 1 < before


@pytest.fixture(scope="module")
def archive(quickstart: Path, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    store = ImageStore(tmp_path_factory.mktemp("archive") / "pictures")
    return read_archive([entry(quickstart / "posts" / "posts.jsonl")], store)


@pytest.fixture(scope="module")
def rows(quickstart: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    store = ImageStore(tmp_path_factory.mktemp("rows"))
    every = unpacked(read_release(quickstart / "dry"), store)["analysis"].with_format("arrow")[:]
    some = [row for row in every.to_pylist() if row["dehydrated"]]
    wanted = [
        next(row for row in some if row["is_screenshot"]),
        next(row for row in some if row["prompt_fill_blank"]),
        next(row for row in some if len(row["community_feedback"]) > 1),
    ]
    return [json.loads(json.dumps(row)) for row in wanted]


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
    new, match = hydrated(row, archive)
    assert new["prompt"] is None
    assert all(one["feedback"] is None for one in new["community_feedback"])
    assert new["dehydrated"] is True
    assert match.match in (Match.DIFFERENT, Match.MISSING)
    shown = [*new["input_images"], *new["output_images"], new["screenshot"]]
    assert [one for one in shown if one is not None] == []
    pa.Table.from_pylist([new], schema=SAMPLES.schema)


@pytest.mark.parametrize(
    "provenance", [None, "no json", "[]", '{"quoted": 3}', '{"quoted": [{"path": ["x"]}]}']
)
def test_a_hostile_provenance_is_told(
    rows: list[Row], archive: Archive, provenance: str | None
) -> None:
    new, match = hydrated({**rows[1], "provenance": provenance}, archive)
    assert new["provenance"] == provenance
    assert new["prompt"]
    assert match.match is (Match.EXACT if provenance is None else Match.DIFFERENT)


def test_a_digest_protects_the_posts_that_somebody_has(rows: list[Row], archive: Archive) -> None:
    span = SourceSpan(COMMENT, "text", 0, 5)._asdict()
    new, match = hydrated({**rows[0], "prompt_spans": [span]}, archive)
    assert new["prompt"] is None
    assert {part.name: part.match for part in match.parts}["prompt"] is Match.DIFFERENT
    silent, _ = hydrated({**rows[0], "prompt_spans": [span], "prompt_sha256": None}, archive)
    assert silent["prompt"] is None


def test_hostile_spans_in_a_release_cost_no_other_row(
    full: Path, dry: Path, posts: Path, tmp_path: Path
) -> None:
    store = ImageStore(tmp_path / "pictures")
    configs = unpacked(read_release(dry), store)
    bad = of_post(full, LAKE)["id"]

    def spoilt(row: Row) -> Row:
        span = SourceSpan(LAKE, "text", -(2**63), 2**63 - 1)._asdict()
        return {**row, "prompt_spans": [span]} if row["id"] == bad else row

    spoilt_configs = {
        name: Dataset(
            pa.Table.from_pylist(
                [spoilt(row) for row in some.with_format("arrow")[:].to_pylist()],
                schema=SAMPLES.features.arrow_schema,
            )
        )
        for name, some in configs.items()
    }
    write_release(tmp_path / "bad", spoilt_configs, store, released_facts(read_release(dry)))
    hydration = hydrate(tmp_path / "bad", tmp_path / "wet", [entry(posts)])
    assert [name for name, match in matches(hydration.samples).items() if match != "exact"] == [bad]
    assert "is not a place in a text" in parts(hydration.samples, bad)["prompt"][1]


def resealed(release: Path, to: Path, edit: Callable[[pa.Table], pa.Table | None]) -> Path:
    shutil.copytree(release, to)
    path = next((to / "analysis").iterdir())
    table = edit(pq.read_table(path))
    if table is None:
        path.write_bytes(b"PAR1 nothing PAR1")
    else:
        pq.write_table(table, path)
    manifest = json.loads((to / "manifest.json").read_text("utf-8"))
    new = file_entry(to, f"analysis/{path.name}").model_dump()
    manifest["configs"]["analysis"]["files"] = [new]
    (to / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    verify_release(to)
    return to


def with_null(table: pa.Table, column: str) -> pa.Table:
    at = table.schema.get_field_index(column)
    kind = table.schema.field(at).type
    values = pa.array([[None]] * len(table), kind)
    return table.set_column(at, table.schema.field(at), values)


DAMAGES: dict[str, tuple[Callable[[pa.Table], Any], str]] = {
    "no Parquet": (lambda _: None, "cannot be read"),
    "no column": (lambda table: table.drop_columns(["prompt_spans"]), "'prompt_spans' is 'no such"),
    "one more": (
        lambda table: table.append_column("zzz", pa.nulls(len(table), pa.string())),
        "'zzz' is 'string', expected 'no such column'",
    ),
    "other type": (
        lambda table: table.set_column(
            table.schema.get_field_index("prompt"), "prompt", pa.nulls(len(table), pa.int64())
        ),
        "'prompt' is 'int64', expected 'string'",
    ),
    "null feedback": (lambda table: with_null(table, "community_feedback"), "holds null"),
    "null picture": (lambda table: with_null(table, "output_images"), "holds null"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_strange_release_is_one_line(dry: Path, posts: Path, tmp_path: Path, damage: str) -> None:
    edit, said = DAMAGES[damage]
    bad = resealed(dry, tmp_path / "bad", edit)
    with pytest.raises(ReleaseError, match=said) as caught:
        hydrate(bad, tmp_path / "wet", [entry(posts)])
    assert "\n" not in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {"bad"}


def test_an_image_that_is_none_is_one_line(dry: Path, posts: Path, tmp_path: Path) -> None:
    def spoilt(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("screenshot")
        kind = table.schema.field(at).type
        values = pa.array([{"bytes": b"<svg/>", "path": "x"}] * len(table), kind)
        return table.set_column(at, table.schema.field(at), values)

    bad = resealed(dry, tmp_path / "bad", spoilt)
    with pytest.raises(ImageError, match="not a readable image"):
        hydrate(bad, tmp_path / "wet", [entry(posts)])


def test_the_command_prints_what_came_of_it(command: Command, dry: Path, tmp_path: Path) -> None:

    def without(post: Row) -> Row | None:
        return None if post["url"].endswith(COMMENT[-19:]) else post

    path = copied(tmp_path / "posts", without)
    done = command("hydrate", dry, "--posts", path, "--to", tmp_path / "wet")
    assert (done.code, done.errors) == (0, "")
    rows = {line.split()[0]: line.split()[1:4] for line in done.output.splitlines() if line.split()}
    assert {name: rows[name] for name in map(str, Match)} == {
        "exact": ["36", "132", "43"],
        "same_picture": ["0", "0", "0"],
        "different": ["0", "0", "0"],
        "missing": ["1", "1", "0"],
    }
    said = " ".join(done.output.split())
    assert f"1 x missing: no post {COMMENT}" in said
    assert str(tmp_path / "wet") in done.output.replace("\n", "")
    assert (tmp_path / "wet" / "hydration.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope", "--posts", "p.jsonl", "--to", "wet"], "/nope': expected a folder with manifest"),
        (["{dry}", "--posts", "nope.jsonl", "--to", "wet"], "no file 'nope.jsonl'"),
        (["{dry}", "--posts", "n.jsonl", "--to", "wet"], "n.jsonl' holds no post"),
        (["{dry}", "--posts", "p.jsonl", "--pictures", "no", "--to", "wet"], "no folder 'no'"),
        (["{dry}", "--to", "wet"], "source 'jsonl' has no path"),
        (["{dry}", "--posts", "{dry}", "--to", "wet"], "is not a regular file"),
        (["{dry}", "--posts", "p.jsonl", "--source", "jsnl", "--to", "wet"], "mean 'jsonl'?"),
        (["{dry}", "--posts", "p.jsonl", "--to", "{dry}"], "is the release itself"),
        (["{dry}", "--posts", "p.jsonl", "--to", "p.jsonl"], "is a file"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    dry: Path,
    posts: Path,
    tmp_path: Path,
    arguments: list[str],
    said: str,
) -> None:
    """Exit code 2, one line, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(posts, tmp_path / "p.jsonl")
    (tmp_path / "n.jsonl").write_text("{}\n", "utf-8")
    done = command("hydrate", *(one.replace("{dry}", str(dry)) for one in arguments))
    assert (done.code, done.errors.count("\n")) == (2, 1), done.errors
    assert done.errors.startswith("echo-hf: ")
    assert said in done.errors
    assert {path.name for path in tmp_path.iterdir()} == {"n.jsonl", "p.jsonl"}


POST = "https://x.com/i/status/1"
# Twins: one word was changed, which no signature shows for sure.
ONE, TWIN = (with_words(photograph(5), word, (60, 200), 36) for word in ("blue hour", "blue huor"))
ENTRY = {"role": "output", "post_url": POST, "url": None, "of": None, "box": None}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archive_of(folder: Path, *images: tuple[bytes, str | None], **values: Any) -> Archive:
    store = ImageStore(folder / "pictures")
    shown = [{"sha256": store.put(data), "url": url} for data, url in images]
    table = pa.Table.from_pylist([{"url": POST, "pictures": shown}], schema=POSTS.schema)
    return Archive(table, store, **values)


def rebuilt(entries: list[dict[str, Any]], here: Archive) -> list[Rebuilt]:
    row = {"picture_sources": entries, "input_images": [], "output_images": [], "screenshot": None}
    return rebuilt_images(row, here)["output"]


def left_out(folder: Path, image: Image.Image, **values: Any) -> dict[str, Any]:
    data = encoded(image, "PNG")
    (folder / "original").write_bytes(data)
    signature = image_signature(folder / "original")
    return {**ENTRY, "sha256": digest(data), "signature": signature, **values}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_copies_the_nearer_one_is_taken(tmp_path: Path, order: tuple[int, int]) -> None:
    copies = [encoded(one, "JPEG", quality=90) for one in (ONE, TWIN)]
    here = archive_of(tmp_path, *((copies[number], None) for number in order))
    for image, copy in zip((ONE, TWIN), copies, strict=True):
        (found,) = rebuilt([left_out(tmp_path, image)], here)
        assert found == Rebuilt(digest(copy), Match.SAME_IMAGE)


def test_the_address_says_which_image_is_meant(tmp_path: Path) -> None:
    copy, other = encoded(ONE, "JPEG", quality=90), encoded(photograph(6), "PNG")
    here = archive_of(tmp_path, (copy, "https://p.example/1"), (other, "https://p.example/2"))
    entries = [left_out(tmp_path, ONE, url=f"https://p.example/{number}") for number in (1, 2)]
    assert [one.match for one in rebuilt(entries, here)] == [
        Match.SAME_IMAGE,
        Match.DIFFERENT,
    ]


def test_an_image_of_another_entry_is_not_taken_for_a_copy(tmp_path: Path) -> None:
    twin = encoded(TWIN, "PNG")
    here = archive_of(tmp_path, (twin, None))
    entries = [left_out(tmp_path, ONE), {**ENTRY, "sha256": digest(twin), "signature": None}]
    assert [(one.match, one.detail) for one in rebuilt(entries, here)] == [
        (Match.MISSING, f"no image of {POST} is available"),
        (Match.EXACT, ""),
    ]


def test_without_a_signature_only_the_very_bytes_will_do(tmp_path: Path) -> None:
    here = archive_of(tmp_path, (encoded(ONE, "JPEG", quality=90), None))
    entry = {**left_out(tmp_path, ONE), "signature": None}
    (found,) = rebuilt([entry], here)
    assert (found.value, found.match) == (None, Match.DIFFERENT)


def test_a_crop_needs_its_screenshot(tmp_path: Path) -> None:
    shot, crop = encoded(ONE, "PNG"), encoded(ONE.crop((10, 10, 60, 60)), "BMP")
    here = archive_of(tmp_path)
    entry = {**ENTRY, "sha256": digest(crop), "of": digest(shot), "box": [10, 10, 60, 60]}
    entry["signature"] = None
    (found,) = rebuilt([entry], here)
    assert (found.match, found.detail) == (
        Match.MISSING,
        f"its screenshot {digest(shot)} stays left out",
    )
    here.images.put(crop)
    assert rebuilt([entry], here) == [Rebuilt(digest(crop), Match.EXACT)]


def test_a_crop_is_cut_out_of_the_screenshot_that_is_there(tmp_path: Path) -> None:
    here = archive_of(tmp_path, (encoded(ONE, "JPEG", quality=90), None))
    shot = left_out(tmp_path, ONE)
    lost = {**shot, "post_url": "https://p.example/gone"}
    crop = {**left_out(tmp_path, TWIN.crop((10, 10, 60, 60))), "signature": None}
    crop |= {"of": shot["sha256"], "box": [10, 10, 60, 60]}
    for shots in ([lost, shot], [shot, lost]):
        found = rebuilt([*shots, crop], here)[-1]
        assert found.detail == "another image stands in the box now"
