"""What reviewers are offered, and what becomes of what they do; without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echo_hf.apps.review.controller import ReviewController
from echo_hf.apps.review.page import Form, View, desk_page
from echo_hf.builder.review import Case
from echo_hf.curate.decisions import Decision
from tests.curate.reviewed_rows_for_tests import row
from tests.samples_for_tests import post

HOSTILE = "<script>alert(1)</script>\" onload='x' ${y} {{z}}"
CALM = {"safety": {"flagged": False, "categories": [], "model": "guard"}, "has_nsfw": False}
SHORT = {"prompt": "a fox", **CALM}


def case(name: str, **values: Any) -> Case:
    """A sample with one post around it."""
    plain = {"prompt": f"a fox in the snow, number {name}", **CALM}
    return Case(row(name, **{**plain, **values}), [post(0, -1, "look")])


@pytest.fixture
def desk(tmp_path: Path) -> ReviewController:
    """Three samples: one that is fit, one with something to look at, one that is Trash."""
    cases = [case("fit"), case("look", **SHORT), case("trash", quality="Trash")]
    return ReviewController.of({one.row["id"]: one for one in cases}, {}, tmp_path)


def act(desk: ReviewController, person: str, kind: str, **said: Any) -> View:
    """Somebody does something at the sample where they are."""
    now = desk.view(person)
    return desk.act(person, {"kind": kind, "subject": now.case.row["id"], "base": now.base, **said})


def line(desk: ReviewController, subject: str) -> Decision:
    """What stands in the file about a sample."""
    return desk.ledger.decided().by_id[subject]


def test_what_needs_a_person_comes_first(desk: ReviewController) -> None:
    """Then what is fit, then what is not; each shown once, and the counts go up."""
    order = []
    for _ in range(3):
        order.append(desk.view("ann").case.row["id"])
        act(desk, "ann", "keep")
    assert order == ["look", "fit", "trash"]
    assert (desk.view("ann").done, desk.view("ann").total) == (3, 3)


def test_nobody_is_offered_what_another_has(desk: ReviewController) -> None:
    """Three people have three samples; a fourth gets one that somebody has, and is told."""
    got = [desk.view(name).case.row["id"] for name in ("ann", "bo", "cy")]
    assert sorted(got) == ["fit", "look", "trash"]
    view = desk.view("di")
    assert view.lent is not None
    assert view.lent.person == "ann"


def test_a_flag_goes_to_somebody_else(desk: ReviewController) -> None:
    """Who flagged it is not offered it again; the next one is shown the note, and writes none."""
    act(desk, "ann", "flag", form={"note": "which fox?"})
    act(desk, "ann", "keep")
    act(desk, "ann", "keep")
    assert "nothing else is left" in act(desk, "ann", "next").told
    view = desk.view("bo")
    assert (view.case.row["id"], view.form.note) == ("look", "")
    assert view.decision is not None
    assert view.decision.note == "which fox?"
    assert view.open_reasons == ["second_look"]


def test_an_edit_stays_with_the_decision(desk: ReviewController) -> None:
    """Edited by one, kept by the other: the line has both."""
    form = {"prompt": "a fox asleep", "quality": "Analysis"}
    view = act(desk, "ann", "edit", form=form)
    assert view.case.row["id"] == "look"
    assert (line(desk, "look").decision, view.shown["prompt"]) == ("edit", "a fox asleep")
    act(desk, "ann", "keep", form=form)
    found = line(desk, "look")
    assert found.changes is not None
    assert (found.decision, found.changes.named) == ("keep", ("prompt", "quality"))


def test_saving_what_is_saved_writes_nothing(desk: ReviewController) -> None:
    """A page saves itself often."""
    for _ in range(3):
        act(desk, "ann", "edit", form={"prompt": "a fox asleep"})
    assert len(desk.ledger.decided().every) == 1


def test_what_was_refused_is_shown_with_what_was_typed(desk: ReviewController) -> None:
    """Nothing is written, and nothing that was typed is lost."""
    view = act(desk, "ann", "keep", form={"prompt": " ", "note": "hm"})
    assert "has no word" in view.problem
    assert (view.form.prompt, view.form.note) == (" ", "hm")
    assert desk.ledger.decided().every == ()


def test_a_note_that_cannot_be_written_is_refused_like_a_prompt(desk: ReviewController) -> None:
    """A line holds 2,000 characters; the page cannot send more, but something else may."""
    view = act(desk, "ann", "keep", form={"note": "x" * 2001})
    assert "note" in view.problem
    assert "2000" in view.problem
    assert desk.ledger.decided().every == ()


@pytest.mark.parametrize("field", ["prompt", "note"])
@pytest.mark.parametrize("typed", ["a fox \ud800", "\udc00", "a\x00fox", "\x1b[31m"])
def test_what_no_file_can_hold_is_refused_and_the_page_still_shown(
    desk: ReviewController, field: str, typed: str
) -> None:
    """A half character, or one of control, in any field."""
    for kind in ("keep", "edit"):
        view = act(desk, "ann", kind, form={field: typed})
        assert field in view.problem
        assert "\n" not in view.problem
        page = desk_page(view, str).encode()
        assert b"\x00" not in page
        assert b"\x1b" not in page
    assert desk.ledger.decided().every == ()


def test_an_edit_says_that_no_model_has_seen_it(desk: ReviewController) -> None:
    """Until it is kept; taking it back takes that back, too."""
    assert act(desk, "ann", "edit", form={"prompt": "a fox asleep"}).open_reasons == [
        "edited_unscreened"
    ]
    assert "no safety model has seen what was brought in" in " ".join(
        desk.view("ann").triage.look_at
    )
    assert act(desk, "ann", "undo").open_reasons == []


def test_undo_goes_back_to_the_sample(desk: ReviewController) -> None:
    """Each press takes back one more; at the end it says that there is nothing."""
    act(desk, "ann", "keep")
    act(desk, "ann", "remove")
    assert act(desk, "ann", "undo").case.row["id"] == "fit"
    assert act(desk, "ann", "undo").case.row["id"] == "look"
    assert [line(desk, name).decision for name in ("fit", "look")] == ["withdraw"] * 2
    assert "nothing of yours" in act(desk, "ann", "undo").problem


def test_a_page_that_is_behind_does_not_overwrite(desk: ReviewController) -> None:
    """Two windows of one sample: who did not see the other's decision disagrees with it."""
    ann, bo = desk.view("ann"), desk.view("bo")
    desk.act("bo", {"kind": "goto", "subject": bo.case.row["id"], "wanted": "look"})
    stale = {"subject": "look", "base": ann.base}
    desk.act("ann", {"kind": "keep", **stale})
    desk.act("bo", {"kind": "remove", **stale})
    assert line(desk, "look").decision == "flag"
    cy = desk.act(
        "cy", {"kind": "goto", "subject": desk.view("cy").case.row["id"], "wanted": "look"}
    )
    assert [one.person for one in cy.conflict] == ["ann", "bo"]
    act(desk, "cy", "take", event=cy.conflict[0].id)
    assert (line(desk, "look").decision, line(desk, "look").reviewer) == ("keep", "cy")


