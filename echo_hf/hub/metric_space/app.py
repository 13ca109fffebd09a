"""The page of the Space: ratings are pasted, win rates are shown.

Pictures are not taken here: a path in what a visitor pastes would name a file of the server.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import evaluate

from echo_hf import EchoError

MOST_LETTERS = 1_000_000
ABOUT = "Paste judges' ratings as a JSON list of objects: `sample_id`, `system`, `judge`, `rating`."
EXAMPLE = """[
  {"sample_id": "a", "system": "mine", "judge": "qwen", "rating": 8},
  {"sample_id": "a", "system": "theirs", "judge": "qwen", "rating": 6},
  {"sample_id": "b", "system": "mine", "judge": "qwen", "rating": 7},
  {"sample_id": "b", "system": "theirs", "judge": "qwen", "rating": 7}
]"""


def win_rates(pasted: str) -> dict[str, Any]:
    """The win rates of pasted ratings.

    Args:
        pasted: A JSON list of ratings.

    Returns:
        What the config `win_rate` gives, or a dict with what is wrong as `error`.
    """
    if len(pasted) > MOST_LETTERS:
        return {"error": f"{len(pasted)} letters: expected at most {MOST_LETTERS}"}
    try:
        metric = evaluate.load(str(Path(__file__).with_name("echo.py")), "win_rate")
        found: dict[str, Any] = metric.compute(predictions=json.loads(pasted))
    except (EchoError, ValueError, RecursionError) as error:
        return {"error": str(error)}
    return found


def main() -> None:
    """Shows the page until it is stopped."""
    import gradio

    page = gradio.Interface(
        fn=win_rates,
        inputs=gradio.Textbox(EXAMPLE, label="Ratings", lines=12),
        outputs=gradio.JSON(label="Win rates"),
        title="ECHO",
        description=ABOUT,
        flagging_mode="never",
    )
    page.launch()


if __name__ == "__main__":
    main()
