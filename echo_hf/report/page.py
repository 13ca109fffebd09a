"""The page as a whole: its head with a strict policy, its sections, its data and its script."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

from echo_hf.report.markup import Child, Markup, count, element, plural, share
from echo_hf.report.parts import name_of, section, titled, warning
from echo_hf.report.run_data import RunData

DATA = "gallery-data"
SHOW = {
    "all": "All samples",
    "unmade": "With an output missing",
    "flagged": "Flagged for review",
    "feedback": "With feedback",
}


def gallery(data: RunData) -> Markup:
    """The gallery without its samples."""
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


ASSETS = files("echo_hf.report") / "assets"
# Images lie beside the page, which a browser may read from a disk or a server.
POLICY = (
    "default-src 'none'; img-src 'self' file: data:; style-src 'sha256-{style}'; "
    "script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SCHEMES = "light dark"


def page(title: str, head: Markup, sections: Sequence[Markup], data: str) -> str:
    style, script = asset("report.css"), asset("report.js")
    policy = POLICY.format(style=digest(style), script=digest(script))
    top = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content=SCHEMES),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Markup(style)),
    )
    body = element(
        "body",
        element("a", "Skip to the figures", href="#content", class_="skip"),
        head,
        _navigation(sections),
        element("main", sections, id="content", tabindex=-1),
        element("script", Markup(data), type="application/json", id=DATA),
        element("script", Markup(script)),
    )
    return "<!doctype html>\n" + element("html", top, body, lang="en") + "\n"


def asset(name: str) -> str:
    return (ASSETS / name).read_text("utf-8")


def digest(text: str) -> str:
    """How a policy names a script or a style sheet."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _navigation(sections: Sequence[Markup]) -> Markup:
    links = [_entry(one) for one in sections]
    return element("nav", element("ul", links), aria_label="sections")


def _entry(one: Markup) -> Markup:
    name = one.split(' id="', 1)[1].split('"', 1)[0]
    title = one.split(f'id="{name}-title">', 1)[1].split("<", 1)[0]
    return element("li", element("a", Markup(title), href=f"#{name}"))


SHORT_DIGEST = 12


def header(data: RunData) -> Markup:
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
    made = sum(one.image is not None for one in data.outputs.values())
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
