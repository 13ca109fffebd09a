"""The command line with one more adapter, which fetches each image from a server.

    python draw_over_http.py ADDRESS generate CONFIG ...

It asks for `ADDRESS/SAMPLE`, and draws what it is given.
"""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Mapping
from typing import Any, Self

from echo_hf.cli import main
from echo_hf.config.systems import SystemConfig
from echo_hf.reasons import Outcome
from echo_hf.systems.base import GenerationResult, Retired, Task
from echo_hf.systems.registry import described, register


class Fetching:
    address = ""
    concurrency = 4
    determinism = "always the same"

    def __init__(self, config: SystemConfig) -> None:
        self.config = config

    def signature(self) -> Mapping[str, Any]:
        return described(self.config)

    def preflight(self) -> Retired | None:
        if self.config.parameters.get("look"):
            urllib.request.urlopen(f"{self.address}/preflight").close()  # noqa: S310
        return None

    def draw(self, task: Task) -> GenerationResult:
        with urllib.request.urlopen(f"{self.address}/{task.sample_id}") as answer:  # noqa: S310
            return GenerationResult(Outcome.OK, answer.read(), cost_usd=0.01)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    Fetching.address = sys.argv.pop(1)
    register("fetching", "fetches what it is asked to draw")(Fetching)
    main()
