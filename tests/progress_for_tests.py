"""A listener that remembers what it is told."""

from __future__ import annotations

import copy
from typing import Any

from echo_hf.pipeline.progress import ProgressListener


class Heard(ProgressListener):
    def __init__(self) -> None:
        self.plans: dict[str, tuple[int, object]] = {}
        self.steps: list[tuple[str, int, Any, int | None]] = []
        self.waited: list[tuple[str, float]] = []
        self.remarks: list[str] = []
        self.results: list[Any] = []

    def started(self, what: str, total: int, plan: object) -> None:
        self.plans[what] = total, plan

    def advanced(self, what: str, done: int, stats: object, total: int | None = None) -> None:
        self.steps.append((what, done, copy.copy(stats), total))

    def waits(self, who: str, seconds: float) -> None:
        self.waited.append((who, seconds))

    def noticed(self, remark: str) -> None:
        self.remarks.append(remark)

    def finished(self, result: object) -> None:
        self.results.append(result)
