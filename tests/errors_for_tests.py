"""What an error says, which is one line whatever is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def said_by(error: type[Exception], call: Callable[..., object], *given: Any, **named: Any) -> str:
    with pytest.raises(error) as caught:
        call(*given, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)
