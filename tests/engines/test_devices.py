"""Several processes, a model each, answer a stage as one does."""

from __future__ import annotations

import json
import multiprocessing
from collections import deque
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.relevance import Relevance
from echo_hf.engines.base import Completion, Engine, Request, make_engine
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.stage_runner import run_stage
from tests.bundled_threads import TARGET, Bundled, requests_of
from tests.tiny_models import REASON

OPTIONS: dict[str, dict[str, Any]] = {
    "transformers": {"dtype": "float32", "batch_size": 2},
    "vllm": {
        "dtype": "float32",
        "max_model_len": 32_768,
        "max_num_seqs": 4,
        "limit_images": 4,
        "enforce_eager": True,
    },
}
# Warnings of the libraries that run a model.
pytestmark = pytest.mark.filterwarnings("ignore")


def made(kind: str, model: Path, **more: Any) -> Engine:
    return make_engine(kind, model=str(model), **OPTIONS[kind], **more)


def rows(engine: Engine, corpus: Bundled, store: Path) -> list[dict[str, Any]]:
    asked = corpus.posts.select(range(24))
    with engine:
        found = run_stage(Relevance(TARGET), asked, engine=engine, store=Store(store))
    parts = (found.dataset, found.rejects, found.quarantine)
    return [row for part in parts for row in json.loads(json.dumps(part.to_list(), default=str))]


def answers(engine: Engine, requests: list[Request]) -> list[Completion]:
    return [done for _, done in sorted(engine.stream(requests), key=lambda one: one[0])]


@pytest.mark.vllm
def test_a_stage_is_the_same_on_two_devices(tiny: Path, corpus: Bundled, tmp_path: Path) -> None:
    pytest.importorskip("vllm", reason=REASON)
    alone, shared = made("vllm", tiny), made("vllm", tiny, devices=2)
    assert alone.signature() == shared.signature()
    assert rows(alone, corpus, tmp_path / "one") == rows(shared, corpus, tmp_path / "two")
    assert multiprocessing.active_children() == []


@pytest.mark.models
def test_a_killed_process_costs_no_answer(
    tiny: Path, corpus: Bundled, caplog: pytest.LogCaptureFixture
) -> None:
    """The other one gives those as well; with its end the stream has one, in one line."""
    pytest.importorskip("torch", reason=REASON)
    requests = requests_of(Relevance(TARGET), corpus.posts)[:16]
    with made("transformers", tiny) as engine:
        expected = answers(engine, requests)
    with made("transformers", tiny, devices=2) as engine:
        stream = engine.stream(requests)
        found = [next(stream)]
        multiprocessing.active_children()[0].kill()
        assert [done for _, done in sorted([*found, *stream], key=lambda one: one[0])] == expected
        (notice,) = [one for one in caplog.messages if "worker process" in one]
        assert "killed by signal 9; 1 go on with what it was at" in notice
        stream = engine.stream(cycle(requests))
        next(stream)
        for child in multiprocessing.active_children():
            child.kill()
        with pytest.raises(EngineError, match="and no other is left: the same command goes on"):
            deque(stream, maxlen=0)
    assert multiprocessing.active_children() == []
