"""What may not be passed on is in no byte of what is passed on."""

from __future__ import annotations

import base64
import datetime
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from echo_hf.errors import ReleaseError, SpanError
from echo_hf.hub.diff import DRIFTS, Cause, compare_releases, diff
from echo_hf.hub.facts import CONFIGS
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.publish import count_restricted_rows, prepare_public_release
from echo_hf.hub.redistribution import (
    KEPT_COLUMNS,
    RestrictedSamples,
    dehydrate,
    dehydrate_sample,
    encode_signature,
    find_restricted,
    iterate_post_urls,
    measure_distance,
    read_signature,
    select_public_rows,
)
from echo_hf.hub.release import Release, read_release
from echo_hf.samples.spans import REPEATED_WORDS, SourceSpan
from echo_hf.tables import SAMPLES, TABLES
from tests.collect.images_like_posts import photograph, tinted
from tests.hub.conftest import Write, sample
from tests.hub.quickstart_release import CORPUS, Row, built, by_id, copied, entry, released
from tests.images_for_tests import encoded

WORD = re.compile(r"\w+")
ADDRESS = re.compile(r"https?://\S+")
# Counts of the card, whose words hostile posts use as well.
NOTE = re.search(
    r"\{% if dehydrated %\}(.*?)\{% endif %\}",
    (CORPUS.parents[1] / "dataset_card" / "card.md").read_text("utf-8"),
    re.DOTALL,
)
OWN_WORDS = (NOTE[1] if NOTE else "", "pictures 4", "2 feedback")