def test_a_place_that_is_not_there_is_named(desk: ReviewController) -> None:
    """In one line, and the page stays where it is."""
    view = act(desk, "ann", "goto", wanted="nowhere")
    assert view.problem == "no sample 'nowhere' in the last build"


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["look", "x"]),
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=6), some, max_size=3)
    ),
    max_leaves=6,
)
SAID = st.dictionaries(
    st.sampled_from(["kind", "subject", "base", "form", "event", "wanted"]), JUNK, max_size=6
)


@given(SAID, st.sampled_from(["keep", "take", "goto", "edit", "undo", "nonsense"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_page_sends_is_answered(
    desk: ReviewController, said: dict[str, Any], kind: str
) -> None:
    """A page is whoever can reach the port: no error, and the file can always be read."""
    subject = desk.view("ann").case.row["id"]
    desk.act("ann", {"kind": kind, "subject": subject, **said})
    desk.act("ann", said)
    assert desk_page(desk.view("ann"), str)


def test_all_texts_are_escaped(tmp_path: Path) -> None:
    """Prompt, posts, names, descriptions, feedback, notes, names of people."""
    shown = {**post(0, -1, HOSTILE, author=HOSTILE)}
    shown["pictures"] = [{"sha256": None, "url": None, "alt_text": HOSTILE}]
    said = {"feedback": HOSTILE, "verdict": HOSTILE, "keyword": HOSTILE, "post_url": "u"}
    bad = row("one", prompt=HOSTILE, community_feedback=[said], **CALM)
    desk = ReviewController.of({"one": Case(bad, [shown], [("two_roles", HOSTILE)])}, {}, tmp_path)
    act(desk, "ann", "flag", form={"note": HOSTILE})
    page = desk_page(desk.view("ann"), lambda digest: f"/image/{digest}")

    assert page.count("&lt;script&gt;") >= 7
    assert "<script" not in page
    assert "onload='x'" not in page


def test_a_form_takes_what_can_be_read() -> None:
    """And keeps what stood there for the rest."""
    shown = Form("a fox", "Benchmark", "n", {"a": "input"}, (("input", "1, 2, 3, 4"),))
    assert Form.read(None, shown) == shown
    given_ = {"prompt": 3, "roles": {"b": "output", "c": 4}, "boxes": [["input", 5], "x"]}
    read = Form.read(given_, shown)
    assert (read.prompt, read.roles) == ("a fox", {"a": "input", "b": "output"})
    assert read.boxes == (("input", "5"),)
