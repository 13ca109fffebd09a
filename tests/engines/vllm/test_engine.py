"""A real vLLM with a tiny model of random weights: what it says means nothing, all else is real."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from echo_hf.collect.relevance import Relevance
from echo_hf.engines.base import ImageRef, Request, Usage
from echo_hf.engines.vllm import REQUESTS_AHEAD, VllmEngine
from echo_hf.errors import EngineError
from echo_hf.samples.extract import Extract
from tests.bundled_threads import TARGET, Bundled, requests_of
from tests.engines.vllm.fill_posts import tiny_engine
from tests.engines.vllm.questions import ask, images_of, prompt_tokens, valid

# Warnings of the libraries that run the model; ours are errors in all other tests.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def engine(tiny: Path) -> Iterator[VllmEngine]:
    with tiny_engine(tiny) as engine:
        yield engine


def unfinished(engine: VllmEngine) -> bool:
    assert engine._loaded
    return bool(engine._loaded.llm_engine.has_unfinished_requests())


@pytest.mark.parametrize(
    "stage", [Relevance(TARGET), Extract(TARGET)], ids=["relevance", "extract"]
)
def test_stages_are_answered_in_their_schema(
    engine: VllmEngine, corpus: Bundled, stage: Relevance | Extract
) -> None:
    requests = requests_of(stage, corpus.posts if isinstance(stage, Relevance) else corpus.threads)
    answers = dict(engine.stream(requests))
    assert sorted(answers) == list(range(len(requests)))
    # Lengths differ, so that an answer under another one's number would show.
    assert len({prompt_tokens(request) for request in requests}) > len(requests) / 2
    for number, request in enumerate(requests):
        assert answers[number].usage.prompt == prompt_tokens(request)
        assert valid(request, answers[number])
    forms = [replace(ask(f"rate {n}", max_tokens=12), regex=r"\[\[[1-9]\]\]") for n in range(5)]
    assert all(
        re.fullmatch(r"\[\[[1-9]\]\]", answer.text or "") for _, answer in engine.stream(forms)
    )
    total = sum((answer.usage for answer in answers.values()), Usage())
    assert total.cached > 0.5 * total.prompt


def test_images_are_seen_in_the_size_they_are_sent_in(engine: VllmEngine, corpus: Bundled) -> None:
    shown = images_of(corpus, 6)
    requests = [ask(*shown[first : first + many], "?") for first, many in ((0, 1), (1, 2), (2, 4))]
    answers = dict(engine.stream(requests))
    for number, request in enumerate(requests):
        assert answers[number].usage.prompt == prompt_tokens(request)
        assert answers[number].text is not None


def test_an_image_that_returns_is_not_computed_again(engine: VllmEngine, tmp_path: Path) -> None:

    def cached(red: int, words: str) -> float:
        file = tmp_path / f"{red}.png"
        Image.new("RGB", (560, 560), (red, 0, 0)).save(file)
        shown = ImageRef(hashlib.sha256(file.read_bytes()).hexdigest(), file)
        usage = dict(engine.stream([ask(shown, words)]))[0].usage
        return usage.cached / usage.prompt

    assert cached(1, "What is it?") == 0
    assert cached(2, "What is it?") == 0
    assert cached(1, "Is it red?") > 0.5


def test_a_closed_stream_leaves_nothing_unfinished(engine: VllmEngine) -> None:
    taken: list[int] = []

    def requests() -> Iterator[Request]:
        for number in range(200):
            taken.append(number)
            yield ask(f"{number}", max_tokens=64)

    next(stream := engine.stream(requests()))
    assert 16 < len(taken) <= 18 + REQUESTS_AHEAD + 1  # as places become free
    assert unfinished(engine)
    stream.close()
    assert not unfinished(engine)


def test_two_streams_at_once_are_refused(engine: VllmEngine) -> None:
    first = engine.stream(ask(f"{number}") for number in range(9))
    next(first)
    with pytest.raises(EngineError, match="one stream at a time"):
        engine.stream([ask("b")])
    assert len(list(first)) == 8
    assert len(list(engine.stream([ask("b")]))) == 1
