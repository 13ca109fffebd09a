"""For which samples decisions hold, and what is open after them."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.curate.decisions import Decision, Decisions

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
MINOR, DATA = "may_show_minor", "personal_data"
EDIT = {"prompt": {"text": "a fox", "modified": True}, "sample_digest": "f" * 64}


def row(**values: Any) -> dict[str, Any]:
    """A sample with an input, an output and a screenshot, that may show a minor."""
    plain = {"id": "one", "sample_digest": "digest", "review": [MINOR], "safety": None}
    shown = {"input_images": [A], "output_images": [B], "screenshot": C}
    return {**plain, **shown, **values}


def decision(decided: str = "keep", **values: Any) -> Decision:
    """A decision about that sample."""
    plain = {"id": "one", "sample_digest": "digest", "decision": decided, "reasons": [MINOR]}
    return Decision.model_validate({**plain, "pictures": [A, B, C], **values})


def after(*made: Decision) -> Decisions:
    """What counts after decisions."""
    return Decisions({one.id: one for one in made})


def test_what_is_kept_is_no_longer_open() -> None:
    """By hand, for the sample as it was, and for one of which less is to be looked at."""
    decided = after(decision())
    for sample in (row(), row(review=[]), row(output_images=[]), row(screenshot=None)):
        assert (decided.removes(sample), decided.open_reasons(sample)) == (False, [])


@pytest.mark.parametrize(
    "changed",
    [
        {"sample_digest": "other"},
        {"review": [MINOR, DATA]},
        {"output_images": [B, "d" * 64]},
        {"screenshot": "d" * 64},
        {"id": "two"},
    ],
)
def test_a_sample_that_has_changed_is_open_again(changed: dict[str, Any]) -> None:
    """Another prompt or input, another reason, or an image that nobody has looked at."""
    sample = row(**changed)
    assert after(decision()).open_reasons(sample) == sample["review"]


@pytest.mark.parametrize(
    "changes",
    [
        {"roles": [{"sha256": B, "role": "neither"}]},
        {
            "crops": {
                "screenshot": C,
                "crops": [{"role": "input", "box": [0, 0, 1, 1], "sha256": A}],
            }
        },
    ],
)
def test_a_change_of_an_image_that_lost_its_metadata_since_is_open_again(changes: Any) -> None:
    """It names the image as posted, which the sample has no more: it would change nothing."""
    decided = after(decision("edit", changes=changes))
    assert decided.changes(row()) is not None
    cleaned = [{"posted_sha256": one, "sha256": "d" * 64} for one in (B, C)]
    sample = row(output_images=["d" * 64], cleaned_images=cleaned)
    assert decided.changes(sample) is None
    assert decided.open_reasons(sample) == [MINOR, "edited_earlier"]


def test_what_is_removed_stays_removed_while_it_is_the_same_task() -> None:
    """Further reasons and images do not bring it back; another task is looked at again."""
    decided = after(decision("remove"))

    assert decided.removes(row(review=[MINOR, DATA], output_images=["d" * 64]))
    changed = row(sample_digest="other", review=[])
    assert not decided.removes(changed)
    assert decided.open_reasons(changed) == ["removed_earlier"]
    assert decided.open_reasons({**changed, "review": [DATA]}) == [DATA, "removed_earlier"]


def test_what_decides_a_build_is_described() -> None:
    """The decision and the version that it is about; not a reviewer's words, nor the time."""
    told = after(decision()).described()

    assert told["one"].startswith("keep ")
    assert told == after(decision(note="looks 30", at="2026-03-09")).described()
    for other in ({"sample_digest": "x"}, {"reasons": []}, {"pictures": []}):
        assert after(decision(**other)).described() != told
    assert after(decision("remove")).described()["one"].startswith("remove ")


def test_a_change_holds_for_the_version_that_was_seen() -> None:
    """With any decision but a withdrawal; an empty change is none."""
    for decided in ("keep", "remove", "flag", "edit"):
        found = after(decision(decided, changes=EDIT)).changes(row())
        assert found is not None
        assert found.decision == decided
    assert after(decision("withdraw", changes=EDIT)).changes(row()) is None
    assert after(decision(changes={})).changes(row()) is None
    assert after(decision(changes=EDIT)).changes(row(sample_digest="other")) is None
