"""Options of the specialised metrics, as a config gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from echo_hf.config_fields import Section, Whole, Words
from echo_hf.metrics.structure_rules import Reduction


class StructureOptions(Section):
    """How structure distance is measured.

    Attributes:
        model: A vision transformer trained by DINO: name on the Hub, or a folder.
        revision: Branch, tag or commit of it.
        layer: Block whose keys are compared, from 0.
        size: Sides in pixels of the square that pictures are resized to.
        reduction: Which of several inputs counts; null for the protocol's own.
        device: Where the model runs; null for a GPU where there is one.
    """

    model: Words = "facebook/dino-vits16"
    revision: Words | None = None
    layer: Annotated[Whole, Field(ge=0)] = 11
    size: Annotated[Whole, Field(ge=16)] = 224
    reduction: Reduction | None = None
    device: Words | None = None


class FaceOptions(Section):
    """How face identity is measured.

    Attributes:
        pack: A pack of insightface's: name on the Hub, or a folder.
        revision: Branch, tag or commit of it.
        det_size: Sides in pixels of the square in which faces are looked for.
        det_thresh: Least score of a face, from 0 to 1.
    """

    pack: Words = "fal/AuraFace-v1"
    revision: Words | None = None
    det_size: Annotated[Whole, Field(ge=32, multiple_of=32)] = 640
    det_thresh: Annotated[float, Field(gt=0, lt=1)] = 0.5


class MetricsOptions(Section):
    """Options of each metric that has any.

    Attributes:
        structure_distance: How it is measured.
        face_identity: How it is measured.
    """

    structure_distance: StructureOptions = StructureOptions()
    face_identity: FaceOptions = FaceOptions()

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders on this machine that networks are read from."""
        named = (Path(self.structure_distance.model), Path(self.face_identity.pack))
        return tuple(path for path in named if path.is_absolute())

    def located(self, folder: Path) -> MetricsOptions:
        """The options with folders made absolute.

        Args:
            folder: Of the config that names them.

        Returns:
            The same networks; what is no folder below that one is a name on the Hub, and stays.
        """
        structure, face = self.structure_distance, self.face_identity
        model, pack = _located(structure.model, folder), _located(face.pack, folder)
        return MetricsOptions(
            structure_distance=structure.model_copy(update={"model": model}),
            face_identity=face.model_copy(update={"pack": pack}),
        )


def _located(name: str, folder: Path) -> str:
    return str(folder / name) if (folder / name).is_dir() else name
