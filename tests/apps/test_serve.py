"""What a server lets out, asked over HTTP: its page, the images that it may show, and no file."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from urllib.parse import quote, urlsplit

import pytest

from echo_hf.apps.page import Place, check_installed, listening
from echo_hf.errors import MissingExtraError, RunError
from tests.apps.browser import Server, served
from tests.apps.rank.ranked_run import drawing, ranked_run
from tests.judging.run_for_tests import put, root


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A page on which people rank."""
    pytest.importorskip("gradio", reason="the page needs gradio")
    folder = tmp_path_factory.mktemp("served")
    ranked_run(folder)
    with served(("rank", "evaluation.yaml"), folder) as found:
        yield found


def asked(server: Server, path: str, host: str | None = None) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers, the path sent as it stands."""
    place = urlsplit(server.address)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    try:
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, answer.read(), headers
    finally:
        connection.close()


@pytest.mark.extras
def test_no_file_can_be_had(server: Server) -> None:
    """By no way out of the images, and by none of the page's own routes for files."""
    inside = root(server.folder)
    digest = put(server.folder, drawing("oxlip"))
    image = f"{inside}/pictures/{digest[:2]}/{digest}"
    ways = [
        f"/image/{digest}",
        "/image/",
        "/image/..",
        "/image/../events.sqlite",
        "/image/%2e%2e%2foutputs.parquet",
        f"/image/{quote(image, safe='')}",
        "/image/%00",
        *(
            f"{route}{quote(file) if encode else file}"
            for route in ("/gradio_api/file=", "/file=", "/file/", "/static/", "/")
            for file in (f"{inside}/outputs.parquet", image, "/etc/passwd", "evaluation.yaml")
            for encode in (False, True)
        ),
    ]
    answers = {way: asked(server, way) for way in ways}
    assert {way: found[0] for way, found in answers.items() if found[0] < 400} == {}
    secret = [b"PAR1", b"root:", b"benchmark:", b"PNG", b"oxlip"]
    assert [way for way, found in answers.items() if any(one in found[1] for one in secret)] == []


@pytest.mark.extras
def test_each_answer_keeps_the_browser_at_home(server: Server) -> None:
    """The policy allows this server alone, on the page, on images and on errors."""
    for path in ("/", "/config", "/image/none"):
        headers = asked(server, path)[2]
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "http" not in policy
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.extras
def test_another_websites_name_is_turned_away(server: Server) -> None:
    """A website that has its name point here does not get at the page through a visitor."""
    assert asked(server, "/", "evil.example")[0] == 400
    assert asked(server, "/", "localhost")[0] == 200


@pytest.mark.extras
def test_what_the_page_is_made_of_names_no_system(server: Server) -> None:
    """Nor folders or people."""
    told = asked(server, "/")[1] + asked(server, "/config")[1]
    told += asked(server, "/gradio_api/info")[1]
    assert b"Rank images" in told
    assert str(server.folder).encode() not in told
    assert b"zorblatt" not in told


def test_a_port_that_is_taken_is_one_line() -> None:
    """Another program listens there."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunError, match=f"cannot listen on '127.0.0.1', port {port}"):
            listening(Place("127.0.0.1", port))


@pytest.mark.skipif(find_spec("gradio") is not None, reason="gradio is here")
def test_without_gradio_it_is_said_what_to_install() -> None:
    """Before anything is read."""
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[apps\]"'):
        check_installed("`echo-hf rank`")
