"""Commands and code in pages, docstrings and messages are understood as they stand there."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

from echo_hf.cli import app
from tests.docs.commands import COMMANDS, FILES, PAGES, SHELL, Command, commands_of
from tests.markdown_for_tests import tokens
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT

GROUP: Any = typer.main.get_command(app)
VERBS: dict[str, Any] = GROUP.commands
# In words: a command in code, or at the end of a message.
NAMED = re.compile(r"(?:`|: )echo-hf ([^`\"\n]*)")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
SKILL = "echo_hf/cli/SKILL.md"


@commands_of("echo-hf")
def test_a_command_is_understood(command: Command) -> None:
    """By the parser of its verb, values and all."""
    _, verb, *rest = command.words
    assert verb in VERBS
    VERBS[verb].make_context(verb, rest)


@commands_of("make")
def test_a_target_is_in_the_makefile(command: Command) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert {word for word in command.words[1:] if "=" not in word} <= set(targets)


def test_a_command_in_words_has_its_verb_and_options() -> None:
    verbs_seen = list[str]()
    for name, text in FILES.items():
        for words in NAMED.findall(text):
            verb = re.match(r"[a-z][a-z-]*(?![\w-])", words)
            assert verb is None or verb[0] in VERBS, (name, words)
            parameters = [*GROUP.params, *(VERBS[verb[0]].params if verb else ())]
            known = {option for parameter in parameters for option in parameter.opts}
            assert set(OPTION.findall(words)) <= {*known, "-h", "--help"}, (name, words)
            verbs_seen += [verb[0]] if verb else []
    assert len(set(verbs_seen)) > 15


def test_the_shell_is_named_in_the_same_way_everywhere() -> None:
    """A block of another name would be read line by line only."""
    fences = [token for text in PAGES.values() for token in tokens(text) if token.type == "fence"]
    assert {token.info.partition(" title=")[0] for token in fences} == {
        "",
        *SHELL,
        "python",
        "text",
        "yaml",
        "json",
        "pycon",
        "bibtex",
        "markdown",
    }
    assert len({command.words[1] for command in COMMANDS if command.words[0] == "echo-hf"}) > 15


@pytest.mark.parametrize("page", [name for name in PAGES if blocks(PAGES[name], "python")])
def test_code_names_what_is_there(page: str) -> None:
    """Each name of the package, and each keyword that a function of it is called with."""
    names: dict[str, Any] = {}
    for block in blocks(re.sub("{{.*?}}", "0", PAGES[page]), "python"):
        nodes = list(ast.walk(ast.parse(block.text)))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom) and "echo_hf" in ast.unparse(node):
                exec(ast.unparse(node), names)  # noqa: S102 - our own
        for node in nodes:
            called = node.func if isinstance(node, ast.Call) else node
            name = ast.unparse(called)
            if not re.fullmatch(r"\w+(\.\w+)*", name) or name.partition(".")[0] not in names:
                continue
            function = eval(name, names)  # noqa: S307 - our own
            if isinstance(node, ast.Call):
                keywords = [keyword.arg for keyword in node.keywords if keyword.arg]
                inspect.signature(function).bind_partial(**dict.fromkeys(keywords))


def test_the_skill_says_what_it_is_for_and_dry_runs_come_first() -> None:
    """Its header is what agents choose by: at most 1,024 characters, as the format has it."""
    printed = CliRunner().invoke(app, ["--skill"]).output
    header = yaml.safe_load(printed.split("---")[1])
    assert header["name"] == "echo-hf"
    assert 100 < len(header["description"]) <= 1024
    listed = [command.words[1:] for command in COMMANDS if command.page == SKILL]
    for verb, dry in {"collect": "--plan", "build": "--dry-run", "eval": "--dry-run"}.items():
        first = next(words for words in listed if words[0] == verb)
        assert dry in first
