"""Each metric has a card that says what it is, and the cards are part of the package."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest

import echo_hf
from echo_hf.metrics import registered
from tests.package.blocks import blocks

SECTIONS = (
    "What it answers",
    "Definition",
    "Direction and range",
    "Published and corrected",
    "What it does not see",
    "Traps",
    "Parameters",
    "How to reproduce",
)
METRICS: dict[str, Callable[..., Any]] = {
    "win_rate": echo_hf.scores.win_rate,
    "human_corrected": echo_hf.scores.human_corrected,
    **{name: metric.function for name, metric in registered().items() if metric.function},
}
CARDS = resources.files("echo_hf.metrics") / "cards"


def _sections(name: str) -> dict[str, str]:
    text = (CARDS / f"{name}.md").read_text("utf-8")
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def test_each_metric_has_a_card_and_each_card_a_metric() -> None:
    names = {*METRICS, *registered()}
    assert {card.name for card in CARDS.iterdir()} == {f"{name}.md" for name in names}


@pytest.mark.parametrize("name", METRICS)
def test_a_card_has_every_section_in_order(name: str) -> None:
    heading, *sections = _sections(name).items()
    assert heading[1].startswith("# ")
    assert f"{METRICS[name].__module__.rpartition('.')[0]}.{name}(" in heading[1]
    assert tuple(title for title, _ in sections) == SECTIONS
    assert all(text.strip() for _, text in sections)
    protocols = dict(sections)["Published and corrected"].split("\n")[1]
    assert protocols == "| | `published` | `corrected` |"


@pytest.mark.parametrize("name", METRICS)
def test_a_card_names_every_parameter_and_no_other_with_its_default(name: str) -> None:
    section, parameters = _sections(name)["Parameters"], inspect.signature(METRICS[name]).parameters
    items = re.findall(r"^- ((?:`\w+`(?:, )?)+):", section, re.MULTILINE)
    assert [one for item in items for one in re.findall(r"`(\w+)`", item)] == list(parameters)
    told = {one.partition("`:")[0]: one for one in " ".join(section.split()).split("- `") if one}
    for parameter in parameters.values():
        item = next(item for key, item in told.items() if parameter.name in re.split(r"\W+", key))
        if parameter.default not in (inspect.Parameter.empty, None):
            assert re.search(rf"(?<!\w){re.escape(str(parameter.default))}(?!\w)", item)


@pytest.mark.parametrize("name", METRICS)
def test_the_code_of_a_card_calls_the_metric(name: str) -> None:
    (code,) = blocks(_sections(name)["How to reproduce"], "python")
    nodes = list(ast.walk(ast.parse(code.text)))
    calls = [one for one in nodes if isinstance(one, ast.Call)]
    (call,) = (one for one in calls if getattr(one.func, "id", "") == name)
    inspect.signature(METRICS[name]).bind(
        *call.args, **{str(one.arg): one.value for one in call.keywords}
    )
    imported = [one.module for one in nodes if isinstance(one, ast.ImportFrom)]
    assert imported == [METRICS[name].__module__.rpartition(".")[0]]
