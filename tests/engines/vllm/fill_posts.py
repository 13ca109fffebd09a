"""A real vLLM in a process of its own, to be killed, or to lose the one that it computes in.

    python -m tests.engines.vllm.fill_posts MODEL FOLDER
    python -m tests.engines.vllm.fill_posts MODEL

The first scores the bundled posts and prints a line for each answer, once the answer is durable.
The second kills the process that vLLM computes in while requests are in flight, as the system may,
and prints as JSON: numbers of the requests that a first stream answered, what a second one raised
when its process was gone, and how many processes are left behind.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path

import datasets

from echo_hf.collect.relevance import Relevance
from echo_hf.engines.vllm import VllmEngine
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.batch_inference import FillStats, fill
from tests.bundled_threads import TARGET, bundled
from tests.engines.vllm.questions import ask

ANSWERS = "answers.sqlite"


def tiny_engine(model: Path, max_num_seqs: int = 16) -> VllmEngine:
    return VllmEngine(
        model=str(model),
        dtype="float32",
        max_model_len=32_768,
        max_num_seqs=max_num_seqs,
        limit_images=4,
        enforce_eager=True,
    )


def fill_posts(engine: VllmEngine, folder: Path, say: bool = False) -> FillStats:

    def progress(stats: FillStats) -> None:
        if say:
            print(stats.calls, flush=True)

    posts = bundled(folder).posts
    return fill(Relevance(TARGET), posts, engine, Store(folder / ANSWERS), progress=progress)


def lose_core(model: Path) -> dict[str, object]:
    import psutil  # comes with vLLM

    with tiny_engine(model) as engine:
        answered = sorted(number for number, _ in engine.stream(ask(f"{n}?") for n in range(6)))
        try:
            long = (ask(f"{n}?", max_tokens=400 if n else 4) for n in count())
            for _ in engine.stream(long):
                for process in psutil.Process().children(recursive=True):
                    process.kill()
        except EngineError as error:
            said = str(error)
    left = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=30)[1]
    return {"answered": answered, "said": said, "left": len(left)}


if __name__ == "__main__":
    datasets.disable_progress_bars()
    if len(sys.argv) == 2:
        print(json.dumps(lose_core(Path(sys.argv[1]))))
    else:
        with tiny_engine(Path(sys.argv[1]), max_num_seqs=4) as engine:
            fill_posts(engine, Path(sys.argv[2]), say=True)
