"""What the search terms of a run brought: read from its scored posts, written beside them."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf.collect.keyword_yield import (
    KeywordYield,
    Yield,
    Yields,
    days_since,
    keyword_yields,
)
from echo_hf.collect.yield_plot import yield_plot
from echo_hf.collect.yield_windows import planned_edges
from echo_hf.config import Config, load_config
from echo_hf.errors import RunError
from echo_hf.run import RUNS
from echo_hf.run_folder import RunFolder

FIGURES = "keywords.json"
PLOT = "keywords.svg"
COLUMNS = ["timestamp", "keywords", "relevance"]


@dataclass(frozen=True)
class WrittenYields:
    """What the terms brought, and where it is written.

    Attributes:
        yields: The counts.
        figures: The JSON file with all of them.
        plot: The picture, an SVG.
    """

    yields: Yields
    figures: Path
    plot: Path


def write_yields(config: Config | Path | str, *, runs: Path | str = RUNS) -> WrittenYields:
    """Counts what each search term of a run brought.

    Args:
        config: The config of the run, or the path of its file.
        runs: Folder of runs.

    Returns:
        The counts, which also stand in `keywords.json` and `keywords.svg` in the run's folder.

    Raises:
        RunError: The run has no scored posts yet.
        EchoError: The config is not usable.
    """
    config = config if isinstance(config, Config) else load_config(config)
    folder = RunFolder(Path(runs) / config.name)
    posts = _scored_posts(folder)
    released = config.target.released
    days = days_since(posts["timestamp"].combine_chunks(), released)
    searches = [entry.search for entry in config.posts if entry.search is not None]
    edges = planned_edges(searches, released, pc.max(days).as_py() or 0)
    found = keyword_yields(posts, released, edges, config.stages.relevance.keep)
    written = WrittenYields(found, folder.root / FIGURES, folder.root / PLOT)
    text = json.dumps(as_json(found, released), indent=1, ensure_ascii=False)
    written.figures.write_text(text + "\n", "utf-8", "backslashreplace")
    written.plot.write_text(yield_plot(found), "utf-8")
    return written


def as_json(found: Yields, released: datetime.date) -> dict[str, Any]:
    """The counts as plain data.

    Args:
        found: The counts.
        released: The day of the release.

    Returns:
        Mappings and lists; days count from the release.
    """
    return {
        "released": released.isoformat(),
        "windows": [one._asdict() for one in found.windows],
        "all_keywords": _of_keyword(found.together),
        "keywords": [{"keyword": one.keyword, **_of_keyword(one)} for one in found.keywords],
        "came_along": found.came_along,
        "unknown": found.unknown,
    }


def _of_keyword(one: KeywordYield) -> dict[str, Any]:
    total = {**_counts(one.total), "half_by_day": one.half_by_day}
    return {**total, "windows": [_counts(window) for window in one.windows]}


def _counts(one: Yield) -> dict[str, Any]:
    return {**asdict(one), "share": one.share, "interval": one.interval}


def _scored_posts(folder: RunFolder) -> pa.Table:
    file = folder.stage("relevance") / "kept.parquet"
    try:
        return pq.read_table(file, columns=COLUMNS)
    except FileNotFoundError:
        raise RunError(
            f"no scored posts in {str(folder.root)!r}: run `echo-hf relevance` on this config first"
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"cannot read {str(file)!r} ({error}): delete it and build again") from error
