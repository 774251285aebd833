"""The global model of VSE∞ as CRCL's code keeps it (`--module_name VSEinfty`); the engine is `GlobalEngine` with GPO.

An image: a linear map of each region plus a residual MLP of two layers, pooled by GPO. A caption: a Bi-GRU over word
embeddings, its directions averaged, pooled by a GPO of its own. Both L2-normalised; the similarity is their product.
The MLP's second batch norm (`mlp.bns.1`) is never called there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from truepair.engines.config import GlobalConfig
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.released.layout import Architecture, Layout, shapes
from truepair.engines.retrieval_model import Needs

HINTS = {
    r"txt_enc\.cap_rnn\.": "these belong to an SGR or SAF network, whose third state dict (sim_enc) is missing",
    r"txt_enc\.(bert|linear)\.": "the text encoder is BERT, as in VSE∞ itself; the engine here reads words by a GRU",
    r"img_enc\.(backbone|image_encoder)\.": "the image encoder is a CNN; the engine here takes features of regions",
    r"\.rnn\..*_l[1-9]": "the GRU has several layers, the engine here one",
    r"_reverse": "the GRU reads one way only, the engine here both ways",
    r"img_enc\.mlp\.": "the engine here has one residual MLP of two layers",
}
"""What parameters too many or too few point at."""


class GlobalLayout(Layout):
    """Of CRCL's VSE∞."""

    networks = "CRCL's global models (VSE∞)"
    modules: ClassVar[Mapping[str, str]] = {
        "img_enc.fc": "regions.linear",
        "img_enc.mlp.layers.0": "regions.expand",
        "img_enc.mlp.bns.0": "regions.norm",
        "img_enc.mlp.layers.1": "regions.contract",
        "img_enc.gpool.gru": "pool_regions.rank_reader",
        "img_enc.gpool.linear": "pool_regions.score",
        "txt_enc.embed": "words.embed",
        "txt_enc.rnn": "words.read",
        "txt_enc.gpool.gru": "pool_words.rank_reader",
        "txt_enc.gpool.linear": "pool_words.score",
    }
    unused: ClassVar[frozenset[str]] = frozenset({"img_enc.mlp.bns.1"})

    def measured(self, place: str, released: Mapping[str, Tensor], options: Mapping[str, Any]) -> Architecture:
        expected = {"img_enc.fc.weight": 2, "txt_enc.embed.weight": 2}
        found = shapes(place, released, expected, "a global model of CRCL (VSE∞)")
        (width, feature_width), (words, word_width) = found
        # How many regions an image had, no tensor shows, and the engine does not ask.
        sizes = InputSizes(feature_width, 0, words)
        return Architecture("global", GlobalConfig(width, word_width, "gpo"), sizes, Needs())

    def network(self, architecture: Architecture) -> str:
        return "global model of CRCL (VSE∞)"

    def hint(self, names: list[str]) -> str:
        found = [said for pattern, said in HINTS.items() if any(re.search(pattern, name) for name in names)]
        return f": {found[0]}" if found else ""
