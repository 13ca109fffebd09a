"""The Hub's own board of a dataset, and which of its entries a release of the dataset verifies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import huggingface_hub
from huggingface_hub import EvalResultEntry, HfApi

from echo_hf.errors import EchoError, HubError
from echo_hf.hub.card import TAGS
from echo_hf.hub.leaderboard import NO_RESULTS, ScoredRelease, read_scored
from echo_hf.hub.load import load_manifest
from echo_hf.hub.publish import check_repository
from echo_hf.hub.remote import Remote, get_status, hub_errors
from echo_hf.hub.run_tables import read_models
from echo_hf.reasons import Reason
from echo_hf.scores.win_rate import METRIC

if TYPE_CHECKING:
    from huggingface_hub.hf_api import DatasetLeaderboardEntry  # older clients have none

OWN_TAG = TAGS[1]
DIGITS = 4  # of the values that `export --to hub-eval` writes
MAX_MODELS, MAX_WHOLE = 100, 1 << 31
GONE = frozenset({401, 403, 404})
BAD_CONTENT = (AttributeError, LookupError, TypeError, ValueError)  # of the client, on odd answers
NO_BOARD = (
    "the Hub has no board of it: its owner asks for one as `echo-hf export --to hub-eval` writes"
)


class Standing(Reason):
    """Names how a value that somebody filed on the Hub stands to a release."""

    VERIFIED = "verified", "equal to the release's win rate of this model on this task"
    DIFFERS = "differs", "the release has another win rate of this model on this task"
    NOT_IN_THE_RELEASE = "not_in_the_release", "it has no win rate of this model on this task"
    OTHER_REVISION = "other_revision", "of a revision that no tag is on, or that cannot be loaded"
    NO_ENTRY = "no_entry", "the model's page has no entry of this value, which would name its task"
    NO_NUMBER = "no_number", "its value is no finite number"


@dataclass(frozen=True)
class FiledResult:
    """A value that somebody filed for a model.

    Attributes:
        model: Repository of the model.
        value: The value as filed; null where it is no finite number.
        standing: What the dataset's releases say to it.
        rank: Its place on the Hub's board; null where the board has no such value.
        task: The config of the benchmark that it is about; null where nothing names it.
        tag: The release that it was compared with; null for none.
        released: The release's win rates of the model on the task, by system.
        request: Number of the pull request that proposes it; null for a merged one.
    """

    model: str
    value: float | None
    standing: Standing
    rank: int | None = None
    task: str | None = None
    tag: str | None = None
    released: Mapping[str, float] | None = None
    request: int | None = None


@dataclass(frozen=True)
class HubBoard:
    """A dataset's board on the Hub, in its order.

    Attributes:
        repo_id: The dataset.
        rows: The values that were filed.
        not_read: The number of further models, which were not asked for.
        unreadable: Why a tag's figures could not be loaded, by tag.
    """

    repo_id: str
    rows: tuple[FiledResult, ...]
    not_read: int
    unreadable: Mapping[str, str]

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(str(row.standing) for row in self.rows))


class ListedBenchmark(NamedTuple):
    """A dataset that the Hub lists as a benchmark; `problem` is why its release cannot be read."""

    repo_id: str
    problem: str | None


def read_hub_board(repo_id: str, *, api: HfApi | None = None) -> HubBoard:
    """Read a dataset's board on the Hub, and compare it with the releases of its tags.

    Everybody may file a value in any model's repository. One is verified where a tag's release,
    loaded and checked against its manifest, has the same win rate of this model on this task, to
    four digits. A commit that no tag is on verifies nothing: a pull request of a stranger is one.

    Raises:
        HubError: The Hub has no board of it, or is out of reach; huggingface-hub is too old.
    """
    check_repository(repo_id)
    api = _check_version(api or HfApi())
    Remote(api, repo_id).require_state()
    with hub_errors(f"read the board of {repo_id!r}", {404: NO_BOARD}):
        # Image models are often derived from others: their rows count as well.
        entries = api.get_dataset_leaderboard(repo_id, base_model_only=False)
    by_model: dict[str, list[DatasetLeaderboardEntry]] = {}
    for entry in entries:
        by_model.setdefault(str(entry.model_id), []).append(entry)
    releases = read_scored(repo_id, api=api)
    rows = [
        row
        for model in list(by_model)[:MAX_MODELS]
        for row in _compare(model, by_model[model], _read_filed(api, model, repo_id), releases)
    ]
    rows.sort(key=lambda row: (row.rank is None, row.rank or 0))
    unreadable = {
        release.tag: release.problem
        for release in releases
        if release.problem not in (None, NO_RESULTS)
    }
    return HubBoard(repo_id, tuple(rows), max(len(by_model) - MAX_MODELS, 0), unreadable)


def list_benchmarks(api: HfApi | None = None) -> tuple[list[ListedBenchmark], int]:
    """List the Hub's benchmarks with releases of echo-hf, and count those of others."""
    api = api or HfApi()
    with hub_errors("list the benchmarks of the Hub"):
        listed = list(api.list_datasets(benchmark=True))
    own = [str(info.id) for info in listed if OWN_TAG in (info.tags or ())]
    return [
        ListedBenchmark(repo_id, _find_problem(repo_id, api)) for repo_id in own[:MAX_MODELS]
    ], len(listed) - len(own[:MAX_MODELS])


