"""Draws what the bundled posts' tasks ask for, and what four stand-in systems make of them.

    python scripts/draw_systems.py               draws what is missing or not as its scene says
    python scripts/draw_systems.py --check       changes nothing, names what is not; 1 if anything
    python scripts/draw_systems.py --sheet FILE  draws truth and systems side by side into FILE

`truth.jsonl` names the image that is meant by each task: one of the posts, or one in `truth/`. A
stand-in's image that is equal to the meant one is not stored again: `systems/pictures.jsonl` says
for each meant image which file is whose, and `systems/ratings.jsonl` how close each file is to
it: the ratings of the judge `drawn_truth`, from 1 (no closer than a blank sheet) to 10 (the same).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from corpus_scenes import SCENES as SCENES_OF_POSTS
from corpus_scenes.canvas import Scene
from corpus_scenes.closeness import difference as difference_to_meant
from corpus_scenes.systems import SYSTEMS
from corpus_scenes.truths import SCENES as SCENES_OF_TRUTH
from draw_corpus import ENCODING, MOST_DIFFERENCE, difference
from PIL import Image

from echo_hf.images.loader import load_rgb

CORPUS = Path(__file__).resolve().parent.parent / "echo_hf" / "quickstart"
INDEX = "systems/pictures.jsonl"
RATINGS = "systems/ratings.jsonl"
LOWEST, HIGHEST = 1, 10
# Libraries that decode images round in different ways.
MOST_OFF = 0.01
SCENES = {
    **{f"pictures/{name}": scene for name, scene in SCENES_OF_POSTS.items()},
    **{f"truth/{name}": scene for name, scene in SCENES_OF_TRUTH.items()},
}
SHEET_TRUTHS = 3
SHEET_CELL = 180


def main() -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Draw meant images and stand-in systems.")
    parser.add_argument("--check", action="store_true", help="change nothing, say what differs")
    parser.add_argument("--sheet", type=Path, help="draw all of them side by side into this file")
    options = parser.parse_args()
    if options.sheet:
        contact_sheet(meant_images()).save(options.sheet)
        return 0
    return check() if options.check else draw()


def draw() -> int:
    """Writes every file that is not on disk as it should be."""
    meant = meant_images()
    for path, scene, _ in differing(wanted(meant)):
        (CORPUS / path).parent.mkdir(parents=True, exist_ok=True)
        as_saved(scene).save(CORPUS / path, **ENCODING[".png"])
        print(f"{path}: {(CORPUS / path).stat().st_size} bytes")
    (CORPUS / INDEX).parent.mkdir(parents=True, exist_ok=True)
    (CORPUS / INDEX).write_text(index(meant), "utf-8")
    if not are_rated(meant):
        lines = (json.dumps(row) + "\n" for row in ratings(meant))
        (CORPUS / RATINGS).write_text("".join(lines), "utf-8")
    return 0


def check() -> int:
    """Prints what differs between the files and the scenes; returns 1 if anything does."""
    meant = meant_images()
    files = wanted(meant)
    faults = [f"{path}: {what}; run scripts/draw_systems.py" for path, _, what in differing(files)]
    faults += [f"{path}: nothing draws it; delete it" for path in sorted(stored() - set(files))]
    listed = CORPUS / INDEX
    if not listed.is_file() or listed.read_text("utf-8") != index(meant):
        faults.append(f"{INDEX}: not what the systems draw; run scripts/draw_systems.py")
    if not faults and not are_rated(meant):
        faults.append(f"{RATINGS}: not how close the files are; run scripts/draw_systems.py")
    print("\n".join(faults) or f"{len(files)} images are as drawn")
    return 1 if faults else 0


def meant_images() -> list[str]:
    """The images that `truth.jsonl` names, each once."""
    lines = (CORPUS / "truth.jsonl").read_text("utf-8").splitlines()
    return list(dict.fromkeys(json.loads(line)["picture"] for line in lines))


def wanted(meant: list[str]) -> Mapping[str, Scene]:
    """Every file that this script draws, by its path in the corpus."""
    truths = {path: SCENES[path] for path in meant if path.startswith("truth/")}
    made = {file: scene for path in meant for _, file, scene in made_of(path) if file != path}
    return {**truths, **made}


def made_of(meant: str) -> Iterator[tuple[str, str, Scene]]:
    """What each system makes of a meant image: its name, the file, and the scene in there."""
    scene, name = SCENES[meant], Path(meant).name
    for system, drawn in SYSTEMS.items():
        made = drawn(name, scene)
        own = f"systems/{system}/{Path(name).stem}.png"
        yield system, meant if made == scene else own, made


def index(meant: list[str]) -> str:
    """The lines that say which file each system shows for each meant image."""
    rows = [{"truth": path, **{name: file for name, file, _ in made_of(path)}} for path in meant]
    return "".join(json.dumps(row) + "\n" for row in rows)


def ratings(meant: list[str]) -> list[dict[str, object]]:
    """How close each file that the systems show is to its meant image."""
    rows = []
    for truth in meant:
        right = pixels(truth)
        for file in dict.fromkeys(file for _, file, _ in made_of(truth)):
            off = difference_to_meant(pixels(file), right)
            rating = LOWEST + (HIGHEST - LOWEST) * off.closeness
            pair = {"truth": truth, "picture": file}
            rows.append({**pair, "rating": rating, "explanation": str(off)})
    return rows


def pixels(path: str) -> np.ndarray:
    """An image of the corpus as an array."""
    return np.asarray(load_rgb((CORPUS / path).read_bytes()))


def are_rated(meant: list[str]) -> bool:
    """Whether the ratings on disk are those of the files."""
    if not (CORPUS / RATINGS).is_file():
        return False
    found = [json.loads(line) for line in (CORPUS / RATINGS).read_text("utf-8").splitlines()]
    return len(found) == len(rated := ratings(meant)) and all(
        (one["truth"], one["picture"]) == (other["truth"], other["picture"])
        and math.isclose(one["rating"], other["rating"], abs_tol=MOST_OFF)
        for one, other in zip(found, rated, strict=True)
    )


def stored() -> set[str]:
    """The images on disk that only this script can have drawn."""
    found = [*CORPUS.glob("truth/*"), *CORPUS.glob("systems/*/*")]
    return {path.relative_to(CORPUS).as_posix() for path in found}


def differing(files: Mapping[str, Scene]) -> Iterator[tuple[str, Scene, str]]:
    """Each file that is missing or not as its scene says, and what is wrong with it."""
    for path, scene in files.items():
        if not (CORPUS / path).is_file():
            yield path, scene, "missing"
        elif (found := difference(CORPUS / path, as_saved(scene))) > MOST_DIFFERENCE[".png"]:
            yield path, scene, f"a tile is {found:.1f} levels from its scene"


def as_saved(scene: Scene) -> Image.Image:
    """The image as it is saved: in 256 colors, which keeps it small."""
    return scene.draw().quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def contact_sheet(meant: list[str]) -> Image.Image:
    """Each meant image with what the systems make of it beside it, in the order of `SYSTEMS`."""
    rows = -(-len(meant) // SHEET_TRUTHS)
    wide = len(SYSTEMS) * SHEET_CELL
    sheet = Image.new("RGB", (SHEET_TRUTHS * wide, rows * SHEET_CELL), "white")
    for place, path in enumerate(meant):
        row, group = divmod(place, SHEET_TRUTHS)
        for column, (_, _, scene) in enumerate(made_of(path)):
            image = scene.draw()
            image.thumbnail((SHEET_CELL - 6, SHEET_CELL - 6))
            sheet.paste(image, (group * wide + column * SHEET_CELL + 3, row * SHEET_CELL + 3))
    return sheet


if __name__ == "__main__":
    sys.exit(main())
