"""A tiny reward model behind `vllm serve`: the routes that take images, and their numbers."""

from __future__ import annotations

import math
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from echo_hf.engines.base import Request, make_engine
from echo_hf.errors import EngineError
from tests.engines.test_conformance import ask, image
from tests.engines.vllm.test_serve import READY, SERVE
from tests.tiny_models import write_tiny_scorer

pytestmark = pytest.mark.vllm

SETTINGS = (
    *("--served-model-name", "tiny", "--host", "127.0.0.1", "--dtype", "float32"),
    *("--max-model-len", "8192", "--max-num-seqs", "8", "--enforce-eager"),
    *("--runner", "pooling", "--limit-mm-per-prompt", '{"image": 4, "video": 0}'),
)


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scorer(tmp_path_factory.mktemp("scorer"))


@pytest.fixture(scope="module")
def address(scorer: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*SERVE, str(scorer), *SETTINGS, "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as serving:
        assert serving.stderr
        lines = []
        for line in serving.stderr:
            lines.append(line)
            if READY in line:
                break
        else:
            pytest.fail("".join(lines[-40:]))
        rest = Thread(target=serving.stderr.read)  # a full pipe would stop it
        rest.start()
        yield f"http://127.0.0.1:{port}/v1"
        serving.terminate()
        rest.join()


def give(address: str, requests: list[Request], **options: Any) -> list[float]:
    known = {"model": "tiny", "base_url": address, "api_key_env": None, "max_attempts": 1}
    answers = dict(make_engine("pooling", **known, **options).stream(requests))
    errors = [answers[number].error for number in range(len(requests))]
    assert errors == [None] * len(requests)
    return [float(answers[number].text or "") for number in range(len(requests))]


def compute_logit(folder: Path, text: str) -> float:
    """What transformers gives for words alone: the last hidden state times the head."""
    import torch
    from safetensors.torch import load_file
    from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration

    processor = AutoProcessor.from_pretrained(folder)
    chat = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    prompt = processor.apply_chat_template(chat, tokenize=False)
    inputs = processor(text=[prompt], return_tensors="pt")
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        states = model(**inputs, output_hidden_states=True).hidden_states[-1][0, -1]
    head = load_file(folder / "model.safetensors")["language_model.score.weight"][0]
    return float(states @ head)


@pytest.mark.filterwarnings("ignore")
def test_routes_give_the_heads_own_number(address: str, scorer: Path, tmp_path: Path) -> None:
    words = ["rate", "a longer question"]
    expected = [compute_logit(scorer, text) for text in words]
    assert give(address, [ask(text) for text in words]) == pytest.approx(expected, abs=1e-2)

    shown = [image(tmp_path, red) for red in (10, 60, 200)]
    requests = [ask("rate", shown[0], other, "now") for other in shown]
    plain = give(address, requests)
    assert len({round(number, 3) for number in plain}) == 3
    assert give(address, requests, route="pooling") == pytest.approx(plain, abs=1e-4)
    activated = give(address, requests, activation=True)
    assert activated == pytest.approx([1 / (1 + math.exp(-each)) for each in plain], abs=1e-4)
    judged = [ask("rate", shown[0], "now", other) for other in shown]  # the image comes last
    pairs = give(address, judged, route="score")
    assert len({round(number, 3) for number in pairs}) == 3


def test_what_a_server_refuses_is_told(address: str, tmp_path: Path) -> None:
    """A request with too many images fails alone; a server of rewards writes no words."""
    known = {"model": "tiny", "base_url": address, "api_key_env": None, "max_attempts": 1}
    requests = [ask(*[image(tmp_path, 9)] * 5), ask("x")]
    answers = dict(make_engine("pooling", **known).stream(requests))
    assert "At most 4 image(s)" in (answers[0].error or "")
    assert answers[1].is_answer
    with pytest.raises(EngineError, match="404"):
        list(make_engine("openai", **known).stream([ask("x")]))
