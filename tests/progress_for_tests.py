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

    def report_start(self, part: str, total: int, plan: object) -> None:
        self.plans[part] = total, plan

    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        self.steps.append((part, done, copy.copy(stats), total))

    def report_wait(self, host: str, seconds: float) -> None:
        self.waited.append((host, seconds))

    def report_notice(self, notice: str) -> None:
        self.remarks.append(notice)

    def report_result(self, result: object) -> None:
        self.results.append(result)
