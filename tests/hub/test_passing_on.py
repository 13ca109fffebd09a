"""Every row of every config is looked at, whatever it says of itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset

from echo_hf.errors import ReleaseError
from echo_hf.hub.dehydrate import dehydrate
from echo_hf.hub.facts import CONFIGS, ReleaseFacts
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.publish import passed_on, to_leave_out
from echo_hf.hub.release import Release, read_release, unpacked, write_release
from echo_hf.images.store import ImageStore
from tests.hub.conftest import sample
from tests.hub.quickstart_release import Row, built, copied, entry, released

X = "https://x.com/i/status/99"
OTHER = "https://bsky.app/profile/did:plc:abc/post/3k"
WORDS = "a heron in yellow boots"
Write = Callable[..., Release]


def rows_of_table(config: str, rows: Sequence[Mapping[str, Any]]) -> Dataset:
    """Rows of a config; what is not given is null."""
    table = CONFIGS[config].table
    full = [{**dict.fromkeys(table.columns), **row} for row in rows]
    return Dataset(pa.Table.from_pylist(full, schema=table.features.arrow_schema))


@pytest.fixture
def write(tmp_path: Path, images: ImageStore, facts: ReleaseFacts) -> Write:
    """A function that writes a release of rows by config."""

    def written(**rows: Sequence[Mapping[str, Any]]) -> Release:
        configs = {name: rows_of_table(name, some) for name, some in rows.items()}
        return write_release(tmp_path / "release", configs, images, facts)

    return written


def passed(release: Release) -> dict[str, list[Row]]:
    """The rows of a release as they are passed on."""
    with passed_on(release) as copy:
        return released(copy.path)


def of_words(**values: Any) -> Row:
    """A sample of X that starts from words alone."""
    shown = values.get("output_images", [])
    noted = [{"sha256": digest, "role": "output", "post_url": X} for digest in shown]
    values = {"prompt": WORDS, "provenance": "{}", "picture_sources": noted, **values}
    return sample(0, post_urls=[X], **values)


def an_answer(key: str, sources: list[str] | None) -> Row:
    """A stored answer of a model that read these posts."""
    return {"request_key": key * 64, "text": f"prompt: {WORDS}", "sources": sources}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a build, its dry release, and this one put back without its images."""
    folder = tmp_path_factory.mktemp("partly")
    dehydrate(built(folder) / "release", folder / "dry")
    posts = copied(folder / "bare", lambda post: {**post, "pictures": []})
    hydrate(folder / "dry", folder / "partly", [entry(posts)])
    return folder


def test_a_release_that_was_put_back_in_part_is_left_out_again(folder: Path) -> None:
    """Its rows still say that they are dehydrated, and hold the prompts of X."""
    partly = read_release(folder / "partly")
    rows = [row for some in released(partly.path).values() for row in some]
    held = [row for row in rows if row["dehydrated"] and row["prompt"] is not None]
    assert len(held) > 10
    assert to_leave_out(partly) >= len(held)
    assert passed(partly) == released(folder / "dry")
    assert to_leave_out(read_release(folder / "dry")) == 0


@pytest.mark.parametrize(
    "values",
    [
        {"prompt": WORDS},
        {"community_feedback": [{"post_url": X, "feedback": WORDS}]},
        {"provenance": json.dumps({"roles": {"template": WORDS}})},
        {"output_images": ["png"]},
        {"screenshot": "png"},
    ],
)
def test_one_thing_that_is_held_is_enough(
    write: Write, digests: Mapping[str, str], values: Row
) -> None:
    """A prompt, a comment, a quotation, or an image in a row that says it holds none."""
    shown = {"output_images": [digests["png"]], "screenshot": digests["png"]}
    values = {name: shown.get(name, value) for name, value in values.items()}
    row = {**sample(0, post_urls=[X], provenance="{}", dehydrated=True), **values}
    release = write(analysis=[row])
    assert to_leave_out(release) == 1
    (left,) = passed(release)["analysis"]
    assert (left["prompt"], left["output_images"], left["screenshot"]) == (None, [], None)
    assert WORDS not in str(left)


def test_an_answer_about_posts_of_x_is_not_passed_on_without_samples_of_x(write: Write) -> None:
    """Neither is one about nobody knows which posts; both are counted, on the card as well."""
    answers = [
        an_answer("a", [X]), an_answer("b", [OTHER]), an_answer("c", None), an_answer("d", []),
        an_answer("e", ["https://nitter.net/mira/status/99"]),
    ]  # fmt: skip
    release = write(analysis=[sample(0, post_urls=[OTHER], prompt="A hat")], responses=answers)
    assert to_leave_out(release) == 4
    with passed_on(release) as copy:
        rows = released(copy.path)
        assert copy.stats["left_out"]["responses"] == {"may_quote": 4}
        card = (copy.path / "README.md").read_text("utf-8")
    assert [row["request_key"][0] for row in rows["responses"]] == ["b"]
    assert rows["analysis"][0]["prompt"] == "A hat"
    assert "4 rows of `responses` (it may repeat posts that must not be passed on)" in card


def test_a_stated_right_passes_on_answers_about_unknown_posts(
    write: Write, facts: ReleaseFacts, images: ImageStore, tmp_path: Path
) -> None:
    """There is nothing left that they could repeat without a right."""
    rows = rows_of_table("responses", [an_answer("a", None), an_answer("b", [X])])
    owned = replace(facts, rights={"x": "consent"})
    release = write_release(tmp_path / "owned", {"responses": rows}, images, owned)
    assert to_leave_out(release) == 0
    assert len(passed(release)["responses"]) == 2


