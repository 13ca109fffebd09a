"""Which samples wait for whom."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.apps.review.controller import is_settled, waits
from tests.curate.reviewed_rows_for_tests import decision, row


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
    """All else waits for whoever comes, and is not decided."""
    last = decision(row(), decided, reviewer="ann") if decided else None
    assert (waits(row(), last, "bo", ()), is_settled(last, row())) == expected


def test_what_somebody_flagged_waits_for_others() -> None:
    """Also where two disagree: for neither of them, whoever the line names."""
    flagged = decision(row(), "flag", reviewer="ann")
    two = decision(row(), "flag")
    assert [waits(row(), flagged, name, ()) for name in ("ann", "bo")] == [False, True]
    assert [waits(row(), two, "cy", own) for own in ((), ("one",))] == [True, False]


def test_a_sample_that_has_changed_waits_again() -> None:
    """Another prompt, or another image than was there when it was kept."""
    kept = decision(row())
    for other in (row(prompt="an owl"), row(output_images=["f" * 64])):
        assert waits(other, kept, "ann", ("one",))
