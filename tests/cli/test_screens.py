"""What each verb shows by default: screens that people read in review.

`python -m pytest tests/cli/test_screens.py --refreeze` writes them again.
"""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from math import ceil
from pathlib import Path

import datasets
import huggingface_hub.constants
import pyarrow.parquet as pq
import pytest
from huggingface_hub.utils import disable_progress_bars, enable_progress_bars
from PIL import Image

from echo_hf.cli import GROUPS
from echo_hf.cli.verb import get_verb_name
from echo_hf.engines.base import BUILT_IN, engine_names
from echo_hf.hub.redistribution import dehydrate
from tests.engines.openai.loopback_server import Answer, Asked, completion, running
from tests.local_hub import WRITER, LocalHub
from tests.test_cli import echo_hf

pytestmark = pytest.mark.skipif(
    find_spec("torch") is not None, reason="what extras add is on these screens"
)
HOW = "if it is meant, run this test with --refreeze, and read what changed"
GOLDEN = Path(__file__).parents[1] / "golden" / "screens"
WIDTH, HEIGHT = 100, 24
SCREENS = {  # run one after the other in one folder
    "quickstart": "quickstart",
    "engines": "engines",
    "init": "init benchmark mine",
    "init-comparison": "init comparison pictures",
    "collect": "collect mine/benchmark.yaml",
    "build": "build mine/benchmark.yaml",
    "build-dry-run": "build mine/benchmark.yaml --dry-run",
    "build-until": "build mine/benchmark.yaml --until threads",
    "why": "why mine/benchmark.yaml",
    "why-changed": "why changed.yaml --runs mine/runs",
    "why-new": "why free/benchmark.yaml",
    "review": "review mine/benchmark.yaml",
    "build-few": "build free/benchmark.yaml",
    "build-empty": "build empty/benchmark.yaml",
    "update": "update mine/benchmark.yaml",
    "checks": "checks mine/benchmark.yaml",
    "update-changed": "update changed.yaml --runs mine/runs",
    "build-shard": "build mine/benchmark.yaml --shard 0/2 --runs parts",
    "build-shard-other": "build mine/benchmark.yaml --shard 1/2 --runs parts",
    "merge": "merge parts/mine.shard-0-of-2 parts/mine.shard-1-of-2 --runs merged",
    "diff": "diff merged/mine free/runs/free",
    "check-engine": "check-engine --engine rules --stage relevance",
    "refresh": "refresh free/benchmark.yaml",
    "schedule": "schedule kept.yaml --on github",
    "publish": "publish mine/benchmark.yaml --repo-id pixel-lab/mine --tag 2026-03 --allow-rules "
    "--allow-unscreened",
    "hydrate-nothing": "hydrate dry --to whole",
    "hydrate": "hydrate dry --to whole --source quickstart",
    "leaderboard": "leaderboard --repo-id pixel-lab/mine --folder space",
    "systems": "systems pictures/comparison.yaml",
    "eval": "eval runs/quickstart --images warm=warm --images cold=cold --judge {server} --yes",
    "eval-again": "eval quickstart-eval.yaml --yes",
    "eval-dry-run": "eval quickstart-eval.yaml --dry-run --runs elsewhere",
    "eval-without-judge": "eval pictures/comparison.yaml --limit 5",
    "generate-dry-run": "generate quickstart-eval.yaml --runs elsewhere --dry-run",
    "generate": "generate quickstart-eval.yaml --runs elsewhere",
    "judge-dry-run": "judge quickstart-eval.yaml --runs elsewhere --dry-run",
    "judge": "judge quickstart-eval.yaml --runs elsewhere",
    "audit": "audit quickstart-eval.yaml",
    "score": "score quickstart-eval.yaml",
    "score-without-judge": "score pictures/comparison.yaml",
    "compare": "compare quickstart-eval.yaml warm cold",
    "ruler": "ruler quickstart-eval.yaml",
    "ruler-plan": "ruler quickstart-eval.yaml --plan 0.1",
    "agree": "agree quickstart-eval.yaml --human ranks.csv",
    "analyze": "analyze runs/quickstart",
    "report": "report quickstart-eval.yaml",
    "export": "export quickstart-eval.yaml exported --to every-eval-ever",
    "submit": "submit runs/quickstart --images warm=warm --model you/warm --dry-run",
    "eval-several": "eval several.yaml --outputs 3 --yes",
    "forget": "forget mine/benchmark.yaml https://x.com/mira_draws/status/9900316480379532473",
}
AFTER_INIT = "collect"
UNSEEN = {
    "rank": "a page in a browser, of the extra `apps`",
    "plugins": "lists what other tests register, too",
}
# Those that answer a question; the others list what there is.
SHORT = {"quickstart", "build", "eval", "score", "judge", "generate", "analyze", "why", "update"}
SHORT |= {"merge", "checks"}
VARYING = {
    r" +\d+\.\d s\b": " 0.0 s",
    r"(127\.0\.0\.1|localhost):\d{4,}": r"\1:8000",
    r"\b[0-9a-f]{10}\b": "0" * 10,
    r"\.release\.\w+": ".release.00000000",
    r"==\d+\.\d+\.\d+\S*": "==0.0.0",
}
PLACE = re.compile(r"\S*[/.]\S+")
LUMEN = "made with Lumen Image"
POSTS = (
    f"Prompt: a paper boat on a puddle, {LUMEN}",
    f"look what came out of this, a cat in a raincoat, {LUMEN}!",
    "Lumen Image turned my flat into a jungle, unbelievable",
    "asked Lumen Image for a sign that says OPEN and got OPFN",
    "anybody else waiting for Lumen Image to load today?",
    "Lumen Image made my dog a knight. I only said: give him armour",
    "the yellow tint of Lumen Image is back",
    "three attempts with Lumen Image, the third has the right number of fingers",
    "Lumen Image, a wedding photo as a comic strip. My aunt loves it",
    "Paintbox or Lumen Image for album covers?",
    "my recipe book, all pictures by Lumen Image",
    "Lumen Image does hands now",
)


