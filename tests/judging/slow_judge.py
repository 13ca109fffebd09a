"""Rate the outputs of a run with a judge that takes its time, to be killed in the middle.

    python -m tests.judging.slow_judge FOLDER SECONDS

It prints a line for each request that the judge is asked, before it answers. What it says of an
output depends on the output alone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import datasets

from echo_hf.engines.base import Request
from echo_hf.judging.judge import judge
from tests.judging.judges_for_tests import ScriptedJudge, images_of, rated


def main(folder: Path, seconds: float) -> None:
    def says(asked: Request) -> str:
        print(images_of(asked)[-1], flush=True)
        time.sleep(seconds)
        return rated(int(images_of(asked)[-1], 16) % 10 + 1)

    ScriptedJudge(says).use()
    judge(folder / "evaluation.yaml", runs=folder / "runs")


if __name__ == "__main__":
    datasets.disable_progress_bars()
    main(Path(sys.argv[1]), float(sys.argv[2]))
