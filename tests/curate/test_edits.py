"""What a reviewer changes: checked, applied to a row, and to the table."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.review import build_decision
from echo_hf.curate.decisions import Changes, Decision, ReviewDecisions
from echo_hf.curate.edits import SampleEdit, apply_changes, apply_decisions, check_edit
from echo_hf.curate.provenance import read_quotes
from echo_hf.curate.splits import Splits
from echo_hf.errors import ReviewError
from echo_hf.images.store import ImageStore
from echo_hf.samples.sample import sample_digest
from echo_hf.tables import SAMPLES
from tests.curate.reviewed_rows_for_tests import (
    PROMPT,
    SHOT,
    A,
    B,
    C,
    D,
    after,
    cut_row,
    decision,
    drawn,
    entry,
    files,
    part,
    pixels,
    row,
)
from tests.samples_for_tests import post

TEXT = f"Look what I made! Prompt: {PROMPT} - it took a minute"


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "pictures")


def context(*images: str) -> list[dict[str, Any]]:
    shown = [
        {"sha256": one, "url": f"https://p.example/{one[0]}", "alt_text": None} for one in images
    ]
    return [{**post(0, -1, TEXT), "pictures": shown}, post(1, 0, "so soft, so red")]


def checked(store: ImageStore, sample: dict[str, Any] | None = None, **wanted: Any) -> Changes:
    made = check_edit(sample or row(), context(A, B, C, D), SampleEdit(**wanted), store, {D})
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("prompt", "modified"),
    [
        ("a fox in the snow", False),
        ("a fox in the snow, so soft, so red", False),
        ("a wolf in the snow", True),
    ],
)
def test_whether_a_prompt_was_modified_is_computed(
    store: ImageStore, prompt: str, modified: bool
) -> None:
    """From what people wrote in the thread, and never from what the reviewer thinks."""
    made = checked(store, prompt=f"  {prompt}\n")
    assert made.prompt is not None
    assert (made.prompt.text, made.prompt.modified) == (prompt, modified)
    assert made.sample_digest == row(prompt=prompt)["sample_digest"]
    first = made.prompt.spans[0]
    assert modified or TEXT[first.start : first.end].startswith("a fox in the snow")


def test_what_is_as_it_was_is_no_change(store: ImageStore) -> None:
    wanted = SampleEdit(f"{PROMPT} ", "Benchmark", {A: "input", C: "neither"})
    assert check_edit(row(), context(A, B, C), wanted, store) is None
    assert check_edit(row(), context(), SampleEdit(), store) is None


def test_an_image_of_the_thread_is_found_with_its_post(store: ImageStore) -> None:
    (role,) = checked(store, roles={C: "output", A: "input"}).roles
    where = (context()[0]["url"], "https://p.example/c")
    assert (role.sha256, role.role, role.post_url, role.url) == (C, "output", *where)


def test_a_crop_is_cut_from_the_screenshot(store: ImageStore) -> None:
    shot = drawn(store)
    sample = row(screenshot=shot)
    boxes = [("output", (20, 5, 40, 20)), ("input", (0, 0, 15, 20))]
    change = checked(store, sample, crops=boxes).crops
    assert change is not None

    assert [(one.role, one.box) for one in change.crops] == [boxes[1], boxes[0]]
    for one in change.crops:
        assert pixels(store, one.sha256) == part(store, shot, one.box)


NOTHING, NO_WORD = (0, 0, 9, 9), "has no word: expected one, or remove the sample"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"prompt": "\u200b\u200d\ufe0f\u3164"}, NO_WORD),
        ({"prompt": "a fox\x00"}, "has the control character '\\x00': take it out"),
        ({"prompt": "x" * 12_001}, "at most 12000 characters"),
        ({"prompt": "a fox \ud800"}, "valid string"),
        ({"quality": "Good"}, "quality is 'Good'"),
        ({"prompt": "a [PET] asleep", "quality": "Benchmark"}, "is for analysis only"),
        ({"roles": {"../../etc": "input"}}, "no image '../../etc'"),
        ({"roles": {A: "inputs"}}, "role is 'inputs'"),
        ({"roles": {D: "output"}}, "belongs to another sample"),
        ({"crops": [("input", (0, 0, 41, 20))]}, "expected a box inside it"),
        ({"crops": [("input", NOTHING), ("output", NOTHING)]}, "that another box or sample has"),
        ({"crops": [("neither", NOTHING)]}, "role is 'neither'"),
        ({"crops": []}, "no box: expected one at least"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    store: ImageStore, wanted: dict[str, Any], said: str
) -> None:
    shot = drawn(store)
    with pytest.raises(ReviewError) as caught:
        checked(store, row(screenshot=shot, input_bboxs=[[0.0, 0.0, 9.0, 9.0]]), **wanted)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert files(store.root) == {shot}


def test_without_a_screenshot_there_is_nothing_to_cut(store: ImageStore) -> None:
    with pytest.raises(ReviewError, match="has no screenshot"):
        checked(store, crops=[("input", NOTHING)])


def changes(**values: Any) -> Changes:
    return Changes.model_validate(values)


def role(digest: str, what: str, **values: Any) -> dict[str, Any]:
    return {"sha256": digest, "role": what, **values}


def crop(what: str, box: tuple[int, ...], digest: str) -> dict[str, Any]:
    return {"role": what, "box": box, "sha256": digest}


def test_another_prompt_is_another_task() -> None:
    span = {"post_url": "u", "field": "text", "start": 3, "end": 8, "text": None}
    changed = changes(prompt={"text": "a fox", "modified": True, "spans": [span]})
    told = json.dumps(["a fox", [A]])
    assert apply_changes(row(), changed) == (
        {
            **row(),
            "prompt": "a fox",
            "prompt_sha256": hashlib.sha256(b"a fox").hexdigest(),
            "prompt_spans": [span],
            "prompt_modified": True,
            "sample_digest": hashlib.sha256(told.encode()).hexdigest(),
        },
        [],
    )


def test_a_template_that_a_reviewer_wrote_is_for_analysis() -> None:
    changed = changes(prompt={"text": "a [PET] asleep", "modified": False}, quality="Benchmark")
    assert apply_changes(row(), changed)[0]["quality"] == "Analysis"
    assert apply_changes(row(), changes(quality="Trash"))[0]["quality"] == "Trash"


BOTH = [entry(A, "input"), entry(B, "output")]
ADDED = {"post_url": "v", "url": "https://pictures.example/d.png"}


@pytest.mark.parametrize(
    ("roles", "inputs", "outputs", "sources"),
    [
        ([role(B, "input")], [A, B], [], [entry(A, "input"), entry(B, "input")]),
        ([role(A, "neither")], [], [B], [entry(B, "output")]),
        ([role(D, "output", **ADDED)], [A], [B, D], [*BOTH, entry(D, "output", **ADDED)]),
    ],
)
def test_an_image_takes_its_place_and_its_source_along(
    roles: list[Any], inputs: list[str], outputs: list[str], sources: list[Any]
) -> None:
    made, findings = apply_changes(row(), changes(roles=roles))

    assert (made["input_images"], made["output_images"]) == (inputs, outputs)
    assert (made["picture_sources"], findings) == (sources, [])
    assert made["sample_digest"] == sample_digest(row()["prompt"], inputs)


def test_what_another_sample_has_is_not_taken() -> None:
    """Nor are boxes taken that mean another screenshot."""
    crops = {"screenshot": SHOT, "crops": [crop("input", (0, 0, 9, 9), D)]}
    roles = [role(D, "input", post_url="v"), role(C, "output")]
    changed = changes(quality="Analysis", roles=roles, crops=crops)
    for shot in (SHOT, C):
        made, findings = apply_changes(row(screenshot=shot), changed, others={D})
        assert (made["input_images"], made["output_images"]) == ([A], [B])
        assert made["quality"] == "Analysis"
        assert [str(notice) for notice, _ in findings] == ["edit_not_applied"] * 3


def test_crops_take_the_place_of_crops() -> None:
    cut = [crop("output", (5, 0, 20, 10), D)]
    changed = changes(crops={"screenshot": SHOT, "inset": 1, "crops": cut})
    made, findings = apply_changes(cut_row(), changed)

    assert (made["input_images"], made["output_images"]) == ([], [D, C])
    assert (made["input_bboxs"], made["output_bboxs"]) == ([], [[5.0, 0.0, 20.0, 10.0]])
    first = made["picture_sources"][0]
    assert (first["of"], first["box"], first["url"]) == (
        SHOT, [6, 1, 19, 9], "https://pictures.example/shot.png",
    )  # fmt: skip
    assert made["picture_sources"][-1]["role"] == "screenshot"
    assert (made["is_screenshot"], findings) == (True, [])


def test_trash_that_is_none_leaves_others_their_images() -> None:
    trash = row(quality="Trash", input_images=[], output_images=[B, C])
    made, _ = apply_changes(trash, changes(quality="Benchmark"), others={C})

    assert (made["quality"], made["output_images"]) == ("Benchmark", [B])


def test_quotations_of_the_old_prompt_are_looked_up_in_the_new_one() -> None:
    text = hashlib.sha256(b"fox").hexdigest()
    span = {"post_url": None, "field": "prompt", "start": 2, "end": 5, "text": None}
    quoted = [{"path": ["roles", "value"], "sha256": text, "spans": [span]}]
    made_by = {"roles": {"digest": "d", "value": "fox"}, "quoted": quoted}
    sample = row(provenance=json.dumps(made_by))
    moved, lost = (
        apply_changes(sample, changes(prompt={"text": words, "modified": True}))[0]
        for words in ("one red fox", "one red owl")
    )

    (quote,) = read_quotes(moved["provenance"])
    assert [(one["field"], one["start"], one["end"]) for one in quote.spans] == [("prompt", 8, 11)]
    assert read_quotes(lost["provenance"])[0].spans == []


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
    sample = cut_row()
    made, _ = apply_changes(sample, changes(roles=roles, crops=crops), taken)
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


EDITED = {"prompt": {"text": "an owl in the rain", "modified": True}}
MAIL = "a card for noor@example.org, teal letters"
Row = dict[str, Any]


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SAMPLES.schema)


def split(
    decisions: ReviewDecisions, *rows: Row, **options: Any
) -> tuple[dict[str, Row], list[Row]]:
    made = Splits(decisions=decisions, **options)(table(*rows)).to_pylist()
    kept = {one["id"]: one for one in made if one["_status"] == "kept"}
    return kept, [one for one in made if one["_status"] != "kept"]


def changed(sample: Row, changes: Row | None = None, **values: Any) -> Decision:
    return decision(sample, **{"decided": "edit", "changes": changes or EDITED, **values})


def test_a_change_is_in_the_release_with_who_made_it() -> None:
    made = changed(row(), reviewer="ann", at="2026-03-09T10:12:00+00:00")
    kept, rest = split(after(made), row(), row("two", prompt="another task altogether"))
    told = json.loads(kept["one"]["provenance"])["review"]

    assert kept["one"]["prompt"] == "an owl in the rain"
    assert kept["one"]["sample_digest"] == row(prompt="an owl in the rain")["sample_digest"]
    assert (told["reviewer"], told["changed"]) == ("ann", ["prompt"])
    assert "fox" not in kept["one"]["provenance"]
    assert kept["two"]["prompt"] == "another task altogether"
    assert [(one["_reason"], one["_detail"]) for one in rest] == [("edited_in_review", "prompt")]


WITH_MAIL = {"prompt": MAIL, "review": ["personal_data", "may_show_minor"]}
SCREENED = {"safety": {"flagged": False, "categories": [], "model": "guard"}}
CLEAN = {"prompt": {"text": "a card, teal letters", "modified": False}}
STILL = {"prompt": {"text": "a card for noor@example.org", "modified": False}}
BROUGHT = {"roles": [role(C, "input", post_url="u")]}
SWITCHED = {"roles": [role(A, "output")]}


@pytest.mark.parametrize(
    ("values", "edit", "decided", "is_open"),
    [
        # Personal data that was taken out is no longer open.
        (WITH_MAIL, CLEAN, "edit", ["may_show_minor"]),
        (WITH_MAIL, STILL, "edit", ["personal_data", "may_show_minor"]),
        (WITH_MAIL, CLEAN, "keep", []),
        # What was brought in is, until somebody keeps it.
        ({}, STILL, "edit", ["personal_data"]),
        ({}, STILL, "keep", []),
        # So is what no safety model has seen.
        (SCREENED, EDITED, "edit", ["edited_unscreened"]),
        (SCREENED, BROUGHT, "edit", ["edited_unscreened"]),
        (SCREENED, EDITED, "keep", []),
        (SCREENED, SWITCHED, "edit", []),
        ({}, EDITED, "edit", []),
        ({}, EDITED, "flag", ["second_look"]),
        # What is withdrawn was never decided.
        ({"review": ["may_show_minor"]}, EDITED, "withdraw", ["may_show_minor"]),
    ],
)
def test_what_is_open_after_an_edit(
    values: Row, edit: Row, decided: str, is_open: list[str]
) -> None:
    sample = row(**values)
    found = split(after(changed(sample, edit, decided=decided)), sample)[0]["one"]
    assert found["review"] == is_open
    assert decided != "withdraw" or found["prompt"] == sample["prompt"]


@pytest.mark.parametrize(("decided", "flags"), [("edit", []), ("flag", ["second_look"])])
def test_an_edit_of_another_version_opens_the_sample(decided: str, flags: list[str]) -> None:
    sample = row(prompt="another task altogether")
    found = split(after(changed(row(), decided=decided)), sample)[0]["one"]
    assert found["prompt"] == sample["prompt"]
    assert found["review"] == [*flags, "edited_earlier"]


GIVEN = "Turn this photo into a stamp"
A_STAMP = {"prompt": {"text": "a stamp", "modified": True}}
ONE_CROP = {"screenshot": SHOT, "crops": [crop("input", (0, 0, 9, 9), D)]}


@pytest.mark.parametrize(
    ("values", "edit", "doubts"),
    [
        # An input that was found, or words without one, answer the question.
        ({"prompt": GIVEN}, {"roles": [{"sha256": B, "role": "input"}]}, []),
        ({"prompt": GIVEN}, A_STAMP, []),
        ({"prompt": GIVEN, "doubts": None}, {"quality": "Analysis"}, ["lacks_input"]),
        # What a model said of the same words and images stays.
        ({"prompt": GIVEN}, {"quality": "Analysis"}, []),
        ({"doubts": ["lacks_input"]}, {"quality": "Analysis"}, ["lacks_input"]),
        ({"doubts": ["lacks_input"]}, A_STAMP, []),
        ({}, {"prompt": {"text": GIVEN, "modified": True}}, ["lacks_input"]),
        ({"doubts": ["roles_contradict"]}, {"roles": [{"sha256": B, "role": "neither"}]}, []),
        ({"doubts": ["roles_contradict"]}, A_STAMP, ["roles_contradict"]),
        ({"screenshot": SHOT, "doubts": ["screenshot_whole"]}, {"crops": ONE_CROP}, []),
    ],
)
def test_an_edit_answers_the_doubts_that_it_is_about(
    values: dict[str, Any], edit: dict[str, Any], doubts: list[str]
) -> None:
    sample = row(**{"input_images": [], "picture_sources": [entry(B, "output")], **values})
    made = [build_decision(sample, how, changes=changes(**edit)) for how in ("edit", "keep")]
    found = [split(after(one), sample)[0]["one"] for one in made]
    assert [one["doubts"] for one in found] == [doubts, []]
    assert ["analysis", *found[1]["splits"]].count("analysis") == 2


@pytest.mark.parametrize(
    ("edit", "decided", "reason"),
    [
        (EDITED, "remove", "removed_in_review"),
        ({"quality": "Trash"}, "edit", "trash"),
        ({"prompt": {"text": "another task", "modified": False}}, "edit", "duplicate_of"),
    ],
)
def test_changes_decide_what_is_left_out(edit: Row, decided: str, reason: str) -> None:
    two = row("two", prompt="another task")
    kept, rest = split(after(changed(row(), edit, decided=decided)), row(), two)
    assert len(kept) == 1
    assert {one["_reason"] for one in rest} == {"edited_in_review", reason}


def test_changes_decide_where_a_sample_is_drawn() -> None:
    kept, _ = split(after(changed(row(), {"roles": [role(A, "neither")]})), row())
    assert kept["one"]["splits"] == ["text_to_image", "analysis"]


def test_a_shared_input_cannot_become_an_output() -> None:
    one, two = row("one"), row("two", output_images=[C], prompt="another")
    kept, _ = split(after(changed(one, {"roles": [role(A, "output")]})), one, two)
    assert (kept["one"]["input_images"], kept["two"]["input_images"]) == ([A], [A])


IMAGES = [letter * 64 for letter in "abcdef"]
ROLES = st.lists(ROLE.filter(lambda one: one["sha256"] in IMAGES), max_size=4)


@given(
    st.lists(st.sampled_from([0, 1, 2, None]), min_size=6, max_size=6),
    st.lists(st.sampled_from(["input_images", "output_images"]), min_size=6, max_size=6),
    st.lists(ROLES, min_size=3, max_size=3),
)
def test_accounts_balance_after_any_changes(
    owners: list[int | None], columns: list[str], roles: list[Any]
) -> None:
    rows = [
        row(f"s{n}", input_images=[], output_images=[], picture_sources=[], prompt=f"task {n}")
        for n in range(3)
    ]
    for digest, owner, column in zip(IMAGES, owners, columns, strict=True):
        if owner is not None:
            rows[owner][column] = [*rows[owner][column], digest]
    rows = [row(one["id"], **one) for one in rows]
    made = [changed(one, {"roles": some}) for one, some in zip(rows, roles, strict=True)]
    found = apply_decisions(table(*rows), after(*made)).table.to_pylist()

    shown = [one for row_ in found for one in (*row_["input_images"], *row_["output_images"])]
    assert len(shown) == len(set(shown))
    assert [one["id"] for one in found] == ["s0", "s1", "s2"]
