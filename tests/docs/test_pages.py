"""The pages of the documentation: all to be found, and true of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import echo_hf
from echo_hf.config.loading import load_config
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.config.systems import shipped_config
from echo_hf.engines.planner import estimate_tokens, read_call_prices
from echo_hf.engines.prices import read_price_list
from echo_hf.prompts import load_prompt
from echo_hf.tables import TABLES
from tests.markdown_for_tests import cells, shown
from tests.stages_for_tests import ROOT
from tests.test_errors import EVERY

DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS)): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
GENERATED = {f"reference/{name}.md" for name in ("api", "cli", "config")}
WRITTEN = {name: text for name, text in PAGES.items() if name not in GENERATED}
SITE = "https://echo-hf.github.io/echo-hf/"


def named(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        yield from named([*entry.values()])
    elif isinstance(entry, list):
        for one in entry:
            yield from named(one)


def test_every_page_is_in_the_navigation() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    assert sorted(named(navigation)) == sorted(PAGES)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_is_read_without_a_program_that_fills_it(name: str) -> None:
    """As GitHub shows it: what a plug-in of mkdocs would put in its place is no text."""
    assert not re.search(r"^(--8<--|:::|;--8<--)|\{%|\[TOC\]", PAGES[name], re.M)


def test_the_reference_lists_every_table_column_and_reason() -> None:
    rows = {row[0] for row in cells(PAGES["reference/tables.md"])}
    assert rows >= {name for table in TABLES.values() for name in table.columns}
    assert rows >= {reason.value for reason in EVERY}


@pytest.mark.parametrize("card", [*(ROOT / "echo_hf" / "metrics" / "cards").iterdir()])
def test_a_metric_has_the_page_that_the_package_brings(card: Path) -> None:
    assert shown(PAGES[f"reference/metrics/{card.name}"]) == shown(card.read_text("utf-8"))


@pytest.mark.parametrize("part", [echo_hf, echo_hf.scores, echo_hf.metrics])
def test_the_reference_explains_every_public_name(part: ModuleType) -> None:
    headings = re.findall(r"^### (.+)$", PAGES["reference/api.md"], re.M)
    public = {name for name in part.__all__ if name not in ("__version__", "metrics", "scores")}
    assert {f"{part.__name__}.{name}" for name in public} <= {*headings}


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_no_page_names_a_verb_that_is_gone(name: str) -> None:
    gone = "|".join([*(stage for stage in STAGES if stage != "collect"), "keywords"])
    assert not re.search(rf"\becho-hf ({gone})\b", WRITTEN[name])


def test_addresses_in_the_package_are_pages() -> None:
    files = [*ROOT.glob("echo_hf/**/*"), *ROOT.glob("eval_configs/**/*"), *ROOT.glob("*.md")]
    texts = [one.read_text("utf-8") for one in files if one.suffix in {".py", ".md", ".yaml"}]
    linked = {one for text in texts for one in re.findall(rf"{re.escape(SITE)}([\w/-]*)", text)}
    pages = {str(Path(name).with_suffix("")) + "/" for name in PAGES} | {""}
    assert "how-to/platforms/" in linked
    assert linked <= pages


READER, GUARD = "Qwen/Qwen2.5-VL-7B-Instruct", "meta-llama/Llama-Guard-4-12B"
NUMBER = re.compile(r"([\d.,]*\d)( thousand| million| billion| days| h|)")
UNITS = {" thousand": 1e3, " million": 1e6, " billion": 1e9, " days": 24.0}
TEXT = (ROOT / "docs" / "scale.md").read_text("utf-8")
ROWS = [
    [NUMBER.match(cell.strip()) for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if re.match(r"\| \d", line)
]
A_POST = re.findall(r"\b(answers|stages|release|cache)\s([\d,]+\d)", TEXT)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].group(1))
def test_what_a_build_takes(row: list[re.Match[str]]) -> None:
    posts, calls, tokens, hours, of_eight, gigabytes = (
        float(one.group(1).replace(",", "")) * UNITS.get(one.group(2), 1.0) for one in row
    )
    expected = {"calls": 0.0, "tokens": 0.0, "seconds": 0.0}
    for name, share in read_price_list()["stages"].items():
        if name != "as_of":
            model, asked = (
                read_call_prices()[GUARD if name == "safety" else READER],
                posts * share["calls"],
            )
            images = share["images"] * model.image_tokens.likely
            expected["calls"] += asked
            expected["tokens"] += asked * (share["text"] + images)
            expected["seconds"] += asked * model.seconds.likely
    assert calls == pytest.approx(expected["calls"], rel=0.01)
    assert tokens == pytest.approx(expected["tokens"], rel=0.01)
    assert hours == pytest.approx(expected["seconds"] / 3600, rel=0.05)
    assert of_eight == pytest.approx(hours / 8, rel=0.05)
    assert {name for name, _ in A_POST} == {"answers", "stages", "release", "cache"}
    a_post = sum(float(size.replace(",", "")) for _, size in A_POST)
    assert gigabytes == pytest.approx(posts * a_post / 1e9, rel=0.02)


def test_the_table_is_read() -> None:
    assert len(ROWS) >= 3


PROMPT_NAMES = ("relevance", "extract", "roles", "screenshots", "feedback", "safety")
COSTS = (ROOT / "docs" / "how-to" / "costs.md").read_text("utf-8")
DOLLARS = [
    [cell.strip(" `$").replace(",", "") for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| `g")
]


@pytest.mark.parametrize("row", DOLLARS, ids=" ".join)
def test_what_a_build_costs(row: list[str]) -> None:
    """By hand from the list: each call's text, images and answer, with the model's thoughts."""
    model, posts, plain, packed, batched, both, a_sample = row
    prices = read_price_list()
    price = next(
        listed
        for server in ("api.openai.com", "generativelanguage.googleapis.com")
        for listed in prices["servers"][server]
        if model in listed["models"]
    )
    listed_call = read_call_prices().get(model)
    image = listed_call.image_tokens.likely if listed_call else 1280
    thoughts = listed_call.thought_tokens.likely if listed_call else 0
    usd, saved = 0.0, 0.0
    for name, share in prices["stages"].items():
        if name != "as_of":
            prompt, calls = share["text"] + share["images"] * image, int(posts) * share["calls"]
            answer = share["answer"] + thoughts
            usd += calls * (prompt * price["prompt"] + answer * price["completion"]) / 1e6
            # A sixteenth of the longer instructions, the post, and its number in both directions.
            packed_prompt = 508 / 16 + (share["text"] - 425 + 4)
            less = (prompt - packed_prompt) * price["prompt"] - 4 * price["completion"]
            saved += calls * less / 1e6 if name == "relevance" else 0.0
    assert float(plain) == pytest.approx(usd, rel=0.01, abs=1)
    assert float(packed) == pytest.approx(usd - saved, rel=0.01, abs=1)
    assert float(batched) == pytest.approx(usd / 2, rel=0.01, abs=1)
    assert float(both) == pytest.approx((usd - saved) / 2, rel=0.01, abs=1)
    assert float(a_sample) == pytest.approx((usd - saved) / 2 / (int(posts) * 48 / 121), abs=6e-5)


def test_lengths_of_instructions_are_those_of_the_prompts() -> None:
    target = load_config(shipped_config()).target
    rows = re.findall(r"^\| `(\w+)`(, several posts)? \| ([\d,]+)", COSTS, re.M)
    shown = {(name + ("_packed" if packed else "")): count for name, packed, count in rows}
    assert shown.keys() == {*PROMPT_NAMES, "relevance_packed"}
    for name, count in shown.items():
        assert int(count.replace(",", "")) == estimate_tokens(load_prompt(name, target).text)


def test_the_table_of_dollars_is_read() -> None:
    assert len(DOLLARS) >= 8
