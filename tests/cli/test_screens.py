"""What each verb shows by default: screens that people read in review.

`python -m pytest tests/cli/test_screens.py --refreeze` writes them again.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path

import datasets
import huggingface_hub.constants
import pyarrow.parquet as pq
import pytest
from PIL import Image

from echo_hf.cli import GROUPS
from echo_hf.cli.verb import name_of
from echo_hf.hub.redistribution import dehydrate
from tests.engines.openai.loopback_server import Answer, Asked, completion, running
from tests.local_hub import WRITER, LocalHub
from tests.test_cli import echo_hf

GOLDEN = Path(__file__).parents[1] / "golden" / "screens"
WIDTH, HEIGHT = 100, 24
SCREENS = {  # run one after the other in one folder
    "quickstart": "quickstart",
    "engines": "engines",
    "init": "init benchmark mine",
    "init-comparison": "init comparison pictures",
    "collect": "collect mine/benchmark.yaml",
    "build": "build mine/benchmark.yaml",
    "build-again": "build mine/benchmark.yaml",
    "build-dry-run": "build mine/benchmark.yaml --dry-run",
    "build-until": "build mine/benchmark.yaml --until threads",
    "why": "why mine/benchmark.yaml",
    "why-changed": "why changed.yaml --runs mine/runs",
    "why-new": "why free/benchmark.yaml",
    "review": "review mine/benchmark.yaml",
    "build-few": "build free/benchmark.yaml",
    "build-empty": "build empty/benchmark.yaml",
    "update": "update mine/benchmark.yaml",
    "update-changed": "update changed.yaml --runs mine/runs",
    "build-shard": "build mine/benchmark.yaml --shard 0/2 --runs parts",
    "build-shard-other": "build mine/benchmark.yaml --shard 1/2 --runs parts",
    "merge": "merge parts/mine.shard-0-of-2 parts/mine.shard-1-of-2 --runs merged",
    "diff": "diff merged/mine free/runs/free",
    "check-engine": "check-engine --engine rules --stage relevance",
    "refresh": "refresh free/benchmark.yaml",
    "schedule": "schedule kept.yaml --on github",
    "publish": "publish mine/benchmark.yaml --repo-id pixel-lab/mine --tag 2026-03 --allow-rules --allow-unscreened",
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
    "agree": "agree quickstart-eval.yaml --human ranks.csv",
    "analyze": "analyze runs/quickstart",
    "report": "report quickstart-eval.yaml",
    "export": "export quickstart-eval.yaml exported --to every-eval-ever",
    "forget": "forget mine/benchmark.yaml {url}",
}
UNSEEN = {"rank": "a page in a browser, of the extra `apps`"}
# Those that answer a question; the others list what there is.
SHORT = {"quickstart", "build", "eval", "score", "judge", "generate", "analyze", "why", "update"}
SHORT |= {"merge"}
VARYING = {
    r"\b\d+(\.\d+)? s\b": "0.0 s",
    r"(127\.0\.0\.1|localhost):\d{4,}": r"\1:8000",
    r"\b[0-9a-f]{40}\b": "0" * 40,
    r"==\d+\.\d+\.\d+\S*": "==0.0.0",
}
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


def sample_ids(release: Path) -> list[str]:
    files = sorted(release.glob("*_to_image/*.parquet"))
    return [name for file in files for name in pq.read_table(file)["id"].to_pylist()]


def write_images(folder: Path, names: list[str]) -> None:
    for system, (red, blue) in {"warm": (200, 30), "cold": (30, 200)}.items():
        (folder / system).mkdir()
        for at, name in enumerate(names):
            (folder / system / f"{name}.png").write_bytes(drawn((red, 30 + at, blue)))


def write_ranks(folder: Path, names: list[str]) -> None:
    with (folder / "ranks.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("sample_id", "rater", "system", "rank"))
        for rater in ("ada", "ben"):
            for at, name in enumerate(names):
                first = at % (4 if rater == "ada" else 3) > 0
                rows.writerow((name, rater, "warm", 1 if first else 2))
                rows.writerow((name, rater, "cold", 2 if first else 1))


def write_posts(folder: Path, config: str, texts: tuple[str, ...]) -> None:
    folder.mkdir()
    (folder / "benchmark.yaml").write_text(config.replace('"mine"', folder.name), "utf-8")
    posts = (
        {"url": f"https://board.example/{folder.name}/{at}", "text": text}
        for at, text in enumerate(texts)
    )
    (folder / "posts.jsonl").write_text("\n".join(map(json.dumps, posts)), "utf-8")


def screen_of(command: str, folder: Path) -> str:
    done = echo_hf(*shlex.split(command), cwd=folder)
    text = f"$ echo-hf {command}\n{done.stdout}{done.stderr}"
    text += f"(exit code {done.returncode})\n" if done.returncode else ""
    assert "Traceback" not in text, text
    text = text.replace(str(folder), "/home/you")
    for pattern, steady in VARYING.items():
        text = re.sub(pattern, steady, text)
    return re.sub(" +$", "", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    folder = tmp_path_factory.mktemp("world")
    found = dict[str, str]()
    with pytest.MonkeyPatch.context() as patch, running() as server, LocalHub() as hub:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
        patch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder / "hub"))
        patch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)
        for name in ("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY"):
            patch.setattr(huggingface_hub.constants, name, True)
        for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ECHO_HF_RUNS", "HTTP_PROXY"):
            patch.delenv(name, raising=False)
        given = {"COLUMNS": WIDTH, "CUDA_VISIBLE_DEVICES": "", "HF_TOKEN": WRITER}
        for name, value in given.items():
            patch.setenv(name, str(value))
        server.behave = rated
        for name, command in SCREENS.items():
            if name == "collect":
                config = (folder / "mine" / "benchmark.yaml").read_text("utf-8")
                changed = config.replace("keep: [4, 5]", "keep: [5]")
                changed = changed.replace("path: posts", "path: mine/posts")
                (folder / "changed.yaml").write_text(changed, "utf-8")
                loop = "schedule: {repo_id: pixel-lab/mine, state: pixel-lab/state, budget_usd: 20}\n"
                (folder / "kept.yaml").write_text(config.replace("path: posts", "path: mine/posts") + loop, "utf-8")
                dehydrate(folder / "runs" / "quickstart" / "release", folder / "dry")
                write_posts(folder / "free", config, POSTS)
                write_posts(folder / "empty", config, POSTS[4:5])
                names = sample_ids(folder / "runs" / "quickstart" / "release")
                write_images(folder, names)
                write_ranks(folder, names)
                (post, *_) = (folder / "mine" / "posts.jsonl").read_text("utf-8").splitlines()
                url = json.loads(post)["url"]
            command = command.format(server=server.url, url="{url}" if name < "" else locals().get("url"))
            found[name] = screen_of(command, folder)
        yield found


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, screens: Mapping[str, str], request: pytest.FixtureRequest) -> None:
    golden = GOLDEN / f"{name}.txt"
    if request.config.getoption("--refreeze"):
        golden.write_text(screens[name], "utf-8")
    assert screens[name] == golden.read_text("utf-8")


@pytest.mark.parametrize("name", [name for name in SCREENS if name.split("-")[0] in SHORT])
def test_a_screen_is_short(name: str, screens: Mapping[str, str]) -> None:
    lines = screens[name].splitlines()[1:]
    assert sum(max(ceil(len(line) / WIDTH), 1) for line in lines) <= HEIGHT


def test_each_verb_has_a_screen() -> None:
    verbs = {name_of(verb) for group in GROUPS.values() for verb in group}
    seen = {command.split()[0] for command in SCREENS.values()}
    assert verbs == seen | UNSEEN.keys()
    assert sorted(f"{name}.txt" for name in SCREENS) == sorted(
        file.name for file in GOLDEN.iterdir()
    )
