"""What a release becomes in its repository, and what a commit has to change for it."""

from __future__ import annotations

import ast
import hashlib
import subprocess
from pathlib import Path

import pytest
from huggingface_hub.hf_api import RepoFile
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ReleaseError
from echo_hf.hub.publish import Content, changes, named_card, release_contents
from echo_hf.hub.release import Release

# Neither a repository nor a tag may hold a backtick, which would end the code.
NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="`"), min_size=1, max_size=30
)


def called_with(card: str) -> tuple[object, object]:
    code = card.split("```python\n")[1].split("```")[0]
    (call,) = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    revision = {word.arg: word.value for word in call.keywords}["revision"]
    return ast.literal_eval(call.args[0]), ast.literal_eval(revision)


@given(NAMES, NAMES, NAMES, NAMES)
def test_whatever_a_card_named_it_names_the_new_place(
    repo: str, tag: str, new_repo: str, new_tag: str
) -> None:
    plain = '# "a"\n\n```python\nx = load_dataset("o/n", "c", split="test", revision="r")\n```\nend'
    once = named_card(plain, repo, tag)
    assert called_with(once) == (repo, tag)
    assert named_card(once, new_repo, new_tag) == named_card(plain, new_repo, new_tag)


def test_only_calls_in_code_are_touched() -> None:
    card = (
        'load_dataset("a", revision="b")\n```python\nload_benchmark("a", revision="b")\n```\n'
        '```text\nload_dataset("a")\n```\n```python\nload_dataset(\n  "a")\nrevision="b"\n```\n'
    )
    assert named_card(card, "o/n", "t") == (
        'load_dataset("a", revision="b")\n```python\nload_benchmark("o/n", revision="t")\n```\n'
        '```text\nload_dataset("a")\n```\n```python\nload_dataset(\n  "o/n")\nrevision="t"\n```\n'
    )


@pytest.mark.parametrize(
    "card",
    [
        "---\nconfigs: [\n---\n",
        "no front matter",
        "---\nlicense: other\nconfigs:\n- config_name: analysis\n  data_files: x\n---\n",
        "---\n- a list\n---\n",
    ],
)
def test_a_card_that_is_not_of_this_release_is_refused(release: Release, card: str) -> None:
    (release.path / "README.md").write_text(card, "utf-8")
    with pytest.raises(ReleaseError, match="write the release again") as raised:
        release_contents(release, "o/n", "v1")
    assert "\n" not in str(raised.value)


DATA = "analysis/test-00000-of-00001.parquet"


def content(data: bytes) -> Content:
    return Content(data, len(data), hashlib.sha256(data).hexdigest())


def test_git_names_a_blob_alike(tmp_path: Path) -> None:
    data = b"any\n bytes \xff"
    (tmp_path / "file").write_bytes(data)
    command = ["git", "hash-object", "--no-filters", str(tmp_path / "file")]
    git = subprocess.run(command, capture_output=True, text=True, check=True)
    held = {DATA: RepoFile(path=DATA, size=len(data), oid=git.stdout.strip())}
    for source in (data, tmp_path / "file"):
        assert not any(changes({DATA: Content(source, len(data), "")}, held))
    assert any(changes({DATA: content(data[::-1])}, held))


def test_what_readers_would_take_for_data_goes() -> None:
    gone = [
        "analysis/notes.txt",
        "analysis/test-00001-of-00002.parquet",
        "text_to_image/test-00000-of-00001.parquet",
    ]
    stay = [".gitattributes", "LICENSE", "data/train.csv", "text_to_image/notes.txt"]
    held = {path: RepoFile(path=path, size=1, oid="0" * 40) for path in [*gone, *stay, DATA]}
    assert changes({DATA: content(b"a")}, held).delete == gone