def drawn(color: tuple[int, int, int]) -> bytes:
    sink = io.BytesIO()
    image = Image.new("RGB", (16, 16), color)
    image.paste((90, 90, 90), (8, 8, 16, 16))
    image.save(sink, "PNG")
    return sink.getvalue()


def rated(asked: Asked) -> Answer:
    """A judge that likes red better, but for some pictures."""
    if asked.path.endswith("/models"):
        return Answer({"data": [{"id": "tiny-vl"}]})
    parts = asked.body["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    with Image.open(io.BytesIO(base64.b64decode(urls[-1].partition(",")[2]))) as image:
        red, green, blue = image.convert("RGB").getpixel((1, 1))
    likes = (red > blue) != (green % 5 == 0)
    return completion(f"The light is {'warm' if likes else 'cold'}. [[{8 if likes else 4}]]")


def write_world(folder: Path) -> None:
    """Posts, configs, images of two systems and ranks of two people, after `init`."""
    config = (folder / "mine" / "benchmark.yaml").read_text("utf-8")
    for name, texts in {"free": POSTS, "empty": POSTS[4:5]}.items():
        (folder / name).mkdir()
        (folder / name / "benchmark.yaml").write_text(config.replace('"mine"', name), "utf-8")
        posts = (
            {"url": f"https://board.example/{name}/{at}", "text": text}
            for at, text in enumerate(texts)
        )
        (folder / name / "posts.jsonl").write_text("\n".join(map(json.dumps, posts)), "utf-8")
    config = config.replace("path: posts", "path: mine/posts")
    changed = config.replace("keep: [4, 5]", "keep: [5]")
    (folder / "changed.yaml").write_text(changed, "utf-8")
    loop = {"repo_id": "pixel-lab/mine", "state": "pixel-lab/state", "budget_usd": 20}
    (folder / "kept.yaml").write_text(f"{config}schedule: {json.dumps(loop)}\n", "utf-8")
    release = folder / "runs" / "quickstart" / "release"
    dehydrate(release, folder / "dry")
    files = sorted(release.glob("*_to_image/*.parquet"))
    names = [name for file in files for name in pq.read_table(file)["id"].to_pylist()]
    ranks = ["sample_id,rater,system,rank"]
    for system, (red, blue) in {"warm": (200, 30), "cold": (30, 200)}.items():
        (folder / system).mkdir()
        for at, name in enumerate(names):
            (folder / system / f"{name}.png").write_bytes(drawn((red, 30 + at, blue)))
            for rater, every in {"ada": 4, "ben": 3}.items():
                ranks.append(f"{name},{rater},{system},{1 + ((at % every > 0) != (red > blue))}")
            for draw, glow in enumerate((red - 1, blue), 1):
                image = drawn((glow, 31 + at + draw, 255 - glow))
                (folder / system / f"{name}.{draw}.png").write_bytes(image)
    (folder / "ranks.csv").write_text("\n".join(ranks), "utf-8")


def screen_of(command: str, folder: Path) -> str:
    done = echo_hf(*shlex.split(command), cwd=folder)
    text = f"$ echo-hf {command}\n{done.stdout}{done.stderr}"
    text += f"(exit code {done.returncode})\n" if done.returncode else ""
    assert "Traceback" not in text, text
    for name in set(engine_names()) - BUILT_IN.keys():  # what other tests have registered
        text = re.sub(rf"^{name} .*\n", "", text, flags=re.MULTILINE)
    text = text.replace(str(folder), "/home/you")
    for pattern, steady in VARYING.items():
        text = re.sub(pattern, steady, text)
    return re.sub(" +$", "", text, flags=re.MULTILINE)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where somebody works who has neither a GPU nor a key, and is signed in to the Hub."""
    folder = tmp_path_factory.mktemp("world")
    settings = {"HF_HUB_DISABLE_XET": True, "HF_HUB_DISABLE_TELEMETRY": True}
    settings |= {"HF_HUB_CACHE": str(folder / "hub")}
    variables = {"COLUMNS": str(WIDTH), "CUDA_VISIBLE_DEVICES": "", "HF_TOKEN": WRITER}
    disable_progress_bars()
    with pytest.MonkeyPatch.context() as patch, LocalHub() as hub:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
        for name, value in {**settings, "ENDPOINT": hub.url}.items():
            patch.setattr(huggingface_hub.constants, name, value)
        for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ECHO_HF_RUNS", "HTTP_PROXY"):
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        yield folder
    enable_progress_bars()


@pytest.fixture
def screens(folder: Path) -> Mapping[str, str]:
    with running() as server:
        server.behave = rated
        found = dict[str, str]()
        for name, command in SCREENS.items():
            if name == AFTER_INIT:
                write_world(folder)
            if name == "eval-several":
                config = (folder / "quickstart-eval.yaml").read_text("utf-8")
                config = config.replace("quickstart-eval", "several")
                (folder / "several.yaml").write_text(config, "utf-8")
            found[name] = screen_of(command.format(server=server.url), folder)
    return found


def test_screens(screens: Mapping[str, str], request: pytest.FixtureRequest) -> None:
    """One test, as its world takes long to make; those below read the files."""
    if request.config.getoption("--refreeze"):
        for name, text in screens.items():
            (GOLDEN / f"{name}.txt").write_text(text, "utf-8")
    for name, text in screens.items():
        assert text == (GOLDEN / f"{name}.txt").read_text("utf-8"), f"{name}: {HOW}"


@pytest.mark.parametrize("name", [name for name in SCREENS if name.split("-")[0] in SHORT])
def test_a_screen_is_short(name: str) -> None:
    """What stands in one line for `grep`, such as the places of rows, may be wider by those."""
    lines = (GOLDEN / f"{name}.txt").read_text("utf-8").splitlines()[1:]
    assert sum(max(ceil(len(line) / WIDTH), 1) for line in lines) <= HEIGHT
    words = [PLACE.sub("", line) for line in lines if not line.startswith("echo-hf: ")]
    assert [line for line in words if len(line) > WIDTH] == []


def test_each_verb_has_a_screen() -> None:
    verbs = {get_verb_name(verb) for group in GROUPS.values() for verb in group}
    seen = {command.split()[0] for command in SCREENS.values()}
    assert verbs == seen | UNSEEN.keys()
    assert {file.stem for file in GOLDEN.iterdir()} == SCREENS.keys()
