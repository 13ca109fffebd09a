"""Whatever fails half way leaves the whole old revision, and a second run finishes the new one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from echo_hf.errors import HubError
from echo_hf.hub.publish import Published
from echo_hf.hub.release import Release
from tests.hub.conftest import REPO, Configs, Put, Write
from tests.local_hub import LocalHub
from tests.local_hub_routes import Answer, Question, RefusedError


@dataclass(frozen=True)
class Scene:
    hub: LocalHub
    put: Put
    first: Published
    later: Release

    @property
    def state(self) -> tuple[dict[str, bytes], dict[str, str]]:
        return self.hub.files(REPO), dict(self.hub.repositories[REPO].tags)

    def publish(self) -> Published:
        return self.put(self.later, "v2")


@pytest.fixture
def scene(hub: LocalHub, put: Put, release: Release, write: Write, configs: Configs) -> Scene:
    rows = {name: dataset.select([]) for name, dataset in configs.items()}
    rows["analysis"] = configs["analysis"].select([2, 1])
    rows["text_to_image"] = configs["text_to_image"].select([1])
    return Scene(hub, put, put(release), write("later", rows))


@pytest.mark.parametrize(
    ("step", "spared"),
    [("before upload", 0), ("before upload", 1), ("after upload", 0), ("before commit", 0)],
)
def test_a_death_before_the_commit_leaves_the_old_revision(
    scene: Scene, step: str, spared: int
) -> None:
    before = scene.state
    scene.hub.at(step, *[None] * spared, scene.hub.die)
    with pytest.raises(HubError, match=r"does not answer .* the same command resumes"):
        scene.publish()
    assert scene.state == before

    scene.hub.dead = False
    scene.hub.asked.clear()
    done = scene.publish()
    assert not done.unchanged
    assert scene.hub.repositories[REPO].tags == {"v1": scene.first.commit, "v2": done.commit}
    assert scene.hub.repositories[REPO].commits[done.commit].parent == scene.first.commit
    if step == "before commit":  # what arrived before is not sent again
        assert [path for method, path in scene.hub.asked if method == "PUT"] == []


@pytest.mark.parametrize("step", ["after commit", "before tag", "after tag"])
def test_a_death_after_the_commit_leaves_the_new_revision(scene: Scene, step: str) -> None:
    old = scene.state[0]
    scene.hub.at(step, scene.hub.die)
    with pytest.raises(HubError, match="does not answer"):
        scene.publish()
    new = scene.hub.files(REPO)
    head = scene.hub.repositories[REPO].head
    assert new["manifest.json"] != old["manifest.json"]
    assert b'revision="v2"' in new["README.md"]

    scene.hub.dead = False
    done = scene.publish()
    assert (done.commit, done.tag, done.unchanged) == (head, "v2", True)
    assert scene.hub.files(REPO) == new
    assert scene.hub.repositories[REPO].tags["v2"] == head


def test_a_death_while_the_repository_is_looked_at(scene: Scene) -> None:
    asked = scene.hub.answer

    def whoami_alone(question: Question) -> Answer:
        scene.hub.dead = scene.hub.dead or question.path != "/api/whoami-v2"
        return asked(question)

    scene.hub.answer = whoami_alone  # type: ignore[method-assign]
    before = scene.state
    with pytest.raises(HubError, match=f"cannot read '{REPO}': the Hub does not answer"):
        scene.publish()
    assert scene.state == before


@pytest.mark.parametrize("step", ["before upload", "before commit"])
def test_whoever_publishes_meanwhile_is_not_overwritten(scene: Scene, step: str) -> None:
    repository = scene.hub.repositories[REPO]
    scene.hub.at(step, lambda: repository.change("from elsewhere", note=b"mine"))
    with pytest.raises(
        HubError, match=f"publish to '{REPO}': somebody else published meanwhile"
    ) as raised:
        scene.publish()
    assert "\n" not in str(raised.value)
    assert repository.history[0].title == "from elsewhere"
    assert repository.tags == {"v1": scene.first.commit}
    done = scene.publish()
    assert repository.commits[done.commit].parent == repository.history[1].oid
    assert scene.hub.files(REPO)["note.txt"] == b"mine"


def test_a_tag_that_appears_meanwhile_does_not_move(scene: Scene) -> None:
    tags = scene.hub.repositories[REPO].tags
    scene.hub.at("before tag", lambda: tags.update(v2=scene.first.commit))
    with pytest.raises(HubError, match=r"cannot tag .* as 'v2'"):
        scene.publish()
    assert tags == {"v1": scene.first.commit, "v2": scene.first.commit}


def test_the_same_tag_from_elsewhere_is_as_good(scene: Scene) -> None:
    repository = scene.hub.repositories[REPO]
    scene.hub.at("before tag", lambda: repository.tags.update(v2=repository.head))
    assert scene.publish().commit == repository.tags["v2"]


def test_a_card_that_the_hub_refuses_is_told(hub: LocalHub, put: Put, write: Write) -> None:
    with pytest.raises(HubError, match=r"the Hub refuses it .*must be one of") as raised:
        put(write("unlicensed", license=""))
    assert "\n" not in str(raised.value)
    assert hub.objects == {}


def test_a_signed_address_is_not_told(scene: Scene) -> None:
    def refuse() -> None:
        raise RefusedError(400, said="wrong")

    scene.hub.at("before upload", *[refuse] * 9)
    with pytest.raises(HubError) as raised:
        scene.publish()
    assert "Error while uploading" in str(raised.value)
    assert "signature" not in str(raised.value)
    assert "secret" not in str(raised.value)
