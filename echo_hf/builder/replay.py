"""Build from the answers that a release carries, without a model, a key or the network."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from datasets import Dataset

from echo_hf.builder.steps import STAGES
from echo_hf.config.checks import EngineChoice
from echo_hf.engines.base import Completion, Engine, Request, abstains, make_engine
from echo_hf.errors import EngineError, ReleaseError
from echo_hf.hub.manifest import CARD, MANIFEST, StageOrigin
from echo_hf.hub.release import read_release
from echo_hf.hub.responses import CONFIG, Recorded, read_recorded
from echo_hf.pipeline.answer_store import MOST_TRIES, Store, request_keys
from echo_hf.pipeline.answers import Failure, StoredAnswers, parse
from echo_hf.pipeline.batch_inference import FillStats, request_segments
from echo_hf.pipeline.run_folder import StageRecord
from echo_hf.pipeline.stage import ModelStage
from echo_hf.reasons import Failed

NOT_ANSWERED = Completion(None, error=Failed.NOT_ANSWERED.value, finish_reason="error")


@dataclass(frozen=True)
class ReplayEngine:
    """Stands for an engine that answered before, so that its answers are found under its keys."""

    stored = True

    recorded: Mapping[str, Any]

    def signature(self) -> Mapping[str, Any]:
        return self.recorded

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Asks nobody."""
        for number, _ in enumerate(requests):
            yield number, NOT_ANSWERED

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: there is nothing to free."""


class Records(Protocol):
    """Something that answers were recorded in."""

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, Completion]: ...


def import_answers(
    stage: ModelStage, dataset: Dataset, engine: Engine, store: Store, recorded: Records
) -> FillStats:
    """Takes into a store what was recorded of a stage's requests, and asks nobody."""
    started, signature = time.perf_counter(), engine.signature()
    stage = stage.answered_by(StoredAnswers(store, signature))
    recalling = _Recalling(signature, store, recorded)
    for requests in request_segments(stage, dataset):
        recalling.take(requests)
    recalling.stats.seconds = time.perf_counter() - started
    return recalling.stats


@dataclass
class _Recalling:
    signature: Mapping[str, Any]
    store: Store
    recorded: Records
    stats: FillStats = field(default_factory=FillStats)
    seen: set[bytes] = field(default_factory=set)

    def take(self, requests: Sequence[Request]) -> None:
        keys = request_keys(self.signature, requests)
        self.store.add_sources(
            (url, key)
            for request, key in zip(requests, keys, strict=True)
            for url in request.sources
        )
        new = {k: r for r, k in zip(requests, keys, strict=True) if k not in self.seen}
        self.seen.update(new)
        self.stats.requests += len(requests)
        self.stats.repeated += len(requests) - len(new)
        self.stats.store_hits += self._answered(new)

    def _answered(self, new: Mapping[bytes, Request]) -> int:
        """How many of them have an answer, once what was recorded of them is taken in."""
        known = self.store.records(list(new))
        answered = {key for key, record in known.items() if record.tries}
        wanted = [key for key in new if key not in answered]
        for key, completion in self.recorded.get(wanted).items():
            # How a call failed is told once; that it did is no reason to leave its answer out.
            if completion.is_answer or key not in known:
                self._put(key, new[key], completion)
            answered |= {key} if completion.is_answer else set()
        return len(answered)

    def _put(self, key: bytes, request: Request, completion: Completion) -> None:
        readable = not isinstance(parse(request, completion, key), Failure)
        self.store.put(
            key,
            request,
            completion,
            self.signature,
            readable=readable,
            # Who recorded an answer that cannot be read had asked for it twice.
            tries=1 if readable else MOST_TRIES,
            sources_known=True,
        )


UNRECORDED = {"kind": "not recorded"}


@dataclass(frozen=True)
class Replay:
    origins: Mapping[str, StageOrigin]
    recorded: Recorded

    def engine(self, stage: str, own: EngineChoice) -> Engine:
        """Who answers a stage, which the config has this engine for."""
        known = self._engine(stage) or (
            {"kind": own.kind} if abstains({"kind": own.kind}) else UNRECORDED
        )
        if not abstains(known):
            return ReplayEngine(known)
        try:
            return make_engine(known["kind"], **(own.options if own.kind == known["kind"] else {}))
        except EngineError as error:
            raise ReleaseError(
                f"stage {stage!r} was answered by {known['kind']!r}, whose answers no release "
                f"holds, and the config names {own.kind!r}: {error}"
            ) from error

    def recall(
        self, stage: ModelStage, dataset: Dataset, engine: Engine, store: Store
    ) -> FillStats:
        """Takes into a store what the release recorded of a stage's requests."""
        return import_answers(stage, dataset, engine, store, self.recorded)

    def remark(self, made: StageRecord) -> str | None:
        """What is to be said of a stage that is not as it was recorded."""
        origin = self.origins.get(made.stage)
        if origin is not None and origin.digest == made.digest:
            return None
        engine = made.describe.get("engine")
        anew = engine is None or abstains(engine)
        left = "its rows may differ" if anew else "rows without an answer will be in quarantine"
        return f"{made.stage}: {_difference(origin, engine)}; {left}"

    def unknown(self) -> tuple[str, ...]:
        """Stages of the release that this version does not have."""
        return tuple(name for name in self.origins if name not in STAGES)

    def _engine(self, stage: str) -> Mapping[str, Any] | None:
        origin = self.origins.get(stage)
        return origin.engine if origin else None


def _difference(origin: StageOrigin | None, engine: Mapping[str, Any] | None) -> str:
    if origin is None:
        return "the release does not know this stage"
    if engine is None:
        return "recorded from other posts, with other options, or by another version"
    if origin.engine != engine:
        return "recorded with other rules or answers than those here"
    return "recorded with other instructions or options"


@contextmanager
def replay_of(place: Path | str | None) -> Iterator[Replay | None]:
    if place is None:
        yield None
        return
    folder = _found(place)
    with read_recorded(folder) as recorded:
        yield Replay(read_release(folder).manifest.provenance, recorded)


def _found(place: Path | str) -> Path:
    if Path(place).is_dir():
        return Path(place)
    repo_id, at, tag = str(place).rpartition("@")
    if not (repo_id and at and tag):
        raise ReleaseError(
            f"{str(place)!r} is neither a folder nor a revision on the Hub: expected the folder of "
            "a release, or a name with a tag like 'my-organization/echo@gpt-4o-2025-03'"
        )
    # The client for the Hub takes half a second to import.
    from echo_hf.hub.load import downloaded

    return downloaded(repo_id, tag, [CARD, MANIFEST, f"{CONFIG}/*"])
