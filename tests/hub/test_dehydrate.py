"""What may not be passed on is in no byte of what is passed on."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, load_dataset

from echo_hf.errors import ReleaseError, SpanError
from echo_hf.hub.card import DEHYDRATED_NOTE
from echo_hf.hub.dehydrate import CHANGED, KEPT, dehydrate, dehydrated
from echo_hf.hub.diff import DRIFTS, Cause, diff
from echo_hf.hub.redistribution import without_words
from echo_hf.hub.release import (
    read_release,
    released_facts,
    unpacked,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from echo_hf.samples.spans import SourceSpan
from echo_hf.tables import SAMPLES, TABLES
from tests.hub.quickstart_release import CORPUS, Row, built, by_id, copied, released

WORD = re.compile(r"\w+")
ADDRESS = re.compile(r"https?://\S+")
# Counts of the card, whose words hostile posts use as well.
OWN_WORDS = (DEHYDRATED_NOTE.template, "pictures 4", "2 feedback")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a build in `runs/quickstart` and its dehydrated release in `dry`."""
    folder = tmp_path_factory.mktemp("dehydrate")
    dehydrate(built(folder) / "release", folder / "dry")
    return folder


@pytest.fixture
def full(folder: Path) -> Path:
    """The release with everything in it."""
    return folder / "runs" / "quickstart" / "release"


@pytest.fixture
def dry(folder: Path) -> Path:
    """The release that may be passed on."""
    return folder / "dry"


