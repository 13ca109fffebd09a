"""The head of the report: what was measured, on what, by whom."""

from __future__ import annotations

from collections.abc import Iterator

from echo_hf.report.markup import Child, Markup, element
from echo_hf.report.numbers import count, plural, share
from echo_hf.report.parts import name_of, titled, warning
from echo_hf.report.run_data import RunData

SHORT_DIGEST = 12


def header(data: RunData) -> Markup:
    """The head of the report.

    Args:
        data: The run.

    Returns:
        The header with title, a sentence, and the facts.
    """
    facts = [
        element("div", element("dt", term), element("dd", said)) for term, said in _facts(data)
    ]
    return element(
        "header",
        element("p", "ECHO benchmark report", class_="eyebrow"),
        element("h1", name_of(data.title)),
        element("p", _sentence(data), class_="lead"),
        element("dl", facts, class_="facts"),
        _stale(data),
    )


def _sentence(data: RunData) -> list[Child]:
    return [
        f"{plural(len(data.systems), 'image system')} on {plural(len(data.samples), 'task')} that "
        "people gave to ",
        name_of(data.target.name) if data.target else "image models",
        " in public posts, judged by ",
        plural(len(data.results.judges), "judge"),
        ".",
    ]


def _facts(data: RunData) -> Iterator[tuple[str, Child]]:
    yield "Run", name_of(data.name)
    if data.target is not None:
        yield "Target", [name_of(data.target.name), " by ", name_of(data.target.developer)]
        yield "Released", data.target.released.isoformat()
    activity = data.analysis.activity.found if data.analysis else None
    if activity and activity.days:
        yield "Posts", f"{activity.days[0].date} – {activity.days[-1].date}"
    if known := data.results.benchmark.on_hub or data.results.benchmark.name:
        yield "Benchmark", name_of(known)
    for split in data.splits:
        digest = (data.results.benchmark.digests or {}).get(split, "")
        yield (
            titled(split),
            [
                plural(data.results.details[split].samples, "sample"),
                element("code", digest[:SHORT_DIGEST], title=digest) if digest else None,
            ],
        )
    yield "Protocol", data.results.protocol
    yield "Outputs", _outputs(data)
    yield "Ratings", count(sum(map(len, data.ratings.values())))


def _outputs(data: RunData) -> str:
    made = sum(one.picture is not None for one in data.outputs.values())
    wanted = len(data.samples) * len(data.systems)
    return f"{count(made)} of {count(wanted)} ({share(made / wanted if wanted else None)})"


def _stale(data: RunData) -> Markup | None:
    if not data.stale:
        return None
    return warning(
        "These figures are of another state of the benchmark than the samples below: run ",
        element("code", "echo-hf score"),
        " again.",
    )
