"""What is written down holds no credentials."""

from __future__ import annotations

import pytest

from echo_hf.systems.base import is_secret, without_secrets

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
    """Values of variables that hold credentials, passwords in addresses, keys in queries."""
    assert without_secrets(text, KEYS) == shown


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "OPENAI_KEY_2",
        "LUMEN_KEY2",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "REPLICATE_TOKEN",
        "LUMEN_CREDENTIALS",
        "lumen_password",
        "LUMEN_APIKEY",
        "REGISTRY_AUTH",
    ],
)
def test_a_variable_with_a_secret_is_known_by_its_name(name: str) -> None:
    """Whatever stands around the word; its value is hidden."""
    assert is_secret(name)
    assert without_secrets("401 for tulip-1234", {name: "tulip-1234"}) == "401 for [hidden]"


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "KEYBOARD", "PWD", "MONKEY", "SSH_AUTH_SOCK"]
)
def test_other_variables_are_none(name: str) -> None:
    """A word that begins alike is another one."""
    assert not is_secret(name)
