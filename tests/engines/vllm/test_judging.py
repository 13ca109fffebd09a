"""A real vLLM judges the outputs of four systems: what they share is computed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
import pytest
import yaml

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

import echo_hf
from echo_hf.config.systems import shipped_config
from echo_hf.engines.base import Completion, Engine, ImageRef, Request, Text, register
from echo_hf.judging.judge import judge
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.quickstart.systems import SYSTEMS, rated
from tests.engines.vllm.fill_posts import tiny_engine
from tests.engines.vllm.questions import patches, prompt_tokens
from tests.judging.judges_for_tests import judge_of

# Warnings of the libraries that run the model; ours are errors in all other tests.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]
KIND = "watched_vllm"
# A random model says no rating and comes to no end: what it is asked and how is what counts.
MAX_TOKENS = 16
BLOCK = 16  # tokens that vLLM keeps together


@dataclass
class Watched:
    """A real engine, and all that went through it.

    Attributes:
        engine: The engine.
        answered: Each request with what came back.
    """

    engine: Engine
    answered: list[tuple[Request, Completion]] = field(default_factory=list)
    stored = True

    def signature(self) -> Mapping[str, Any]:
        return self.engine.signature()

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        asked: list[Request] = []

        def noted() -> Iterator[Request]:
            for request in requests:
                asked.append(request)
                yield request

        for number, completion in self.engine.stream(noted()):
            self.answered.append((asked[number], completion))
            yield number, completion

    def __enter__(self) -> Self:
        self.engine.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.engine.__exit__(*error)


def bundled_run(folder: Path) -> Path:
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    own = judge_of("tiny", KIND, max_tokens=MAX_TOKENS, pictures="published")
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**config, "judges": [own]}), "utf-8")
    echo_hf.build(path, runs=folder)
    rated(RunFolder(folder / config["name"]))
    return path


def tokens(parts: Iterable[Text | ImageRef]) -> int:
    return sum(
        len(part.text.encode()) if isinstance(part, Text) else 2 + patches(part.file or Path())
        for part in parts
    )


def allowed(requests: Iterable[Request]) -> int:
    most, seen = 0, set[Any]()
    for request in requests:
        instructions, (*shared, _, _) = (message.parts for message in request.messages)
        beginning = (instructions, tuple(shared))
        if beginning in seen:
            most += tokens([*instructions, *shared])
        elif instructions in seen:
            most += tokens(instructions)
        seen |= {beginning, instructions}
    return most


def test_four_systems_outputs_share_what_they_can(tiny: Path, tmp_path: Path) -> None:
    watched = Watched(tiny_engine(tiny, max_num_seqs=4))
    register(KIND)(lambda **_: watched)
    config = bundled_run(tmp_path)
    (done,) = judge(config, runs=tmp_path).answered

    first: dict[Any, tuple[Request, Completion]] = {}
    for request, completion in watched.answered:
        first.setdefault(request.messages, (request, completion))
    made = pq.read_table(tmp_path / "quickstart" / "outputs.parquet").to_pylist()
    drawn = [row for row in made if row["outcome"] == "ok"]
    assert {row["system"] for row in drawn} == set(SYSTEMS)
    assert len(drawn) == sum(done.outcomes.values()) == len(first) + done.fill.repeated > 100
    for request, completion in first.values():
        assert completion.usage.prompt == prompt_tokens(request)
    cached = sum(completion.usage.cached for _, completion in first.values())
    most = allowed(request for request, _ in first.values())
    assert 0.5 * most < cached <= most + BLOCK * len(first)

    rows = pq.read_table(tmp_path / "quickstart" / "ratings.parquet").to_pylist()
    own = [row for row in rows if row["judge"] == "tiny"]
    assert len(own) == len(drawn) < len(rows)  # those of another judge are still there
    assert all(row["usage"]["prompt_tokens"] for row in own)
