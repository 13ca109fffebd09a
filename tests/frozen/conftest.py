"""`python -m pytest tests/frozen --refreeze` writes what is there now over what was frozen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HOW = "what users meet has changed: if it is meant, run `python -m pytest tests/frozen --refreeze`"


@pytest.fixture
def frozen(request: pytest.FixtureRequest) -> Callable[[str, Any], None]:

    def compare(name: str, found: Any) -> None:
        file = Path(__file__).with_name(f"{name}.json")
        text = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        if request.config.getoption("--refreeze"):
            file.write_text(text, "utf-8")
        assert json.loads(text) == json.loads(file.read_text("utf-8")), HOW

    return compare
