"""Score the bundled posts with a real vLLM and keep the answers, to be killed in the middle.

    python -m tests.engines.vllm.fill_posts MODEL FOLDER

It prints a line for each answer, once the answer is durable.
"""

from __future__ import annotations

import sys
from pathlib import Path

import datasets

from echo_hf.collect.relevance import Relevance
from echo_hf.engines.vllm import VllmEngine
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.batch_inference import FillStats, fill
from tests.bundled_threads import TARGET, bundled

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


if __name__ == "__main__":
    datasets.disable_progress_bars()
    with tiny_engine(Path(sys.argv[1]), max_num_seqs=4) as engine:
        fill_posts(engine, Path(sys.argv[2]), say=True)
