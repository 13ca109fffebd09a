"""Roles of pictures, against counts by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.image_scores import GoldRoles, score_roles
from echo_hf.builder.gold.inputs import FoundRoles
from echo_hf.builder.gold.measures import Measure, measured


def gold(
    name: str,
    roles: dict[str, str],
    screenshots: tuple[str, ...] = (),
    completions: dict[str, str] | None = None,
) -> GoldRoles:
    """What people said about the pictures of a sample; each letter is a picture."""
    return GoldRoles(
        (name, "prompt"),
        roles,
        tuple(frozenset(group) for group in screenshots),
        frozenset((completions or {}).items()),
        {digest: f"{name} {digest}" for digest in roles},
    )


def measures(*both: tuple[GoldRoles, FoundRoles | None]) -> dict[str, Measure]:
    """The measures by name; a sample with null was not answered."""
    found = {one.key: roles for one, roles in both if roles is not None}
    return {
        one.name: measured("roles", one) for one in score_roles([one for one, _ in both], found)
    }


def test_roles_by_hand() -> None:
    """Four of five pictures are right; those of a sample without an answer are not wrong."""
    one = measures(
        (
            gold("s", {"a": "input", "b": "output", "c": "neither"}),
            FoundRoles({"a"}, {"b", "c"}),
        ),
        (gold("t", {"a": "output", "d": "neither"}), FoundRoles(set(), {"a"})),
        (gold("u", {"e": "output"}), None),
    )["picture_role_accuracy"]

    assert (one.value, one.n, one.answered, one.asked, one.strict) == (4 / 5, 5, 5, 6, 4 / 6)


def test_screenshots_by_hand() -> None:
    """Any screenshot of a conversation will do; one of nothing is a false claim."""
    nothing = dict.fromkeys("abcd", "neither")
    one = measures(
        (gold("s", nothing, ("ab",)), FoundRoles(screenshots={"b"})),
        (gold("t", nothing, ("c",)), FoundRoles(screenshots={"d"})),
        (gold("u", nothing, ("d",)), FoundRoles()),
        (gold("v", nothing, ("d",)), None),
    )
    precision, recall = one["screenshot_precision"], one["screenshot_recall"]

    assert (precision.value, precision.n) == (1 / 2, 2)
    assert (precision.answered, precision.asked) == (3, 4)
    assert (recall.value, recall.n, recall.asked) == (1 / 3, 3, 4)


def test_completions_by_hand() -> None:
    """A completion is right when the picture shows that very prompt."""
    outputs = dict.fromkeys("abc", "output")
    filled = {"a": "a cat", "b": "an owl", "c": "a fox"}
    given = {("a", "a cat"), ("b", "a fox")}
    one = measures(
        (gold("s", outputs, completions=filled), FoundRoles(completions=given)),
        (gold("t", {"d": "output"}), FoundRoles(completions={("d", "a dog")})),
    )

    assert (one["blanks_filled"].value, one["blanks_filled"].n) == (1 / 3, 3)
    assert (one["completion_precision"].value, one["completion_precision"].n) == (1 / 3, 3)


ROLES = st.dictionaries(
    st.sampled_from("abcdef"), st.sampled_from(["input", "output", "neither"]), min_size=1
)


@given(st.lists(ROLES, min_size=1, max_size=4))
def test_right_roles_are_right(samples: list[dict[str, str]]) -> None:
    """What gold says scores one."""
    both = []
    for number, roles in enumerate(samples):
        by_role = {
            role: {digest for digest, one in roles.items() if one == role}
            for role in ("input", "output", "neither")
        }
        prompts = {digest: f"a {digest}" for digest in by_role["output"]}
        shots = tuple(by_role["neither"])
        both.append(
            (
                gold(f"s{number}", roles, shots, prompts),
                FoundRoles(by_role["input"], by_role["output"], set(shots), set(prompts.items())),
            )
        )
    for one in measures(*both).values():
        assert one.value in (1, None), one.name
        assert one.answered == one.asked
