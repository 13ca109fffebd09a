"""What `docs/systems.md` and the README tell to write is understood, word for word."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
import typer.main
from PIL import Image
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from echo_hf._infra.http_errors import REFUSALS
from echo_hf.cli import app
from echo_hf.config.systems import Limits, Price, SystemConfig
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Outcome
from echo_hf.systems.benchmark import load_evaluation
from echo_hf.systems.generate import generate
from echo_hf.systems.google_images import HELD_BACK, UNDRAWN
from echo_hf.systems.journal import SETTLED
from tests.stages_for_tests import ROOT
from tests.systems.runs_for_tests import evaluation, sample, system, written

GUIDE = (ROOT / "docs" / "systems.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    """Every example in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def rows(heading: str) -> dict[str, list[str]]:
    """The table under a heading row: the cells of each row by the names in its first cell."""
    _, _, rest = GUIDE.partition(f"| {heading} |")
    lines = rest.split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: one for one in cells for name in re.findall(r"`(\w+)`", one[0])}


@pytest.mark.parametrize(
    ("heading", "model"),
    [("key", SystemConfig), ("key of `limits`", Limits), ("key of `price`", Price)],
)
def test_every_key_is_told_with_its_default(heading: str, model: type[BaseModel]) -> None:
    """No key is missing, none is made up, and the defaults are those of the code."""
    told = rows(heading)
    assert list(told) == list(model.model_fields)
    words = {None: {"none", "no limit", "the adapter's own"}}
    for name, field in model.model_fields.items():
        default: Any = field.default
        if isinstance(default, str | int | float):
            shown = {f"`{default}`", f"{default:g}" if not isinstance(default, str) else ""}
        elif isinstance(default, BaseModel):
            shown = {"as below"}
        elif default is PydanticUndefined:
            shown = {""}
        else:
            shown = words.get(default or None, set())
        assert told[name][1] in shown, name


def test_every_outcome_is_told_with_whether_it_is_asked_again() -> None:
    """As the journal has it."""
    told = rows("outcome")
    assert set(told) == {outcome.value for outcome in Outcome}
    for outcome in Outcome:
        assert told[outcome][2] == ("no" if outcome in SETTLED else "yes")


@pytest.mark.parametrize("page", [GUIDE, README], ids=["guide", "readme"])
def test_the_configs_are_configs(page: str, tmp_path: Path) -> None:
    """With a benchmark that is there already, and two systems."""
    (text,) = (block for block in blocks(page, "yaml") if "benchmark:" in block)
    (tmp_path / "config.yaml").write_text(text, "utf-8")
    config = load_evaluation(tmp_path / "config.yaml")
    assert [one.name for one in config.systems] == ["lumen_2", "drawn_before"]


def test_the_commands_are_commands() -> None:
    """Verbs and options that the command line knows."""
    lines = [*blocks(GUIDE, "bash")[0].splitlines(), *re.findall(r"^echo-hf .*", README, re.M)]
    told = [
        shlex.split(line, comments=True)
        for line in lines
        if "generate" in line or "systems" in line
    ]
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert len(told) >= 7
    for _, verb, *rest in told:
        known = {name for option in verbs[verb].params for name in option.opts}
        assert {word for word in rest if word.startswith("--")} <= known


def test_the_adapter_of_the_guide_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands there: a text, an edit in the size of its input, and one with two inputs."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    code, script = blocks(GUIDE, "python")
    exec(compile(code, "docs/systems.md", "exec"), {"__name__": "guide"})  # noqa: S102 - our own words
    compile(script, "docs/systems.md", "exec")
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
    sizes = {}
    for name in ("text", "edit"):
        with Image.open(images.path(found[name]["image"])) as image:
            sizes[name] = image.size
            assert image.getpixel((0, 0)) == (200, 0, 0)
    assert sizes == {"text": (64, 64), "edit": (8, 8)}
    assert (found["two"]["stage"], found["two"]["text"]) == ("task", "takes one input")


def test_every_sign_of_a_refusal_is_told() -> None:
    """Codes of moderation, and the ends of an answer that count as one; none is made up."""
    table, _, rest = GUIDE.partition("Since refusals decide")[2].partition(
        "Codes of moderation are"
    )
    codes, _, _ = rest.partition("and the mark")
    assert {code.lower() for code in re.findall(r"`(\w+)`", codes)} == REFUSALS
    gemini = next(line for line in table.splitlines() if line.startswith("| Gemini"))
    _, refused, undrawn, failed = (
        set(re.findall(r"`([A-Z_]+)`", cell)) for cell in gemini.strip("|").split("|")
    )
    assert (refused, undrawn) == (HELD_BACK, UNDRAWN)
    assert not failed & (HELD_BACK | UNDRAWN)
