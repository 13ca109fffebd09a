"""Verdicts from tones; the table is the one that careful readers would draw up."""

from __future__ import annotations

import pytest

from echo_hf.engines.rules.verdicts import Mark, Said, Tone, Verdict, decide


def verdict(*said: list[Tone], contrast: bool = False) -> str:
    """The verdict of clauses with these tones."""
    return decide(
        [Said([Mark(tone) for tone in tones]) for tones in said], contrast=contrast
    ).verdict


@pytest.mark.parametrize(
    ("tones", "expected"),
    [
        ([], "none"),
        ([Tone.AMUSED], "none"),
        ([Tone.PRAISE], "success"),
        ([Tone.WEAK_PRAISE], "success"),
        ([Tone.COMPLAINT], "failure"),
        ([Tone.WEAK_COMPLAINT], "failure"),
        ([Tone.HEDGED], "failure"),
        ([Tone.SOFTENED], "mixed"),
        ([Tone.TEMPERED], "mixed"),
        ([Tone.PRAISE, Tone.COMPLAINT], "mixed"),
        ([Tone.PRAISE, Tone.HEDGED], "mixed"),
        ([Tone.PRAISE, Tone.WEAK_COMPLAINT], "success"),
        ([Tone.WEAK_PRAISE, Tone.COMPLAINT], "failure"),
        ([Tone.AMUSED, Tone.COMPLAINT], "failure"),
        ([Tone.TEMPERED, Tone.COMPLAINT], "mixed"),
    ],
)
def test_one_clause(tones: list[Tone], expected: str) -> None:
    """Strong words decide, weak ones only where nothing stronger is said."""
    assert verdict(tones) == expected


def test_weak_praise_counts_apart() -> None:
    """Something works and something is wrong: both count; laughter before a complaint does not."""
    assert verdict([Tone.WEAK_PRAISE], [Tone.COMPLAINT]) == "mixed"
    assert verdict([Tone.AMUSED], [Tone.COMPLAINT]) == "failure"


def test_contrast_makes_weak_words_count() -> None:
    """Before a "but" weak praise is praise, and after it a weak complaint is one."""
    assert verdict([Tone.AMUSED], [Tone.COMPLAINT], contrast=True) == "mixed"
    assert verdict([Tone.PRAISE], [Tone.WEAK_COMPLAINT], contrast=True) == "mixed"


def complaint(failure: str | None, topics: list[str], nearby: list[str] | None = None) -> Said:
    """A clause that complains."""
    return Said([Mark(Tone.COMPLAINT, failure)], topics, nearby or [])


@pytest.mark.parametrize(
    ("said", "keyword"),
    [
        ([complaint("blur", [])], "blur"),
        ([complaint(None, ["hands"])], "hands"),
        ([complaint(None, [], ["hands"])], "hands"),
        ([complaint("ignored instruction", ["aspect ratio"])], "aspect ratio"),
        ([complaint("ignored instruction", []), complaint("refusal", [])], "refusal"),
        ([complaint("missing object", [])], "missing object"),
        ([complaint("identity shift", ["style mismatch"])], "style mismatch"),
        ([complaint("identity shift", ["identity shift", "style mismatch"])], "identity shift"),
        ([complaint("blur", []), complaint("refusal", [])], "blur"),
        ([complaint(None, []), Said([], ["hands"])], "hands"),
        ([complaint(None, []), Said([Mark(Tone.PRAISE)], ["hands"])], None),
    ],
)
def test_the_most_particular_failure(said: list[Said], keyword: str | None) -> None:
    """The first particular failure; what is praised is not what failed."""
    assert decide(said, contrast=False).keyword == keyword


def test_success_has_no_keyword() -> None:
    """Only failures have keywords."""
    assert decide([Said([Mark(Tone.PRAISE)], ["hands"])], contrast=False) == Verdict("success")
