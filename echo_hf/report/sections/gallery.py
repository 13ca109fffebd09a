"""The gallery: filters, and an empty list that the script fills from the page's data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from echo_hf.report.markup import Markup, element
from echo_hf.report.parts import section, titled
from echo_hf.report.run_data import RunData

DATA = "gallery-data"
SHOW = {
    "all": "All samples",
    "unmade": "With an output missing",
    "flagged": "Flagged for review",
    "feedback": "With feedback",
}


def gallery(data: RunData) -> Markup:
    """The gallery without its samples.

    Args:
        data: The run.

    Returns:
        The section.
    """
    splits = Counter(sample.split for sample in data.samples)
    tasks = Counter(sample.task for sample in data.samples if sample.task)
    systems = [(system, system) for system in data.systems]
    filters = element(
        "form",
        element(
            "label",
            "Search",
            element("input", type="search", name="text", placeholder="prompt, feedback, reasons"),
        ),
        _select("Split", "split", [("", "All splits"), *_counted(splits)]),
        _select("Task", "task", [("", "All tasks"), *_counted(tasks)]),
        _select("System", "system", [("", "All systems"), *systems]),
        _select("Show", "show", list(SHOW.items())),
        id="filters",
        class_="filters",
        role="search",
        aria_label="filter the samples",
    )
    return section(
        "gallery",
        "Gallery",
        filters,
        element("p", id="shown", class_="note", role="status", aria_live="polite"),
        element("div", id="samples"),
        element("button", "Show more", id="more", type="button", hidden=True),
        element("noscript", element("p", "The gallery needs scripts.", class_="warning")),
        lead="Every sample with its inputs, each output or why there is none, and all ratings.",
    )


def _counted(names: Counter[str]) -> list[tuple[str, str]]:
    return [(name, f"{titled(name)} ({count})") for name, count in names.most_common()]


def _select(label: str, name: str, options: Iterable[tuple[str, str]]) -> Markup:
    listed = [element("option", said, value=value) for value, said in options]
    return element("label", label, element("select", listed, name=name))
