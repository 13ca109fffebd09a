"""Tasks that a system does not take, and credentials that nobody keeps."""

from __future__ import annotations

import pytest

from echo_hf.engines.base import ImageRef
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import is_secret, unsupported_task, without_secrets
from tests.systems.drawing_for_tests import task


@pytest.mark.parametrize(
    ("number", "fewest", "most", "code", "takes"),
    [
        (3, 0, None, None, ""),
        (2, 2, 2, None, ""),
        (0, 1, 1, "too_few_inputs", "at least 1"),
        (3, 0, 2, "too_many_inputs", "at most 2"),
        (3, 0, 0, "too_many_inputs", "none"),
    ],
)
def test_a_task_fits_between_two_numbers_of_inputs(
    number: int, fewest: int, most: int | None, code: str | None, takes: str
) -> None:
    drawn = unsupported_task(task(*[ImageRef("0" * 64)] * number), fewest, most, "Anole")
    assert (drawn and drawn.code) == code
    if drawn is not None:
        assert (drawn.outcome, drawn.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
        assert drawn.text == f"the task has {number} input images, and Anole takes {takes}"


KEYS = {
    "LUMEN_API_KEY": " sk-tulip-1234 ",
    "HF_TOKEN": "hf_tulip5678",
    "SHORT_API_KEY": "abc",
    "LONGER_API_KEY": "sk-tulip-1234-and-more",
    "LANGUAGE": "en_GB.UTF-8",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Incorrect key: sk-tulip-1234.", "Incorrect key: [hidden]."),
        ("sk-tulip-1234-and-more", "[hidden]"),
        ("Bearer hf_tulip5678", "Bearer [hidden]"),
        ("at en_GB.UTF-8, abc", "at en_GB.UTF-8, abc"),
        ("https://mira:pw@example.org/a", "https://[hidden]@example.org/a"),
        ("GET /v1?alt=sse&key=AIzaTulip&x=1", "GET /v1?alt=sse&key=[hidden]&x=1"),
        ("/blob?sig=a%2Fb 403", "/blob?sig=[hidden] 403"),
        ("https://example.org/v1/images?n=1 @ noon", "https://example.org/v1/images?n=1 @ noon"),
    ],
)
def test_keys_are_hidden_and_the_rest_stays(text: str, shown: str) -> None:
    assert without_secrets(text, KEYS) == shown


TELLING = (
    "OPENAI_API_KEY OPENAI_KEY_2 LUMEN_KEY2 AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GITHUB_TOKEN "
    "HF_TOKEN HUGGING_FACE_HUB_TOKEN REPLICATE_TOKEN LUMEN_CREDENTIALS lumen_password "
    "LUMEN_APIKEY REGISTRY_AUTH"
)
PLAIN = "TOKENIZERS_PARALLELISM MAX_TOKENS KEYBOARD PWD MONKEY SSH_AUTH_SOCK"


def test_a_variable_with_a_secret_is_known_by_its_name() -> None:
    assert [name for name in TELLING.split() if not is_secret(name)] == []
    assert [name for name in PLAIN.split() if is_secret(name)] == []
