"""A transformers model with a tower for images and one for texts, opened from its folder.

`Opened` knows what a model takes and gives without reading its weights; `load` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truepair.encoders.decode import pixels_of
from truepair.encoders.encoder import Picture
from truepair.encoders.hf.folder import check_files, digest, model_type, required
from truepair.encoders.hf.tokens import Tokens
from truepair.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

Pixels = NDArray[np.uint8]

ENDS = frozenset({"clip", "metaclip_2"})
"""Kinds of models that read a caption's vector at the token its end is marked by."""
OBLONG = 16
_LEGACY_END = 2  # as old configurations of CLIP have it, whatever the tokenizer's is


@dataclass(frozen=True)
class Shape:
    """What a model makes.

    Attributes:
        width: D of the vectors of images and texts.
        image_head, text_head: names of the linear layers that give these vectors, where there are such.
    """

    width: int
    image_head: str | None
    text_head: str | None


class Opened:
    """A model folder whose files were found to be complete.

    Args:
        folder: with configuration, tokenizer, image processor and weights.
        weights: whether there must be weights.

    Raises:
        InputError: a file is missing or unreadable, weights are pickles, the model has no image or no text tower, or
            the tokenizer is that of another model.
    """

    def __init__(self, folder: Path, *, weights: bool = True) -> None:
        check_files(folder, weights=weights)
        self.folder, self.kind = folder, model_type(folder)
        transformers = required("transformers")
        with quiet():
            self.config = self._part("configuration", transformers.AutoConfig)
            self.tokenizer = self._part("tokenizer", transformers.AutoTokenizer)
            self.processor = self._part("image processor", transformers.AutoImageProcessor, backend="pil")
        text, vision = (getattr(self.config, f"{side}_config", None) for side in ("text", "vision"))
        if text is None or vision is None:
            reads_words = text is not None or (vision is None and hasattr(self.config, "vocab_size"))
            missing = "image" if reads_words else "text"
            raise InputError(
                f"{folder} holds a {self.kind} model, which has no {missing} tower; expected a model of images and "
                "texts, such as CLIP or SigLIP"
            )
        self._check_tokenizer(text)
        self.tokens = Tokens(self.tokenizer, longest(self.tokenizer, text), self.kind, folder.name)
        if weights:
            _ = self.shape

    def _part(self, what: str, kind: Any, **options: Any) -> Any:
        try:
            return kind.from_pretrained(self.folder, trust_remote_code=False, local_files_only=True, **options)
        except Exception as error:  # of whatever kind the library raises on a damaged or unknown file
            raise InputError(
                f"{self.folder}: its {what} cannot be read ({said(error)}); copy it from its model again"
            ) from error

    def _check_tokenizer(self, text: Any) -> None:
        known, rows = len(self.tokenizer), int(text.vocab_size)
        end, marked = self.tokenizer.eos_token_id, getattr(text, "eos_token_id", None)
        odd = None
        if known > rows:
            odd = f"it has {known:,} tokens, the text tower {rows:,}"
        elif self.kind in ENDS and None not in (end, marked) and marked not in (end, _LEGACY_END):
            odd = f"its mark of an end is token {end}, that of the text tower {marked}"
        elif self.tokenizer.pad_token_id is None:
            odd = "it has no token to fill captions up with"
        if odd is not None:
            raise InputError(
                f"{self.folder}: its tokenizer belongs to another model ({odd}); copy that of its own there"
            )

    @property
    def identity(self) -> str:
        """Type and digest, as a word for file names."""
        return f"{self.kind.replace('/', '-')}-{digest(self.folder)}"

    @property
    def side(self) -> int:
        """Pixels the shorter side of a picture should have at least."""
        size: Any = self.processor.size or {}
        crop: Any = getattr(self.processor, "crop_size", None) or {}
        found = [int(value) for part in (size, crop) for value in dict(part).values() if isinstance(value, int)]
        return max(found, default=512)

    def prepare(self, picture: Picture) -> dict[str, Any]:
        """What the image tower takes of a picture, as arrays.

        Raises:
            InputError: as `pixels_of`.
        """
        from PIL import Image

        pixels = pixels_of(picture, shortest=self.side)
        if dict(self.processor.size or {}).get("shortest_edge"):  # the longer one grows with it, and is cut off then
            pixels = middle(pixels)
        made = self.processor(images=[Image.fromarray(pixels)], return_tensors="np")
        return {name: np.asarray(values)[0] for name, values in made.items()}

    @cached_property
    def scale_and_bias(self) -> tuple[float, float]:
        """What the model multiplies cosines by before a softmax (1/τ), and adds before a sigmoid; 1 and 0 without."""
        held = single_values(self.folder, ("logit_scale", "logit_bias", "temperature"))
        scale = math.exp(held["logit_scale"]) if "logit_scale" in held else 1 / held.get("temperature", 1.0)
        return scale, held.get("logit_bias", 0.0)

    @cached_property
    def shape(self) -> Shape:
        """Found by sending one picture and one caption through a model without weights.

        Raises:
            InputError: it has no image or text tower, or does not read what its own processor or tokenizer makes.
        """
        return shape_of(self)

    def blank(self) -> nn.Module:
        """The model with weights drawn anew, float32 whatever its file has (or without any, on the device "meta")."""
        import torch

        made: nn.Module = required("transformers").AutoModel.from_config(self.config, dtype=torch.float32)
        return made.eval()

    def load(self) -> nn.Module:
        """The model with its weights, float32, in evaluation mode, on the CPU.

        Raises:
            InputError: they are not all there, or not of these shapes.
        """
        import torch

        check_files(self.folder)
        try:
            with quiet():
                model, found = required("transformers").AutoModel.from_pretrained(
                    self.folder,
                    config=self.config,
                    dtype=torch.float32,
                    use_safetensors=True,
                    local_files_only=True,
                    trust_remote_code=False,
                    output_loading_info=True,
                )
        except Exception as error:  # safetensors, torch and transformers each have their own
            raise InputError(f"{self.folder}: its weights cannot be read ({said(error)}); copy them again") from error
        missing = sorted(found["missing_keys"])
        if missing:
            raise InputError(
                f"{self.folder}: its weights lack {len(missing)} tensors of the model in config.json, the first is "
                f"{missing[0]}; they are those of another model, or not all files are there"
            )
        return model.eval()  # type: ignore[no-any-return]


