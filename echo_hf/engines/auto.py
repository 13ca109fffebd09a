"""Choose the best engine that this machine has, and keep at most one model in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from echo_hf.config.checks import EngineChoice
from echo_hf.engines.base import Engine, make_engine, register
from echo_hf.errors import EngineError

SERVER = "OPENAI_BASE_URL"
KEY = "OPENAI_API_KEY"
DEVICES = ("dev/nvidia0", "dev/kfd", "dev/dxg")
NEITHER = (
    f"engine 'auto' found neither vLLM with a GPU nor a server in {SERVER!r} or {KEY!r}: "
    'on a machine with a GPU run pip install "echo-hf[vllm]"; '
    "or start a server and run export OPENAI_BASE_URL=http://127.0.0.1:8000/v1; "
    "or write {kind: transformers, model: ...} into the config and run "
    'pip install "echo-hf[transformers]"'
)


def chosen() -> str | None:
    """The engine that `auto` takes on this machine, null for none."""
    if find_spec("vllm") is not None and has_gpu():
        return "vllm"
    return "openai" if os.environ.get(SERVER) or os.environ.get(KEY) else None


@register("auto", "vllm on a GPU, else a server named in the environment", chooses=chosen)
def auto(**options: Any) -> Engine:
    kind = chosen()
    if kind is None:
        raise EngineError(NEITHER)
    server = os.environ.get(SERVER) if kind == "openai" else None
    return make_engine(kind, **{**({"base_url": server} if server else {}), **options})


def has_gpu(root: Path = Path("/")) -> bool:
    """Whether this machine has a GPU that vLLM runs on, told without loading torch."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    return any((root / device).exists() for device in DEVICES)


Placed = Callable[[Engine, EngineChoice], Engine]


class Engines:
    """The engines of a run, by their names in the config; one at a time has its model on a GPU.

    Args:
        choices: What the config says of each.
        placed: Makes of an engine one that is asked elsewhere, as a runner does.
    """

    def __init__(
        self, choices: Mapping[str, EngineChoice], placed: Placed = lambda engine, _: engine
    ) -> None:
        self.choices, self._placed = choices, placed
        # The last one is in use, those before it sleep.
        self._entered: list[tuple[EngineChoice, Engine]] = []

    def use(self, name: str) -> Engine:
        """The engine of this name; another one's model is put to sleep, or else freed, first."""
        choice, last = self.choices[name], self._entered[-1:]
        if not last or last[0][0] != choice:
            if last and not getattr(last[0][1], "sleep", bool)():
                self._entered.pop()[1].__exit__(None, None, None)
            known = [number for number, one in enumerate(self._entered) if one[0] == choice]
            if known:
                self._entered.append(self._entered.pop(known[0]))
            else:
                made = self._placed(make_engine(choice.kind, **choice.options), choice)
                self._entered.append((choice, made.__enter__()))
        return self._entered[-1][1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            while self._entered:
                stack.push(self._entered.pop(0)[1])
