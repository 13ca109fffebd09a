"""Two releases compared: what came, what left, what changed and why."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.console import Console
from scipy.spatial.distance import cityblock

from echo_hf.cli.build_view import show_diff
from echo_hf.errors import ReleaseError
from echo_hf.hub.diff import Cause, ReleaseDiff, compare_releases, diff, first_bigram, measure_drift
from echo_hf.hub.facts import ReleaseFacts, SampleCounts
from echo_hf.hub.publish import build_contents, describe_changes
from echo_hf.hub.release import Release
from echo_hf.tables import SAMPLES
from tests.hub.conftest import Write
from tests.markdown_for_tests import cells, shown, split

OLD, NEW = "a" * 64, "b" * 64
QWEN = {"kind": "vllm", "model": "acme/small"}
LARGE = {"kind": "vllm", "model": "acme/large"}
Row = dict[str, Any]
Tell = Callable[..., Release]


def made(digest: str = OLD, engine: Mapping[str, Any] = QWEN) -> str:
    return json.dumps({"extract": {"digest": digest, "engine": engine}})


def row(name: str, **values: Any) -> Row:
    full: Row = dict.fromkeys(SAMPLES.columns)
    full |= {column: [] for column in ("input_images", "output_images", "community_feedback")}
    full |= {"id": name, "post_urls": [f"u-{name}"], "prompt": f"draw a {name}"}
    return full | {"sample_digest": f"digest of {name}", "provenance": made()} | values


@pytest.fixture
def tell(write: Write) -> Tell:
    """Writes a release of these samples; the first are of the benchmark."""

    def told(
        name: str, benchmark: list[Row], analysis: list[Row] | None = None, **more: Any
    ) -> Release:
        rows = {"text_to_image": benchmark, "analysis": [*benchmark, *(analysis or [])]}
        configs = {
            config: Dataset.from_list(some, features=SAMPLES.features)
            for config, some in rows.items()
        }
        origin = {"extract": {"digest": OLD, "engine": QWEN, "prompt": "c" * 64}}
        return write(name, configs, **{"provenance": origin, **more})

    return told


def test_samples_are_compared_by_id(tell: Tell) -> None:
    # Counts of a post grow by themselves.
    likes = dict.fromkeys(("views", "reposts", "replies", "bookmarks")) | {"likes": 3}
    a = tell("a", [row("fox"), row("hat")], [row("cat")])
    b = tell("b", [row("hat", engagement=likes), row("owl")], [row("cat", prompt="two cats")])
    found = compare_releases(a, b)
    assert (found.added, found.removed) == (("owl",), ("fox",))
    # Without any other reason a change comes from the sources.
    (cat,) = found.changed
    assert (cat.id, cat.columns, cat.causes) == ("cat", ("prompt",), (Cause.SOURCE,))
    assert found.equal == 1
    assert (found.configs["analysis"].a, found.configs["analysis"].b) == (3, 3)

    same = diff(a.path, str(a.path))
    assert (same.added, same.removed, same.changed, same.equal) == ((), (), (), 3)
    assert (same.causes, same.stages, same.remade) == ({}, (), 0)
    assert all(change.equal for change in same.configs.values())
    assert same.drift["first bigrams"].distance == 0
    assert "the same samples" in same.scores.verdict("text_to_image")


def test_other_posts_or_images_are_a_change_of_sources(
    tell: Tell, digests: Mapping[str, str]
) -> None:
    changes: dict[str, Row] = {
        "fox": {"doubts": ["lacks_input"]},
        "hat": {"post_urls": ["u-hat", "u-reply"]},
        "cat": {"community_feedback": [{"post_url": "u-new", "feedback": "x"}]},
        "owl": {"output_images": [digests["png"]]},
        "elk": {"screenshot": digests["png"]},
    }
    a = tell("a", [row(name) for name in changes])
    b = tell("b", [row(name, **values) for name, values in changes.items()])
    found = {one.id: (one.columns, one.causes) for one in compare_releases(a, b).changed}
    assert found == {name: ((*values,), (Cause.SOURCE,)) for name, values in changes.items()}


def test_what_changed_in_a_stage_is_named(tell: Tell) -> None:
    was = {"digest": OLD, "engine": QWEN, "prompt": "c" * 64}
    changes: dict[tuple[Cause, ...], Row] = {
        (Cause.MODEL,): {"engine": LARGE},
        (Cause.PROMPT,): {"prompt": "d" * 64},
        (Cause.MODEL, Cause.PROMPT): {"engine": LARGE, "prompt": "d" * 64},
        (Cause.CODE_OR_OPTIONS,): {},
        (Cause.STAGE,): {"prompt": None},
    }
    stages = {
        "+".join(causes): {**was, **values, "digest": NEW} for causes, values in changes.items()
    }

    def made_by(origins: Mapping[str, Row], **values: Any) -> list[Row]:
        made = {
            name: json.dumps({name: {"digest": one["digest"], "engine": one["engine"]}})
            for name, one in origins.items()
        }
        return [row(name, provenance=told, **values) for name, told in made.items()]

    before = dict.fromkeys(stages, was)
    a = tell("a", [*made_by(before), row("hat", provenance=made())], provenance=before)
    rows = [*made_by(stages, prompt="red"), row("hat", provenance=made(NEW))]
    found = compare_releases(a, tell("b", rows, provenance=stages))
    causes = {"+".join(one): one for one in changes}
    assert {sample.id: sample.causes for sample in found.changed} == causes
    assert {change.stage: change.causes for change in found.stages} == causes
    assert (found.equal, found.remade) == (1, 1)
    # A row of an earlier run is not blamed on the prompt of the stage now.
    earlier = tell("c", [row("hat", prompt="red", provenance=made(NEW))], provenance=before)
    assert compare_releases(a, earlier).changed[0].causes == (Cause.STAGE,)


def test_a_sample_that_moved_is_a_change_of_selection(tell: Tell) -> None:
    """And broken provenance no obstacle."""
    a = tell("a", [row("fox", provenance="no json"), row("hat", provenance=None)])
    b = tell("b", [row("fox", provenance="[1]")], [row("hat", provenance='{"quoted": []}')])
    found = compare_releases(a, b)
    (sample,) = found.changed
    assert (sample.id, sample.columns, sample.causes) == ("hat", (), (Cause.SELECTION,))
    assert (sample.left, sample.joined) == (("text_to_image",), ())
    assert (found.equal, found.remade) == (1, 1)


def counts(**languages: int) -> dict[str, SampleCounts]:
    nothing: Row = {"platforms": {}, "tasks": {}, "authors": 0}
    nothing |= {"repeated_authors": 0, "unknown_authors": 0}
    total = sum(languages.values())
    return {"all": SampleCounts(samples=total, languages=languages, **nothing)}


def test_drift_is_counted_over_samples(tell: Tell) -> None:
    said = [{"keyword": "too blue"}, {"keyword": None}]
    a = tell("a", [row("fox", task="edit"), row("hat", task="edit")], measured=counts(en=3, ja=1))
    b = tell(
        "b",
        [row("fox", task="edit"), row("hat", task="composition", prompt="make a hat")],
        [row("cat", community_feedback=said)],
        measured=counts(en=1, ja=1),
    )
    found = compare_releases(a, b).drift
    assert {name: one.distance for name, one in found.items()} == {
        "languages": pytest.approx(0.25),
        "first bigrams": pytest.approx(1 / 3),
        "tasks": pytest.approx(0.5),
        "failure keywords": None,
    }
    assert found["first bigrams"].movers[0].name in ("draw a", "make a")
    assert (found["failure keywords"].a, found["failure keywords"].b) == (0, 1)


def test_scores_compare_on_what_both_releases_share(tell: Tell) -> None:
    a = tell("a", [row("fox"), row("hat"), row("owl")])
    b = tell("b", [row("fox"), row("hat", sample_digest="other"), row("cat")])
    found = compare_releases(a, b).scores
    shared = found.configs["text_to_image"]
    assert (shared.shared, shared.a, shared.b) == (1, 2, 2)
    assert "on the samples that both have (1)" in found.verdict("text_to_image")
    assert "no sample is in both" in found.verdict("image_to_image")
    other = replace(found, same_protocol=False)
    assert "protocols differ" in other.verdict("text_to_image")
    assert (
        compare_releases(a, tell("p", [row("fox")], protocol="published")).scores.same_protocol
        is False
    )


def test_no_image_is_read(
    tell: Tell, digests: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = {"input_images": [digests["jpg"]], "output_images": [digests["png"]]}
    release = tell("a", [row("fox", screenshot=digests["webp"], **images)])
    asked: list[str] = []
    read = pq.ParquetFile.iter_batches

    def watched(self: Any, rows: int, groups: Any, columns: list[str], **more: Any) -> Any:
        asked.extend(columns)
        return read(self, rows, groups, columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    assert compare_releases(release, release).equal == 1
    assert "output_images.list.element.path" in asked
    assert not [name for name in asked if name.endswith(".bytes")]


def test_a_damaged_release_is_one_line(tell: Tell, tmp_path: Path) -> None:
    release = tell("a", [row("fox")])
    (release.path / "analysis/test-00000-of-00001.parquet").write_bytes(b"PAR1 cut")
    with pytest.raises(ReleaseError, match=r"analysis/test-00000.*download the release again"):
        diff(release.path, release.path)
    with pytest.raises(ReleaseError, match="no release in"):
        diff(tmp_path / "nowhere", release.path)


HOSTILE = "[red]|x\x1b[31m <b> \n# h"


@pytest.fixture
def found(tell: Tell, facts: ReleaseFacts) -> ReleaseDiff:
    a = tell("a", [row("fox"), row("hat", task="edit"), row("old")])
    b = tell(
        "b",
        [row("fox", prompt="make it", provenance=made(NEW, LARGE)), row("new")],
        [row("hat", task=HOSTILE)],
        provenance={"extract": {"digest": NEW, "engine": LARGE, "prompt": "c" * 64}},
        target=facts.target.model_copy(update={"name": "Other [x]"}),
    )
    return compare_releases(a, b)


def test_the_terminal_shows_all_parts(found: ReleaseDiff) -> None:
    out = io.StringIO()
    show_diff(Console(file=out, width=120, force_terminal=False), found)
    text = out.getvalue()
    for said in (
        "a → b",
        "of different targets: Pixelbloom and Other [x]",
        "fox (prompt), hat (task)",
        "another engine",
        "model: acme/small → acme/large",
        "scores on text_to_image: comparable on the samples that both have (1)",
        "[red]|x[31m <b> # h +100.0",
    ):
        assert said in text, said
    assert "not counted" not in text  # neither names a failure
    assert "\x1b" not in text


def test_the_json_holds_the_whole_comparison(found: ReleaseDiff) -> None:
    data = json.loads(json.dumps(found.to_json()))
    assert data["added"] == ["new"]
    assert data["removed"] == ["old"]
    assert [sample["id"] for sample in data["changed"]] == ["fox", "hat"]
    assert data["causes"] == {"source": 1, "model": 1}
    assert data["stages"][0]["b"]["engine"] == LARGE
    assert data["scores"]["configs"]["text_to_image"]["shared"] == 1


def test_the_card_says_what_changed(found: ReleaseDiff, tell: Tell) -> None:
    """The last section of the card is replaced, its rest stays, and the text stays text."""
    release = tell("c", [row("fox")])

    def card(since: str | None) -> str:
        data = build_contents(release, "o/n", "v1", since)["README.md"].source
        assert isinstance(data, bytes)
        return data.decode()

    before, after = card(None), card(describe_changes(found))
    kept, _, section = split(after)[1].partition("## Changes since the last revision")
    assert split(before)[1].startswith(kept)
    assert split(before)[0] == split(after)[0]
    assert "Samples, compared with a: 1 added, 1 removed, 2 changed, 0 equal." in shown(section)
    assert ["model", "1"] in [line[:2] for line in cells(section)]
    assert ["languages", "not counted", ""] in cells(section)
    drifted = next(line[2] for line in cells(section) if line[0] == "tasks")
    assert drifted.endswith(f"{' '.join(HOSTILE.split())} +100.0, edit -100.0")


COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 50))


def as_array(counts: dict[str, int]) -> np.ndarray:
    values = np.array([counts.get(name, 0) for name in "abcdef"], float)
    return values / values.sum()


@given(COUNTS, COUNTS)
def test_the_distance_is_half_the_city_block_distance_of_shares(
    a: dict[str, int], b: dict[str, int]
) -> None:
    assume(sum(a.values()) and sum(b.values()))
    found = measure_drift(a, b)
    assert found.distance == pytest.approx(cityblock(as_array(a), as_array(b)) / 2)
    assert found.distance == pytest.approx(measure_drift(b, a).distance)
    assert 0 <= found.distance <= 1 + 1e-12


def test_nothing_counted_has_no_distance() -> None:
    for a, b in (({}, {"x": 1}), ({"x": 1}, {}), ({"x": 0}, {})):
        assert (measure_drift(a, b).distance, measure_drift(a, b).movers) == (None, ())


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("“Make  THIS one!”", "make this"),
        ("ÉTÉ straße", "été strasse"),
        ("雨の夜の街", "雨 の"),
        ("a雨", "a 雨"),
        ("한국어 그림 그려줘", "한국어 그림"),
        ("draw_me now", "draw me"),
        ("🙂 🙂 cat", None),
        ("", None),
    ],
)
def test_the_first_two_words(prompt: str, words: str | None) -> None:
    assert first_bigram(prompt) == words
