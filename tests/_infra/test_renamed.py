"""Old names of what other packages import still work, and say what they are called now."""

from __future__ import annotations

import importlib

import pytest

from echo_hf.pipeline.progress import ProgressListener
from echo_hf.scores import decisions

OLD_NAMES = {
    "echo_hf.collect.platforms.base": {"Answer": "Page", "Refreshing": "PostChecker"},
    "echo_hf.hub.leaderboard": {"shown": "render_leaderboard", "splits_of": "list_splits"},
    "echo_hf.judging.imports": {"Found": "ImportedRow"},
    "echo_hf.systems.base": {"failed": "failure_result", "without_secrets": "remove_secrets"},
    "echo_hf.systems.registry": {"described": "describe_config"},
}


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [(module, *pair) for module, names in OLD_NAMES.items() for pair in names.items()],
)
def test_an_old_name_is_the_new_one_with_a_warning(module: str, old: str, new: str) -> None:
    loaded = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{module}.{old} is now {new}") as caught:
        value = getattr(loaded, old)
    assert value is vars(loaded)[new]
    assert caught[0].filename == __file__


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        importlib.import_module("echo_hf.systems.base").nothing  # noqa: B018


def test_an_old_property_is_the_new_one_with_a_warning() -> None:
    found = decisions({"sample_id": ["s"], "system": ["a"], "judge": ["j"], "rating": [5.0]})
    with pytest.warns(DeprecationWarning, match=r"Decisions.said is now summary") as caught:
        assert found.said == found.summary
    assert caught[0].filename == __file__


def test_a_listener_with_old_methods_still_hears_of_progress() -> None:
    heard: list[str] = []
    with pytest.warns(DeprecationWarning, match=r"Old.noticed is now report_notice"):

        class Old(ProgressListener):
            def noticed(self, remark: str) -> None:
                heard.append(remark)

    Old().report_notice("one line")
    assert heard == ["one line"]
