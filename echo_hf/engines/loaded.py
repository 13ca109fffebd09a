"""The engines of a run, of which at most one holds a model in memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Self

from echo_hf.config_fields import EngineChoice
from echo_hf.engines.base import Engine, make_engine


@dataclass
class Engines:
    """The engines of a run, by their names in the config; one is loaded at a time.

    Attributes:
        choices: Kinds and options by name.
    """

    choices: Mapping[str, EngineChoice]
    _loaded: ExitStack = field(default_factory=ExitStack)
    _current: tuple[EngineChoice, Engine] | None = None

    def use(self, name: str) -> Engine:
        """The engine of this name; another one's model is freed first."""
        choice = self.choices[name]
        if self._current is None or self._current[0] != choice:
            self._current = None
            self._loaded.close()
            engine = self._loaded.enter_context(make_engine(choice.kind, **choice.options))
            self._current = (choice, engine)
        return self._current[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loaded.close()
        self._current = None
