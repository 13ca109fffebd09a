"""Applying a reviewer's changes to a row of samples."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.decisions import Changes
from echo_hf.curate.edits import edited_sample
from echo_hf.curate.provenance import quotes_in
from echo_hf.samples.sample import sample_digest
from tests.curate.reviewed_rows_for_tests import SHOT, A, B, C, D, cut_row, entry, row


def changes(**values: Any) -> Changes:
    """What a reviewer changed."""
    return Changes.model_validate(values)


def role(digest: str, what: str, **values: Any) -> dict[str, Any]:
    """An image with another role."""
    return {"sha256": digest, "role": what, **values}


def crop(what: str, box: tuple[int, ...], digest: str) -> dict[str, Any]:
    """A part of the screenshot."""
    return {"role": what, "box": box, "sha256": digest}


def test_another_prompt_is_another_task() -> None:
    """Text, digests, spans and whether it was modified follow; nothing else does."""
    span = {"post_url": "u", "field": "text", "start": 3, "end": 8, "text": None}
    changed = changes(prompt={"text": "a fox", "modified": True, "spans": [span]})
    made, findings = edited_sample(row(), changed)
    differing = {name for name, value in row().items() if made[name] != value}

    assert findings == []
    assert differing == {
        "prompt", "prompt_sha256", "prompt_spans", "prompt_modified", "sample_digest",
    }  # fmt: skip
    assert (made["prompt"], made["prompt_modified"]) == ("a fox", True)
    assert made["prompt_sha256"] == hashlib.sha256(b"a fox").hexdigest()
    assert made["prompt_spans"] == [span]
    told = json.dumps(["a fox", [A]])
    assert made["sample_digest"] == hashlib.sha256(told.encode()).hexdigest()


def test_a_template_that_a_reviewer_wrote_is_for_analysis() -> None:
    """A prompt with a blank cannot be drawn, whatever quality it was given."""
    changed = changes(prompt={"text": "a [PET] asleep", "modified": False}, quality="Benchmark")
    assert edited_sample(row(), changed)[0]["quality"] == "Analysis"
    assert edited_sample(row(), changes(quality="Trash"))[0]["quality"] == "Trash"


def test_an_image_takes_its_place_and_its_source_along() -> None:
    """The output becomes an input, behind the one that was there."""
    made, _ = edited_sample(row(), changes(roles=[role(B, "input")]))

    assert (made["input_images"], made["output_images"]) == ([A, B], [])
    assert made["picture_sources"] == [entry(A, "input"), entry(B, "input")]
    assert made["sample_digest"] == sample_digest(row()["prompt"], [A, B])


def test_what_is_neither_leaves_the_sample() -> None:
    """With its entry of the sources."""
    made, _ = edited_sample(row(), changes(roles=[role(A, "neither")]))

    assert (made["input_images"], made["output_images"]) == ([], [B])
    assert made["picture_sources"] == [entry(B, "output")]


def test_an_image_of_the_thread_comes_in_with_its_post() -> None:
    """Where the sample did not have it, the change says which post shows it."""
    added = role(D, "output", post_url="v", url="https://pictures.example/d.png")
    made, findings = edited_sample(row(), changes(roles=[added]))

    assert made["output_images"] == [B, D]
    expected = entry(D, "output", post_url="v", url="https://pictures.example/d.png")
    assert made["picture_sources"][-1] == expected
    assert findings == []


def test_what_another_sample_has_is_not_taken() -> None:
    """Nor what is not there any more; the rest of the change holds, and both are told."""
    changed = changes(quality="Analysis", roles=[role(D, "input", post_url="v"), role(C, "output")])
    made, findings = edited_sample(row(), changed, taken={D})

    assert (made["input_images"], made["output_images"]) == ([A], [B])
    assert made["quality"] == "Analysis"
    assert [str(notice) for notice, _ in findings] == ["edit_not_applied"] * 2


def test_crops_take_the_place_of_crops() -> None:
    """Boxes, images and sources are the new ones; what was posted beside stays behind them."""
    cut = [crop("output", (5, 0, 20, 10), D)]
    changed = changes(crops={"screenshot": SHOT, "inset": 1, "crops": cut})
    made, findings = edited_sample(cut_row(), changed)

    assert (made["input_images"], made["output_images"]) == ([], [D, C])
    assert (made["input_bboxs"], made["output_bboxs"]) == ([], [[5.0, 0.0, 20.0, 10.0]])
    first = made["picture_sources"][0]
    assert (first["of"], first["box"], first["url"]) == (
        SHOT, [6, 1, 19, 9], "https://pictures.example/shot.png",
    )  # fmt: skip
    assert made["picture_sources"][-1]["role"] == "screenshot"
    assert (made["is_screenshot"], findings) == (True, [])


def test_a_screenshot_that_was_not_cut_is_cut_now() -> None:
    """Its images stand in it no longer: the sample may be drawn."""
    raw = row(
        input_images=[], output_images=[], screenshot=SHOT,
        picture_sources=[entry(SHOT, "screenshot")],
    )  # fmt: skip
    changed = changes(crops={"screenshot": SHOT, "crops": [crop("input", (0, 0, 9, 9), D)]})
    made, _ = edited_sample(raw, changed)

    assert (made["is_screenshot"], made["input_images"]) == (True, [D])


def test_boxes_in_another_screenshot_mean_nothing() -> None:
    """The images stay as the new screenshot was cut."""
    changed = changes(crops={"screenshot": D, "crops": [crop("input", (0, 0, 9, 9), A)]})
    made, findings = edited_sample(cut_row(), changed)

    assert made["output_images"] == [B, C]
    assert [detail for _, detail in findings] == ["crops: the sample has another screenshot now"]


def test_trash_that_is_none_leaves_others_their_images() -> None:
    """Nobody looked into Trash: it lists every image of its posts."""
    trash = row(quality="Trash", input_images=[], output_images=[B, C])
    made, _ = edited_sample(trash, changes(quality="Benchmark"), taken={C})

    assert (made["quality"], made["output_images"]) == ("Benchmark", [B])


def test_quotations_of_the_old_prompt_are_looked_up_in_the_new_one() -> None:
    """What the provenance quotes is a place of the new prompt, or cannot be given so."""
    text = hashlib.sha256(b"fox").hexdigest()
    span = {"post_url": None, "field": "prompt", "start": 2, "end": 5, "text": None}
    quoted = [{"path": ["roles", "value"], "sha256": text, "spans": [span]}]
    made_by = {"roles": {"digest": "d", "value": "fox"}, "quoted": quoted}
    sample = row(provenance=json.dumps(made_by))
    moved, lost = (
        edited_sample(sample, changes(prompt={"text": words, "modified": True}))[0]
        for words in ("one red fox", "one red owl")
    )

    (quote,) = quotes_in(moved["provenance"])
    assert [(one["field"], one["start"], one["end"]) for one in quote.spans] == [("prompt", 8, 11)]
    assert quotes_in(lost["provenance"])[0].spans == []


DIGESTS = [letter * 64 for letter in "abcdef012"]
ROLE = st.builds(
    lambda digest, what, there: role(digest, what, post_url="u" if there else None),
    st.sampled_from(DIGESTS),
    st.sampled_from(["input", "output", "neither"]),
    st.booleans(),
)
CROPS = st.none() | st.builds(
    lambda some: {
        "screenshot": SHOT,
        "crops": [crop(what, (n, 0, n + 5, 9), one) for n, (one, what) in enumerate(some.items())],
    },
    st.dictionaries(
        st.sampled_from(["7" * 64, "8" * 64, "9" * 64]), st.sampled_from(["input", "output"])
    ),
)


@given(st.lists(ROLE, max_size=6), CROPS, st.sets(st.sampled_from(DIGESTS)))
def test_an_input_is_never_an_output(roles: list[Any], crops: Any, taken: set[str]) -> None:
    """Whatever is changed: each image once, boxes for the first ones, a source for each."""
    sample = cut_row()
    made, _ = edited_sample(sample, changes(roles=roles, crops=crops), taken)
    shown = [*made["input_images"], *made["output_images"]]
    before = {*sample["input_images"], *sample["output_images"]}

    assert len(shown) == len(set(shown))
    assert not (set(shown) - before) & taken
    for name in ("input", "output"):
        assert len(made[f"{name}_bboxs"]) <= len(made[f"{name}_images"])
    told = [(one["sha256"], one["role"]) for one in made["picture_sources"]]
    pairs = [(one, "input") for one in made["input_images"]]
    pairs += [(one, "output") for one in made["output_images"]]
    assert told == [*pairs, (SHOT, "screenshot")]
    cut = [one["box"] is not None for one in made["picture_sources"]]
    assert sum(cut) == len(made["input_bboxs"]) + len(made["output_bboxs"])
