"""How people work with the model."""

from __future__ import annotations

from datetime import UTC, datetime

from echo_hf.report.analysis.failures import PostTimes, interaction
from tests.report.analysis.samples_for_analysis import sample

TIMES = PostTimes(
    {
        "u1": datetime(2026, 3, 31, 23, 59, tzinfo=UTC),
        "u2": datetime(2026, 4, 1, tzinfo=UTC),
        "u3": datetime(2026, 4, 2, tzinfo=UTC),
    }
)


def test_a_success_after_a_failure_may_be_a_workaround() -> None:
    """By time, of another post; a success before any failure is none."""
    said = [
        ("u3", "success", None),
        ("u1", "success", None),
        ("u2", "failure", "wrong maze"),
        ("u2", "mixed", None),
    ]
    found = interaction([sample("a", said)], TIMES).found
    assert found is not None
    (one,) = found.workarounds
    assert (one.comment.post_url, one.failed) == ("u3", ("wrong maze",))


def test_failures_that_others_named_come_in_their_order() -> None:
    """A keyword of one's own counts once somebody else has named it, too."""
    said = [
        ("u2", "failure", "blur"),
        ("u1", "mixed", "hands"),
        ("u1", "failure", "blur"),
        ("u2", "success", None),
    ]
    found = interaction([sample("a", said)], PostTimes()).found
    assert found is not None
    assert [one.failed for one in found.workarounds] == [("blur",), ("blur", "hands")]


def test_probes_are_the_samples_of_that_kind() -> None:
    """With their words and how many comments they have."""
    samples = [
        sample("a", kind="probe", prompt="draw  yourself"),
        sample("b"),
        sample("c", kind=None),
    ]
    found = interaction(samples, TIMES).found
    assert found is not None
    (probe,) = found.probes
    assert (probe.id, probe.prompt, probe.comments) == ("a", "draw yourself", 0)
    assert probe.post.post_url == "https://example.org/a"


def test_words_that_are_left_out_stay_out() -> None:
    """A release without posted words has tables without them."""
    bare = sample(
        "a", [("u1", "failure", "blur"), ("u2", "success", None)], prompt=None, kind="probe"
    )
    for comment in bare["community_feedback"]:
        comment["feedback"] = None
    found = interaction([bare], TIMES).found
    assert found is not None
    assert (found.probes[0].prompt, found.workarounds[0].comment.text) == (None, None)