def shape_of(opened: Opened) -> Shape:
    """See `Opened.shape`."""
    import torch

    grey = np.full((opened.side, opened.side, 3), 128, dtype=np.uint8)
    images = collated([opened.prepare(grey)])
    texts = opened.tokens.padded(opened.tokens.encode(["a"]))
    for device in ("meta", "cpu"):  # where a tower looks at values, it does not run without any
        with torch.random.fork_rng(devices=[]), torch.device(device), torch.no_grad():
            model = opened.blank()
            check_towers(model, opened)
            try:
                image, image_head = traced(model, image_vectors, {k: v.to(device) for k, v in images.items()})
                text, text_head = traced(model, text_vectors, {k: v.to(device) for k, v in texts.items()})
            except Exception as error:
                if device == "meta":
                    continue
                raise InputError(
                    f"{opened.folder}: its model does not read what its own image processor and tokenizer make "
                    f"({said(error)}); they belong to another model"
                ) from error
        if image.ndim != 2 or image.shape != text.shape:
            raise InputError(
                f"{opened.folder}: its image tower gives {tuple(image.shape)}, its text tower {tuple(text.shape)} for "
                "one item; expected one vector each, of the same width"
            )
        return Shape(int(image.shape[1]), image_head, text_head)
    raise AssertionError


def check_towers(model: nn.Module, opened: Opened) -> None:
    """Raises InputError: the model gives no vectors of images, or none of texts."""
    for side in ("image", "text"):
        if not hasattr(model, f"get_{side}_features"):
            raise InputError(
                f"{opened.folder} holds a {opened.kind} model ({type(model).__name__}), which has no {side} tower; "
                "expected a model of images and texts, such as CLIP or SigLIP"
            )


def traced(model: nn.Module, vectors: Any, inputs: dict[str, Tensor]) -> tuple[Tensor, str | None]:
    """The vectors of one side, and the name of the linear layer whose output they are."""
    from torch import nn

    made: dict[str, Any] = {}
    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: made.__setitem__(name, output))
        for name, module in model.named_modules()
        if type(module) is nn.Linear
    ]
    try:
        found: Tensor = vectors(model, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return found, next((name for name, output in made.items() if output is found), None)


def image_vectors(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """(B, D) of B images."""
    return _vectors(model.get_image_features(**inputs))  # type: ignore[operator]


def text_vectors(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """(B, D) of B texts."""
    return _vectors(model.get_text_features(**inputs))  # type: ignore[operator]


def _vectors(output: Any) -> Tensor:
    found: Tensor = output if hasattr(output, "detach") else output.pooler_output
    return found


def middle(pixels: Pixels) -> Pixels:
    """The middle of a very oblong picture (H, W, 3), `OBLONG` times as long as wide; any other as it is.

    A line of 1 x 10,000 pixels whose shorter side is made 224 would fill the memory, for the square in its middle.
    """
    most = OBLONG * min(pixels.shape[:2])
    top, left = (max(0, length - most) // 2 for length in pixels.shape[:2])
    return pixels[top : top + most, left : left + most]


def collated(prepared: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
    """Prepared pictures as one batch of tensors."""
    import torch

    return {name: torch.from_numpy(np.stack([each[name] for each in prepared])) for name in prepared[0]}


def single_values(folder: Path, names: Sequence[str]) -> dict[str, float]:
    """Those of these parameters of one number that the weights hold."""
    from safetensors import safe_open

    found: dict[str, float] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            held = set(file.keys())
            found |= {name: float(file.get_tensor(name).float().reshape(-1)[0]) for name in names if name in held}
    return found


def longest(tokenizer: Any, text: Any) -> int:
    """Most tokens of a caption, by tokenizer and text tower."""
    positions = int(getattr(text, "max_position_embeddings", 0) or tokenizer.model_max_length)
    return min(positions, int(tokenizer.model_max_length))


@contextmanager
def quiet() -> Iterator[None]:
    """Within the block transformers draws no bars and says nothing that is no error."""
    logging = required("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def said(error: BaseException) -> str:
    """The first line of what an error says."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".:")[:200]


@lru_cache(maxsize=4)
def _opened(folder: Path, _digest: str) -> Opened:
    return Opened(folder)


def opened(folder: Path) -> Opened:
    """`Opened`, kept for the next call while its files stay as they are."""
    check_files(folder)
    return _opened(folder, digest(folder))
