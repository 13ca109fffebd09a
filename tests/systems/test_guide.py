"""What `docs/how-to/systems.md` tells to write is understood, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
from PIL import Image

from echo_hf._infra.http_errors import REFUSALS
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Outcome
from echo_hf.systems.benchmark import load_evaluation
from echo_hf.systems.generate import generate
from echo_hf.systems.google_images import HELD_BACK, UNDRAWN
from echo_hf.systems.journal import SETTLED
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT
from tests.systems.runs_for_tests import evaluation, sample, system, written

GUIDE = (ROOT / "docs" / "how-to" / "systems.md").read_text("utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """The table under a heading row: the cells of each row by the names in its first cell."""
    _, _, rest = GUIDE.partition(f"| {heading} |")
    lines = rest.split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: one for one in cells for name in re.findall(r"`(\w+)`", one[0])}


def test_every_outcome_is_told_with_whether_it_is_asked_again() -> None:
    """As the journal has it."""
    told = rows("outcome")
    assert set(told) == {outcome.value for outcome in Outcome}
    for outcome in Outcome:
        assert told[outcome][2] == ("no" if outcome in SETTLED else "yes")


def test_the_config_is_a_config(tmp_path: Path) -> None:
    """With a benchmark that is there already, and two systems."""
    (block,) = blocks(GUIDE, "yaml")
    (tmp_path / "config.yaml").write_text(block.text, "utf-8")
    config = load_evaluation(tmp_path / "config.yaml")
    assert [one.name for one in config.systems] == ["lumen_2", "drawn_before"]


def test_the_adapter_of_the_guide_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands there: a text, an edit, and one with two inputs."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    code, script = (one.text for one in blocks(GUIDE, "python"))
    exec(compile(code, "systems.md", "exec"), {"__name__": "guide"})  # noqa: S102 - our own words
    compile(script, "systems.md", "exec")
    release = written(
        tmp_path,
        [sample("text")],
        [sample("edit", input_images=["a"]), sample("two", input_images=["b", "c"])],
    )
    config = evaluation(release, system(adapter="one_color", seed=200))
    made = generate(config, runs=tmp_path)
    assert made.outcomes == {"mine": {"ok": 2, "unsupported": 1}}
    assert made.path is not None
    found = {row["sample_id"]: row for row in pq.read_table(made.path).to_pylist()}
    images = ImageStore(tmp_path / "measured" / "pictures")
    for name in ("text", "edit"):
        with Image.open(images.path(found[name]["image"])) as image:
            assert (image.size, image.getpixel((0, 0))) == ((64, 64), (200, 0, 0))
    assert (found["two"]["stage"], found["two"]["text"]) == ("task", "takes one input")


def test_every_sign_of_a_refusal_is_told() -> None:
    """Codes of moderation, and the ends of an answer that count as one; none is made up."""
    _, codes, _, gemini, *_ = GUIDE.partition("Since refusals")[2].split("\n- ")
    named, _, _ = codes.partition("or the mark")
    assert {code.lower() for code in re.findall(r"`(\w+)`", named)} == REFUSALS
    refused, _, undrawn = gemini.partition(";")
    assert set(re.findall(r"`([A-Z_]+)`", refused)) == HELD_BACK
    assert set(re.findall(r"`([A-Z_]+)`", undrawn)) == UNDRAWN
