"""Results are short where they are shown, however large they are, and their texts stay text."""

from __future__ import annotations

import dataclasses
import inspect
import random
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import echo_hf
from echo_hf import metrics, scores
from echo_hf._infra.summary import SummaryMixin, shorten
from echo_hf.hub.manifest import Manifest
from echo_hf.hub.release import read_release
from echo_hf.metrics import MetricResult, Unmeasured
from echo_hf.metrics.result import MetricReason
from echo_hf.report.analysis.result import Analysis

HOSTILE = "<script>alert(1)</script>\n& <b>"
NO_RESULT = (
    *(
        "ColorShift",
        "InputCache",
        "Unmeasured",
        "Unlinked",
        "Unreliable",
        "Untested",
    ),  # arguments, reasons
    *("Bend", "Change", "Difference", "Estimate", "Purchase", "Tries"),  # parts of a result
    "VarianceSplit",
    *(
        "Config",
        "EchoError",
        "EngineChoice",
        "Metric",
        "MetricReason",
        "ModelStage",
        "Stage",
        "Store",
    ),
)


def rated(systems: list[str], samples: int = 40) -> list[dict[str, Any]]:
    draw = random.Random(7)
    return [
        {"sample_id": str(at), "system": name, "judge": judge, "rating": draw.randint(1, 10)}
        for at in range(samples)
        for name in systems
        for judge in ("mira", "nils")
    ]


class Cells(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_every_result_that_users_get_is_shown_short() -> None:
    kinds = {
        name: getattr(part, name)
        for part in (echo_hf, metrics, scores)
        for name in part.__all__
        if inspect.isclass(getattr(part, name)) and name not in NO_RESULT
    }
    kinds |= {"Manifest": Manifest, "Analysis": Analysis}
    for name, kind in kinds.items():
        assert issubclass(kind, SummaryMixin), name
        assert kind.__repr__.__qualname__.split(".")[0] in ("SummaryMixin", "SystemValuesPlot"), (
            name
        )


@pytest.mark.parametrize("systems", [2, 20])
@pytest.mark.parametrize(
    "score",
    [scores.win_rate, scores.tiers, scores.bradley_terry, scores.sensitivity, scores.bounds],
)
def test_a_score_is_a_line_and_a_small_table(score: Any, systems: int) -> None:
    names = [HOSTILE, *(f"system {at}" for at in range(1, systems))]
    result = score(rated(names), **({"n_boot": 0} if score is scores.win_rate else {}))
    assert len(repr(result)) < 700
    assert "\n" not in repr(result)
    table = Cells(result._repr_html_())
    assert table.tags <= {"table", "caption", "tr", "th", "td", "p"}
    assert len(table.texts) < 600
    assert type(result).__name__ in table.texts


def test_a_system_stands_with_its_value_and_interval() -> None:
    rows = {"sample_id": [*"123123"], "system": [*"aaabbb"], "judge": ["j"] * 6}
    result = scores.win_rate({**rows, "rating": [8, 9, 7, 8, 5, 7]})
    assert repr(result) == "WinRate('a': 0.6667, 'b': 0.3333)"
    known = dataclasses.replace(result, interval={"a": (0.25, 0.875), "b": None})
    assert repr(known) == "WinRate('a': 0.6667 (0.25 to 0.875), 'b': 0.3333)"
    assert "0.6667" in Cells(result._repr_html_()).texts


def test_a_release_says_how_many_rows_it_has(quickstart_run: Path) -> None:
    release = read_release(quickstart_run / "release")
    said = repr(release)
    assert said.startswith("Release(name='quickstart', path=")
    assert f"image_to_image={len(release.datasets['image_to_image'])}" in said


def test_a_metric_of_many_samples_is_counted() -> None:
    missing = Unmeasured(MetricReason.MISSING_OUTPUT)
    result = MetricResult(
        value=0.123456,
        per_sample=(0.5,) * 1000,
        interval=(0.1, 0.2),
        n=1000,
        coverage=1.0,
        reasons=(missing,) * 1000,
        definition={str(at): at for at in range(9)},
    )
    assert repr(result) == (
        "MetricResult(value=0.1235, per_sample=<tuple of 1,000>, interval=(0.1, 0.2), n=1000, "
        "coverage=1, reasons=<tuple of 1,000>, definition=<dict of 9>, notices={})"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (3, "3"),
        (2 / 3, "0.6667"),
        ("a\nb", r"'a\nb'"),
        ("x" * 100, "'" + "x" * 59 + "…'"),
        ((), "()"),
        ({"a": (0.1, 0.2), "b": None}, "{'a': (0.1, 0.2), 'b': None}"),
        ([1, 2, 3, 4, 5], "<list of 5>"),
        ([object()], "<list of 1>"),
    ],
)
def test_values_are_short(value: object, shown: str) -> None:
    assert shorten(value) == shown
