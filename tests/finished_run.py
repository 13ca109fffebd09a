"""Makes the finished run of `tests/data/finished_run.tar.xz`, which later versions must go on with.

`python -m tests.finished_run`, in the environment of `make test-extras`, asks one server on
loopback for everything: it is the platform, the models and an image system. The archive holds the
run as a version left it and is not made anew when the code changes: that is its use.
"""

from __future__ import annotations

import base64
import io
import json
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from PIL import Image

from echo_hf.apps.rank.rank import ranks_of
from echo_hf.apps.review.review import desk_of
from echo_hf.builder.build import build
from echo_hf.builder.refresh import refresh
from echo_hf.collect.crawl import crawl_posts
from echo_hf.collect.platforms.mastodon import TOKEN, Mastodon
from echo_hf.config.loading import load_config
from echo_hf.judging.judge import applicability, judge, pairwise
from echo_hf.judging.score import score
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.generate import generate
from tests.engines.openai.loopback_server import Answer, Asked, LoopbackServer, completion, running

ARCHIVE = Path(__file__).parent / "data" / "finished_run.tar.xz"
NAME = "harbour"
# Number, parent, author, text, images.
NIGHT = "Lumen Image: Turn this harbour photo into a night scene"
STATUSES = (
    (10101, None, "mira", NIGHT, ("harbour", "night")),
    (10102, 10101, "noor", "the lamps are so warm, love it", ()),
    (10103, 10101, "wren", "why did the boats move?", ()),
    (10104, None, "wren", "lumen prompt of the day: A paper fox asleep in a teapot", ("fox",)),
    (10105, 10104, "mira", "the fox has five legs", ()),
)
GONE = 10103
# Text and image of posts in a file.
IMPORTED = (
    ("Lumen Image. Prompt: A market poster that says FISH DAY in blue letters", "poster"),
    ("my chat with Lumen Image about a bridge", "chat"),
    ("a lumen is a unit of light", None),
)
Box = tuple[int, int, int, int]
COLORS = {
    "harbour": (90, 140, 200),
    "night": (20, 30, 80),
    "fox": (220, 120, 40),
    "poster": (240, 240, 250),
    "chat": (200, 200, 200),
}
# What the models say, by the form of an answer and words of its question.
ANSWERS: dict[str, dict[str, Any]] = yaml.safe_load("""
RelevanceAnswer: {unit of light: {score: 1}, "": {score: 5}}
ExtractAnswer:
  night scene:
    prompt: Turn this harbour photo into a night scene
    feedback:
      - {post: 1, feedback: "the lamps are so warm, love it"}
      - {post: 2, feedback: "why did the boats move?"}
  paper fox:
    prompt: A paper fox asleep in a teapot
    feedback: [{post: 1, feedback: the fox has five legs}]
  FISH DAY: {prompt: A market poster that says FISH DAY in blue letters}
  bridge: {prompt: my chat with Lumen Image about a bridge}
RolesAnswer:
  night scene: {inputs: [1], outputs: [2]}
  bridge: {inputs: [], outputs: [], conversation: 1}
  "": {inputs: [], outputs: [1]}
ScreenshotsAnswer:
  "":
    prompt: Paint this bridge red
    inputs: [[10, 60, 150, 140]]
    outputs: [[10, 160, 150, 240]]
FeedbackAnswer:
  night scene:
    task: edit
    feedback:
      - {comment: 0, verdict: success}
      - {comment: 1, verdict: failure, keyword: wrong layout}
  paper fox:
    task: text_to_image
    feedback: [{comment: 0, verdict: failure, keyword: extra legs}]
  "": {task: text_rendering, feedback: []}
PhraseAnswer:
  night scene: {task_phrase: turn a day photo into night}
  "": {task_phrase: draw a picture}
SafetyAnswer: {"": {hazards: []}}
ApplicabilityAnswer:
  "":
    {face_identity: 0, color_shift: 1, structure_distance: 0, text_rendering: 1, rationale: So.}
""")
COMMON: dict[str, dict[str, Any]] = {
    "ExtractAnswer": {"quality": "Benchmark", "posts": [0], "feedback": []},
    "RolesAnswer": {"posts": [0], "prompt_fill_blank": [], "may_show_minor": False},
    "FeedbackAnswer": {"kind": "task"},
}
CONFIG = """
name: harbour
target:
  {name: Lumen Image, developer: Northlight, released: 2026-03-02, aliases: [lumen],
   others: [Paintbox], chat_window: Lumen Chat}
posts:
  - {source: jsonl, path: posts.jsonl, keywords: [lumen]}
  - {source: mastodon, search: {phases: [{days: 7, window: 7d, terms: [lumen]}]}}
engines: {reader: &model {kind: openai, model: tiny, base_url: &url "$url", api_key_env: null}}
stages: {download: {limits: {allow_addresses: [127.0.0.0/8], ports: [$port]}}}
systems:
  - &amber
    {name: amber, adapter: openai_images, model: brush, developer: Northlight, status: current,
     parameters: {base_url: *url, api_key_env: null}}
  - {<<: *amber, name: birch, seed: 1}
judges:
  - {name: mira, developer: Northlight, status: current, engine: *model, pairwise: {share: 1.0}}
applicability: {engine: *model}
"""


def png(color: tuple[int, int, int], size: tuple[int, int] = (96, 64), *boxes: Box) -> bytes:
    image = Image.new("RGB", size, color)
    for box in boxes:
        image.paste((box[1], 90, 60), box)
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


