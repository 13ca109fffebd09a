"""What every stage of the pipeline must hold, on the rows of the bundled benchmark."""

from __future__ import annotations

import dataclasses
import hashlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset

from echo_hf import prompts
from echo_hf.builder.build import run_until
from echo_hf.collect.collect import Collect, PostMerge
from echo_hf.collect.download import Download
from echo_hf.collect.records import read_records
from echo_hf.collect.relevance import Relevance
from echo_hf.config.loading import load_config
from echo_hf.config.sections import BUILT_IN_STAGES as BUILD
from echo_hf.config.sections import PostsSource, Target
from echo_hf.config.systems import shipped_config
from echo_hf.curate.feedback import Feedback
from echo_hf.curate.privacy import AuthorKey, Privacy
from echo_hf.curate.safety import Safety
from echo_hf.curate.splits import Splits
from echo_hf.engines.base import ImageRef, Request, make_engine
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import DirectAnswers
from echo_hf.pipeline.result import read_keys, sort_rows
from echo_hf.pipeline.stage import Stage
from echo_hf.samples.extract import Extract
from echo_hf.samples.roles import Roles
from echo_hf.samples.screenshots import Screenshots
from echo_hf.samples.tasks import AbsentImageAnswer
from echo_hf.samples.threads import Threads
from tests.samples_for_tests import Speaking

Case = tuple[Stage, Dataset]
BY_CHANCE = " by chance"
STAGES = (
    *("Collect", "Merge", "Relevance", "Threads", "Download", "Extract", "Roles"),
    *("Roles by chance", "Screenshots", "Screenshots by chance", "Safety", "Safety by chance"),
    *("Feedback", "Feedback by chance", "Privacy", "Privacy with a key", "Splits"),
)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    folder = tmp_path_factory.mktemp("runs")
    target = load_config(shipped_config()).target
    engine = make_engine("recorded", source="quickstart")
    answers = DirectAnswers(engine, engine.signature())
    records = read_records([PostsSource(source="quickstart")])
    results = run_until(shipped_config(), "splits", runs=folder)
    images = ImageStore(folder / "quickstart" / "pictures")
    after = dict(zip(BUILD, (one.dataset for one in results), strict=True))
    threads, samples, shown = after["download"], after["extract"], after["roles"]
    chance = DirectAnswers(speaking := Speaking(said_by_chance), speaking.signature())
    told_apart = made(Roles(target, images, 2, answers=chance), samples)
    stages: dict[str, Case] = {
        "Collect": (Collect(images), records),
        "Merge": (PostMerge(), made(Collect(images), records)),
        "Relevance": (Relevance(target, answers=answers), after["collect"]),
        "Threads": (Threads(), after["relevance"]),
        "Download": (Download(images), after["threads"]),
        "Extract": (Extract(target, answers=answers), threads),
        "Roles": (Roles(target, images, answers=answers), samples),
        "Roles by chance": (Roles(target, images, 2, answers=chance), samples),
        "Screenshots": (Screenshots(target, images, answers=answers), shown),
        "Screenshots by chance": (Screenshots(target, images, answers=chance), told_apart),
        "Safety": (Safety(target, images, answers=answers), after["feedback"]),
        "Safety by chance": (Safety(target, images, "llama_guard", answers=chance), told_apart),
        "Feedback": (Feedback(target, answers=answers), after["screenshots"]),
        "Feedback by chance": (Feedback(target, answers=chance), told_apart),
        "Privacy": (Privacy(), after["safety"]),
        "Privacy with a key": (Privacy(key=AuthorKey(b"an invented key")), after["safety"]),
        "Splits": (Splits(), after["privacy"]),
    }
    return stages.__getitem__


def said_by_chance(request: Request) -> Any:
    first = request.messages[-1].parts[0]
    asked = first.sha256 if isinstance(first, ImageRef) else first
    chance = random.Random(hashlib.sha256(f"{request.task} {asked}".encode()).digest())
    if chance.random() < (1 / 2 if request.task == "screenshots" else 1 / 5):
        return None
    if request.answer is AbsentImageAnswer:
        return {"needs_absent_image": chance.choice([None, True, False])}
    if request.task == "roles":
        return {"samples": [_roles_by_chance(request, chance) for _ in range(chance.randrange(4))]}
    if request.task == "screenshots":
        return _boxes_by_chance(chance)
    if request.task == "safety":
        return chance.choice(["safe", "unsafe\nS8", "unsafe\nS9,S2", "unsafe\nS99", "unsafe"])
    if "comments" not in request.inputs:
        return {"task_phrase": chance.choice([None, "Draw a fox.", "fox"])}
    verdicts = [
        {
            "comment": chance.randrange(len(request.inputs["comments"]) + 1),
            "verdict": chance.choice(["success", "failure", "mixed", "none"]),
            "keyword": chance.choice([None, "hands"]),
        }
        for _ in range(chance.randrange(6))
    ]
    return {"kind": chance.choice([None, "task", "probe"]), "task": "edit", "feedback": verdicts}


