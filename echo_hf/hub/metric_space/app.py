"""The page of the metric Space: paste ratings, see win rates.

Images are not taken here: a path in what a visitor pastes would name a file of the server.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import evaluate

from echo_hf import EchoError

MAX_CHARACTERS = 1_000_000
# Judges x systems x systems x samples: what a comparison of all with all takes.
MAX_CELLS = 20_000_000
AXES = ("judge", "system", "system", "sample_id")
ABOUT = "Paste judges' ratings as a JSON list of objects: `sample_id`, `system`, `judge`, `rating`."
EXAMPLE = """[
  {"sample_id": "a", "system": "mine", "judge": "qwen", "rating": 8},
  {"sample_id": "a", "system": "theirs", "judge": "qwen", "rating": 6},
  {"sample_id": "b", "system": "mine", "judge": "qwen", "rating": 7},
  {"sample_id": "b", "system": "theirs", "judge": "qwen", "rating": 7}
]"""


def compute_win_rates(pasted: str) -> dict[str, Any]:
    """Return the result of config `win_rate` for pasted ratings, or an `error`."""
    script = str(Path(__file__).with_name("echo.py"))
    try:
        rows = _parse_rows(pasted)
        metric = evaluate.load(script, "win_rate", keep_in_memory=True)
        figures: dict[str, Any] = metric.compute(predictions=rows)
    except (EchoError, ValueError, RecursionError) as error:
        return {"error": str(error)}
    return figures


def _parse_rows(pasted: str) -> list[Any]:
    if len(pasted) > MAX_CHARACTERS:
        raise ValueError(f"{len(pasted)} letters: expected at most {MAX_CHARACTERS}")
    rows = json.loads(pasted)
    if not isinstance(rows, list):
        raise ValueError(f"{type(rows).__name__!r}: expected a list of ratings")
    objects = [row for row in rows if isinstance(row, dict)]
    cells = math.prod(len({str(row.get(axis)) for row in objects}) for axis in AXES)
    if cells > MAX_CELLS:
        raise ValueError(
            f"judges x systems x systems x samples is {cells}: expected at most {MAX_CELLS} here; "
            "the package has no such limit"
        )
    return rows


def main() -> None:
    """Show the page until it is stopped."""
    import gradio

    page = gradio.Interface(
        fn=compute_win_rates,
        inputs=gradio.Textbox(EXAMPLE, label="Ratings", lines=12),
        outputs=gradio.JSON(label="Win rates"),
        title="ECHO",
        description=ABOUT,
        flagging_mode="never",
        api_name="win_rates",
    )
    page.launch()


if __name__ == "__main__":
    main()
