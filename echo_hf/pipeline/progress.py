"""Progress of long work, as it is told to whoever listens."""

from __future__ import annotations

LOG = "echo-hf.log"  # in the folder of a run
RUN_FOLDER = "run_folder"  # what a record of the log has that says where work goes on
TOLD = {"told": True}  # marks a record of what people are told in other words as well


class ProgressListener:
    """Told how work goes on; `echo_hf.cli.progress.Watch` shows it.

    What is told as an object says in words (`str`) what people want to know of it.
    """

    def started(self, what: str, total: int, plan: object) -> None:
        """A part begins, of so many steps, and with such a plan."""

    def advanced(self, what: str, done: int, stats: object, total: int | None = None) -> None:
        """So many steps of a part are done; the stats are those of the part so far."""

    def waits(self, who: str, seconds: float) -> None:
        """Somebody wants to be left alone for so long, and will be."""

    def noticed(self, remark: str) -> None:
        """Something is not as one might take it to be; one line."""

    def finished(self, result: object) -> None:
        """A part has its result."""


class NullProgress(ProgressListener):
    """Tells nobody."""
