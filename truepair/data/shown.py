"""How the two sides and the pairs show themselves (`repr`): one line, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truepair.phrases import counted, percent

if TYPE_CHECKING:
    from truepair.data.pairs import Images, Pairs, Texts

LONGEST = 60  # characters of a caption


def shown_images(images: Images) -> str:
    held = "pixels in memory" if images.pictures is not None else "pixels in files"
    held = held if images.have_pixels else "no pixels"
    return f"Images({counted(len(images), 'image')}, features {_shape(images.features)}, {held})"


def shown_texts(texts: Texts) -> str:
    said = [counted(len(texts), "text")]
    if texts.features is not None:
        said.append(f"features {_shape(texts.features)}")
    elif texts.captions:
        first = texts.captions[0]
        said.append(f"first {first if len(first) <= LONGEST else first[: LONGEST - 1] + '…'!r}")
    return f"Texts({', '.join(said)})"


def shown_pairs(pairs: Pairs) -> str:
    sides = f"{counted(len(pairs.images), 'image')} and {counted(len(pairs.texts), 'text')}"
    said = [f"{counted(len(pairs), 'pair')} of {sides}", f"image features {_shape(pairs.images.features)}"]
    if pairs.texts.features is not None:
        said.append(f"text features {_shape(pairs.texts.features)}")
    if pairs.labels is not None:
        classes = len(pairs.class_names)
        said.append(f"{classes} class{'es' if classes != 1 else ''}")
    if pairs.label_noise_rate is not None:
        said.append(f"{percent(pairs.label_noise_rate)} of the labels wrong")
    if pairs.mismatch_rate is not None:
        said.append(f"{percent(pairs.mismatch_rate)} mismatched")
    if pairs.trusted is not None:
        said.append(f"{int(pairs.trusted.sum()):,} known to match")
    return f"Pairs({pairs.name!r}: {', '.join(said)})"


def _shape(features: Any) -> str:
    """The numbers of one image or text, and their type."""
    return f"{' × '.join(map(str, features.shape[1:]))} {features.dtype}"