def posts() -> list[Row]:
    return list(map(json.loads, (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()))


def is_x(urls: Iterable[str]) -> bool:
    return any(url.startswith("https://x.com/") for url in urls)


def runs_of_words(texts: Iterable[str], length: int) -> set[str]:
    found: set[str] = set()
    for text in texts:
        words = WORD.findall(ADDRESS.sub(" ", text).casefold())
        found |= {" ".join(words[at : at + length]) for at in range(len(words) - length + 1)}
    return {run for run in found if not run.replace(" ", "").isdigit()}


def posted(some: Iterable[Row]) -> list[str]:
    described = [one.get("alt_text") or "" for post in some for one in post.get("pictures") or []]
    return [*(post.get("text") or "" for post in some), *described]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from strings(one)
    elif isinstance(value, str):
        inner: Any = None
        with suppress(ValueError):
            inner = json.loads(value)
        yield from strings(inner) if isinstance(inner, dict | list) else [value]


def texts_of(release: Path) -> list[str]:
    beside = [path for path in release.iterdir() if path.is_file()]
    assert {path.name for path in beside} == {
        "README.md", "eval.yaml", "manifest.json", "stats.json",
    }  # fmt: skip
    return list(strings([released(release), *(path.read_text("utf-8") for path in beside)]))


def contents(release: Path) -> Iterator[bytes]:
    for path in sorted(release.rglob("*")):
        if path.is_file():
            yield path.read_bytes()
        if path.suffix == ".parquet":
            plain = io.BytesIO()
            table = pq.read_table(path)
            pq.write_table(table, plain, compression="none", use_dictionary=False)
            yield plain.getvalue()
            told = (row.get("provenance") for row in table.to_pylist())
            yield from map(unescaped, filter(None, told))


def unescaped(text: str) -> bytes:
    return json.dumps(json.loads(text), ensure_ascii=False).encode()


def found(release: Path, wanted: Iterable[bytes]) -> set[bytes]:
    every = b"\0".join(contents(release))
    return {one for one in wanted if one in every}


def test_samples_of_x_are_dehydrated_and_no_others(full: Path, dry: Path) -> None:
    rows, before = released(dry), released(full)
    for name, some in before.items():
        assert [row["id"] for row in rows[name]] == [row["id"] for row in some]
        for old, new in zip(some, rows[name], strict=True):
            urls = [*old["post_urls"], *(one["post_url"] for one in old["community_feedback"])]
            assert new["dehydrated"] is is_x(urls)
            assert is_x(urls) or new == old
    counts = {name: each.dehydrated for name, each in read_release(dry).manifest.configs.items()}
    assert counts == {"image_to_image": 8, "text_to_image": 22, "analysis": 37}
    silent = [row for row in rows["analysis"] if row["dehydrated"]]
    for row in silent:
        assert (row["prompt"], row["screenshot"]) == (None, None)
        assert row["input_images"] == row["output_images"] == []
        assert [one["feedback"] for one in row["community_feedback"] if one["feedback"]] == []
        assert len(row["prompt_sha256"]) == 64
        assert row["prompt_spans"]
        assert dehydrate_sample(row) == row
    assert {row["quality"] for row in silent} == {"Benchmark", "Analysis"}
    assert any(one["verdict"] for row in silent for one in row["community_feedback"])


@pytest.fixture(scope="module")
def without_x(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    kept = copied(folder / "posts", lambda post: None if is_x([post["url"]]) else post)
    return built(folder / "build", kept) / "release"


def test_no_words_of_x_are_in_any_text(full: Path, dry: Path, without_x: Path) -> None:
    theirs = [post for post in posts() if is_x([post["url"]])]
    others = [post for post in posts() if post not in theirs]
    ours = runs_of_words([*posted(others), *texts_of(without_x), *OWN_WORDS], REPEATED_WORDS)
    wanted = runs_of_words(posted(theirs), REPEATED_WORDS) - ours
    assert len(wanted) > 500
    assert runs_of_words(texts_of(dry), REPEATED_WORDS) & wanted == set()
    assert len(runs_of_words(texts_of(full), REPEATED_WORDS) & wanted) > 100


def test_no_image_of_x_is_in_any_byte(full: Path, dry: Path) -> None:
    theirs, others = set(), set()
    for post in posts():
        for one in post.get("pictures") or []:
            if "path" in one:
                data = (CORPUS / one["path"]).read_bytes()
                (theirs if is_x([post["url"]]) else others).add(data[:256])
    assert found(dry, theirs - others) == set()
    assert len(found(full, theirs - others)) > 20


def test_a_row_without_noted_sources_is_dehydrated_all_the_same(full: Path) -> None:
    row = next(row for row in by_id(full).values() if row["community_feedback"])
    silent = [{**one, "sha256": None, "spans": None} for one in row["community_feedback"]]
    noted = dict.fromkeys(("prompt_sha256", "prompt_spans", "picture_sources"))
    found = dehydrate_sample({**row, **noted, "community_feedback": silent})
    assert found["prompt_sha256"] == row["prompt_sha256"]
    for new, old in zip(found["community_feedback"], row["community_feedback"], strict=True):
        assert new["sha256"] == old["sha256"]
    assert (found["prompt_spans"], found["picture_sources"]) == (None, None)
    with pytest.raises(SpanError, match="not a JSON object"):
        dehydrate_sample({**row, "provenance": "a fox in the snow"})


def test_a_stated_right_keeps_everything(tell: Tell, tmp_path: Path) -> None:
    statement = "written consent, filed as <b>2026-7</b> | $x"
    release = tell(analysis=[of_words()])
    kept = dehydrate(release.path, tmp_path / "kept", rights={"x": statement})
    assert released(kept.path) == released(release.path)
    card = (kept.path / "README.md").read_text("utf-8")
    assert r"are passed on because: written consent, filed as \<b\>2026-7\</b\> \| \$x" in card
    assert "Posts that are not repeated here" not in card
    assert kept.manifest.statements.rights == {"x": statement}
    stricter = dehydrate(kept.path, tmp_path / "stricter", rights={})
    assert stricter.manifest.configs["analysis"].dehydrated == 1


def test_nothing_is_written_over_or_made_of_a_changed_release(tell: Tell, tmp_path: Path) -> None:
    release = tell(analysis=[of_words()]).path
    with pytest.raises(ReleaseError, match="is the release itself"):
        dehydrate(release, release.parent / "." / "release")
    (release / "README.md").write_text("changed", "utf-8")
    with pytest.raises(ReleaseError, match="has changed"):
        dehydrate(release, tmp_path / "dry")
    assert {path.name for path in tmp_path.iterdir()} <= {"release", "pictures"}


@pytest.mark.parametrize(
    "values",
    [
        {"post_urls": ["https://bsky.app/profile/a/post/1", "https://x.com/i/status/1"]},
        {"community_feedback": [{"post_url": "https://x.com/i/status/1", "spans": None}]},
        {"prompt_spans": [SourceSpan("https://x.com/i/status/1", "text", 0, 3)._asdict()]},
        {"picture_sources": [{"post_url": "https://x.com/i/status/1"}]},
    ],
)
def test_one_post_of_x_is_enough(values: Mapping[str, Any]) -> None:
    row = {"post_urls": ["https://bsky.app/profile/a/post/1"], **values}
    assert find_restricted(iterate_post_urls(row)) == ["x"]
    assert find_restricted(iterate_post_urls(row), {"x"}) == []
    assert find_restricted(iterate_post_urls(row), {"bluesky"}) == ["x"]
    assert find_restricted(iterate_post_urls({**row, **dict.fromkeys(values)})) == []


@pytest.mark.parametrize("order", [1, -1], ids=["to without words", "and back"])
def test_taking_words_out_is_no_change(full: Path, dry: Path, order: int) -> None:
    found = diff(*[full, dry][::order])

    assert (found.added, found.removed, found.changed, found.stages) == ((), (), (), ())
    assert (found.equal, found.remade) == (len(released(full)["analysis"]), 0)
    assert {name: one.distance for name, one in found.drift.items()} == dict.fromkeys(DRIFTS, 0.0)
    (said,) = {one.a for name, one in found.drift.items() if name == "first bigrams"}
    assert 0 < said <= sum(not row["dehydrated"] for row in released(dry)["analysis"])


def test_what_changed_is_told_of_a_row_without_words(tell: Tell, tmp_path: Path) -> None:
    comment = {"post_url": X, "feedback": "So red.", "sha256": None, "spans": None}
    row = of_words(community_feedback=[comment])
    before = dehydrate(tell(analysis=[row]).path, tmp_path / "dry")
    edits = {"prompt_sha256": {"prompt": "another"}, "community_feedback": {"feedback": "Hm."}}
    for column, values in edits.items():
        said = [{**comment, **values}] if "feedback" in values else [comment]
        (changed,) = compare_releases(
            tell(analysis=[{**row, **values, "community_feedback": said}]), before
        ).changed
        assert (changed.columns, changed.causes) == ((column,), (Cause.SOURCE,))


X = "https://x.com/i/status/99"
OTHER = "https://bsky.app/profile/did:plc:abc/post/3k"
WORDS, FREE = "a heron in yellow boots", "a hat of no post"
SAID = (WORDS, WORDS, FREE)
Tell = Callable[..., Release]


@pytest.fixture
def tell(write: Write) -> Tell:
    """Writes a release of these rows, config by config."""

    def told(rights: Mapping[str, str] | None = None, **rows: Sequence[Row]) -> Release:
        configs = {}
        for name, some in rows.items():
            table = CONFIGS[name].table
            full = [{**dict.fromkeys(table.columns), **row} for row in some]
            schema = table.features.arrow_schema
            configs[name] = Dataset(pa.Table.from_pylist(full, schema=schema))
        return write("release", configs, rights=rights or {})

    return told


def passed(release: Release) -> dict[str, list[Row]]:
    with prepare_public_release(release) as copy:
        return released(copy.path)


def of_words(**values: Any) -> Row:
    shown = values.get("output_images", [])
    noted = [{"sha256": digest, "role": "output", "post_url": X} for digest in shown]
    values = {"prompt": WORDS, "provenance": "{}", "picture_sources": noted, **values}
    return sample(0, post_urls=[X], **values)


def an_answer(key: str, sources: list[str] | None) -> Row:
    return {"request_key": key * 64, "text": f"prompt: {WORDS}", "sources": sources}


@pytest.mark.parametrize(
    ("phrase", "stays"),
    [
        ("turn an animal into a pastry", True),
        ("turn a fox into a pastry", True),  # "fox into" are two
        ("paint a fox in the snow", False),
        (None, True),
    ],
)
def test_a_phrase_stays_unless_it_repeats_the_prompt(phrase: str | None, stays: bool) -> None:
    row = {**of_words(), "prompt": "A fox, in the snow: FOX into bread!"}
    left = dehydrate_sample({**row, "task_phrase": phrase})
    assert left["task_phrase"] == (phrase if stays else None)
    assert dehydrate_sample(left) == left


def test_every_column_is_decided_on() -> None:
    emptied = {
        *("prompt", "prompt_sha256", "community_feedback", "input_images", "output_images"),
        *("screenshot", "picture_sources", "dehydrated", "provenance", "task_phrase"),
        *("timestamp", "keywords", "engagement"),
    }
    assert sorted([*KEPT_COLUMNS, *emptied]) == sorted(SAMPLES.columns)
    words = {"text", "revised_prompt", "code", "explanation", "rationale"}
    for table in ("outputs", "ratings", "comparisons", "applicability", "human"):
        row = {**dict.fromkeys(TABLES[table].columns, "a fox"), "provenance": "{}", "image": None}
        ((left,), _) = select_public_rows(table, [row], RestrictedSamples({}))
        assert {name for name in row if left[name] is None} - {"image"} == words & set(row)


def test_a_release_that_was_put_back_in_part_is_left_out_again(
    quickstart: Path, tmp_path: Path
) -> None:
    posts = copied(tmp_path / "bare", lambda post: {**post, "pictures": []})
    hydrate(quickstart / "dry", tmp_path / "partly", [entry(posts)])
    partly = read_release(tmp_path / "partly")
    rows = [row for some in released(partly.path).values() for row in some]
    held = [row for row in rows if row["dehydrated"] and row["prompt"] is not None]
    assert len(held) > 10
    assert count_restricted_rows(partly) >= len(held)
    assert passed(partly) == released(quickstart / "dry")
    assert count_restricted_rows(read_release(quickstart / "dry")) == 0


@pytest.mark.parametrize(
    "values",
    [
        {"timestamp": datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)},
        {"keywords": ["lumen"]},
        {"engagement": dict.fromkeys(("likes", "views", "reposts", "replies", "bookmarks"), 0)},
        {"prompt": WORDS},
        {"community_feedback": [{"post_url": X, "feedback": WORDS}]},
        {"provenance": json.dumps({"roles": {"template": WORDS}})},
        {"output_images": ["png"]},
        {"screenshot": "png"},
    ],
)
def test_one_thing_that_is_held_is_enough(
    tell: Tell, digests: Mapping[str, str], values: Row
) -> None:
    shown = {"output_images": [digests["png"]], "screenshot": digests["png"]}
    values = {name: shown.get(name, value) for name, value in values.items()}
    row = {**sample(0, post_urls=[X], provenance="{}", dehydrated=True), **values}
    release = tell(analysis=[row])
    assert count_restricted_rows(release) == 1
    (left,) = passed(release)["analysis"]
    assert (left["prompt"], left["output_images"], left["screenshot"]) == (None, [], None)
    assert [left[name] for name in ("timestamp", "keywords", "engagement")] == [None] * 3
    assert WORDS not in str(left)


def test_an_answer_about_posts_of_x_is_not_passed_on_without_samples_of_x(tell: Tell) -> None:
    sources = {"a": [X], "b": [OTHER], "c": None, "d": [], "e": ["https://nitter.net/m/status/9"]}
    answers = [an_answer(key, urls) for key, urls in sources.items()]
    free = sample(0, post_urls=[OTHER], prompt="A hat")
    release = tell(analysis=[free], responses=answers)
    assert count_restricted_rows(release) == 4
    with prepare_public_release(release) as copy:
        rows = released(copy.path)
        assert copy.stats["left_out"]["responses"] == {"may_quote": 4}
        card = (copy.path / "README.md").read_text("utf-8")
    assert [row["request_key"][0] for row in rows["responses"]] == ["b"]
    assert rows["analysis"][0]["prompt"] == "A hat"
    assert "4 rows of `responses` (it may repeat posts that must not be passed on)" in card
    owned = tell({"x": "consent"}, responses=answers)
    assert count_restricted_rows(owned) == 0
    assert len(passed(owned)["responses"]) == 5


def an_output(system: str, image: str | None, number: int = 0) -> Row:
    made = {"sample_id": f"sample{number}", "system": system, "image": image, "outcome": "ok"}
    said = dict.fromkeys(("text", "code", "revised_prompt"), SAID[number % 3])
    return {**made, **said, "provenance": "{}"}


@pytest.fixture
def beside(tell: Tell, digests: Mapping[str, str]) -> Release:
    png, jpg, webp = digests["png"], digests["jpg"], digests["webp"]
    edit = sample(1, post_urls=[X], prompt=WORDS, provenance="{}", input_images=[jpg])
    free = sample(2, post_urls=[OTHER], prompt="A hat", provenance="{}")
    outputs = [
        *(an_output("draws", webp), an_output("repeats", png), an_output("edits", webp, 1)),
        *(an_output("gives back", jpg, 1), an_output("draws", png, 2), an_output("lost", webp, 9)),
    ]
    about = [({"sample_id": f"sample{number}"}, said) for number, said in enumerate(SAID)]
    return tell(
        text_to_image=[of_words(output_images=[png])],
        image_to_image=[edit],
        analysis=[of_words(output_images=[png]), edit, free],
        outputs=outputs,
        ratings=[{**one, "rating": 7.0, "explanation": said} for one, said in about],
        applicability=[
            {**one, "metric": "text_rendering", "applies": True, "rationale": said}
            for one, said in about
        ],
        responses=[an_answer("a", [X])],
    )


def test_what_systems_and_judges_made_stays_without_words(beside: Release) -> None:
    """Of images only those that were drawn from words alone."""
    with prepare_public_release(beside) as copy:
        rows = released(copy.path)
        assert found(copy.path, [WORDS.encode()]) == set()
    assert found(beside.path, [WORDS.encode()])
    shown = {(row["sample_id"], row["system"]): bool(row["image"]) for row in rows["outputs"]}
    assert shown == {
        ("sample0", "draws"): True,
        ("sample0", "repeats"): False,
        ("sample1", "edits"): False,
        ("sample1", "gives back"): False,
        ("sample2", "draws"): True,
        ("sample9", "lost"): False,  # about a sample that nobody knows
    }
    kept = [row["code"] for row in rows["outputs"] if row["sample_id"] == "sample2"]
    assert kept == [FREE]
    assert [row["rating"] for row in rows["ratings"]] == [7.0] * 3
    assert [row["explanation"] for row in rows["ratings"]] == [None, None, FREE]
    assert [row["rationale"] for row in rows["applicability"]] == [None, None, FREE]
    assert rows["responses"] == []
    # 4 rows of samples and their outputs, which are 5, 2 ratings, 2 reasons, 1 answer
    assert count_restricted_rows(beside) == 4 + 5 + 2 + 2 + 1


def test_what_is_left_out_beside_is_counted_once_and_told(beside: Release, tmp_path: Path) -> None:
    said = "xplanations in `ratings` were written by judges"
    assert said in (beside.path / "README.md").read_text("utf-8")
    dry = dehydrate(beside.path, tmp_path / "dry")
    assert dry.stats["left_out"] == {
        "outputs": {"silenced": 5},
        "ratings": {"silenced": 2},
        "applicability": {"silenced": 2},
        "responses": {"may_quote": 1},
    }
    assert dehydrate(dry.path, tmp_path / "again").manifest == dry.manifest
    assert count_restricted_rows(dry) == 0
    card = (dry.path / "README.md").read_text("utf-8")
    assert "2 rows of `ratings` (only the texts and images in them" in card
    assert "In 1 row of `image_to_image`, 1 row of `text_to_image` and 2 rows of `analysis`" in card


IMAGE = photograph(3)


@pytest.fixture
def signature(tmp_path: Path) -> str:
    path = tmp_path / "original"
    path.write_bytes(encoded(IMAGE, "PNG"))
    found = encode_signature(path)
    assert found is not None
    return found


def test_a_signature_is_size_and_blocks(signature: str) -> None:
    size, _, text = signature.partition(":")
    assert size == f"{IMAGE.width}x{IMAGE.height}"
    data = base64.b64decode(text)
    assert len(data) == 16 * 16 * 4 * 3
    brightness = np.frombuffer(data, "<f2", 16 * 16 * 4).reshape(16, 16, 4)[..., 0]
    grey = np.asarray(IMAGE.convert("L").resize((16, 16), Image.Resampling.BOX), float)
    assert np.abs(brightness - grey).max() < 2


PNG = {"name": "PNG"}
# Images, whether each is a copy, and how it is packed.
SIMILAR: dict[str, tuple[Image.Image, bool, dict[str, Any]]] = {
    "itself": (IMAGE, True, PNG),
    "jpeg": (IMAGE, True, {"name": "JPEG", "quality": 75}),
    "webp": (IMAGE, True, {"name": "WEBP", "quality": 80}),
    "half": (IMAGE.resize((IMAGE.width // 2, IMAGE.height // 2)), True, PNG),
    "tint": (tinted(IMAGE, 2, 0.94), False, PNG),
    "mirror": (IMAGE.transpose(Image.Transpose.FLIP_LEFT_RIGHT), False, PNG),
    "crop": (IMAGE.crop((8, 8, IMAGE.width - 8, IMAGE.height - 8)), False, PNG),
    "squashed": (IMAGE.resize((IMAGE.width, IMAGE.height + 60)), False, PNG),
    "darker": (IMAGE.point(lambda level: level * 0.95), False, PNG),
    "blurred": (IMAGE.filter(ImageFilter.GaussianBlur(30)), False, PNG),
}


@pytest.mark.parametrize(("image", "is_copy", "packed"), SIMILAR.values(), ids=SIMILAR)
def test_a_copy_is_known(
    signature: str, tmp_path: Path, image: Image.Image, is_copy: bool, packed: dict[str, Any]
) -> None:
    (tmp_path / "other").write_bytes(encoded(image, **packed))
    levels = measure_distance(tmp_path / "other", signature)
    assert (levels is not None) is is_copy
    assert levels is None or 0 <= levels < 1


@given(
    st.text(max_size=40)
    | st.binary(max_size=40).map(lambda data: f"4x4:{base64.b64encode(data).decode()}")
    | st.sampled_from([f"0x4:{'A' * 4096}", f"9x9:{'/' * 4096}", f"9999999x1:{'A' * 4096}"])
)
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(SpanError, match="not a signature"):
        read_signature(text)
