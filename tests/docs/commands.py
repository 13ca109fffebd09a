"""The commands of pages and docstrings, as a shell would take them apart."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.markdown_for_tests import tokens
from tests.stages_for_tests import ROOT

HISTORY = "CHANGELOG.md"  # which names what earlier versions had
FILES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for folder in ("*", "docs/**/*", "dataset_card/*", "echo_hf/**/*", "eval_configs/**/*")
    for path in sorted(ROOT.glob(folder))
    if path.suffix in {".md", ".py", ".yaml", ".yml", ".jinja", ".js"} and path.name != HISTORY
}
PAGES = {name: text for name, text in FILES.items() if name.endswith(".md")} | {
    str(path.relative_to(ROOT)): ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    for path in sorted(ROOT.glob("scripts/*.py"))
}
SHELL = {"sh", "bash"}
SEPARATORS = "();<>|&\n"
# In a block of another language, what may stand before a command in its line.
LINE = re.compile(r"^ *(?:- run: |\$ )?((?:echo-hf|make|python scripts/\S+)(?: .*)?)$", re.M)
INLINE = re.compile(r"^(?:make|python scripts/).*$")


class Command(NamedTuple):
    page: str
    words: list[str]


def _commands() -> Iterator[Command]:
    for page, text in PAGES.items():
        for part in _parts(text):
            for words in _taken_apart(part):
                for program in ("echo-hf", "make", "python"):
                    if program in words[:-1]:
                        yield Command(page, words[words.index(program) :])


def _parts(text: str) -> Iterator[str]:
    for token in tokens(text):
        if token.type == "fence" and token.info in SHELL:
            yield token.content
        elif token.type == "code_block" or (token.type == "fence" and token.info != "text"):
            yield from LINE.findall(token.content)
        for child in token.children or ():
            if child.type == "code_inline":
                yield from INLINE.findall(child.content)


def _taken_apart(text: str) -> Iterator[list[str]]:
    """The words of each command; a quoted text may hold more of them."""
    plain = re.sub(r"(^|\s)#.*", r"\1", text.replace("\\\n", " "), flags=re.M)
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=SEPARATORS)
    lexer.whitespace, lexer.commenters = " \t", ""
    lexer.whitespace_split = True
    words = list[str]()
    for word in [*lexer, ";"]:
        if set(word) <= set(SEPARATORS):
            yield words
            words = []
        else:
            words.append(word)
        if "echo-hf " in word:
            yield from _taken_apart(word)


COMMANDS = list(_commands())


def commands_of(program: str, second: str = "") -> Any:
    """A test of each command of a program."""
    chosen = [
        command
        for command in COMMANDS
        if command.words[0] == program and command.words[1].startswith(second)
    ]
    names = [f"{command.page}: {' '.join(command.words)}" for command in chosen]
    return pytest.mark.parametrize("command", chosen, ids=names)
