"""What people in the drawn screenshots asked for: prompts, with images that the scenes draw.

The two halves share no prompt and no image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ScreenTask:
    """One request.

    Attributes:
        short: How a post speaks of it.
        prompt: What was typed.
        inputs: Names of scenes.
        outputs: Likewise.
    """

    short: str
    prompt: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def counts(self) -> tuple[int, int]:
        """How many images went in and came out."""
        return len(self.inputs), len(self.outputs)


TUNE = (
    ScreenTask(
        "the lake behind our house, but at night",
        "Show this lake at night with a full moon, keep the shore as it is",
        ("lake_day.jpg",),
        ("lake_night.jpg",),
    ),
    ScreenTask(
        "my robot sketch in colour",
        "Colour this sketch like a children's book, warm paper, soft shadows, same pose",
        ("robot_sketch.png",),
        ("robot_coloured.png",),
    ),
    ScreenTask(
        "my boring desk as a jungle",
        "Turn my desk into a jungle. The keyboard and the lamp stay where they are",
        ("desk_plain.jpg",),
        ("desk_jungle.jpg",),
    ),
    ScreenTask(
        "the old photo of the ice cream cart, restored",
        "Restore this scan: remove scratches and stains, keep the faces and the lettering",
        ("cart_scan.jpg",),
        ("cart_restored.jpg",),
    ),
    ScreenTask(
        "our mug with the new logo",
        "Print the logo from the first picture on the mug in the second one",
        ("logo_sun.png", "mug_plain.png"),
        ("mug_logo.png",),
    ),
    ScreenTask(
        "two colourways for the fox",
        "Give me this fox in two colourways, one pink and one yellow, same outline",
        ("fox_teal.png",),
        ("fox_pink.png", "fox_yellow.png"),
    ),
    ScreenTask(
        "a poster for the jazz night",
        "Screen print poster for a jazz night, trumpet over circles, title BLUE HOUR on top",
        (),
        ("poster_blue_hour.png",),
    ),
    ScreenTask(
        "an island that floats",
        "A floating island with a small castle and a waterfall, morning haze",
        (),
        ("island.webp",),
    ),
    ScreenTask(
        "a moth like in an old plate",
        "Moth on dark velvet, plate from an old book, brass frame",
        (),
        ("moth_plate.png",),
    ),
    ScreenTask(
        "clay people at work",
        "Two clay figures at work, a penguin who cooks and a turtle who brings the post",
        (),
        ("clay_penguin_chef.png", "clay_turtle_postman.png"),
    ),
    ScreenTask(
        "shadow boxes of my hobbies",
        "Paper shadow boxes, one of a cactus and one of a bicycle, deep layers",
        (),
        ("shadowbox_cactus.png", "shadowbox_bicycle.png"),
    ),
)
UNSEEN = (
    ScreenTask(
        "my kid's house, painted",
        "Paint this drawing in gouache, spring colours, do not straighten the roof",
        ("house_sketch.png",),
        ("house_painted.jpg",),
    ),
    ScreenTask(
        "me as an astronaut",
        "Put me into a space suit, helmet under the arm, same face and same light",
        ("portrait.png",),
        ("portrait_astronaut.png",),
    ),
    ScreenTask(
        "grandpa with the hat he never wore",
        "Give him a straw hat, leave everything else alone",
        ("grandpa.png",),
        ("grandpa_hat.png",),
    ),
    ScreenTask(
        "this room in green",
        "Same room, same furniture, walls in dark green, evening light",
        ("iso_room.png",),
        ("iso_room_green.png",),
    ),
    ScreenTask(
        "our poster above the sofa",
        "Hang the poster from picture one on the wall of the room in picture two",
        ("poster_train.png", "iso_room.png"),
        ("iso_room_green.png",),
    ),
    ScreenTask(
        "two more stamps for the series",
        "Two more stamps like this one, an anchor and a kettle, same border and same paper",
        ("stamp_pear.png",),
        ("stamp_anchor.png", "stamp_kettle.png"),
    ),
    ScreenTask(
        "a sign for the flower market",
        "Vintage sign for a flower market with a big bouquet, hand lettered",
        (),
        ("flower_market.png",),
    ),
    ScreenTask(
        "a lighthouse in a storm",
        "Lighthouse on a rock in heavy weather, woodcut in three colours",
        (),
        ("lighthouse.webp",),
    ),
    ScreenTask(
        "a fern from a herbarium",
        "Pressed fern on old paper with a handwritten label, scanned",
        (),
        ("fern_study.png",),
    ),
    ScreenTask(
        "stamps for two hobbies",
        "Two postage stamps, an anchor and a kettle, engraved, with perforated edges",
        (),
        ("stamp_anchor.png", "stamp_kettle.png"),
    ),
    ScreenTask(
        "fruit lamps",
        "Table lamps shaped like fruit, a lemon and a strawberry, studio light",
        (),
        ("lamp_lemon.png", "lamp_strawberry.png"),
    ),
)
TASKS: Mapping[str, Sequence[ScreenTask]] = {"tune": TUNE, "unseen": UNSEEN}
# What windows hold beside the task that counts.
CHATTER: Mapping[str, Sequence[tuple[str, str]]] = {
    "tune": (
        (
            "what should I cook for six people on sunday",
            "A tray of baked vegetables with feta is little work: cut everything in the morning, "
            "put it into the oven an hour before they come, and serve it with bread and a large "
            "bowl of yoghurt with herbs. For dessert, oven plums in the same heat.",
        ),
        (
            "is it 'fewer' or 'less' people",
            "Fewer people, because people can be counted. Less water, less time, fewer bottles, "
            "fewer minutes.",
        ),
        (
            "thanks! how long do plums take",
            "About twenty-five minutes at 200 degrees, until the skins split and the juice is "
            "thick. Let them stand a little before you bring them to the table.",
        ),
    ),
    "unseen": (
        (
            "how do I get candle wax out of a tablecloth",
            "Let it harden, scrape off what comes off, put kitchen paper on both sides and go "
            "over it with a warm iron. Change the paper until nothing more comes out, then wash "
            "the cloth as you always do.",
        ),
        (
            "name three rivers that flow north",
            "The Nile, the Rhine for most of its way, and the Yenisei. There are many more, and "
            "none of them minds.",
        ),
        (
            "why is the sky red in the evening",
            "The light takes a longer way through the air when the sun is low. Blue light is "
            "scattered out of it on that way, and what is left is red.",
        ),
    ),
}
