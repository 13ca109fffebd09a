"""Text rendering: the mean rating of the text in a system's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.metrics.base import Metric, read_card, register
from echo_hf.metrics.image_features import check_protocol
from echo_hf.metrics.result import get_versions
from echo_hf.metrics.rubric import RubricResult, average_ratings
from echo_hf.prompts import fill_prompt

if TYPE_CHECKING:  # the package of scores imports datasets
    from echo_hf.scores.votes import ProtocolName

RUBRIC = "text_rendering"
HIGHEST = 10.0
# What the released code reads from a judge's answer: whole numbers from 1.
PUBLISHED_SCALE = range(1, 11)


class TextRenderingResult(RubricResult):
    """The text rendering of one system."""


def text_rendering(
    ratings: Any,
    *,
    system: str | None = None,
    protocol: ProtocolName = "corrected",
    n_boot: int = 1000,
    seed: int = 0,
) -> TextRenderingResult:
    """Return the mean rating of the text in one system's outputs, divided by 10 (section 5.2).

    A judge's repeats are averaged first, then the judges of a sample, then the samples; higher is
    better. `published` takes whole ratings from 1 to 10, which are all that the released code
    reads; `corrected` takes any from 0 to 10. Others do not count. Where the column outcome says
    that a judge was spared samples (`not_needed`), the mean is over those that all judges rated.

    Args:
        ratings: Rows with sample_id, system, judge and rating, and repeat where there are repeats;
            of a column rubric, rows of `text_rendering` count. A Dataset, a pyarrow Table, a data
            frame, a list of dicts or a dict of columns, in any order.
        system: The system; may be left out where all rows are of one.
        protocol: `corrected` or `published`.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.

    Returns:
        `value`, `interval` and `per_sample` from 0 to 1. A sample whose output no judge rated has
        no number but a reason, as one that failed does.

    Raises:
        TableError: It is no table, a column is missing, or holds something else.
        ScoreError: A rating is infinite, two rows have the same key, no row has the rubric, the
            rows are of several systems and none is named, or a choice is unknown.

    Examples:
        >>> rows = [
        ...     {"sample_id": sample, "system": "a", "judge": judge, "rating": rating}
        ...     for sample, judge, rating in [
        ...         ("s", "one", 9), ("s", "two", 6), ("t", "one", 5), ("u", "one", None)
        ...     ]
        ... ]
        >>> result = text_rendering(rows)
        >>> result.value, result.per_sample, result.coverage == 2 / 3
        (0.625, (0.75, 0.5, None), True)
    """
    check_protocol(protocol)
    scale = "whole numbers from 1 to 10" if protocol == "published" else "0 to 10"
    definition = {
        "metric": "text_rendering",
        "protocol": protocol,
        "rubric": RUBRIC,
        "value": "mean over samples of the mean over judges of rating / 10",
        "direction": "higher is better",
        "scale": scale,
        "versions": get_versions("echo-hf", "numpy"),
    }

    def convert(ratings: NDArray[np.float64], judges: Sequence[str]) -> NDArray[np.float64]:
        del judges  # all rate from 0 to 10
        is_whole = np.isin(ratings, PUBLISHED_SCALE) if protocol == "published" else True
        return np.where((ratings >= 0) & (ratings <= HIGHEST) & is_whole, ratings, np.nan)

    options: Any = {"divisor": HIGHEST, "n_boot": n_boot, "seed": seed}
    result = average_ratings(ratings, RUBRIC, convert, definition, system, **options)
    return TextRenderingResult(**vars(result))


@register
class TextRenderingMetric(Metric):
    """The text rendering of the outputs of a run, as its judges rate it."""

    name, title = RUBRIC, "Text rendering"
    about = "how well the text in one system's outputs is written, as judges rate it, from 0 to 1"
    splits = ("text_to_image",)
    question = fill_prompt("judging/measure_text_rendering", {}).text
    paper_name, compares_samples = "Text Rendering Accuracy", False
    needs, rubric, bounds = ("ratings",), RUBRIC, (0, 1)
    card = read_card(name)
    function, result = staticmethod(text_rendering), TextRenderingResult
