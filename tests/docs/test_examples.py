"""What the pages show works as it stands there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.builder.build import build
from echo_hf.cli import app
from echo_hf.engines.server import ServerOptions
from echo_hf.engines.transformers import TransformersOptions
from echo_hf.engines.vllm import VllmOptions, compute_window_size
from echo_hf.tables import RATINGS
from tests.judging import run_for_tests as small
from tests.package.blocks import blocks

DOCS = Path(__file__).resolve().parents[2] / "docs"
IMPORT = (DOCS / "how-to" / "import.md").read_text("utf-8")
PIPELINE = (DOCS / "explanation" / "pipeline.md").read_text("utf-8")


def test_the_example_posts_and_config_give_a_sample(tmp_path: Path) -> None:
    config = yaml.safe_load(blocks(IMPORT, "yaml")[0].text)
    config["posts"] = [entry for entry in config["posts"] if entry["source"] == "jsonl"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (tmp_path / "posts.jsonl").write_text(blocks(IMPORT, "json")[0].text, "utf-8")
    corpus = Path(__file__).resolve().parents[2] / "echo_hf" / "quickstart" / "pictures"
    (tmp_path / "fox.png").write_bytes((corpus / "fox_teal.png").read_bytes())
    build(tmp_path / "config.yaml", runs=tmp_path)
    (sample,) = pq.read_table(tmp_path / config["name"] / "stages/extract/kept.parquet").to_pylist()

    assert sample["prompt"] == "a fox of folded paper, teal background"
    assert sample["quality"] == "Benchmark"
    assert len(sample["output_images"]) == 1


def test_the_stage_by_hand_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    (block,) = blocks(PIPELINE, "python")
    exec(block.text, names)  # noqa: S102 - our own
    (row,) = names["scored"].with_format(None)
    (kept,) = names["result"].dataset.with_format(None)
    assert row["_status"] == "kept"
    assert row["relevance"] == kept["relevance"]
    assert kept["relevance"]["score"] >= 4


def test_the_gates_workflow_comments_what_it_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, block = blocks((DOCS / "how-to" / "gate.md").read_text("utf-8"), "yaml")
    (job,) = yaml.safe_load(block.text)["jobs"].values()
    lines = [step["run"].split() for step in job["steps"] if "run" in step]
    (arguments,) = [words[1:] for words in lines if words[:2] == ["echo-hf", "compare"]]
    config = small.run(tmp_path, {}, [str(at) for at in range(60)])
    config.rename(tmp_path / arguments[1])
    rated = [small.rating(str(at), name, 5.0) for at in range(60) for name in arguments[2:4]]
    small.write(tmp_path, RATINGS, rated)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "non-inferior" in (tmp_path / lines[-1][-1]).read_text("utf-8")


def test_the_gates_code_finds_the_misspelt_text_worse(
    quickstart_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(quickstart_run.parents[1])
    names: dict[str, Any] = {}
    (block,) = blocks((DOCS / "how-to" / "gate.md").read_text("utf-8"), "python")
    exec(block.text, names)  # noqa: S102 - our own
    assert names["found"].difference < 0


def test_what_a_kill_asks_for_twice_is_named_with_its_numbers() -> None:
    said = " ".join(PIPELINE.split())
    server, batch = ServerOptions(model="m").concurrency, TransformersOptions(model="m").batch_size
    local = compute_window_size(VllmOptions(model="m").max_num_seqs)
    assert f"`concurrency` requests of a server ({server} by default)" in said
    assert f"{local} of `vllm` (a tenth more than `max_num_seqs`), a batch" in said
    assert f"a batch of `transformers` ({batch})" in said
