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
    HERE,
    PASSWORDS,
    ROUTE,
    AppUsers,
    AskedPage,
    Place,
    ShownImages,
    answer_of,
    check_installed,
    check_reachable,
    listening,
    packed,
    people_of,
    pseudonym,
    rendered,
)
from echo_hf.errors import ImageError, MissingExtraError, RunError
from echo_hf.images.store import ImageStore
from tests.apps.browser import Server, served
from tests.apps.rank.ranked_run import drawing, ranked_run
from tests.judging.run_for_tests import put, root

HOSTILE = "<script>alert(1)</script>\" onload='x' ${y} {{z}}"


def start_page(names: tuple[str, ...], problem: str = "") -> str:
    return rendered("start.jinja", title="Rank", names=names, problem=problem)


def test_the_start_page_escapes_what_was_typed() -> None:
    page = start_page((HOSTILE,), f"{HOSTILE} is not a pseudonym")
    assert "<script" not in page
    assert "onload='x'" not in page
    assert f">{HOSTILE} is not a pseudonym<" in unescape(page)


def test_who_is_refused_is_asked_again() -> None:
    def opened(person: str) -> str:
        if person == "ben":
            raise RunError("cannot use the log of events")
        return f"the page of {person}"

    page = AskedPage("Rank", AppUsers(("ada", "ben")), (), HERE, opened, lambda person, _: person)
    shown = [unescape(page.shown_to(name)) for name in (None, "Ada", "cy", "a b", "ben")]
    assert shown[1] == "the page of ada"
    said = ["", "the page", "'cy' is not on the list", "'a b' is not a pseudonym", "cannot use the"]
    assert all(words in html for words, html in zip(said, shown, strict=True))
    assert [html.count('data-name="') for html in shown] == [2, 0, 2, 2, 2]


@pytest.mark.parametrize(("sent", "number"), [(3, 3), ("3", 0), (True, 0), (None, 0), (1.5, 0)])
def test_an_answer_names_what_it_answers(sent: object, number: int) -> None:
    assert answer_of({"answer": sent}) == number


@pytest.mark.parametrize(
    ("typed", "kept"), [("Ada", "ada"), (" zoë-2 ", "zoë-2"), ("ＡＤＡ", "ada"), ("山田", "山田")]
)
def test_a_pseudonym_has_one_form(typed: str, kept: str) -> None:
    assert pseudonym(typed) == kept


@pytest.mark.parametrize("typed", ["", " ", "a b", "a@b.c", "x" * 41, "<b>", "a\nb", "../x"])
def test_what_is_no_pseudonym_is_refused(typed: str) -> None:
    with pytest.raises(RunError, match="is not a pseudonym") as caught:
        pseudonym(typed)
    assert "\n" not in str(caught.value)


def test_a_list_of_people_is_closed() -> None:
    people = people_of(["Ada", "ben", "ada"])
    assert people == AppUsers(("ada", "ben"))
    assert people.admitted("ADA") == "ada"
    with pytest.raises(RunError, match="'cy' is not on the list: choose one of ada, ben"):
        people.admitted("cy")


def test_passwords_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORDS, "Ada:correct:horse ben:battery-staple")
    people = people_of(["auth"])
    assert people.names == ("ada", "ben")
    assert people.passwords == {"ada": "correct:horse", "ben": "battery-staple"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names 0 people"),
        ("ada:long-enough Ada:long-enough", "names 2 people, 1 of them distinct"),
        ("ada:hunter2", "the password of 'ada' is short"),
        ("ada", "the password of 'ada' is short"),
    ],
)
def test_bad_passwords_are_one_line_without_them(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv(PASSWORDS, text)
    with pytest.raises(RunError, match=said) as caught:
        people_of(["auth"])
    assert "hunter2" not in str(caught.value)
    assert "long-enough" not in str(caught.value)


def test_auth_stands_alone() -> None:
    """Names beside it would be of people without a password."""
    with pytest.raises(RunError, match="--people auth stands alone"):
        people_of(["auth", "ada"])


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])  # noqa: S104 - what is tested
def test_strangers_are_not_let_in_by_accident(host: str) -> None:
    with pytest.raises(RunError, match="can be reached from other machines"):
        check_reachable(host, AppUsers(("ada",)), anyone=False)
    check_reachable(host, AppUsers(("ada",), {"ada": "correct-horse"}), anyone=False)
    check_reachable(host, AppUsers(), anyone=True)
    for here in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        check_reachable(here, AppUsers(), anyone=False)


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "pictures")


def name(images: ShownImages, digest: str) -> str:
    return images.address(digest).removeprefix(ROUTE)


def admitted(store: ImageStore, digest: str) -> ShownImages:
    images = ShownImages(store)
    images.admit([digest])
    return images


def test_only_what_may_be_shown_is_served(store: ImageStore) -> None:
    shown, other = store.put(drawing("oxlip")), store.put(drawing("quixel"))
    images = admitted(store, shown)
    assert images.png(name(images, shown)) is not None
    for unknown in (name(images, other), shown, other, "", "..", f"../{shown[:2]}/{shown}"):
        assert images.png(unknown) is None


def test_names_tell_nothing_and_are_others_each_time(store: ImageStore) -> None:
    digest = store.put(drawing("oxlip"))
    first, second = (admitted(store, digest) for _ in range(2))
    assert re.fullmatch(r"/image/[0-9a-f]{32}", first.address(digest))
    assert first.address(digest) == first.address(digest)
    assert first.address(digest) != second.address(digest)
    assert digest[:8] not in first.address(digest)
    assert "secret" not in repr(first)


def test_pixels_are_the_same_and_nothing_else_is_left(store: ImageStore) -> None:
    data = drawing("oxlip")
    assert b"oxlip" in data
    bare = packed(data)
    assert b"oxlip" not in bare
    with Image.open(io.BytesIO(bare)) as found, Image.open(io.BytesIO(data)) as before:
        assert found.format == "PNG"
        assert found.info == {}
        assert np.array_equal(np.asarray(found), np.asarray(before))


def test_an_image_that_is_gone_is_an_error(store: ImageStore) -> None:
    digest = store.put(drawing("oxlip"))
    images = admitted(store, digest)
    store.path(digest).unlink()
    with pytest.raises(ImageError):
        images.png(name(images, digest))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("gradio", reason="the page needs gradio")
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
def test_each_answer_keeps_the_browser_at_home(server: Server) -> None:
    for path in ("/", "/config", "/image/none"):
        headers = asked(server, path)[2]
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "http" not in policy
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.extras
def test_another_websites_name_is_turned_away(server: Server) -> None:
    assert asked(server, "/", "evil.example")[0] == 400
    assert asked(server, "/", "localhost")[0] == 200


@pytest.mark.extras
def test_what_the_page_is_made_of_names_no_system(server: Server) -> None:
    told = asked(server, "/")[1] + asked(server, "/config")[1]
    told += asked(server, "/gradio_api/info")[1]
    assert b"Rank images" in told
    assert str(server.folder).encode() not in told
    assert b"zorblatt" not in told


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunError, match=f"cannot listen on '127.0.0.1', port {port}"):
            listening(Place("127.0.0.1", port))


@pytest.mark.skipif(find_spec("gradio") is not None, reason="gradio is here")
def test_without_gradio_it_is_said_what_to_install() -> None:
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[apps\]"'):
        check_installed("`echo-hf rank`")
