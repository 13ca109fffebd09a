"""The arithmetic of docs/scale.md is that of the package's own list."""

from __future__ import annotations

import re

import pytest

from echo_hf.engines.estimate import listed_calls
from echo_hf.engines.prices import price_list
from tests.stages_for_tests import ROOT

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
    for name, share in price_list()["stages"].items():
        if name != "as_of":
            model, asked = (
                listed_calls()[GUARD if name == "safety" else READER],
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


def test_the_table_has_the_three_sizes() -> None:
    assert [row[0] and row[0].group(1) for row in ROWS] == ["68,000", "1,000,000", "100,000,000"]
