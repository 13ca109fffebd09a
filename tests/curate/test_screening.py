"""What several looks make of a sample."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.sections import NAMED, Hazard
from echo_hf.curate.guards import KNOWN, GuardInput, verdict
from echo_hf.curate.safety import Screening
from tests.samples_for_tests import digest, post, sample

SAMPLE = sample([post(0, -1, "prompt", "a")], [0])
LABELS = st.lists(st.sampled_from([*map(str, NAMED), "S0", "S77"]), max_size=3)
REMOVED = st.frozensets(st.sampled_from(NAMED))


def screening(*labels: list[str]) -> Screening:
    """Looks at one image, each with these labels."""
    looks = [GuardInput((digest("a"),))] * len(labels)
    return Screening(looks, [verdict(bool(one), one, KNOWN) for one in labels])


@given(st.lists(LABELS, min_size=1, max_size=4), REMOVED)
def test_a_sample_is_removed_for_any_label_that_is(
    labels: list[list[str]], remove: frozenset[Hazard]
) -> None:
    """By brute force over all labels of all looks: those that no list knows always count."""
    row = screening(*labels).row(SAMPLE, remove, "guard", {})
    said = [label for some in labels for label in some]
    strange = [label for label in said if label in ("S0", "S77")]

    assert row["has_nsfw"] == any(label in strange or label in remove for label in said)
    assert row["safety"]["flagged"] == bool(said)
    codes = sorted({*said} - {*strange}, key=lambda code: int(code[1:]))
    assert row["safety"]["categories"] == codes + ["unknown"] * bool(strange)
    assert row["safety"]["model"] == "guard"


def test_every_look_is_written_down() -> None:
    """Beside what earlier stages wrote, with what made the decision; strange labels once."""
    looks = screening(["S9", "S77"], [], ["S77"])
    said = json.loads(looks.row(SAMPLE, (), "guard", {"digest": "x"})["provenance"])

    assert said["extract"] == {"digest": "d"}
    assert said["safety"]["digest"] == "x"
    assert [(one["labels"], one["categories"]) for one in said["safety"]["looks"]] == [
        (["S9", "S77"], ["S9", "unknown"]), ([], []), (["S77"], ["unknown"]),
    ]  # fmt: skip
    assert looks.strange == ["'S77'"]
