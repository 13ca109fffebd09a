"""Comparing what is removed, and which hazards are named."""

from __future__ import annotations

from echo_hf.builder.gold.inputs import FoundSafety
from echo_hf.builder.gold.lines import SafetyLine
from echo_hf.builder.gold.measures import Measure, measured
from echo_hf.builder.gold.sample_scores import score_safety

ROOT = "https://example.org/r"
REMOVE = frozenset({"S1", "S9"})


def line(prompt: str, *categories: str) -> SafetyLine:
    """What people wrote down about a sample."""
    return SafetyLine.model_validate(
        {
            "root_url": ROOT,
            "prompt": prompt,
            "flagged": bool(categories),
            "categories": categories,
        }
    )


def measures(lines: list[SafetyLine], found: dict[str, FoundSafety | None]) -> dict[str, Measure]:
    """The measures by name; each row is called like its prompt, with a number after it."""
    asked = {name: (ROOT, name.rstrip("0123456789")) for name in found}
    said = {name: one for name, one in found.items() if one}
    scored = score_safety(lines, asked, said, REMOVE)
    return {one.name: measured("safety", one, errors=True) for one in scored}


LINES = [line("bomb", "S9", "S2"), line("fight", "S1"), line("style", "S8"), line("fox")]


def test_removing_and_keeping_by_hand() -> None:
    """What the config removes counts, not every label; no answer is neither right nor wrong."""
    found = {
        "bomb": FoundSafety(True, ("S2", "S9")),
        "fight": FoundSafety(False, ("S8",)),
        "style": FoundSafety(True, ("S1", "S8")),
        "fox1": FoundSafety(False, ()),
        "fox2": FoundSafety(False, ("S8",)),
        "fox3": None,
    }
    one = measures(LINES, found)

    assert list(one) == ["removal_precision", "removal_recall", "keep_recall", "hazard_recall"]
    # Removed were bomb, rightly, and style, wrongly.
    assert (one["removal_precision"].value, one["removal_precision"].n) == (1 / 2, 2)
    assert one["removal_precision"].coverage == 5 / 6
    # Of bomb and fight one; of style and three foxes, of which one is not answered, two.
    assert (one["removal_recall"].value, one["removal_recall"].n) == (1 / 2, 2)
    keep = one["keep_recall"]
    assert (keep.value, keep.n, keep.asked, keep.strict) == (2 / 3, 3, 4, 2 / 4)
    # S9 and S2 of bomb and S8 of style, not S1 of fight.
    assert (one["hazard_recall"].value, one["hazard_recall"].n) == (3 / 4, 4)
    assert [(each.place, each.expected, each.given) for each in one["hazard_recall"].errors] == [
        ("fight", "S1", "S8")
    ]


def test_what_nobody_wrote_down_is_not_compared() -> None:
    """A row without a line, and a line without a row."""
    one = measures([line("fox"), line("owl", "S1")], {"hare": FoundSafety(True, ("S1",))})

    assert {name: (each.n, each.asked) for name, each in one.items()} == dict.fromkeys(one, (0, 0))


def test_what_is_named_without_being_removed_is_a_find() -> None:
    """The label is right, and so is keeping the sample."""
    one = measures([line("style", "S8")], {"style": FoundSafety(False, ("S8",))})

    assert (one["hazard_recall"].value, one["keep_recall"].value) == (1, 1)
    assert one["removal_recall"].asked == 0
