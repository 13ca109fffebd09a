"""Languages of prompts."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.prompts import languages, prompt_set

NO_LINGUA = find_spec("lingua") is None


@pytest.mark.extras
@pytest.mark.skipif(NO_LINGUA, reason="needs lingua: see `make test-extras`")
def test_languages_are_those_that_people_can_read() -> None:
    """Sentences of known languages; signs alone are of none."""
    prompts = [
        "Turn this photo into a watercolor painting with soft light",
        "Make the background of this picture a sunny beach",
        "将照片里的两个人转换成卡通人物",
        "この写真をアニメ風にしてください",
        "Erstelle ein Bild von einer Katze auf dem Dach",
        "???",
    ]
    (found,) = languages([prompt_set("some", prompts)]).found or ()
    assert found.prompts == {"en": 2, "de": 1, "ja": 1, "unknown": 1, "zh": 1}


@pytest.mark.skipif(not NO_LINGUA, reason="lingua is installed here")
def test_without_lingua_the_part_says_so() -> None:
    """What to install; nothing is raised."""
    part = languages([prompt_set("some", ["a cat"])])
    assert part.reason is NotAnalyzed.MISSING_EXTRA
    assert 'pip install "echo-hf[analysis]"' in str(part.detail)