def an_output(system: str, image: str | None, number: int = 0) -> Row:
    """What a system made of a sample, and what its server said."""
    made = {"sample_id": f"sample{number}", "system": system, "image": image, "outcome": "ok"}
    return {**made, "text": WORDS, "code": WORDS, "revised_prompt": WORDS, "provenance": "{}"}


@pytest.fixture
def beside(write: Write, digests: Mapping[str, str]) -> Release:
    """Outputs, ratings and reasons about a drawing, an edit and an image of another platform."""
    png, jpg, webp = digests["png"], digests["jpg"], digests["webp"]
    edit = sample(1, post_urls=[X], prompt=WORDS, provenance="{}", input_images=[jpg])
    free = sample(2, post_urls=[OTHER], prompt="A hat", provenance="{}")
    outputs = [
        an_output("draws", webp), an_output("repeats", png), an_output("edits", webp, 1),
        an_output("gives back", jpg, 1), an_output("draws", png, 2), an_output("lost", webp, 9),
    ]  # fmt: skip
    about = [{"sample_id": f"sample{number}"} for number in (0, 1, 2)]
    return write(
        text_to_image=[of_words(output_images=[png])],
        image_to_image=[edit],
        analysis=[of_words(output_images=[png]), edit, free],
        outputs=outputs,
        ratings=[{**one, "rating": 7.0, "explanation": WORDS} for one in about],
        applicability=[{**one, "text_rendering": True, "rationale": WORDS} for one in about],
        responses=[an_answer("a", [X])],
    )


def test_only_images_drawn_from_words_alone_stay(
    beside: Release, digests: Mapping[str, str]
) -> None:
    """A posted image that is given back, and any edit, may repeat what was posted."""
    rows = passed(beside)["outputs"]
    shown = {(row["sample_id"], row["system"]): row["image"] is not None for row in rows}
    assert shown == {
        ("sample0", "draws"): True,
        ("sample0", "repeats"): False,
        ("sample1", "edits"): False,
        ("sample1", "gives back"): False,
        ("sample2", "draws"): True,
        ("sample9", "lost"): False,  # about a sample that nobody knows
    }


def test_ratings_stay_and_what_was_said_does_not(beside: Release) -> None:
    """Of samples of X; what was said of others is there."""
    rows = passed(beside)
    assert [row["rating"] for row in rows["ratings"]] == [7.0] * 3
    assert [row["explanation"] for row in rows["ratings"]] == [None, None, WORDS]
    assert [row["rationale"] for row in rows["applicability"]] == [None, None, WORDS]
    assert {row["code"] for row in rows["outputs"] if row["sample_id"] != "sample2"} == {None}
    assert rows["responses"] == []
    # 4 rows of samples and their outputs, which are 5, 2 ratings, 2 reasons, 1 answer
    assert to_leave_out(beside) == 4 + 5 + 2 + 2 + 1


def test_what_is_left_out_beside_is_counted_once(beside: Release, tmp_path: Path) -> None:
    """In the counts and on the card; doing it again changes nothing."""
    dry = dehydrate(beside.path, tmp_path / "dry")
    again = dehydrate(dry.path, tmp_path / "again")
    assert dry.stats["left_out"] == {
        "outputs": {"silenced": 5},
        "ratings": {"silenced": 2},
        "applicability": {"silenced": 2},
        "responses": {"may_quote": 1},
    }
    assert again.manifest == dry.manifest
    assert to_leave_out(dry) == 0
    card = (dry.path / "README.md").read_text("utf-8")
    assert "2 rows of `ratings` (only the texts and images in them" in card
    assert "In 1 row of `image_to_image`, 1 row of `text_to_image` and 2 rows of `analysis`" in card


def test_the_report_of_what_is_put_back_says_what_is_not(beside: Release, tmp_path: Path) -> None:
    """Explanations and answers do not come back with the posts."""
    dry = dehydrate(beside.path, tmp_path / "dry")
    posts = copied(tmp_path / "posts", lambda post: post)
    hydration = hydrate(dry.path, tmp_path / "wet", [entry(posts)])
    written = json.loads((hydration.release.path / "hydration.json").read_text("utf-8"))
    assert written["beside"] == dry.stats["left_out"]


def test_the_card_claims_no_explanations_that_are_not_there(write: Write, tmp_path: Path) -> None:
    """Where each of them is null, it says so."""
    release = write(
        analysis=[of_words()],
        ratings=[{"sample_id": "sample0", "rating": 7.0, "explanation": WORDS}],
    )
    before = (release.path / "README.md").read_text("utf-8")
    dry = dehydrate(release.path, tmp_path / "dry")
    after = (dry.path / "README.md").read_text("utf-8")
    assert "xplanations in `ratings` were written by judges" in before
    assert "xplanations in `ratings` were written by judges" not in after
    assert "ratings were given by judges, whose explanations are left out" in after


def test_an_unknown_config_is_one_line(write: Write, images: ImageStore) -> None:
    """A stranger's manifest may name any."""
    release = write(analysis=[of_words()])
    configs = {"analyses": release.manifest.configs["analysis"]}
    strange = replace(release, manifest=release.manifest.model_copy(update={"configs": configs}))
    with pytest.raises(ReleaseError, match="unknown config 'analyses'; did you mean 'analysis'"):
        unpacked(strange, images)
    with pytest.raises(ReleaseError, match="unknown config 'analyses'"):
        to_leave_out(strange)
