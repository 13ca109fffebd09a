"""How the blocks of a page are found and run, on pages written for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.package.blocks import Environment, blocks, run_page

PAGE = """# A page

<!-- not run: installs -->
```sh
exit 3
```

```sh
echo 1 > made.txt
cat made.txt
```

What it prints:

```
exit 4
```

1. In a list:

   ```python
   from pathlib import Path

   if True:
       Path("made.txt").write_text(Path("made.txt").read_text() + "2")
   ```

````markdown
```sh
exit 5
```
````

```bash
test "$(tr -d '\\n' < made.txt)" = 12
echo 3 >> made.txt
```

```yaml
exit: 6
```
"""


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """The one that runs the tests, with a home of its own."""
    return Environment(Path(sys.executable).parent, tmp_path / "home")


def test_blocks_in_languages_that_run_are_found(environment: Environment, tmp_path: Path) -> None:
    """And run in order, each in a process of its own; a block inside another one is text."""
    assert [one.text for one in blocks(PAGE, "yaml", "text")] == ["exit: 6"]
    found = [(one.language, one.skipped) for one in blocks(PAGE)]
    assert found == [("sh", "installs"), ("sh", None), ("python", None), ("bash", None)]
    begun = [PAGE.splitlines()[one.line - 1].strip() for one in blocks(PAGE)]
    assert begun == [f"```{language}" for language, _ in found]
    assert run_page(PAGE, environment, tmp_path) == 3
    assert (tmp_path / "made.txt").read_text() == "1\n23\n"


@pytest.mark.parametrize(
    "block",
    ["```sh\nfalse | true\n```", "```python\nkept\n```", "<!-- not run: why -->\n```sh\ntrue\n```"],
    ids=["a pipe", "a name of another block", "no reason"],
)
def test_a_block_that_fails_fails(block: str, environment: Environment, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"line (5|6)"):
        run_page(f"```python\nkept = 1\n```\n\n{block}\n", environment, tmp_path)


def test_the_checkout_is_not_on_the_path(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is anything else of who runs the tests, such as keys."""
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    told = environment.run(["env"], tmp_path)
    names = {line.partition("=")[0] for line in told.stdout.splitlines()}
    assert names <= {"PATH", "HOME", "LANG", "TMPDIR", "HF_HUB_OFFLINE", "PWD", "SHLVL", "_"}
