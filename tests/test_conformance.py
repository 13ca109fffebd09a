"""What every stage of the pipeline must hold, on the rows of the bundled benchmark."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from datasets import Dataset

import echo_hf.prompts
from echo_hf.answers import DirectAnswers
from echo_hf.collect.collect import Collect
from echo_hf.collect.merge import Merge
from echo_hf.collect.records import read_records
from echo_hf.collect.relevance import Relevance
from echo_hf.config import Posts, load_config
from echo_hf.context.extract import Extract
from echo_hf.context.threads import Threads
from echo_hf.curate.splits import Splits
from echo_hf.engines.base import make_engine
from echo_hf.pictures import PictureStore
from echo_hf.quickstart.show import shipped_config
from echo_hf.run import run_until
from echo_hf.stage import Stage

Case = tuple[Stage, Dataset]
STAGES = ("Collect", "Merge", "Relevance", "Threads", "Extract", "Splits")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """Each stage of the pipeline with its input rows."""
    folder = tmp_path_factory.mktemp("runs")
    target = load_config(shipped_config()).target
    rules = make_engine("rules")
    answers = DirectAnswers(rules, rules.signature())
    results = run_until(shipped_config(), "splits", runs=folder)
    collected, scored, threads, samples = (result.dataset for result in results[:4])
    stages: dict[str, Case] = {
        "Collect": (
            Collect(PictureStore(folder / "pictures")),
            read_records([Posts(source="quickstart")]),
        ),
        "Merge": (Merge(), collected),
        "Relevance": (Relevance(target, answers=answers), collected),
        "Threads": (Threads(), scored),
        "Extract": (Extract(target, answers=answers), threads),
        "Splits": (Splits(), samples),
    }
    return stages.__getitem__


def looped(stage: Stage, rows: pa.Table, sizes: random.Random) -> pa.Table:
    """The stage in a plain loop, over batches of random size where it may see batches."""
    pieces, start = [], 0
    while start < rows.num_rows:
        size = rows.num_rows if stage.whole else sizes.randint(1, 9)
        pieces.append(stage(rows.slice(start, size)))
        start += size
    return pa.concat_tables(pieces)


@pytest.mark.parametrize("name", STAGES)
def test_runners_and_batches_do_not_matter(case: Callable[[str], Case], name: str) -> None:
    """A stage gives equal rows under `Dataset.map` and in a plain loop over any batches."""
    stage, dataset = case(name)
    rows = dataset.with_format("arrow")[:]
    mapped = dataset.with_format("arrow").map(
        stage, **{**stage.map_arguments(dataset), "load_from_cache_file": False}
    )

    expected = mapped.with_format("arrow")[:].to_pylist()
    for seed in range(5):
        assert looped(stage, rows, random.Random(seed)).to_pylist() == expected


@pytest.mark.parametrize("name", STAGES)
def test_no_rows_keep_the_declared_columns(case: Callable[[str], Case], name: str) -> None:
    """On an empty table a stage gives an empty one, with the columns of any other."""
    stage, dataset = case(name)
    made = stage(dataset.features.arrow_schema.empty_table())

    assert made.num_rows == 0
    assert made.schema.equals(stage.features.arrow_schema.remove_metadata())


@pytest.mark.parametrize("name", STAGES)
def test_every_row_is_accounted_for(case: Callable[[str], Case], name: str) -> None:
    """Each input row is the parent of an output row, and no output row has strange parents."""
    stage, dataset = case(name)
    (key,) = stage.inputs.key
    made = stage(dataset.with_format("arrow")[:])
    parents = {parent for row in made["_parent"].to_pylist() for parent in row}

    assert parents == set(dataset[key])


@pytest.mark.parametrize("name", ["Threads", "Splits", "Merge"])
def test_a_stage_that_needs_all_rows_is_given_them(case: Callable[[str], Case], name: str) -> None:
    """Where rows depend on each other, one batch holds all of them."""
    stage, dataset = case(name)

    assert stage.whole
    assert stage.map_arguments(dataset)["batch_size"] == len(dataset)


@pytest.mark.parametrize("prompt", ["relevance", "extract"])
def test_an_edited_prompt_file_changes_its_stages_digest(tmp_path: Path, prompt: str) -> None:
    """One word changed in a prompt file changes the digest of the stage that sends it, only."""
    package = Path(echo_hf.prompts.__file__).parent.parent
    copied = tmp_path / "echo_hf"
    shutil.copytree(package, copied, ignore=shutil.ignore_patterns("__pycache__", "pictures"))
    script = (
        "from echo_hf.config import load_config, Target\n"
        "from echo_hf.collect.relevance import Relevance\n"
        "from echo_hf.context.extract import Extract\n"
        "t = Target(name='A', developer='B', released='2026-01-01')\n"
        "print(Relevance(t).digest(), Extract(t).digest())\n"
    )

    def digests() -> dict[str, str]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-c", script]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return dict(zip(("relevance", "extract"), done.stdout.split(), strict=True))

    before = digests()
    file = copied / "prompts" / f"{prompt}.md"
    file.write_text(file.read_text("utf-8").replace("strangers", "visitors", 1), "utf-8")
    after = digests()

    assert {name for name in before if before[name] != after[name]} == {prompt}
