"""A guard's labels in our terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.sections import Hazard
from echo_hf.curate.guards import verdict

KNOWN = {"guns": Hazard.WEAPONS, "bombs": Hazard.WEAPONS, "insults": Hazard.HATE}
UNKNOWN = Hazard.UNKNOWN
CASES = [
    (False, [], set(), []),
    (True, ["guns"], {Hazard.WEAPONS}, []),
    (True, ["bombs", "guns", "insults", "bombs"], {Hazard.WEAPONS, Hazard.HATE}, []),
    (True, [], {UNKNOWN}, ["no label"]),
    (True, ["guns", "gnus"], {Hazard.WEAPONS, UNKNOWN}, ["'gnus'"]),
    (False, ["guns"], {Hazard.WEAPONS}, []),
    (False, ["gnus"], {UNKNOWN}, ["'gnus'"]),
    (True, ["a\x1b\u202e"], {UNKNOWN}, ["'a\\x1b\\u202e'"]),
]


@pytest.mark.parametrize(("flagged", "labels", "hazards", "strange"), CASES)
def test_labels_by_hand(
    flagged: bool, labels: list[str], hazards: set[Hazard], strange: list[str]
) -> None:
    made = verdict(flagged, labels, KNOWN)

    assert (set(made.hazards), list(made.strange)) == (hazards, strange)
    assert made.labels == tuple(dict.fromkeys(labels))


@given(st.booleans(), st.lists(st.sampled_from([*KNOWN, "gnus", ""])))
def test_what_is_flagged_or_named_is_never_harmless(flagged: bool, labels: list[str]) -> None:
    assert bool(verdict(flagged, labels, KNOWN).hazards) is (flagged or bool(labels))
