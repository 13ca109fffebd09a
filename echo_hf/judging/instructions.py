"""What judges are told: rubrics, the form of a rating, the measures (figures E.1 to E.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from echo_hf.errors import ConfigError
from echo_hf.judging.config import JudgeConfig
from echo_hf.prompts import Prompt, filled_prompt

FOLDER = "judging"
OVERALL = "overall"
FORM = "$form"
LONGEST_PROMPT = 100_000
METRICS = ("face_identity", "color_shift", "structure_distance", "text_rendering")


def rubric_prompt(judge: JudgeConfig, rubric: str) -> Prompt:
    """The instructions of a judge for a rubric.

    Args:
        judge: The judge; its own file takes the place of the instructions of `overall`.
        rubric: Name of the rubric.

    Returns:
        The instructions, with the form of the rating filled in.

    Raises:
        ConfigError: The judge's own file cannot be read.
    """
    form = rating_form(judge)
    if judge.prompt_file is not None and rubric == OVERALL:
        return Prompt(rubric, _own(judge.name, judge.prompt_file).replace(FORM, form))
    return Prompt(rubric, filled_prompt(f"{FOLDER}/{rubric}", {"form": form}).text)


def pairwise_prompt(judge: JudgeConfig) -> Prompt:
    """The instructions for choosing between two outputs; those of a judge's own file play no part.

    Args:
        judge: The judge: its mode.

    Returns:
        The instructions, with the form of the choice filled in.
    """
    form = filled_prompt(f"{FOLDER}/choice_{judge.mode}", {}).text
    return Prompt("pairwise", filled_prompt(f"{FOLDER}/pairwise", {"form": form}).text)


def rating_form(judge: JudgeConfig) -> str:
    """How a judge is to give its rating.

    Args:
        judge: The judge: its mode and its scale.

    Returns:
        The last paragraph of its instructions.
    """
    lowest, highest = judge.scale
    fields = {
        "number": "a number, decimals allowed," if judge.decimals else "a whole number",
        "lowest": f"{lowest:g}",
        "highest": f"{highest:g}",
        "example": f"{math.floor((lowest + highest) / 2):g}",
    }
    return filled_prompt(f"{FOLDER}/rating_{judge.mode}", fields).text


def applicability_prompt(metrics: Sequence[str]) -> Prompt:
    """The instructions for saying which metrics fit a sample.

    Args:
        metrics: Names among `METRICS`.

    Returns:
        The instructions.
    """
    measures = (filled_prompt(f"{FOLDER}/measure_{metric}", {}).text for metric in metrics)
    keys = ", ".join(f'"{metric}": <0 or 1>' for metric in metrics)
    fields = {"measures": "\n\n".join(measures), "keys": keys}
    return Prompt("applicability", filled_prompt(f"{FOLDER}/applicability", fields).text)


def _own(judge: str, file: Path) -> str:
    place = f"judge {judge!r}: prompt_file {str(file)!r}"
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"{place} cannot be read ({said}): expected a text file") from None
    if not text or len(text) > LONGEST_PROMPT:
        raise ConfigError(
            f"{place} has {len(text):,} characters: expected instructions of at most "
            f"{LONGEST_PROMPT:,}"
        )
    return text
