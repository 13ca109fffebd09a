"""Words that would do harm in a page that did not escape them."""

from __future__ import annotations

from pathlib import Path

from echo_hf.images.store import ImageStore
from echo_hf.report.run_data import Output, Rating, ReportFeedback, ReportSample, RunData
from tests.report.run_data_for_tests import image, run_data

MARK = "window.harmed=true"
WORDS = (
    f"<script>{MARK}</script>",
    f"</script><script>{MARK}</script>",
    f'"><img src=x onerror="{MARK}">',
    f"<svg onload={MARK}>",
    f"javascript:{MARK}",
    f"<a href='javascript:{MARK}'>click</a>",
    "<!-- --><iframe src='https://example.org/'></iframe>",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "</textarea></title></style></template>",
    "\u202eright to left\u202c \ud800 half \x00 \x1b[31m \u2028 line",
    "{{7*7}} ${alert(1)} `x` \\u003cscript\\u003e",
)
SYSTEMS = (f"<img src=x onerror={MARK}>", 'b"><script>1</script>')


def hostile_run(folder: Path) -> RunData:
    """A run in which everything that somebody wrote would do harm."""
    images = ImageStore(folder / "pictures")
    shown = images.put(image((200, 20, 20)))
    # The second is a name that every object of a script knows.
    judges = (f'<b onclick="{MARK}">judge', "constructor")
    samples = [_sample(at, text, shown) for at, text in enumerate(WORDS)]
    outputs = {
        (one.id, system): Output(shown, "ok") if at else Output(None, WORDS[1], WORDS[2], WORDS[0])
        for one in samples
        for at, system in enumerate(SYSTEMS)
    }
    ratings = {
        one.id: [
            Rating(system, judge, "overall", 0, 3.0 + at, WORDS[at], "ok")
            for at, system in enumerate(SYSTEMS)
            for judge in judges
        ]
        for one in samples
    }
    return run_data(
        folder,
        samples,
        outputs,
        ratings,
        name=WORDS[4],
        systems=SYSTEMS,
        failures={judges[0]: (WORDS[0],)},
        settings={"note": WORDS[1]},
    )


def _sample(at: int, text: str, shown: str) -> ReportSample:
    return ReportSample(
        # Arrow, which ids pass through, holds no half characters.
        id=f"{at}{text[:24]}".encode("utf-8", "replace").decode(),
        split="image_to_image",
        prompt=text,
        task=text,
        inputs=(shown,),
        posted=(shown, text),
        urls=(text, f"https://example.org/{text}", "https://example.org/1"),
        feedback=(ReportFeedback(text, text, text),),
        flags=(text,),
    )