def answered(asked: Asked, address: str) -> Answer:
    path, _, query = asked.path.partition("?")
    if path.startswith("/pictures/"):
        return Answer(png(COLORS[Path(path).stem]), headers={"Content-Type": "image/png"})
    if path.startswith("/api/"):
        return Answer(_of_platform(path, query, address))
    if path.startswith("/v1/images/"):
        color = (len(asked.data) % 256, 120, 60)
        return Answer({"data": [{"b64_json": base64.b64encode(png(color)).decode()}]})
    return completion(_said(asked))


def _said(asked: Asked) -> str:
    form = asked.body.get("response_format")
    if form is None:
        is_choice = "[[first]]" in str(asked.body["messages"][0])
        return "Better. [[first]]" if is_choice else f"Rating: [[{3 + len(str(asked.body)) % 7}]]"
    question = json.dumps(asked.body["messages"][1], ensure_ascii=False)
    kind = form["json_schema"]["name"]
    said = next(said for words, said in ANSWERS[kind].items() if words in question)
    answer = {**COMMON.get(kind, {}), **said}
    return json.dumps({"samples": [answer]} if kind in ("ExtractAnswer", "RolesAnswer") else answer)


def _of_platform(path: str, query: str, address: str) -> Any:
    statuses = {row[0]: _status(row, address) for row in STATUSES}
    if path == "/api/v2/search":
        is_first = "offset=0" in query or "offset" not in query
        return {"statuses": [statuses[10101], statuses[10104]] if is_first else []}
    number = int(path.split("/")[4])
    below = [one for one in statuses.values() if one["in_reply_to_id"] == str(number)]
    above = statuses[number]["in_reply_to_id"]
    ancestors = [statuses[int(above)]] if above else []
    return {"ancestors": ancestors, "descendants": below}


def _status(row: tuple[Any, ...], address: str) -> dict[str, Any]:
    number, parent, author, text, images = row
    media = [
        {"type": "image", "url": f"{address}/pictures/{name}.png", "description": name}
        for name in images
    ]
    return {
        "id": str(number),
        "uri": f"{address}/users/{author}/statuses/{number}",
        "created_at": f"2026-03-03T10:{number - 10100:02}:00.000Z",
        "in_reply_to_id": parent and str(parent),
        "content": f"<p>{text}</p>",
        "visibility": "public",
        "language": "en",
        "account": {"acct": author, "username": author},
        "media_attachments": media,
        "favourites_count": 3,
        "reblogs_count": 1,
        "replies_count": sum(one[1] == number for one in STATUSES),
    }


def unpacked(folder: Path) -> None:
    """The run as it was left, and built once: a question has come up since, of each sample."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    config = folder / "config.yaml"
    text = config.read_text("utf-8")
    with running() as server:
        server.behave = lambda asked: answered(asked, server.url)
        place = yaml.safe_load(text)["engines"]["reader"]["base_url"]
        config.write_text(text.replace(place, server.url), "utf-8")
        build(config, runs=folder / "runs")
    config.write_text(text, "utf-8")


def make(folder: Path, server: LoopbackServer) -> None:
    address = server.url.removesuffix("/v1")
    server.behave = lambda asked: answered(asked, address)
    posts = [
        {"url": f"https://board.example/{number}", "author": "agnes", "text": text}
        | ({"pictures": [{"path": f"{name}.png"}]} if name else {})
        for number, (text, name) in enumerate(IMPORTED)
    ]
    (folder / "posts.jsonl").write_text("\n".join(map(json.dumps, posts)), "utf-8")
    (folder / "poster.png").write_bytes(png(COLORS["poster"]))
    chat = png(COLORS["chat"], (160, 256), (10, 60, 150, 140), (10, 160, 150, 240))
    (folder / "chat.png").write_bytes(chat)
    config, runs = folder / "config.yaml", folder / "runs"
    port = urlsplit(server.url).port
    config.write_text(CONFIG.replace("$url", server.url).replace("$port", str(port)), "utf-8")
    os.environ.setdefault(TOKEN, "key-of-nobody")
    run = RunFolder(runs / NAME)
    crawl_posts(load_config(config), run, ProgressListener(), make=lambda _: Mastodon(address))
    build(config, runs=runs)
    _review(config, runs)
    build(config, runs=runs)
    generate(config, runs=runs)
    applicability(config, runs=runs)
    judge(config, runs=runs)
    pairwise(config, runs=runs)
    _rank(config, runs)
    score(config, runs=runs, n_boot=50)
    build(config, runs=runs, with_responses=True)
    server.behave = lambda asked: (
        Answer({"error": "Gone"}, 410)
        if asked.path.endswith(f"/{GONE}")
        else Answer(_status(next(r for r in STATUSES if str(r[0]) in asked.path), address))
    )
    refresh(config, ProgressListener(), runs=runs, make=lambda _: Mastodon(address))


def _review(config: Path, runs: Path) -> None:
    desk = desk_of(config, runs=runs)
    for kind in ("keep", "flag"):
        now = desk.view("ann")
        note = {"note": "is it one image?"} if kind == "flag" else {}
        said = {"kind": kind, "subject": now.case.row["id"], "base": now.base, "form": note}
        desk.act("ann", said)


def _rank(config: Path, runs: Path) -> None:
    ranks = ranks_of(config, runs=runs)
    for person in ("bo", "cy"):
        subject = ranks.ranker.view(person).sample.task.sample_id
        for item, rank in enumerate((1, 2)):
            said = {"kind": "place", "subject": subject, "item": item, "rank": rank}
            ranks.ranker.act(person, said)
    ranks.write()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, running() as server:
        make(Path(name), server)
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            for path in sorted(Path(name).iterdir()):
                archive.add(path, path.name, filter=_plain)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


if __name__ == "__main__":
    main()