def _find_problem(repo_id: str, api: HfApi) -> str | None:
    try:
        load_manifest(repo_id, api=api)
    except EchoError as error:
        return str(error)
    return None


def _check_version(api: HfApi) -> HfApi:
    """Refuse a client that does not know the boards, or only those of base models."""
    version = huggingface_hub.__version__
    if int(version.partition(".")[0]) < 2:
        raise HubError(
            f"huggingface-hub {version} cannot read the Hub's boards: expected 2.0 or newer, by "
            "`pip install --upgrade huggingface-hub`"
        )
    return api


def _read_filed(api: HfApi, model: str, repo_id: str) -> list[EvalResultEntry]:
    """Read what a model's repository says about this dataset; nothing where that is unreadable."""
    try:
        with hub_errors(f"read the results of {model!r}"):
            entries = api.model_info(model, expand=["evalResults"]).eval_results
    except HubError as error:
        if get_status(error) in GONE or isinstance(error.__cause__, BAD_CONTENT):
            return []
        raise
    return [entry for entry in entries or () if entry.dataset_id == repo_id]


def _compare(
    model: str,
    listed: Sequence[DatasetLeaderboardEntry],
    filed: Sequence[EvalResultEntry],
    releases: Sequence[ScoredRelease],
) -> Iterator[FiledResult]:
    """Compare the values of one model, each once, with what releases have."""
    for entry in filed:
        value = _read_number(entry.value)
        place = next((row for row in listed if _read_number(row.value) == value), None)
        rank = _read_whole(place.rank) if place else None
        request = _read_whole(place.pull_request) if place else None
        task = str(entry.task_id)
        standing, tag, released = _judge(model, value, task, entry.dataset_revision, releases)
        yield FiledResult(model, value, standing, rank, task, tag, released, request)
    values = {_read_number(entry.value) for entry in filed}
    for row in listed:
        if (value := _read_number(row.value)) not in values:
            standing = Standing.NO_NUMBER if value is None else Standing.NO_ENTRY
            rank, request = _read_whole(row.rank), _read_whole(row.pull_request)
            yield FiledResult(model, value, standing, rank, request=request)


def _read_number(value: Any) -> float | None:
    with suppress(TypeError, OverflowError):  # an integer may have more digits than a float holds
        if not isinstance(value, bool | str) and math.isfinite(value):
            return float(value)
    return None


def _read_whole(value: Any) -> int | None:
    """Read the number of a place or a request; null for anything else."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_WHOLE
    return value if is_whole else None


def _judge(
    model: str,
    value: float | None,
    task: str,
    revision: str | None,
    releases: Iterable[ScoredRelease],
) -> tuple[Standing, str | None, Mapping[str, float] | None]:
    """Judge a value by the release of its revision; without one, by that of every tag."""
    if value is None:
        return Standing.NO_NUMBER, None, None
    loaded = [release for release in releases if release.problem is None]
    named = [release for release in loaded if revision in (None, release.commit, release.tag)]
    if not named:
        return Standing.OTHER_REVISION, None, None
    by_tag = {release.tag: _find_released(release, model, task) for release in named}
    rated = {tag: rates for tag, rates in by_tag.items() if rates}
    for tag, rates in rated.items():
        if round(value, DIGITS) in {round(rate, DIGITS) for rate in rates.values()}:
            return Standing.VERIFIED, tag, rates
    tag = next(iter(rated or by_tag))
    return (Standing.DIFFERS if rated else Standing.NOT_IN_THE_RELEASE), tag, rated.get(tag)


def _find_released(release: ScoredRelease, model: str, task: str) -> dict[str, float]:
    """Find the win rates of a model on a task, by system and protocol."""
    rates = {}
    for figure in release.figures:
        system, rate = str(figure["system"]), _read_number(figure["value"])
        about = read_models(figure["definition"], "systems").get(system)
        is_asked = (figure["metric"], figure["split"]) == (METRIC, task)
        if is_asked and rate is not None and model in (system, about and about.model):
            rates[f"{system} ({figure['protocol']})"] = rate
    return rates
