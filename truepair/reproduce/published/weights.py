"""The weights that rows of CLIP begin with: which of its sizes a model folder holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truepair.errors import InputError


@dataclass(frozen=True)
class Size:
    """A CLIP of the tables.

    Attributes:
        name: as in `rows.toml`, B/32.
        patch, width: of the vision tower: pixels of a patch's side, numbers of a token.
        hub: a name of the hub; megabytes: of its weights there.
    """

    name: str
    patch: int
    width: int
    hub: str
    megabytes: int

    @property
    def described(self) -> str:
        return f"ViT-{self.name} (patches of {self.patch} pixels, width {self.width})"

    @property
    def where(self) -> str:
        """Where its weights come from."""
        return (
            f"The weights of CLIP ViT-{self.name} are {self.hub} on the hub: a folder with config.json, "
            f"model.safetensors ({self.megabytes:,} MB), tokenizer and image processor. Give the folder, or that name "
            "where there is a network, as in: --weights FOLDER"
        )


SIZES = {
    size.name: size
    for size in (
        Size("B/32", 32, 768, "openai/clip-vit-base-patch32", 605),
        Size("L/14", 14, 1024, "openai/clip-vit-large-patch14", 1710),
    )
}


@dataclass(frozen=True)
class Weights:
    """A model folder that was looked at.

    Attributes:
        identity: type and digest of all its files.
        side: pixels of the square that it sees.
    """

    size: Size
    folder: Path
    identity: str
    side: int

    @property
    def described(self) -> str:
        return f"{self.identity}: CLIP ViT-{self.size.name}, {self.side} pixels, {self.folder}"


def find_weights(given: Sequence[str]) -> dict[str, Weights]:
    """Size → the weights of it, among folders and names of the hub.

    Raises:
        InputError: one is no CLIP of these sizes, two are of the same, or a folder lacks something.
    """
    found: dict[str, Weights] = {}
    for name in given:
        weights = weights_at(name)
        other = found.setdefault(weights.size.name, weights)
        if other is not weights:
            raise InputError(
                f"--weights: {other.folder} and {weights.folder} are both ViT-{weights.size.name}; give one of them"
            )
    return found


def weights_at(name: str) -> Weights:
    """The CLIP of a folder, or of a name of the hub; its size is known by its patches and width.

    Raises:
        InputError: it is none, or of another size; with what was expected and found.
    """
    from truepair.encoders import encoder_of
    from truepair.encoders.hf.encoder import PretrainedEncoder

    encoder, expected = encoder_of(name), " or ".join(size.described for size in SIZES.values())
    if not isinstance(encoder, PretrainedEncoder) or encoder.opened.kind != "clip":
        what = f"a {encoder.opened.kind} model" if isinstance(encoder, PretrainedEncoder) else "no pretrained model"
        raise InputError(f"--weights {name} is {what}; expected the folder of a CLIP: {expected}")
    vision = encoder.opened.config.vision_config
    size = next((s for s in SIZES.values() if (s.patch, s.width) == (vision.patch_size, vision.hidden_size)), None)
    if size is None:
        raise InputError(
            f"--weights {name} is a CLIP with patches of {vision.patch_size} pixels and width {vision.hidden_size}; "
            f"expected {expected}, which the published rows are of"
        )
    return Weights(size, encoder.opened.folder.resolve(), encoder.identity(), int(vision.image_size))
