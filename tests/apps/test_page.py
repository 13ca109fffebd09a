"""What both apps' pages have in common: who comes in, what a server lets out, and its images."""

from __future__ import annotations

import http.client
import io
import re
import socket
from collections.abc import Iterator
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from PIL import Image

from echo_hf.apps.page import (
    IMAGE_ROUTE,
    PASSWORDS_VARIABLE,
    AppPage,
    AppUsers,
    ServedImages,
    ServerAddress,
    check_apps_installed,
    check_reachable,
    normalize_pseudonym,
    open_socket,
    read_users,
)
from echo_hf.errors import ImageError, MissingExtraError, RunError
from echo_hf.images.store import ImageStore
from tests.apps.browser import Server, served
from tests.apps.rank.ranked_run import drawing, ranked_run
from tests.judging.run_for_tests import put, root

HOSTILE = "<script>alert(1)</script>\" onload='x' ${y} {{z}}"


def test_who_is_refused_is_asked_again() -> None:
    """What was typed is escaped; a pseudonym has one form, and a list of people is closed."""

    def opened(person: str) -> str:
        if person == "ben":
            raise RunError("cannot use the log of events")
        return f"the page of {person}"

    page = AppPage("Rank", (), "rank.css", opened, lambda person, *_: person)
    people = read_users(["Ada", "ben", "ada"])
    assert people == AppUsers(("ada", "ben"))
    shown = [page.render_for(people, name) for name in (None, "ＡＤＡ", "cy", HOSTILE, "ben")]
    assert shown[1] == "the page of ada"
    said = ["", "the page", "'cy' is not on the list", "' is not a pseudonym", "cannot use the"]
    assert all(words in unescape(html) for words, html in zip(said, shown, strict=True))
    assert [html.count('data-name="') for html in shown] == [2, 0, 2, 2, 2]
    assert "<script" not in shown[3]
    assert "onload='x'" not in shown[3]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        *((" zoë-2 ", "zoë-2"), ("ＡＤＡ", "ada"), ("山田", "山田")),
        *((typed, None) for typed in ("", " ", "a b", "a@b.c", "x" * 41, "<b>", "a\nb", "../x")),
    ],
)
def test_a_pseudonym_has_one_form(typed: str, kept: str | None) -> None:
    if kept:
        assert normalize_pseudonym(typed) == kept
        return
    with pytest.raises(RunError, match="is not a pseudonym") as caught:
        normalize_pseudonym(typed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names 0 people"),
        ("ada:long-enough Ada:long-enough", "names 2 people, 1 of them distinct"),
        ("ada:hunter2 ben", "2 with a short password"),
        ("Ada:correct:horse ben:battery-staple", None),
    ],
)
def test_passwords_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str | None
) -> None:
    monkeypatch.setenv(PASSWORDS_VARIABLE, text)
    if said is None:
        known = {"ada": "correct:horse", "ben": "battery-staple"}
        assert read_users(["auth"]) == AppUsers(("ada", "ben"), known)
        # Names beside it would be of people without a password.
        with pytest.raises(RunError, match="--people auth stands alone"):
            read_users(["auth", "ada"])
        return
    with pytest.raises(RunError, match=said) as caught:
        read_users(["auth"])
    assert "hunter2" not in str(caught.value)
    assert "long-enough" not in str(caught.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])  # noqa: S104 - what is tested
def test_strangers_are_not_let_in_by_accident(host: str) -> None:
    with pytest.raises(RunError, match="can be reached from other machines"):
        check_reachable(host, AppUsers(("ada",)), allow_anyone=False)
    check_reachable(host, AppUsers(("ada",), {"ada": "correct-horse"}), allow_anyone=False)
    check_reachable(host, AppUsers(), allow_anyone=True)
    for here in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        check_reachable(here, AppUsers(), allow_anyone=False)


def test_only_what_may_be_shown_is_served_under_names_that_tell_nothing(tmp_path: Path) -> None:
    """Each start has other names, and whatever else the file of an image held is gone."""
    store = ImageStore(tmp_path / "pictures")
    data = drawing("oxlip")
    shown, other = store.put(data), store.put(drawing("quixel"))
    images, again = ServedImages(store), ServedImages(store)
    images.admit([shown])
    name = images.get_address(shown).removeprefix(IMAGE_ROUTE)
    assert re.fullmatch(r"[0-9a-f]{32}", name)
    assert shown[:8] not in name
    assert images.get_address(shown) != again.get_address(shown)
    assert "secret" not in repr(images)
    for unknown in (
        images.get_address(other).removeprefix(IMAGE_ROUTE),
        shown,
        "",
        f"../{shown[:2]}/{shown}",
    ):
        assert images.encode_png(unknown) is None
    bare = images.encode_png(name)
    assert bare is not None
    assert b"oxlip" in data
    assert b"oxlip" not in bare
    with Image.open(io.BytesIO(bare)) as found, Image.open(io.BytesIO(data)) as before:
        assert (found.format, found.info) == ("PNG", {})
        assert np.array_equal(np.asarray(found), np.asarray(before))
    store.path(shown).unlink()
    with pytest.raises(ImageError):
        images.encode_png(name)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    ranked_run(folder)
    with served(("rank", "evaluation.yaml"), folder) as found:
        yield found


def asked(server: Server, path: str, host: str | None = None) -> tuple[int, bytes, dict[str, str]]:
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
def test_each_answer_keeps_the_browser_at_home_and_names_no_system(server: Server) -> None:
    told = b""
    for path in ("/", "/config", "/image/none", "/gradio_api/info"):
        _, body, headers = asked(server, path)
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "http" not in policy
        assert headers["referrer-policy"] == "no-referrer"
        told += body
    assert b"Rank images" in told
    assert str(server.folder).encode() not in told
    assert b"zorblatt" not in told
    # Another website's name is turned away.
    assert asked(server, "/", "evil.example")[0] == 400
    assert asked(server, "/", "localhost")[0] == 200


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunError, match=f"cannot listen on '127.0.0.1', port {port}"):
            open_socket(ServerAddress("127.0.0.1", port))


@pytest.mark.skipif(find_spec("gradio") is not None, reason="gradio is here")
def test_without_gradio_it_is_said_what_to_install() -> None:
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[apps\]"'):
        check_apps_installed("`echo-hf rank`")
