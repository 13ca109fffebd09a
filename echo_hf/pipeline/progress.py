"""Report the progress of long work to a listener."""

from __future__ import annotations

from typing import Any

from echo_hf._infra.renamed import warn_renamed

LOG_FILE = "echo-hf.log"  # in the folder of a run
RUN_FOLDER_FIELD = "run_folder"  # field of a log record that names the folder of the work to come
ALREADY_REPORTED = {"told": True}  # marks log records that people see in other words as well
RENAMED_METHODS = {
    "started": "report_start",
    "advanced": "report_progress",
    "waits": "report_wait",
    "noticed": "report_notice",
    "finished": "report_result",
}


class ProgressListener:
    """Listens to the progress of long work; `echo_hf.cli.progress.TerminalProgress` shows it.

    Plans, statistics and results are objects whose `str` is what people want to know of them.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for old, new in RENAMED_METHODS.items():
            if old in vars(cls):
                warn_renamed(f"{cls.__qualname__}.{old}", new)
                setattr(cls, new, vars(cls)[old])

    def report_start(self, part: str, total: int, plan: object) -> None:
        """Report that a part begins, with its number of steps and its plan."""

    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        """Report the steps done in a part, with its statistics so far."""

    def report_wait(self, host: str, seconds: float) -> None:
        """Report that a host asked to wait for so many seconds."""

    def report_notice(self, notice: str) -> None:
        """Report something unexpected in one line."""

    def report_result(self, result: object) -> None:
        """Report the result of a part."""


class NullProgress(ProgressListener):
    """A listener that ignores everything."""
