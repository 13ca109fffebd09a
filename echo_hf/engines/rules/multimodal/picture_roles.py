"""Decide which pictures of a sample went in and which came out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from echo_hf.engines.rules.feedback import judges, says_tried
from echo_hf.engines.rules.folding import fold
from echo_hf.engines.rules.markers import ELSEWHERE, HERE
from echo_hf.engines.rules.multimodal.edits import Edit
from echo_hf.engines.rules.multimodal.looks import Look, alike
from echo_hf.engines.rules.multimodal.role_sample import Picture, Post, Sample
from echo_hf.engines.rules.multimodal.role_tokens import Role
from echo_hf.engines.rules.multimodal.role_words import AGAIN, END, IN, NEITHER, NOUN, START
from echo_hf.engines.rules.multimodal.said_roles import Said, said_about
from echo_hf.engines.rules.multimodal.weighing import Weighing
from echo_hf.engines.rules.reading import Reading

LONGEST_CAPTION = 16
KEEPS_STRUCTURE, HAS_ANOTHER = 0.45, 0.25
INPUT_FOLLOWS = re.compile(rf"{IN}[^\n.!?]{{0,30}}?(?:{HERE}|{ELSEWHERE})")
OFFERS_INPUT = re.compile(
    rf"{START}(?:use|try|take|start (?:with|from)|work with|edit|restyle|here(?:['’]s"
    rf"| is))\s(?:this|my|the|a)\s(?:\w{{1,12}}\s){{0,2}}?{NOUN}{END}|素材|この(?:写真|画像"
    r"|線画)(?:で|を使)"
)
ANOTHER = re.compile(AGAIN)
NO_RESULT = re.compile(NEITHER)


class Unsure(Exception):  # noqa: N818 - no error: rules abstain
    """Pictures that rules cannot tell apart."""


@dataclass
class PictureRoles:
    """The roles of a sample's pictures, all but its screenshots and collages.

    Args:
        sample: The sample.
        edit: What its prompt asks for.
        looks: Its pictures as plain measures see them.
        apart: The numbers of screenshots and collages.
    """

    sample: Sample
    edit: Edit
    looks: Mapping[int, Look | None]
    apart: set[int]
    roles: dict[int, Role] = field(default_factory=dict)

    def decide(self) -> dict[int, Role]:
        """Decides.

        Returns:
            The role of each picture.

        Raises:
            Unsure: Some cannot be told apart.
        """
        for post, pictures in self.sample.with_pictures():
            some = [one for one in pictures if one.number not in self.apart]
            shown = [one for one in some if not self._is_empty(one)]
            self.roles |= {one.number: "neither" for one in some if one not in shown}
            if len(pictures) > 1 and shown:
                self.roles |= self._several(post, pictures, shown)
            elif shown:
                self.roles[shown[0].number] = self._single(post)
        self._settle_singles()
        self._leave_out_others()
        return self.roles

    def _is_empty(self, picture: Picture) -> bool:
        look = self.looks[picture.number]
        return look is not None and look.is_empty

    def _several(
        self, post: Post, pictures: Sequence[Picture], shown: Sequence[Picture]
    ) -> dict[int, Role]:
        said = self._said(post, len(pictures))
        told = {pictures[at - 1].number: role for at, role in said.roles.items()}
        known = {one.number: told[one.number] for one in shown if one.number in told}
        rest = [one for one in shown if one.number not in known]
        if {"input", "output"} & set(known.values()):
            return known | self._by_elimination(known, rest)
        if self._are_all_inputs(post, said):
            return known | dict.fromkeys((one.number for one in rest), "input")
        if len(rest) > 1 and self._may_have_inputs(said):
            return known | self._weighed(said, rest)
        return known | dict.fromkeys((one.number for one in rest), "output")

    def _are_all_inputs(self, post: Post, said: Said) -> bool:
        """Whether the task's author shows what went in here, and what came out elsewhere."""
        only = said.names_input and "output" not in said.mentioned
        return only and self.sample.by_task_author(post) and self._shows_more(post)

    def _shows_more(self, post: Post) -> bool:
        """Whether the task's author shows pictures in another post as well."""
        others = (other for other, _ in self.sample.with_pictures() if other is not post)
        return any(map(self.sample.by_task_author, others))

    def _may_have_inputs(self, said: Said) -> bool:
        spoken = said.order is not None or "input" in said.mentioned
        return self.edit.inputs > 0 or spoken or not self._understood

    def _by_elimination(
        self, known: Mapping[int, Role], rest: Sequence[Picture]
    ) -> dict[int, Role]:
        given = set(known.values())
        missing = "input" not in given and 0 < len(rest) <= self.edit.inputs
        return dict.fromkeys((one.number for one in rest), "input" if missing else "output")

    def _weighed(self, said: Said, pictures: Sequence[Picture]) -> dict[int, Role]:
        inputs = self._weighing.inputs_among(pictures, said)
        if inputs is None and (self.edit.inputs or not self._understood):
            raise Unsure
        return {one.number: "input" if one in (inputs or ()) else "output" for one in pictures}

    @property
    def _weighing(self) -> Weighing:
        return Weighing(self.sample, self.edit, self.looks)

    @property
    def _understood(self) -> bool:
        return self.sample.read(self.sample.prompt).covered

    def _said(self, post: Post, pictures: int) -> Said:
        """What the author says, there or in an answer that has no picture."""
        said = said_about(post.beside, pictures, self.sample.names)
        for reply in self.sample.posts.values():
            own = reply.parent == post.number and reply.author == post.author is not None
            if not said.roles and own and not self.sample.of_post(reply.number):
                said.roles = said_about(reply.beside, pictures, self.sample.names).roles
        return said

    def _single(self, post: Post) -> Role:
        """The role of the only picture of a post, as far as its words say."""
        said = self.sample.read(post.beside)
        told = said_about(post.beside, 1, self.sample.names)
        if post is not self.sample.primary and self._is_foreign(said):
            return "neither"
        if not self.sample.by_task_author(post):
            return "output"
        if post is self.sample.primary:
            offered = OFFERS_INPUT.search(said.folded) and self._others_answer(post)
            return "input" if self.edit.inputs and offered else "output"
        is_input = self._are_all_inputs(post, told) and said.length <= LONGEST_CAPTION
        return "input" if is_input or self._follows_pointer(post) else "output"

    def _is_foreign(self, said: Reading) -> bool:
        """Whether a post shows what another model made, or no result at all."""
        return (said.other and not said.target) or NO_RESULT.search(said.folded) is not None

    def _settle_singles(self) -> None:
        """Looks again at two posts of the task's author with one picture each."""
        sample = self.sample
        own = [
            (post, pictures[0])
            for post, pictures in sample.with_pictures()
            if sample.by_task_author(post) and len(pictures) == 1
        ]
        own = [(post, one) for post, one in own if self.roles.get(one.number) == "output"]
        if not self.edit.inputs or len(own) != 2:
            return
        (first, one), (second, other) = own
        if "input" in self.roles.values() or self._tells_of_result(first, second):
            return
        if self._offers_result(first, second):
            self.roles[one.number] = "input"
        else:
            self.roles |= self._weighed(Said(), [one, other])

    def _tells_of_result(self, first: Post, second: Post) -> bool:
        """Whether the second post speaks of its picture as of another result."""
        said = self.sample.read(second.beside)
        told = said_about(second.beside, 1, self.sample.names).mentioned
        more = ANOTHER.search(said.folded) or says_tried(said) or judges(said)
        return bool(more or "output" in told) and not self._offers_result(first, second)

    def _offers_result(self, first: Post, second: Post) -> bool:
        """Whether the first post names its picture as an input, the second one as its result."""
        names = self.sample.names
        told = [said_about(post.beside, 1, names).mentioned for post in (first, second)]
        return [one & {"input", "output"} for one in told] == [{"input"}, {"output"}]

    def _leave_out_others(self) -> None:
        """Leaves out what others made of pictures that they do not show: it is another task."""
        shown = list(self.sample.with_pictures())
        own = [one for post, some in shown if self.sample.by_task_author(post) for one in some]
        inputs = self._with_role(own, "input")
        if self.sample.placeholders or not self._keeps_structure(
            inputs, self._with_role(own, "output")
        ):
            return
        for post, pictures in shown:
            results = self._with_role(pictures, "output")
            told = self.sample.by_task_author(post) or self._with_role(pictures, "input")
            if not told and self._shows_another(inputs, results):
                self.roles |= {one.number: "neither" for one in results}

    def _with_role(self, pictures: Sequence[Picture], role: Role) -> list[Picture]:
        return [one for one in pictures if self.roles.get(one.number) == role]

    def _keeps_structure(self, inputs: Sequence[Picture], results: Sequence[Picture]) -> bool:
        return any(self._alike(one, other) > KEEPS_STRUCTURE for one in inputs for other in results)

    def _shows_another(self, inputs: Sequence[Picture], some: Sequence[Picture]) -> bool:
        return all(self._alike(one, other) < HAS_ANOTHER for one in inputs for other in some)

    def _alike(self, one: Picture, other: Picture) -> float:
        looks = self.looks[one.number], self.looks[other.number]
        return alike(looks[0], looks[1]) if looks[0] and looks[1] else HAS_ANOTHER

    def _others_answer(self, post: Post) -> bool:
        return any(other is not post for other, _ in self.sample.with_pictures())

    def _follows_pointer(self, post: Post) -> bool:
        primary = self.sample.primary
        above = self.sample.posts.get(post.parent)
        if primary is None or above is not primary or not self.edit.inputs:
            return False
        return INPUT_FOLLOWS.search(fold(primary.beside)) is not None
