"""SGR and SAF networks as SGRAF's code keeps them, and those of UGNCL, which see every image in two views.

UGNCL's image encoder has two linear maps, `fc1` and `fc2`, where SGRAF's has one, `fc`; the views share
all else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from truepair.engines.config import SAFConfig, SGRConfig
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.released.layout import Architecture, Layout, shapes
from truepair.engines.retrieval_model import Needs
from truepair.errors import InputError

STEP = re.compile(r"sim_enc\.SGR_module\.(0|[1-9]\d{0,3})\.(graph_query_w|graph_key_w|sim_graph_w)")
STEP_PARTS = {"graph_query_w": "query", "graph_key_w": "key", "sim_graph_w": "graph"}
OUR_STEP_PARTS = {ours: theirs for theirs, ours in STEP_PARTS.items()}

PUBLISHED_TEMPERATURE = 0.1
"""τ of UGNCL's evidence where a file does not say."""


class SGRAFLayout(Layout):
    """Of SGRAF, NCR, DECL, CRCL and GSC; the engine is `LocalEngine`."""

    networks = "SGRAF's networks"
    modules: ClassVar[Mapping[str, str]] = {
        "img_enc.fc": "regions.linear",
        "txt_enc.embed": "words.embed",
        "txt_enc.cap_rnn": "words.read",
        "sim_enc.v_global_w.embedding_local.0": "image_attention.local",
        "sim_enc.v_global_w.embedding_local.1": "image_attention.local_norm",
        "sim_enc.v_global_w.embedding_global.0": "image_attention.whole",
        "sim_enc.v_global_w.embedding_global.1": "image_attention.whole_norm",
        "sim_enc.v_global_w.embedding_common.0": "image_attention.common",
        "sim_enc.t_global_w.embedding_local.0": "text_attention.local",
        "sim_enc.t_global_w.embedding_global.0": "text_attention.whole",
        "sim_enc.t_global_w.embedding_common.0": "text_attention.common",
        "sim_enc.sim_tranloc_w": "align.local",
        "sim_enc.sim_tranglo_w": "align.whole",
        "sim_enc.SAF_module.attn_sim_w": "head.attention",
        "sim_enc.SAF_module.bn": "head.norm",
        "sim_enc.sim_eval_w": "score",
    }
    code: ClassVar[str] = "SGRAF"
    projection: ClassVar[str] = "img_enc.fc.weight"

    def our_module(self, theirs: str) -> str | None:
        step = STEP.fullmatch(theirs)
        return f"head.steps.{step[1]}.{STEP_PARTS[step[2]]}" if step else super().our_module(theirs)

    def their_module(self, ours: str) -> str:
        if not ours.startswith("head.steps."):
            return super().their_module(ours)
        _, _, step, part = ours.split(".")
        return f"sim_enc.SGR_module.{step}.{OUR_STEP_PARTS[part]}"

    def network(self, architecture: Architecture) -> str:
        return f"{architecture.kind.upper()} network of {self.code}"

    def measured(self, place: str, released: Mapping[str, Tensor], options: Mapping[str, Any]) -> Architecture:
        expected = {
            self.projection: 2,
            "txt_enc.embed.weight": 2,
            "sim_enc.v_global_w.embedding_local.1.weight": 1,
            "sim_enc.sim_tranloc_w.weight": 2,
        }
        found = shapes(place, released, expected, f"an SGR or SAF network of {self.code}")
        (width, feature_width), (words, word_width), (regions,), (similarity_width, _) = found
        steps = len({step[1] for step in map(STEP.match, released) if step})
        filters = any(name.startswith("sim_enc.SAF_module.") for name in released)
        if (steps > 0) == filters:
            both = "both SGR_module and SAF_module" if filters else "neither SGR_module nor SAF_module"
            raise InputError(f"{place}: sim_enc holds {both}; expected one of them")
        sizes, needs = InputSizes(feature_width, regions, words), self.needs(place, options)
        if steps:
            config = SGRConfig(width, word_width, similarity_width, reasoning_steps=steps)
            return Architecture("sgr", config, sizes, needs)
        return Architecture("saf", SAFConfig(width, word_width, similarity_width), sizes, needs)

    def needs(self, place: str, options: Mapping[str, Any]) -> Needs:
        return Needs()

    def hint(self, names: list[str]) -> str:
        if any(re.search(r"cap_rnn\..*_l[1-9]", name) for name in names):
            return ": the GRU has several layers, the engine here one"
        if any("_reverse" in name for name in names):
            return ": the GRU reads one way only, the engine here both ways"
        if any(".gpool." in name or ".mlp." in name for name in names):
            return ": these belong to a global model (VSE∞)"
        return ""


class UGNCLLayout(SGRAFLayout):
    """Of UGNCL; the engine is `MultiViewEngine` with `LocalEngine` below."""

    networks = "UGNCL's networks"
    code = "UGNCL"
    projection = "img_enc.fc1.weight"
    projections: ClassVar[Mapping[str, str]] = {
        "img_enc.fc1": "base.regions.linear",
        "img_enc.fc2": "further_regions.0.linear",
    }

    def our_module(self, theirs: str) -> str | None:
        if theirs in self.projections or theirs == "img_enc.fc":
            return self.projections.get(theirs)
        ours = super().our_module(theirs)
        return None if ours is None else f"base.{ours}"

    def their_module(self, ours: str) -> str:
        found = [theirs for theirs, name in self.projections.items() if name == ours]
        return found[0] if found else super().their_module(ours.removeprefix("base."))

    def needs(self, place: str, options: Mapping[str, Any]) -> Needs:
        """Two views, scored with the temperature of the evidence that the network was trained with."""
        temperature = options.get("tau", PUBLISHED_TEMPERATURE)
        if not isinstance(temperature, int | float) or not 0 < temperature < math.inf:
            raise InputError(
                f"{place}: its options say tau = {temperature!r}; expected a number above 0, the temperature of the "
                "evidence by which UGNCL's two views are scored together"
            )
        return Needs(views=2, view_temperature=float(temperature))
