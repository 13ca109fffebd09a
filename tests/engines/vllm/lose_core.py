"""Kill the process that vLLM computes in while requests are in flight, as the system may.

    python -m tests.engines.vllm.lose_core MODEL

It prints what it saw as JSON: numbers of the requests that a first stream answered, what a second
one raised when its process was gone, and how many processes are left behind.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path

from echo_hf.engines.base import Message, Request, Text
from echo_hf.errors import EngineError
from tests.engines.vllm.fill_posts import tiny_engine

WHOLE, IN_FLIGHT = 6, 400


def question(number: int, max_tokens: int) -> Request:
    return Request("t", (Message("user", (Text(f"{number}?"),)),), None, max_tokens)


def lose(model: Path) -> dict[str, object]:
    import psutil  # comes with vLLM

    with tiny_engine(model) as engine:
        answered = sorted(n for n, _ in engine.stream(question(n, 8) for n in range(WHOLE)))
        try:
            for _ in engine.stream(question(n, IN_FLIGHT if n else 4) for n in count()):
                for process in psutil.Process().children(recursive=True):
                    process.kill()
        except EngineError as error:
            said = str(error)
    left = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=30)[1]
    return {"answered": answered, "said": said, "left": len(left)}


if __name__ == "__main__":
    print(json.dumps(lose(Path(sys.argv[1]))))
