"""The table of samples with what reviewers changed, and the splits drawn from it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.decisions import Decision, Decisions
from echo_hf.curate.edits import reviewed_rows
from echo_hf.curate.splits import Splits
from echo_hf.tables import SAMPLES
from tests.curate.reviewed_rows_for_tests import A, B, C, D, after, decision, row

EDITED = {"prompt": {"text": "an owl in the rain", "modified": True}}
MAIL = "a card for noor@example.org, teal letters"
Row = dict[str, Any]


def table(*rows: Row) -> pa.Table:
    """The rows as a stage reads them."""
    return pa.Table.from_pylist(list(rows), schema=SAMPLES.schema)


def split(decisions: Decisions, *rows: Row, **options: Any) -> tuple[dict[str, Row], list[Row]]:
    """Released rows by id; and all others."""
    made = Splits(decisions=decisions, **options)(table(*rows)).to_pylist()
    kept = {one["id"]: one for one in made if one["_status"] == "kept"}
    return kept, [one for one in made if one["_status"] != "kept"]


def changed(sample: Row, changes: Row | None = None, **values: Any) -> Decision:
    """A decision that changes a sample; `edit` unless told otherwise."""
    return decision(sample, **{"decided": "edit", "changes": changes or EDITED, **values})


def test_without_changes_the_table_is_the_table() -> None:
    """Not a byte is copied."""
    given_rows = table(row())
    assert reviewed_rows(given_rows, after(decision(row()))).table is given_rows


def test_a_change_is_in_the_release_with_who_made_it() -> None:
    """The prompt, its digest and the provenance; and it is counted by name."""
    made = changed(row(), reviewer="ann", at="2026-03-09T10:12:00+00:00")
    kept, rest = split(after(made), row(), row("two", prompt="another task altogether"))
    told = json.loads(kept["one"]["provenance"])["review"]

    assert kept["one"]["prompt"] == "an owl in the rain"
    assert kept["one"]["sample_digest"] == row(prompt="an owl in the rain")["sample_digest"]
    assert (told["reviewer"], told["changed"]) == ("ann", ["prompt"])
    assert "fox" not in kept["one"]["provenance"]
    assert kept["two"]["prompt"] == "another task altogether"
    assert [(one["_reason"], one["_detail"]) for one in rest] == [("edited_in_review", "prompt")]


def test_an_edit_is_kept_while_the_sample_is_the_same_and_opens_it_when_not() -> None:
    """The model wrote another prompt: the edit is not in it, and a person has to look."""
    decisions = after(changed(row(review=[])))
    other = row(prompt="a fox in the snow, oil paint, at night")
    assert split(decisions, row())[0]["one"]["prompt"] == "an owl in the rain"
    again = split(decisions, other)[0]["one"]

    assert again["prompt"] == other["prompt"]
    assert again["review"] == ["edited_earlier"]


def test_personal_data_that_was_taken_out_is_no_longer_open() -> None:
    """Only when the new prompt has none; another reason stays; `keep` closes all."""
    sample = row(prompt=MAIL, review=["personal_data", "may_show_minor"])
    clean = {"prompt": {"text": "a card, teal letters", "modified": False}}
    still = {"prompt": {"text": "a card for noor@example.org", "modified": False}}
    open_ = {
        name: split(after(made), sample)[0]["one"]["review"]
        for name, made in {
            "clean": changed(sample, clean),
            "still": changed(sample, still),
            "kept": changed(sample, clean, decided="keep"),
        }.items()
    }

    assert open_ == {
        "clean": ["may_show_minor"],
        "still": ["personal_data", "may_show_minor"],
        "kept": [],
    }


def test_personal_data_that_was_brought_in_is_open_until_somebody_keeps_it() -> None:
    """A reviewer may write down what nobody posted."""
    brings = {"prompt": {"text": "a card for noor@example.org", "modified": True}}
    edits = [changed(row(), brings), changed(row(), brings, decided="keep")]
    open_ = [split(after(one), row())[0]["one"]["review"] for one in edits]
    assert open_ == [["personal_data"], []]


def test_what_no_safety_model_has_seen_is_open_until_somebody_keeps_it() -> None:
    """Other words and images brought in; not where the model saw all, or saw nothing at all."""
    screened = row(safety={"flagged": False, "categories": [], "model": "guard"})
    brought = {"roles": [{"sha256": C, "role": "input", "post_url": "u"}]}
    switched = {"roles": [{"sha256": A, "role": "output"}]}
    open_ = {
        name: split(after(made), sample)[0]["one"]["review"]
        for name, sample, made in (
            ("prompt", screened, changed(screened)),
            ("picture", screened, changed(screened, brought)),
            ("kept", screened, changed(screened, decided="keep")),
            ("switched", screened, changed(screened, switched)),
            ("unscreened", row(), changed(row())),
        )
    }

    assert open_ == {
        "prompt": ["edited_unscreened"],
        "picture": ["edited_unscreened"],
        "kept": [],
        "switched": [],
        "unscreened": [],
    }


def test_a_flag_stays_open_whatever_becomes_of_the_sample() -> None:
    """With its changes, and also when the model writes another prompt."""
    decisions = after(changed(row(), decided="flag"))
    samples = row(), row(prompt="another task altogether")
    first, second = (split(decisions, one)[0]["one"]["review"] for one in samples)
    assert (first, second) == (["second_look"], ["second_look", "edited_earlier"])


def test_what_is_withdrawn_was_never_decided() -> None:
    """Neither changed nor removed."""
    made = changed(row(review=["may_show_minor"]), decided="withdraw")
    found = split(after(made), row(review=["may_show_minor"]))[0]["one"]
    assert (found["prompt"], found["review"]) == (row()["prompt"], ["may_show_minor"])


def test_what_is_removed_is_gone_with_its_changes() -> None:
    """It is left out under its reason, and takes the place it would have had."""
    made = changed(row(), decided="remove")
    kept, rest = split(after(made), row(), row("two", prompt="another task", input_images=[C]))
    assert set(kept) == {"two"}
    reasons = {one["_reason"] for one in rest}
    assert reasons == {"removed_in_review", "edited_in_review"}


def test_changes_decide_where_a_sample_is_drawn() -> None:
    """Without its input it is text to image; of no quality it is Trash; equal ones are one."""
    gone = {"roles": [{"sha256": A, "role": "neither"}]}
    kept, _ = split(after(changed(row(), gone)), row())
    assert kept["one"]["splits"] == ["text_to_image", "analysis"]
    _, rest = split(after(changed(row(), {"quality": "Trash"})), row())
    assert "trash" in {one["_reason"] for one in rest}
    same = {"prompt": {"text": row()["prompt"], "modified": False}}
    two = row("two", prompt="another task")
    kept, rest = split(after(changed(two, same)), row(), two)
    assert len(kept) == 1
    assert "duplicate_of" in {one["_reason"] for one in rest}


def test_no_image_comes_into_two_samples() -> None:
    """Two reviewers gave one image to two samples: the first by id has it, and it is told."""
    added = {"roles": [{"sha256": D, "role": "output", "post_url": "u"}]}
    one, two = row("one"), row("two", input_images=[C], output_images=[], prompt="another")
    kept, rest = split(after(changed(one, added), changed(two, added)), one, two)

    assert kept["one"]["output_images"] == [B, D]
    assert kept["two"]["output_images"] == []
    assert [n["_reason"] for n in rest].count("edit_not_applied") == 1


def test_a_shared_input_cannot_become_an_output() -> None:
    """Completions of a template share it: it would be input of one and output of the other."""
    one, two = row("one"), row("two", output_images=[C], prompt="another")
    turned = {"roles": [{"sha256": A, "role": "output"}]}
    kept, _ = split(after(changed(one, turned)), one, two)
    assert (kept["one"]["input_images"], kept["two"]["input_images"]) == ([A], [A])


def test_the_digest_of_the_stage_tells_what_was_changed() -> None:
    """Another change is another build; a note is none."""
    seen = {
        name: Splits(decisions=after(made)).digest()
        for name, made in {
            "kept": decision(row()),
            "changed": changed(row(), decided="keep"),
            "otherwise": changed(row(), {"quality": "Trash"}, decided="keep"),
            "noted": changed(row(), decided="keep", note="looks 30", reviewer="bo"),
        }.items()
    }
    assert seen["changed"] == seen["noted"]
    assert len(set(seen.values())) == 3


IMAGES = [letter * 64 for letter in "abcdef"]
ROLES = st.lists(
    st.fixed_dictionaries(
        {
            "sha256": st.sampled_from(IMAGES),
            "role": st.sampled_from(["input", "output", "neither"]),
            "post_url": st.sampled_from([None, "u"]),
        }
    ),
    max_size=4,
)


@given(
    st.lists(st.sampled_from([0, 1, 2, None]), min_size=6, max_size=6),
    st.lists(st.sampled_from(["input_images", "output_images"]), min_size=6, max_size=6),
    st.lists(ROLES, min_size=3, max_size=3),
)
def test_accounts_balance_after_any_changes(
    owners: list[int | None], columns: list[str], roles: list[Any]
) -> None:
    """An image that was in one sample at most is in one at most, and in one role."""
    rows = [
        row(f"s{n}", input_images=[], output_images=[], picture_sources=[], prompt=f"task {n}")
        for n in range(3)
    ]
    for digest, owner, column in zip(IMAGES, owners, columns, strict=True):
        if owner is not None:
            rows[owner][column] = [*rows[owner][column], digest]
    rows = [row(one["id"], **one) for one in rows]
    made = [changed(one, {"roles": some}) for one, some in zip(rows, roles, strict=True)]
    found = reviewed_rows(table(*rows), after(*made)).table.to_pylist()

    shown = [one for row_ in found for one in (*row_["input_images"], *row_["output_images"])]
    assert len(shown) == len(set(shown))
    assert [one["id"] for one in found] == ["s0", "s1", "s2"]