def posts() -> list[Row]:
    """The posts of the bundled corpus."""
    return list(map(json.loads, (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()))


def is_x(urls: Iterable[str]) -> bool:
    """Whether one of some addresses is of X, by its looks."""
    return any(url.startswith("https://x.com/") for url in urls)


def runs_of_words(texts: Iterable[str], length: int) -> set[str]:
    """So many words in a row, whatever stands between them; addresses and counts are none."""
    found: set[str] = set()
    for text in texts:
        words = WORD.findall(ADDRESS.sub(" ", text).casefold())
        found |= {" ".join(words[at : at + length]) for at in range(len(words) - length + 1)}
    return {run for run in found if not run.replace(" ", "").isdigit()}


def posted(some: Iterable[Row]) -> list[str]:
    """What posts say, and how their images are described."""
    described = [one.get("alt_text") or "" for post in some for one in post.get("pictures") or []]
    return [*(post.get("text") or "" for post in some), *described]


def strings(value: Any) -> Iterator[str]:
    """All texts in a value, those in JSON without its escapes."""
    if isinstance(value, dict | list):
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from strings(one)
    elif isinstance(value, str):
        inner: Any = None
        with suppress(ValueError):
            inner = json.loads(value)
        yield from strings(inner) if isinstance(inner, dict | list) else [value]


def texts_of(release: Path) -> list[str]:
    """What a release says: values of its tables, card, counts, manifest and `eval.yaml`."""
    beside = [path for path in release.iterdir() if path.is_file()]
    assert {path.name for path in beside} == {
        "README.md", "eval.yaml", "manifest.json", "stats.json",
    }  # fmt: skip
    return list(strings([released(release), *(path.read_text("utf-8") for path in beside)]))


def contents(release: Path) -> Iterator[bytes]:
    """The bytes of a release's files, those of Parquet also without any packing."""
    for path in sorted(release.rglob("*")):
        if path.is_file():
            yield path.read_bytes()
        if path.suffix == ".parquet":
            plain = io.BytesIO()
            table = pq.read_table(path)
            pq.write_table(table, plain, compression="none", use_dictionary=False)
            yield plain.getvalue()
            yield from (unescaped(row["provenance"]) for row in table.to_pylist())


def unescaped(text: str) -> bytes:
    """JSON without the escapes that spell letters of other scripts."""
    return json.dumps(json.loads(text), ensure_ascii=False).encode()


def found(release: Path, wanted: Iterable[bytes]) -> set[bytes]:
    """Those of some bytes that stand in a release."""
    every = b"\0".join(contents(release))
    return {one for one in wanted if one in every}


def test_samples_of_x_are_dehydrated_and_no_others(full: Path, dry: Path) -> None:
    """A row whose posts, or whose feedback, come from X."""
    rows, before = released(dry), released(full)
    for name, some in before.items():
        assert [row["id"] for row in rows[name]] == [row["id"] for row in some]
        for old, new in zip(some, rows[name], strict=True):
            urls = [*old["post_urls"], *(one["post_url"] for one in old["community_feedback"])]
            assert new["dehydrated"] is is_x(urls)
            assert is_x(urls) or new == old
    counts = {name: each.dehydrated for name, each in read_release(dry).manifest.configs.items()}
    assert counts == {"image_to_image": 8, "text_to_image": 22, "analysis": 37}


@pytest.fixture(scope="module")
def without_x(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the posts that are not of X: what is said in it is said in none of them."""
    folder = tmp_path_factory.mktemp("without")
    kept = copied(folder / "posts", lambda post: None if is_x([post["url"]]) else post)
    return built(folder / "build", kept) / "release"


@pytest.mark.parametrize("length", [2, 3, 5])
def test_no_words_of_x_are_in_any_text(full: Path, dry: Path, without_x: Path, length: int) -> None:
    """So many words in a row of a post of X stand nowhere, but where others say them, or we do."""
    theirs = [post for post in posts() if is_x([post["url"]])]
    others = [post for post in posts() if post not in theirs]
    ours = runs_of_words([*posted(others), *texts_of(without_x), *OWN_WORDS], length)
    wanted = runs_of_words(posted(theirs), length) - ours
    assert len(wanted) > 500
    assert runs_of_words(texts_of(dry), length) & wanted == set()
    assert len(runs_of_words(texts_of(full), length) & wanted) > 100


def test_the_card_repeats_no_post(full: Path, dry: Path) -> None:
    """It is that of the whole release with a note, sizes and counts of images apart."""
    numbers = re.compile(r"[\d,]+")
    before, after = (
        numbers.sub("0", (release / "README.md").read_text("utf-8")).splitlines()
        for release in (full, dry)
    )
    new = [line for line in after if line not in before]
    assert [line[:32] for line in new] == [
        "**Posts that are not repeated he",
        "```bash",
        "echo-hf hydrate FOLDER --posts p",
    ]


def test_no_image_of_x_is_in_any_byte(full: Path, dry: Path) -> None:
    """Neither whole nor its first bytes."""
    theirs, others = set(), set()
    for post in posts():
        for one in post.get("pictures") or []:
            if "path" in one:
                data = (CORPUS / one["path"]).read_bytes()
                (theirs if is_x([post["url"]]) else others).add(data[:256])
    assert found(dry, theirs - others) == set()
    assert len(found(full, theirs - others)) > 20


def test_a_dehydrated_row_has_neither_words_nor_images(dry: Path) -> None:
    """What stood there is null or empty; what was found out is there."""
    rows = [row for row in by_id(dry).values() if row["dehydrated"]]
    for row in rows:
        assert (row["prompt"], row["screenshot"]) == (None, None)
        assert row["input_images"] == row["output_images"] == []
        assert [one["feedback"] for one in row["community_feedback"] if one["feedback"]] == []
        assert len(row["prompt_sha256"]) == 64
    assert sum(bool(row["prompt_spans"]) for row in rows) == len(rows) == 37
    assert {row["quality"] for row in rows} == {"Benchmark", "Analysis"}
    assert any(one["verdict"] for row in rows for one in row["community_feedback"])


def test_every_column_is_decided_on() -> None:
    """A new column of samples is left out until somebody says that it holds nothing posted."""
    assert set(SAMPLES.columns) == KEPT | CHANGED
    assert not KEPT & CHANGED


def test_dehydrating_twice_changes_nothing(dry: Path, tmp_path: Path) -> None:
    """Neither a row nor a release."""
    for row in by_id(dry).values():
        if row["dehydrated"]:
            assert dehydrated(row) == row
    again = dehydrate(dry, tmp_path / "again")
    assert again.manifest == read_release(dry).manifest


def test_a_row_without_noted_sources_is_dehydrated_all_the_same(full: Path) -> None:
    """What nobody noted cannot be put back; it is left out nevertheless, with its digest."""
    row = next(row for row in by_id(full).values() if row["community_feedback"])
    silent = [{**one, "sha256": None, "spans": None} for one in row["community_feedback"]]
    bare = {
        **row,
        "prompt_sha256": None,
        "prompt_spans": None,
        "picture_sources": None,
        "community_feedback": silent,
    }
    dry_row = dehydrated(bare)
    assert dry_row["prompt_sha256"] == row["prompt_sha256"]
    assert [one["sha256"] for one in dry_row["community_feedback"]] == [
        one["sha256"] for one in row["community_feedback"]
    ]
    assert (dry_row["prompt_spans"], dry_row["picture_sources"]) == (None, None)


def test_datasets_loads_a_dehydrated_release(dry: Path, tmp_path: Path) -> None:
    """Null prompts and absent images are what they are; signatures and boxes are read."""
    loaded = load_dataset(str(dry), "image_to_image", split="test", cache_dir=str(tmp_path))
    assert loaded["prompt"].count(None) == 8
    (cut,) = [row for row in loaded if row["is_screenshot"]]
    boxes = [one["box"] for one in cut["picture_sources"] if one["of"]]
    assert boxes == [[int(side) for side in box] for box in
                     [*cut["input_bboxs"], *cut["output_bboxs"]]]  # fmt: skip
    assert all(one["signature"] for one in cut["picture_sources"])


def test_a_stated_right_keeps_everything(full: Path, tmp_path: Path) -> None:
    """Nothing is dehydrated, and the card says why, whatever the statement holds."""
    statement = "written consent, filed as <b>2026-7</b> | $x"
    release = dehydrate(full, tmp_path / "kept", rights={"x": statement})
    assert released(release.path) == released(full)
    card = (release.path / "README.md").read_text("utf-8")
    assert r"Posts from `x` are passed on because: written consent, filed as" in card
    assert r"\<b\>2026-7\</b\> \| \$x" in card
    assert "Posts that are not repeated here" not in card
    assert json.loads((release.path / "manifest.json").read_text("utf-8"))["statements"][
        "rights"
    ] == {"x": statement}
    again = dehydrate(release.path, tmp_path / "again")
    assert released(again.path) == released(full)
    stricter = dehydrate(release.path, tmp_path / "stricter", rights={})
    assert stricter.manifest.configs["analysis"].dehydrated == 37


def test_a_right_to_another_platform_is_none_to_x(full: Path, tmp_path: Path) -> None:
    """Rights are by platform."""
    release = dehydrate(full, tmp_path / "other", rights={"bluesky": "consent"})
    assert release.manifest.configs["analysis"].dehydrated == 37


def test_what_is_written_is_a_release(dry: Path) -> None:
    """With a manifest that fits its files."""
    verify_release(dry)


def test_the_release_itself_is_not_overwritten(full: Path) -> None:
    """It is the only one that holds everything."""
    with pytest.raises(ReleaseError, match="is the release itself"):
        dehydrate(full, full.parent / "." / "release")
    verify_release(full)


def test_a_changed_release_is_refused(full: Path, tmp_path: Path) -> None:
    """Nothing is written."""
    copy = dehydrate(full, tmp_path / "copy", rights={"x": "consent"}).path
    (copy / "README.md").write_text("changed", "utf-8")
    with pytest.raises(ReleaseError, match="has changed"):
        dehydrate(copy, tmp_path / "dry")
    assert not (tmp_path / "dry").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".dry")] == []


def test_a_provenance_that_nobody_can_read_is_refused(full: Path) -> None:
    """Nobody knows what it quotes."""
    row = {**next(iter(by_id(full).values())), "provenance": "a fox in the snow"}
    with pytest.raises(SpanError, match="not a JSON object"):
        dehydrated(row)


@pytest.mark.parametrize("table", ["outputs", "ratings", "comparisons", "applicability", "human"])
def test_other_tables_keep_what_systems_and_judges_made(table: str) -> None:
    """Images, ratings and reasons of failure stay; explanations and rewritten prompts do not."""
    words = {"text", "revised_prompt", "code", "explanation", "rationale"}
    row: dict[str, Any] = dict.fromkeys(TABLES[table].columns, "a fox in the snow")
    if "provenance" in row:
        row["provenance"] = json.dumps({"judge": {"digest": "d", "asked": "a fox in the snow"}})
    left = without_words(table, row)
    assert list(left) == list(row)
    for name, value in left.items():
        assert (value is None) is (name in words), name
    if "provenance" in row:
        assert json.loads(left["provenance"]) == {"judge": {"digest": "d", "asked": None}}


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
    """Wherever a row names it."""
    from echo_hf.hub.redistribution import restricted_platforms

    row = {"post_urls": ["https://bsky.app/profile/a/post/1"], **values}
    assert restricted_platforms(row) == ["x"]
    assert restricted_platforms(row, {"x"}) == []
    assert restricted_platforms({**row, **dict.fromkeys(values)}) == []


def test_a_table_from_rows_keeps_its_types(dry: Path) -> None:
    """A dehydrated row fits the declared types of the table."""
    rows = [{**row, "screenshot": None} for row in by_id(dry).values() if row["dehydrated"]]
    assert pa.Table.from_pylist(rows, schema=SAMPLES.schema).to_pylist() == rows


@pytest.mark.parametrize("order", [1, -1], ids=["to without words", "and back"])
def test_taking_words_out_is_no_change(full: Path, dry: Path, order: int) -> None:
    """Rows, sources and what made them are the same, and only what both releases say is counted."""
    found = diff(*[full, dry][::order])

    assert (found.added, found.removed, found.changed, found.stages) == ((), (), (), ())
    assert (found.equal, found.remade) == (len(released(full)["analysis"]), 0)
    assert {name: one.distance for name, one in found.drift.items()} == dict.fromkeys(DRIFTS, 0.0)
    (said,) = {one.a for name, one in found.drift.items() if name == "first bigrams"}
    assert 0 < said <= sum(not row["dehydrated"] for row in released(dry)["analysis"])


def test_what_changed_is_told_of_a_row_without_words(full: Path, dry: Path, tmp_path: Path) -> None:
    """By the digests that it has: another prompt, another comment, another image."""
    release = read_release(full)
    store = ImageStore(tmp_path / "pictures")
    configs = dict(unpacked(release, store))
    row = next(
        row
        for row in configs["analysis"].with_format("arrow")[:].to_pylist()
        if row["community_feedback"] and row["output_images"] and is_x(row["post_urls"])
    )
    comment, *comments = row["community_feedback"]
    source, *sources = row["picture_sources"]
    edits = {
        "prompt_sha256": {"prompt": f"{row['prompt']}!", "sample_digest": "0" * 64},
        "community_feedback": {
            "community_feedback": [{**comment, "feedback": "Hm."}, *comments],
        },
        "picture_sources": {"picture_sources": [{**source, "sha256": "0" * 64}, *sources]},
    }
    for number, (column, values) in enumerate(edits.items()):
        analysis = Dataset.from_list([{**row, **values}], features=configs["analysis"].features)
        facts = released_facts(release)
        other = write_release(tmp_path / f"{number}", {"analysis": analysis}, store, facts)
        (changed,) = diff(other.path, dry).changed
        assert column in changed.columns
        assert set(changed.columns) <= {column, "sample_digest"}
        assert changed.causes == (Cause.SOURCE,)
