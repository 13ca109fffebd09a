"""What reviewers are offered, and what becomes of what they do; without a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echo_hf.apps import review
from echo_hf.apps.review import (
    APP,
    OPEN,
    ReviewController,
    ReviewForm,
    ReviewPage,
    build_payload,
    is_decided,
    is_waiting,
    render_review_page,
)
from echo_hf.builder.review import ReviewCase, build_decision
from echo_hf.curate.decisions import Decision, append_decisions, read_decisions
from tests.curate.reviewed_rows_for_tests import decision, row
from tests.samples_for_tests import post
from tests.screenshots_for_tests import HEIGHT, PIXELS, WIDTH, png, store_with

HOSTILE = "<script>alert(1)</script>\" onload='x' ${y} {{z}}"
CALM = {"safety": {"flagged": False, "categories": [], "model": "guard"}, "has_nsfw": False}
SHORT = {"prompt": "a fox", **CALM}


def case(name: str, **values: Any) -> ReviewCase:
    plain = {"prompt": f"a fox in the snow, number {name}", **CALM}
    return ReviewCase(row(name, **{**plain, **values}), [post(0, -1, "look")])


@pytest.fixture
def desk(tmp_path: Path) -> ReviewController:
    cases = [case("fit"), case("look", **SHORT), case("trash", quality="Trash")]
    return ReviewController.from_cases({one.row["id"]: one for one in cases}, {}, tmp_path)


def act(desk: ReviewController, person: str, kind: str, **said: Any) -> ReviewPage:
    now = desk.build_page(person)
    return desk.act(person, {"kind": kind, "subject": now.case.row["id"], "base": now.base, **said})


def line(desk: ReviewController, subject: str) -> Decision:
    return desk.read_decisions().by_id[subject]


def test_what_needs_a_person_comes_first_and_nobody_is_offered_what_another_has(
    desk: ReviewController,
) -> None:
    got = [desk.build_page(name).case.row["id"] for name in ("ann", "bo", "cy")]
    assert got == ["look", "fit", "trash"]
    view = desk.build_page("di")
    assert view.lent.person == "ann"
    for name in ("ann", "bo", "cy"):
        act(desk, name, "keep")
    assert (desk.build_page("ann").done, desk.build_page("ann").total) == (3, 3)


def test_what_is_doubtful_comes_first_until_it_was_kept(tmp_path: Path) -> None:
    doubtful = case("doubt", doubts=["lacks_input"])
    cases = {one.row["id"]: one for one in (case("look", **SHORT, output_images=[]), doubtful)}
    desk = ReviewController.from_cases(cases, {}, tmp_path)
    view = desk.build_page("ann")
    assert (view.case.row["id"], view.triage.doubted) == ("doubt", True)
    assert "starts from an image that came with it" in render_review_page(view, str)
    act(desk, "ann", "keep")
    assert line(desk, "doubt").doubts == ("lacks_input",)
    assert act(desk, "ann", "goto", wanted="doubt").triage.doubted is False
    kept = build_decision(case("doubt").row, "keep")  # before there was the doubt
    assert is_waiting(doubtful.row, kept, "ann", ())
    assert not is_waiting(doubtful.row, line(desk, "doubt"), "ann", ())


def held_case(name: str, shot: str, boxes: Any) -> ReviewCase:
    said = {
        "engine": {"kind": "openai", "model": "some-reader"},
        "convention": "rel_1000",
        "prompt_read": "paint a fox",
        "boxes": {**boxes, "original": [WIDTH, HEIGHT], "sent": [WIDTH, HEIGHT]},
    }
    return case(
        name,
        input_images=[],
        output_images=[],
        picture_sources=None,
        screenshot=shot,
        provenance=json.dumps({"screenshots": said}),
        doubts=["screenshot_whole", "assumed_boxes"],
    )


def test_one_click_reads_the_boxes_of_all_samples_and_another_corrects_it(tmp_path: Path) -> None:
    """In a screenshot of 400 x 800 pixels, first as thousandths, then with y first."""
    half = PIXELS.copy()
    half[::2] = 0
    _, (one, two) = store_with(tmp_path, png(PIXELS), png(half))
    outside = {"inputs": [], "outputs": [[0, 0, 3000, 3000]]}
    cases = [
        case("fit"),
        held_case("a", one, {"inputs": [], "outputs": [[100, 500, 300, 900]]}),
        held_case("b", two, {"inputs": [], "outputs": [[50, 400, 250, 800]]}),
        held_case("never", two, outside),
    ]
    desk = ReviewController.from_cases({one.row["id"]: one for one in cases}, {}, tmp_path)
    view = desk.build_page("ann")
    assert view.case.row["id"] in ("a", "b", "never")
    first, *others = view.readings
    assert (first.convention, first.is_asked, first.fits, first.samples) == ("rel_1000", True, 2, 3)
    assert {one.convention for one in others} == {"abs_resized", "rel_1", "rel_1000_yx"}
    page = render_review_page(view, str)
    assert "How does some-reader name places?" in page
    assert page.count("data-reading") == 4

    view = act(desk, "ann", "boxes", convention="rel_1000")
    assert view.told == "boxes read as rel_1000: 2 cut, 1 left as they were"
    assert crops_of(line(desk, "a")) == [("output", (40, 400, 120, 720))]
    assert line(desk, "a").changes.prompt.text == "paint a fox"
    act(desk, "ann", "boxes", convention="rel_1000_yx")
    assert crops_of(line(desk, "a")) == [("output", (200, 80, 360, 240))]
    assert crops_of(line(desk, "b")) == [("output", (160, 40, 320, 200))]
    assert "never" not in desk.read_decisions().by_id

    act(desk, "ann", "goto", wanted="a")
    act(desk, "ann", "keep")
    act(desk, "ann", "goto", wanted="b")
    act(desk, "ann", "boxes", convention="rel_1000")
    assert crops_of(line(desk, "a")) == [("output", (200, 80, 360, 240))]
    assert (line(desk, "a").decision, line(desk, "b").decision) == ("keep", "edit")
    act(desk, "ann", "goto", wanted="fit")
    before = len(desk.read_decisions().log)
    act(desk, "ann", "boxes", convention="rel_1000")  # of a sample without any
    assert len(desk.read_decisions().log) == before


def crops_of(decided: Decision) -> list[tuple[str, tuple[int, ...]]]:
    assert decided.changes is not None
    assert decided.changes.crops is not None
    return [(crop.role, tuple(crop.box)) for crop in decided.changes.crops.crops]


def test_a_flag_goes_to_somebody_else(desk: ReviewController) -> None:
    act(desk, "ann", "flag", form={"note": "which fox?"})
    act(desk, "ann", "keep")
    act(desk, "ann", "keep")
    assert "nothing else is left" in act(desk, "ann", "next").told
    view = desk.build_page("bo")
    assert (view.case.row["id"], view.form.note) == ("look", "")
    assert view.decision.note == "which fox?"
    assert view.open_reasons == ["second_look"]


def test_an_edit_stays_with_the_decision_and_no_model_has_seen_it(desk: ReviewController) -> None:
    form = {"prompt": "a fox asleep", "quality": "Analysis"}
    for _ in range(3):  # saving what is saved writes nothing
        view = act(desk, "ann", "edit", form=form)
    assert len(desk.read_decisions().log) == 1
    assert (view.case.row["id"], view.shown["prompt"]) == ("look", "a fox asleep")
    assert (line(desk, "look").decision, view.open_reasons) == ("edit", ["edited_unscreened"])
    assert any("no safety model has seen" in one for one in view.triage.look_at)
    assert act(desk, "ann", "undo").open_reasons == []
    act(desk, "ann", "keep", form=form)
    found = line(desk, "look")
    assert (found.decision, found.changes.changed_parts) == ("keep", ("prompt", "quality"))


@pytest.mark.parametrize(
    "form",
    [
        {"prompt": " ", "note": "hm"},
        {"prompt": "a fox \ud800"},
        {"prompt": "\x1b[31m"},
        {"note": "\udc00"},
        {"note": "a\x00fox"},
    ],
)
def test_what_was_refused_is_shown_with_what_was_typed(
    desk: ReviewController, form: dict[str, str]
) -> None:
    """Also what no file can hold: the page can still be shown."""
    for kind in ("keep", "edit"):
        view = act(desk, "ann", kind, form=form)
        assert next(iter(form)) in view.problem
        assert "\n" not in view.problem
        assert (view.form.prompt, view.form.note) == (
            form.get("prompt", "a fox"),
            form.get("note", ""),
        )
        page = render_review_page(view, str).encode()
        assert not {0, 27} & set(page)
    assert desk.read_decisions().log == ()


def test_undo_goes_back_to_the_sample(desk: ReviewController) -> None:
    act(desk, "ann", "keep")
    act(desk, "ann", "remove")
    assert act(desk, "ann", "undo").case.row["id"] == "fit"
    assert act(desk, "ann", "undo").case.row["id"] == "look"
    assert [line(desk, name).decision for name in ("fit", "look")] == ["withdraw"] * 2
    assert "nothing of yours" in act(desk, "ann", "undo").problem
    told = act(desk, "ann", "goto", wanted="nowhere").problem
    assert told == "no sample 'nowhere' in the last build"


def test_a_page_that_is_behind_does_not_overwrite(desk: ReviewController) -> None:
    ann, bo = desk.build_page("ann"), desk.build_page("bo")
    desk.act("bo", {"kind": "goto", "subject": bo.case.row["id"], "wanted": "look"})
    stale = {"subject": "look", "base": ann.base}
    desk.act("ann", {"kind": "keep", **stale})
    desk.act("bo", {"kind": "remove", **stale})
    assert line(desk, "look").decision == "flag"
    cy = desk.act(
        "cy", {"kind": "goto", "subject": desk.build_page("cy").case.row["id"], "wanted": "look"}
    )
    assert [one.person for one in cy.conflict] == ["ann", "bo"]
    assert render_review_page(cy, str).count("<p>nothing changed</p>") == 2
    act(desk, "cy", "take", event=cy.conflict[0].id)
    assert (line(desk, "look").decision, line(desk, "look").reviewer) == ("keep", "cy")


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
    subject = desk.build_page("ann").case.row["id"]
    desk.act("ann", {"kind": kind, "subject": subject, **said})
    desk.act("ann", said)
    assert render_review_page(desk.build_page("ann"), str)


def test_all_texts_are_escaped(tmp_path: Path) -> None:
    shown = {**post(0, -1, HOSTILE, author=HOSTILE)}
    shown["pictures"] = [{"sha256": None, "url": None, "alt_text": HOSTILE}]
    said = {"feedback": HOSTILE, "verdict": HOSTILE, "keyword": HOSTILE, "post_url": "u"}
    bad = row("one", prompt=HOSTILE, community_feedback=[said], **CALM)
    desk = ReviewController.from_cases(
        {"one": ReviewCase(bad, [shown], [("two_roles", HOSTILE)])}, {}, tmp_path
    )
    act(desk, "ann", "flag", form={"note": HOSTILE})
    page = render_review_page(desk.build_page("ann"), lambda digest: f"/image/{digest}")

    assert page.count("&lt;script&gt;") >= 7
    assert "<script" not in page
    assert "onload='x'" not in page


def test_a_form_takes_what_can_be_read() -> None:
    shown = ReviewForm("a fox", "Benchmark", "n", {"a": "input"}, (("input", "1, 2, 3, 4"),))
    assert ReviewForm.read(None, shown) == shown
    given_ = {"prompt": 3, "roles": {"b": "output", "c": 4}, "boxes": [["input", 5], "x"]}
    read = ReviewForm.read(given_, shown)
    assert (read.prompt, read.roles) == ("a fox", {"a": "input", "b": "output"})
    assert read.boxes == (("input", "5"),)


EDIT = {"prompt": {"text": "an owl", "modified": True}}


@pytest.fixture
def ledger(tmp_path: Path) -> ReviewController:
    return ReviewController.from_cases({}, {}, tmp_path)


def did(
    ledger: ReviewController, person: str, kind: str, base: int | None = None, changes: Any = None
) -> int:
    made = Decision.model_validate({**build_decision(row(), kind).model_dump(), "changes": changes})
    return ledger.log.append(APP, "one", person, kind, build_payload(made), base).id


def last(ledger: ReviewController) -> Decision:
    ledger.write_pending()
    return read_decisions(ledger.file).by_id["one"]


def test_a_decision_is_a_line_with_who_and_when(ledger: ReviewController) -> None:
    ledger.log.append(APP, "one", "ann", OPEN)
    number = did(ledger, "ann", "keep", changes=EDIT)
    line = last(ledger)

    assert (line.decision, line.reviewer, line.event) == ("keep", "ann", number)
    assert line.changes.changed_parts == ("prompt",)
    assert line.at is not None
    assert line.is_about(row())


def test_what_is_taken_back_is_as_before(ledger: ReviewController) -> None:
    first = did(ledger, "ann", "keep")
    second = did(ledger, "ann", "remove", first)
    assert last(ledger).decision == "remove"
    undone = ledger.log.undo(second, "ann")
    assert last(ledger).decision == "keep"
    ledger.log.undo(first, "ann")
    assert (last(ledger).decision, last(ledger).changes) == ("withdraw", None)
    ledger.log.undo(undone.id, "ann")
    assert last(ledger).decision == "remove"


def test_a_line_by_hand_stands_until_somebody_decides(ledger: ReviewController) -> None:
    first = did(ledger, "ann", "keep")
    ledger.write_pending()
    append_decisions(ledger.file, [build_decision(row(), "remove", note="by hand")])
    assert last(ledger).note == "by hand"
    second = did(ledger, "bo", "flag", base=first)
    assert last(ledger).decision == "flag"
    ledger.log.undo(second, "bo")
    assert (last(ledger).decision, last(ledger).note) == ("remove", "by hand")
    ledger.log.undo(first, "ann")
    assert (last(ledger).decision, last(ledger).note) == ("remove", "by hand")
    # It disagrees with nobody.
    did(ledger, "bo", "flag")
    assert (last(ledger).decision, last(ledger).reviewer) == ("flag", "bo")


def test_a_log_that_was_lost_takes_no_later_decision_with_it(ledger: ReviewController) -> None:
    did(ledger, "ann", "keep")
    did(ledger, "ann", "flag")
    assert last(ledger).decision == "flag"
    for file in ledger.log.path.parent.glob("events.sqlite*"):
        file.unlink()
    did(ledger, "ann", "remove")
    assert last(ledger).decision == "remove"


def test_two_who_disagree_leave_it_open(ledger: ReviewController) -> None:
    did(ledger, "ann", "keep", changes=EDIT)
    second = did(ledger, "bo", "remove")
    line = last(ledger)
    assert (line.decision, line.changes, line.reviewer) == ("flag", None, None)
    assert line.note == "two people disagree (ann: keep, bo: remove)"
    third = did(ledger, "cy", "remove", base=second)
    assert (last(ledger).decision, last(ledger).event) == ("remove", third)
    # Two who say the same in other words agree.
    did(ledger, "ann", "keep", base=third)
    noted = build_decision(row(), "keep", note="fine")
    ledger.log.append(APP, "one", "bo", "keep", build_payload(noted), third)
    assert (last(ledger).decision, last(ledger).reviewer) == ("keep", "bo")


def test_what_a_killed_server_had_not_written_is_written_at_its_next_start(
    desk: ReviewController, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(review, "append_decisions", Mock(side_effect=InterruptedError))
        with pytest.raises(InterruptedError):
            act(desk, "ann", "remove")
    assert not desk.file.exists()
    assert (desk.write_pending(), desk.write_pending()) == (1, 0)
    found = line(desk, "look")
    assert (found.decision, found.reviewer) == ("remove", "ann")


@pytest.mark.parametrize(
    ("decided", "expected"),
    [
        (None, (True, False)),
        ("keep", (False, True)),
        ("remove", (False, True)),
        ("edit", (True, False)),
        ("withdraw", (True, False)),
        ("flag", (True, False)),
    ],
)
def test_what_is_kept_or_removed_waits_for_nobody(
    decided: Any, expected: tuple[bool, bool]
) -> None:
    last = decision(row(), decided, reviewer="ann") if decided else None
    assert (is_waiting(row(), last, "bo", ()), is_decided(last, row())) == expected


def test_what_somebody_flagged_or_has_changed_waits_for_others() -> None:
    flagged, two = decision(row(), "flag", reviewer="ann"), decision(row(), "flag")
    assert [is_waiting(row(), flagged, name, ()) for name in ("ann", "bo")] == [False, True]
    assert [is_waiting(row(), two, "cy", own) for own in ((), ("one",))] == [True, False]
    for other in (row(prompt="an owl"), row(output_images=["f" * 64])):
        assert is_waiting(other, decision(row()), "ann", ("one",))
