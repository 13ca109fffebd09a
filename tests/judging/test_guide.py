"""What `docs/how-to/judges.md` tells a reader to write is understood, and its tables are whole."""

from __future__ import annotations

from pathlib import Path

from echo_hf.config.judges import read_judge, shipped_judges
from echo_hf.reasons import Failed, Outcome, Unrated
from echo_hf.systems.benchmark import load_evaluation
from tests.markdown_for_tests import cells
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT

GUIDE = (ROOT / "docs" / "how-to" / "judges.md").read_text("utf-8")
ROWS = {row[0]: row[1:] for row in reversed(cells(GUIDE))}  # the first of a name counts


def test_the_config_is_one(tmp_path: Path) -> None:
    """With two judges that come along, one of its own, and applicability."""
    (example,) = blocks(GUIDE, "yaml")
    (tmp_path / "my_config.yaml").write_text(example.text, "utf-8")
    config = load_evaluation(tmp_path / "my_config.yaml")
    assert [one.name for one in config.judges] == ["qwen2_5_vl_32b", "gpt_4o", "strict"]
    assert config.applicability is not None


def test_every_judge_that_comes_along_is_there() -> None:
    """With its model, and with what it stands in for where that is gone."""
    for file in shipped_judges():
        model, status = ROWS[f"judges/{file.name}"]
        judge = read_judge(file)
        assert str(judge.engine.options["model"]) in model
        words = {"substitute": "stands in for", "as_published": "as published"}
        assert status.startswith(words.get(judge.status, judge.status))


def test_every_outcome_is_there() -> None:
    """But those that no judge's row has."""
    never = {Failed.NEEDS_MODEL, Failed.NOT_ANSWERED}
    every = {
        Outcome.OK.value,
        *map(str, Unrated),
        *(str(one) for one in Failed if one not in never),
    }
    named = {name for first in ROWS for name in first.split(", ")}
    assert every <= named
