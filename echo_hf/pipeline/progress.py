"""Progress of long work, as it is told to whoever listens."""

from __future__ import annotations

LOG_FILE = "echo-hf.log"  # in the folder of a run
RUN_FOLDER_FIELD = "run_folder"  # what a record of the log has that says where work goes on
ALREADY_REPORTED = {"told": True}  # marks a record of what people are told in other words as well


class ProgressListener:
    """Told how work goes on; `echo_hf.cli.progress.TerminalProgress` shows it.

    What is told as an object says in words (`str`) what people want to know of it.
    """

    def report_start(self, part: str, total: int, plan: object) -> None:
        """A part begins, of so many steps, and with such a plan."""

    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        """So many steps of a part are done; the stats are those of the part so far."""

    def report_wait(self, host: str, seconds: float) -> None:
        """Somebody wants to be left alone for so long, and will be."""

    def report_notice(self, notice: str) -> None:
        """Something is not as one might take it to be; one line."""

    def report_result(self, result: object) -> None:
        """A part has its result."""


class NullProgress(ProgressListener):
    """Tells nobody."""
