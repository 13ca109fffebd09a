"""Build from the answers that a release carries, without a model, a key or the network."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from datasets import Dataset

from echo_hf.config.checks import EngineChoice
from echo_hf.engines.base import Completion, Engine, Failed, Request, abstains, make_engine
from echo_hf.errors import ReleaseError
from echo_hf.hub.manifest import CARD, MANIFEST, StageOrigin
from echo_hf.hub.release import read_release
from echo_hf.hub.responses import RESPONSES_CONFIG, RecordedAnswers, read_recorded_answers
from echo_hf.pipeline.answer_store import MAX_TRIES, Store
from echo_hf.pipeline.answers import Failure, StoredAnswers, parse
from echo_hf.pipeline.batch_inference import (
    FillStats,
    iterate_segments,
    list_sources,
    select_new_requests,
)
from echo_hf.pipeline.run_folder import StageRecord
from echo_hf.pipeline.stage import ModelStage

NOT_ANSWERED = Completion(None, error=Failed.NOT_ANSWERED.value, finish_reason="error")


@dataclass(frozen=True)
class ReplayEngine:
    """Stands in for an engine that answered before, so that its answers have its keys."""

    stored = True

    recorded: Mapping[str, Any]

    def signature(self) -> Mapping[str, Any]:
        return self.recorded

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, _ in enumerate(requests):
            yield number, NOT_ANSWERED

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def import_answers(
    stage: ModelStage, dataset: Dataset, engine: Engine, store: Store, recorded: RecordedAnswers
) -> FillStats:
    """Import the recorded answers to a stage's requests into a store; no engine is asked."""
    started, signature = time.perf_counter(), engine.signature()
    stage = stage.answered_by(StoredAnswers(store, signature))
    stats, seen_keys = FillStats(), set[bytes]()
    for _ in range(stage.rounds):
        earlier = frozenset(seen_keys)
        for segment in iterate_segments(stage, dataset):
            requests, keys = select_new_requests(segment, signature, earlier)
            store.add_sources(list_sources(requests, keys))
            pairs = zip(keys, requests, strict=True)
            new = {key: request for key, request in pairs if key not in seen_keys}
            seen_keys.update(new)
            records = store.records(list(new))
            stored = store.get(list(new))
            answered = {
                key for key, answer in stored.items() if answer.is_answer or records[key].readable
            }
            missing = [key for key in new if key not in answered]
            for key, completion in recorded.get(missing).items():
                # A failure is stored once; a stored failure does not keep an answer out.
                if completion.is_answer or key not in records:
                    readable = not isinstance(parse(new[key], completion, key), Failure)
                    # An unreadable answer was recorded after the second try.
                    tries = 1 if readable else MAX_TRIES
                    store.put(key, new[key], completion, signature, readable=readable, tries=tries)
                if completion.is_answer:
                    answered.add(key)
            stats.requests += len(requests)
            stats.repeated += len(requests) - len(new)
            stats.store_hits += len(answered)
    stats.seconds = time.perf_counter() - started
    return stats


@dataclass(frozen=True)
class ReplayedRelease:
    """The answers of a release, and what decided each of its stages."""

    origins: Mapping[str, StageOrigin]
    recorded: RecordedAnswers

    def engine(self, stage: str, choice: EngineChoice) -> Engine:
        origin = self.origins.get(stage)
        kind = choice.kind if abstains({"kind": choice.kind}) else "not recorded"
        signature: Mapping[str, Any] = (origin and origin.engine) or {"kind": kind}
        if not abstains(signature):
            return ReplayEngine(signature)
        # Releases hold no answers of engines without a model: they answer anew.
        options = choice.options if choice.kind == signature["kind"] else {}
        return make_engine(signature["kind"], **options)

    def describe_difference(self, record: StageRecord) -> str | None:
        """Describe how a stage differs from what was recorded; null if it does not."""
        origin = self.origins.get(record.stage)
        if origin is not None and origin.digest == record.digest:
            return None
        return (
            f"{record.stage}: recorded with other posts, instructions, options or answers, or by "
            "another version: rows may differ, and those without an answer are in quarantine"
        )


@contextmanager
def open_replay(place: Path | str | None) -> Iterator[ReplayedRelease | None]:
    """Open the answers of a release's folder, or of a revision on the Hub."""
    if place is None:
        yield None
        return
    folder = Path(place)
    if not folder.is_dir():
        repo_id, separator, tag = str(place).rpartition("@")
        if not (repo_id and separator and tag):
            raise ReleaseError(
                f"{str(place)!r} is neither a folder nor a revision on the Hub: expected the "
                "folder of a release, or a name with a tag like "
                "'my-organization/echo@gpt-4o-2025-03'"
            )
        # Imported late: the Hub's client takes half a second.
        from echo_hf.hub.load import download_files

        folder = download_files(repo_id, tag, [CARD, MANIFEST, f"{RESPONSES_CONFIG}/*"])
    with read_recorded_answers(folder) as recorded:
        yield ReplayedRelease(read_release(folder).manifest.provenance, recorded)
