"""Addresses of servers, and their keys."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from echo_hf.engines.server import ApiKey, Server, is_private
from echo_hf.errors import EngineError

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.53", True),
        ("::1", True),
        ("10.0.0.7", True),
        ("172.16.3.4", True),
        ("192.168.1.9", True),
        ("100.64.0.1", True),
        ("gpu-node-17", True),
        ("node.cluster.local", True),
        ("vllm.svc.INTERNAL", True),
        ("8.8.8.8", False),
        ("172.32.0.1", False),
        ("api.openai.com", False),
        ("localhost.example.org", False),
    ],
)
def test_private_networks_are_told_from_public_ones(host: str, expected: bool) -> None:
    """By the reserved ranges of addresses, and by names that no public server can have."""
    assert is_private(host) is expected


def test_a_private_servers_address_is_no_part_of_its_label() -> None:
    """Its port changes from run to run; a public server is who answers."""
    labels = [
        Server(url).label
        for url in (
            "http://127.0.0.1:8000/v1",
            "http://gpu-node:9/v1",
            "https://API.example.org/v1",
            "https://api.example.org:8443/v1",
        )
    ]
    assert labels == ["private", "private", "api.example.org", "api.example.org:8443"]


@pytest.mark.parametrize(
    "url",
    ["", "models.example.org", "ftp://models.example.org", "http://", "http://host:port/v1"],
)
def test_what_is_no_address_is_told(url: str) -> None:
    """With the value and an example."""
    with pytest.raises(EngineError, match=r"base_url is .*: expected an address such as"):
        Server(url).check()


@pytest.mark.parametrize("endpoint", ["/chat/completions", "/moderations"])
@pytest.mark.parametrize("end", ["", "/"])
def test_an_address_of_one_endpoint_is_told(endpoint: str, end: str) -> None:
    """The part that is added to it must not stand there already."""
    with pytest.raises(EngineError, match=f"leave out '{endpoint}'"):
        Server(f"http://127.0.0.1:8000/v1{endpoint}{end}").check()


PUBLIC = Server("https://api.openai.com/v1")
LOCAL = Server("http://127.0.0.1:8000/v1")


def test_a_key_comes_from_its_variable() -> None:
    """Without the blanks around it that a file or a shell adds."""
    assert PUBLIC.key("K", {"K": f" {KEY}\n"}).secret.get_secret_value() == KEY
    assert LOCAL.key("K", {"K": KEY}).secret.get_secret_value() == KEY


@pytest.mark.parametrize("environment", [{}, {"K": ""}, {"K": " \n"}], ids=str)
def test_a_public_server_wants_a_key(environment: dict[str, str]) -> None:
    """A local one does not."""
    with pytest.raises(EngineError, match=r"environment variable 'K' is not set, and 'api\.openai"):
        PUBLIC.key("K", environment)
    assert not LOCAL.key("K", environment)


def test_a_server_can_be_asked_without_a_key() -> None:
    """When the config says so, whatever the environment holds."""
    assert not PUBLIC.key(None, {"OPENAI_API_KEY": KEY})


@pytest.mark.parametrize("value", [f"{KEY}\x00", f"{KEY} {KEY}", f"{KEY}\n{KEY}", f"{KEY}é"])
def test_what_cannot_be_a_key_is_told_without_it(value: str) -> None:
    """It would break the header that it is sent in, whose error would show it."""
    with pytest.raises(EngineError, match="environment variable 'K' holds no key") as caught:
        PUBLIC.key("K", {"K": value})
    assert KEY not in str(caught.value)


def test_a_key_does_not_travel_unencrypted() -> None:
    """Except inside one's own network; a public server without keys may be asked so."""
    public = Server("http://models.example.org/v1")
    with pytest.raises(EngineError, match="would send the key unencrypted"):
        public.key("K", {"K": KEY})
    assert not public.key(None, {"K": KEY})


def test_a_key_is_hidden_wherever_it_stands() -> None:
    """In texts, and when it is printed itself; without a key nothing changes."""
    key = ApiKey(SecretStr(KEY))
    assert key.hidden_in(f"a {KEY}, b{KEY}b") == "a (key), b(key)b"
    assert KEY not in repr(key)
    assert ApiKey(SecretStr("")).hidden_in("as it was") == "as it was"
