"""What failures of image models are called, gathered from the lists of words that tell them.

`FAULTS` say by themselves that something failed. `TOPICS` only name what is spoken of.
"""

from __future__ import annotations

from types import ModuleType

from echo_hf.engines.rules.verdicts import (
    failures_of_colour,
    failures_of_form,
    failures_of_obedience,
    failures_of_people,
    failures_of_reasoning,
    failures_of_style,
    failures_of_text,
)

THEMES: tuple[ModuleType, ...] = (
    failures_of_people,
    failures_of_colour,
    failures_of_text,
    failures_of_form,
    failures_of_style,
    failures_of_obedience,
    failures_of_reasoning,
)
FAULTS = {failure: said for theme in THEMES for failure, said in theme.FAULTS.items()}
TOPICS = {topic: words for theme in THEMES for topic, words in theme.TOPICS.items()}
HAN_FAULTS = {failure: said for theme in THEMES for failure, said in theme.HAN_FAULTS.items()}
HAN_TOPICS = {topic: words for theme in THEMES for topic, words in theme.HAN_TOPICS.items()}
SUBJECTS = failures_of_people.SUBJECTS

IDENTITY = "identity shift"
HANDS = "hands"
TEXT = "text rendering"
MISSPELT = "misspelt text"
COLOUR = "colour"
COUNTING = "counting"
STYLE = "style mismatch"
IGNORED = "ignored instruction"
MISSING = "missing object"
INCONSISTENCY = "inconsistency"
SEVERAL_TRIES = "several tries"
# Where a complaint names one of these and something more particular, the latter is the failure.
GENERAL = frozenset(
    {
        IGNORED,
        INCONSISTENCY,
        MISSING,
        "consistency",
        "extra object",
        "layout",
        "prompt adherence",
    }
)
# What should stay as it is: to say that it changed is to complain.
FRAGILE = frozenset(
    {
        IDENTITY,
        HANDS,
        TEXT,
        COLOUR,
        STYLE,
        "anatomy",
        "background",
        "clothing",
        "expression",
        "hair",
        "layout",
        "lighting",
        "logo",
        "perspective",
        "proportions",
        "skin tone",
    }
)
WHEN_CHANGED = {TEXT: "altered text", COLOUR: "colour drift"}
# Who mentions one of these without a word of praise has mostly found it wrong.
CRITICAL = frozenset(
    {
        IDENTITY,
        HANDS,
        TEXT,
        "anatomy",
        "aspect ratio",
        "clock",
        "missing accent",
        "reflections",
        "transparency",
    }
)