def _boxes_by_chance(chance: random.Random) -> dict[str, Any]:
    columns = [[20, 480], [520, 980]]
    chance.shuffle(columns)
    boxes = [[left, 100, right, chance.choice([90, 600, 1200])] for left, right in columns]
    cut = chance.randrange(3)
    prompt = chance.choice([None, "", "a fox in the snow"])
    return {"prompt": prompt, "inputs": boxes[:cut], "outputs": boxes[cut:]}


def _roles_by_chance(request: Request, chance: random.Random) -> dict[str, Any]:
    count = len(request.inputs["pictures"]) + 2
    blanks = [
        {"placeholder": blank, "value": chance.choice(["cat", "dog"])}
        for blank in request.inputs["placeholders"]
    ]
    return {
        "inputs": [chance.randrange(count) for _ in range(chance.randrange(3))],
        "outputs": [chance.randrange(count) for _ in range(chance.randrange(3))],
        "posts": [chance.randrange(5) for _ in range(chance.randrange(3))],
        "prompt_fill_blank": chance.choice([blanks, []]),
        "conversation": chance.choice([None, None, None, 1]),
    }


def made(stage: Stage, dataset: Dataset) -> Dataset:
    rows = Dataset(stage(dataset.with_format("arrow")[:]))
    return sort_rows(stage, dataset, rows).dataset


def looped(stage: Stage, rows: pa.Table, sizes: random.Random) -> pa.Table:
    pieces, start = [], 0
    while start < rows.num_rows:
        size = rows.num_rows if stage.whole else sizes.randint(1, 9)
        pieces.append(stage(rows.slice(start, size)))
        start += size
    return pa.concat_tables(pieces)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_keeps_its_contract(case: Callable[[str], Case], name: str) -> None:
    """Runners and batches do not matter, no row is lost, and no rows keep the declared columns."""
    stage, dataset = case(name)
    rows = dataset.with_format("arrow")[:]
    arguments = stage.map_arguments(dataset)
    mapped = dataset.with_format("arrow").map(stage, **{**arguments, "load_from_cache_file": False})
    expected = mapped.with_format("arrow")[:].to_pylist()
    for seed in range(3):
        assert looped(stage, rows, random.Random(seed)).to_pylist() == expected
    parents = {parent for row in expected for parent in row["_parent"]}
    assert parents == set(read_keys(stage, dataset).to_pylist())
    assert stage.whole is (name in ("Merge", "Threads", "Download", "Splits"))
    assert not stage.whole or arguments["batch_size"] == len(dataset)
    if name.endswith(BY_CHANCE):  # which leaves no case out
        assert {"kept", "noted", "quarantined"} <= {row["_status"] for row in expected}
        assert len({row["_reason"] for row in expected}) > 2
    empty = stage(dataset.features.arrow_schema.empty_table())
    assert empty.num_rows == 0
    assert empty.schema.equals(stage.features.arrow_schema.remove_metadata())


def test_an_edited_prompt_file_changes_its_stages_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, images = Target(name="A", developer="B", released="2026-01-01"), ImageStore(tmp_path)
    made = (Relevance(target), Extract(target), Feedback(target))
    made += (Roles(target, images), Screenshots(target, images), Safety(target, images))
    before = {stage.name: stage.digest() for stage in made}
    copied = tmp_path / "prompts"
    shutil.copytree(Path(str(prompts.__file__)).parent, copied)
    monkeypatch.setattr(prompts, "files", lambda _: copied)
    for name in before:
        file = copied / f"{name}.md"
        text = file.read_text("utf-8")
        file.write_text(text.replace("strangers", "visitors", 1), "utf-8")
        prompts._read_template.cache_clear()
        after = {stage.name: dataclasses.replace(stage).digest() for stage in made}
        assert [one for one in before if before[one] != after[one]] == [name]
        file.write_text(text, "utf-8")
    prompts._read_template.cache_clear()
