"""Have people rank the outputs of a run in their browsers: `echo-hf rank CONFIG`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from echo_hf.apps.events import EVENTS_FILE, EventLog
from echo_hf.apps.people import check_reachable, people_of
from echo_hf.apps.rank.draw import Draw, drawn
from echo_hf.apps.rank.human_table import HumanTable, write_human
from echo_hf.apps.rank.session import APP, Ranker
from echo_hf.apps.serve import Place, check_installed, serve
from echo_hf.apps.shown_pictures import ShownPictures
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError, unknown
from echo_hf.evaluated import Evaluated
from echo_hf.evaluation import benchmark_of, load_evaluation
from echo_hf.run import RUNS
from echo_hf.run_folder import RunFolder
from echo_hf.scoring.table_file import read_table
from echo_hf.tables import OUTPUTS


@dataclass(frozen=True)
class Ranks:
    """A run whose outputs people rank.

    Attributes:
        folder: The run's folder.
        ranker: What people see and do.
    """

    folder: RunFolder
    ranker: Ranker

    def write(self) -> HumanTable:
        """Writes the ranks down as they are now; `write_human` says how."""
        return write_human(self.folder.root, self.ranker.log.events(APP), self.ranker.draw)


def ranks_of(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    draw: int = 100,
    seed: int = 0,
    splits: Collection[str] = (),
) -> Ranks:
    """Opens a run for people to rank.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.
        draw: Most samples of each split.
        seed: Another seed draws others, and shows pictures in another order.
        splits: Names of the splits; empty for both.

    Returns:
        What can be ranked.

    Raises:
        RunError: There is nothing to rank, or a table or the log cannot be read.
        EchoError: The config or the benchmark cannot be read.
    """
    for name in splits:
        if name not in BENCHMARKS:
            raise RunError(unknown("split", name, BENCHMARKS))
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    folder = RunFolder(Path(runs) / config.name)
    benchmark = benchmark_of(config, folder)
    outputs = read_table(folder.root, OUTPUTS)
    if outputs is None:
        raise RunError(
            f"there are no outputs in {str(folder.root)!r}: run `echo-hf generate`, or put "
            "outputs.parquet there"
        )
    tasks = benchmark.tasks(folder.pictures)
    wanted = [name for name in BENCHMARKS if not splits or name in splits]
    there = drawn(outputs, tasks, folder.pictures, draw=draw, seed=seed, splits=wanted)
    if not there.samples:
        why = ", ".join(f"{count} {reason}" for reason, count in there.left_out.items())
        raise RunError(
            f"no sample in {str(folder.root)!r} has pictures by two systems ({why or 'no outputs'})"
            ": run `echo-hf generate`"
        )
    ranker = Ranker(EventLog(folder.root / EVENTS_FILE), there)
    return Ranks(folder, ranker)


def rank(
    ranks: Ranks,
    *,
    place: Place,
    people: Iterable[str] = (),
    anyone: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Serves the page until it is stopped; ranks are in `human.parquet` as soon as they are whole.

    Args:
        ranks: What is ranked.
        place: Where the page is served.
        people: Pseudonyms of those who may rank, or `auth`, as `people_of` reads them.
        anyone: Whether whoever reaches the page may rank.
        ready: Told the address.

    Raises:
        MissingExtraError: Gradio is not here.
        RunError: The page cannot be served there, or to those.
    """
    check_installed("`echo-hf rank`")
    admitted = people_of(people)
    check_reachable(place.host, admitted, anyone=anyone)
    from echo_hf.apps.asked_page import look
    from echo_hf.apps.rank.app import STYLES, page

    pictures = ShownPictures.of(ranks.folder.pictures, _digests(ranks.ranker.draw))
    with _written(ranks):
        asked = page(ranks.ranker, admitted, pictures.address, ranks.write)
        serve(asked.blocks, pictures, admitted, place, ready, partial(look, STYLES))


@contextmanager
def _written(ranks: Ranks) -> Iterator[None]:
    ranks.write()  # what a killed server had not written any more
    try:
        yield
    finally:
        ranks.write()


def _digests(draw: Draw) -> Iterator[str]:
    for sample in draw.samples:
        yield from (one.output for one in sample.outputs)
        yield from (one.sha256 for one in sample.task.inputs)
