"""The documentation site, as mkdocs builds it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.stages_for_tests import ROOT

REASON = "needs mkdocs-material: make test-extras"
pytestmark = pytest.mark.extras
HOME = "https://echo-hf.github.io/echo-hf/"
LOADING = {"stylesheet", "icon", "preconnect", "preload", "prefetch", "dns-prefetch"}


class Page(HTMLParser):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        if "src" in given or LOADING & set(given.get("rel", "").split()):
            self.loads.add(given.get("src") or given["href"])
        elif tag in ("a", "link") and "href" in given:
            self.links.add(given["href"])


class Site:
    def __init__(self, folder: Path, said: str) -> None:
        self.folder, self.said = folder, said

    @cached_property
    def pages(self) -> dict[str, Page]:
        files = [one for one in self.folder.rglob("*.html") if one.name != "404.html"]
        return {
            HOME + str(one.relative_to(self.folder)).removesuffix("index.html"): Page(one)
            for one in files
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    for package in ("mkdocs", "material"):
        pytest.importorskip(package, reason=REASON)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    own = {
        "NO_MKDOCS_2_WARNING": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Site(folder, done.stdout + done.stderr)


def test_it_is_built_without_a_warning(site: Site) -> None:
    assert "WARNING" not in site.said
    assert len(site.pages) == len(list((ROOT / "docs").rglob("*.md")))


def test_no_link_is_broken(site: Site) -> None:
    for address, page in site.pages.items():
        for link in page.links | page.loads:
            target, _, place = urljoin(address, link).partition("#")
            if target.startswith(HOME):
                file = site.folder / unquote(urlsplit(target.removeprefix(HOME)).path)
                assert file.exists(), (address, link)
                if place and target in site.pages:
                    assert unquote(place) in site.pages[target].anchors | {"__skip"}, (
                        address,
                        link,
                    )


def test_no_page_loads_anything_from_another_host(site: Site) -> None:
    for address, page in site.pages.items():
        for loaded in page.loads:
            assert urljoin(address, loaded).startswith((HOME, "data:")), (address, loaded)
    for file in site.folder.rglob("*.css"):
        text = file.read_text("utf-8")
        assert "@import" not in text
        assert not {one for one in ("url(http", 'url("http', "url(//") if one in text}
