"""Loading, leaving, being killed: each test here has a vLLM of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from echo_hf.collect.relevance import Relevance
from echo_hf.config.checks import EngineChoice
from echo_hf.engines.memory import estimate_engine_memory
from echo_hf.engines.vllm import VllmEngine
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import Failure, parse
from tests.bundled_threads import TARGET, Bundled, requests_of
from tests.engines.vllm.fill_posts import ANSWERS, fill_posts, tiny_engine
from tests.engines.vllm.questions import ask, ended
from tests.stages_for_tests import ROOT

# Warnings of the libraries that run the model; ours are errors in all other tests.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

LONGEST_S = 300


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.engines.vllm.fill_posts", *map(str, arguments)]


def megabytes() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def test_leaving_frees_the_model(tiny: Path) -> None:
    with tiny_engine(tiny) as engine:  # what is imported stays
        assert len(list(engine.stream([ask("a")]))) == 1
    before = megabytes()
    with engine:
        assert megabytes() - before < 10
        stream = engine.stream(ask(f"{number}") for number in range(9))
        next(stream)
        assert megabytes() - before > 512  # the cache of keys and values alone has a gigabyte
    assert megabytes() - before < 100
    assert list(stream) == []


@pytest.mark.parametrize("apart", [pytest.param("0", marks=pytest.mark.slow), "1"])
def test_a_killed_run_goes_on_where_it_was(tiny: Path, tmp_path: Path, apart: str) -> None:
    """What was answered before `kill -9` is not asked again, and no process holds any memory."""
    import psutil

    fill = command(tiny, tmp_path)
    settings = os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": apart}
    with subprocess.Popen(
        fill, cwd=ROOT, env=settings, stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdout
        for line in killed.stdout:
            if line.strip() == "5":
                break
        started = [child.pid for child in psutil.Process(killed.pid).children(recursive=True)]
        assert len(started) > 2 if apart == "1" else len(started) == 1  # the guard
        held = [os.pidfd_open(number) for number in started]
        killed.kill()
    assert killed.returncode == -signal.SIGKILL
    assert all(map(ended, held))
    kept = len(Store(tmp_path / ANSWERS))
    assert 5 <= kept < 48
    with tiny_engine(tiny) as engine:
        stats = fill_posts(engine, tmp_path)
        assert (stats.requests, stats.store_hits, stats.failures) == (48, kept, {})
        assert stats.calls == 48 - kept - stats.repeated
        assert fill_posts(engine, tmp_path).calls == 0


def test_a_lost_process_is_told_in_one_line(tiny: Path) -> None:
    lost = subprocess.run(
        command(tiny),
        cwd=ROOT,
        env=os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=LONGEST_S,
    )
    seen = json.loads(lost.stdout.splitlines()[-1])
    assert seen["answered"] == list(range(6))
    assert seen["said"].startswith("vLLM stopped working, EngineDeadError: ")
    assert "\n" not in seen["said"]
    assert seen["left"] == 0


def test_other_arguments_reach_vllm_and_its_cache_is_as_large_as_is_said(
    tiny: Path, corpus: Bundled
) -> None:
    given = tiny_engine(tiny).options.model_dump(exclude_unset=True)
    step = {"max_num_batched_tokens": 4096}
    asked = requests_of(Relevance(TARGET), corpus.posts)[:2]
    with VllmEngine(**given, structured=False, engine_args=step) as engine:
        for number, answer in engine.stream(asked):  # which no schema holds to its form
            whole = replace(answer, finish_reason="stop")
            assert isinstance(parse(asked[number], whole, b""), Failure)
        assert engine._loaded
        config = engine._loaded.llm_engine.vllm_config
        assert config.scheduler_config.max_num_batched_tokens == 4096
        room = config.cache_config.num_gpu_blocks * config.cache_config.block_size
    sized = estimate_engine_memory(EngineChoice(kind="vllm", **given))
    # The tests give vLLM a gigabyte of cache.
    assert room * sized.request / sized.tokens == pytest.approx(2**30, rel=0.001)


def test_what_cannot_be_loaded_is_told_in_one_line(tiny: Path) -> None:
    with VllmEngine(model=str(tiny), quantization="no-such-method") as absurd:
        assert list(absurd.stream([])) == []
        with pytest.raises(EngineError, match="vLLM cannot load") as caught:
            list(absurd.stream([ask("a")]))
    assert "\n" not in str(caught.value)
    assert "no-such-method" in str(caught.value)


def test_sleep_is_refused_where_vllm_has_none(tiny: Path) -> None:
    with VllmEngine(model=str(tiny), sleep=True) as engine:
        assert engine.signature() == VllmEngine(model=str(tiny)).signature()
        assert not engine.sleep()
        with pytest.raises(EngineError, match=r"vLLM cannot load .*[Ss]leep"):
            list(engine.stream([ask("a")]))
