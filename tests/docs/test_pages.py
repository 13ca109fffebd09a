"""The pages of the documentation: short, all to be found, and true of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

from echo_hf.builder.steps import STAGES
from echo_hf.cli import app
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT

DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS)): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
GENERATED = {f"reference/{name}.md" for name in ("api", "cli", "config")}
WRITTEN = {name: text for name, text in PAGES.items() if name not in GENERATED}
SITE = "https://echo-hf.github.io/echo-hf/"
MOST_WORDS = 18_000


def named(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        yield from named([*entry.values()])
    elif isinstance(entry, list):
        for one in entry:
            yield from named(one)


def test_the_readme_is_short() -> None:
    """At most 1,500 words, what it prints and its code included."""
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 1_500


def test_every_page_is_in_the_navigation() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    assert sorted(named(navigation)) == sorted(PAGES)


def test_the_pages_are_short() -> None:
    texts = [
        re.sub(r"<!-- (\S+) -->.*<!-- /\1 -->", "", one, flags=re.S) for one in WRITTEN.values()
    ]
    assert sum(len(re.findall(r"\S*\w\S*", one)) for one in texts) <= MOST_WORDS


SKILL = "SKILL.md"


def commands() -> Iterator[tuple[str, list[str]]]:
    skill = (ROOT / "echo_hf/cli" / SKILL).read_text("utf-8")
    for name, text in {**WRITTEN, SKILL: skill}.items():
        for block in blocks(text, "sh", "bash"):
            for line in block.text.splitlines():
                if line.startswith("echo-hf "):
                    yield name, shlex.split(line, comments=True)[1:]


def test_every_command_is_understood() -> None:
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    told = list(commands())
    assert len({words[0] for _, words in told}) > 15
    for page, (verb, *rest) in told:
        assert verb in verbs, (page, verb)
        known = {name for option in verbs[verb].params for name in option.opts}
        assert {word for word in rest if word.startswith("-")} <= known, (page, verb, rest)


def test_the_skill_says_what_it_is_for_and_dry_runs_come_first() -> None:
    """Its header is what agents choose by: at most 1,024 characters, as the format has it."""
    printed = CliRunner().invoke(app, ["--skill"]).output
    header = yaml.safe_load(printed.split("---")[1])
    assert header["name"] == "echo-hf"
    assert 100 < len(header["description"]) <= 1024
    told = [words for name, words in commands() if name == SKILL]
    for verb, dry in {"collect": "--plan", "build": "--dry-run", "eval": "--dry-run"}.items():
        first = next(words for words in told if words[0] == verb)
        assert dry in first


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_no_page_names_a_verb_that_is_gone(name: str) -> None:
    gone = "|".join([*(stage for stage in STAGES if stage != "collect"), "keywords"])
    assert not re.search(rf"\becho-hf ({gone})\b", WRITTEN[name])


def test_addresses_in_the_package_are_pages() -> None:
    files = [*ROOT.glob("echo_hf/**/*"), *ROOT.glob("eval_configs/**/*"), *ROOT.glob("*.md")]
    texts = [one.read_text("utf-8") for one in files if one.suffix in {".py", ".md", ".yaml"}]
    linked = {one for text in texts for one in re.findall(rf"{re.escape(SITE)}([\w/-]*)", text)}
    pages = {str(Path(name).with_suffix("")) + "/" for name in PAGES} | {""}
    assert "how-to/platforms/" in linked
    assert linked <= pages
