"""Parameter names of SGRAF's code and of `LocalEngine`, in both directions.

A full name there is the encoder and the name in its state dict: `img_enc.fc.weight`.
"""

from __future__ import annotations

import re

PARTS = ("img_enc", "txt_enc", "sim_enc")

MODULES = {
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
OUR_MODULES = {ours: theirs for theirs, ours in MODULES.items()}

STEP = re.compile(r"sim_enc\.SGR_module\.(0|[1-9]\d{0,3})\.(graph_query_w|graph_key_w|sim_graph_w)")
STEP_PARTS = {"graph_query_w": "query", "graph_key_w": "key", "sim_graph_w": "graph"}
OUR_STEP_PARTS = {ours: theirs for theirs, ours in STEP_PARTS.items()}


def our_name(theirs: str) -> str | None:
    """The name in `LocalEngine` of a parameter of SGRAF's code; None where there is no such module."""
    module, _, parameter = theirs.rpartition(".")
    step = STEP.fullmatch(module)
    ours = f"head.steps.{step[1]}.{STEP_PARTS[step[2]]}" if step else MODULES.get(module)
    return None if ours is None else f"{ours}.{parameter}"


def their_name(ours: str) -> str:
    """The name in SGRAF's code of a parameter of `LocalEngine`."""
    module, _, parameter = ours.rpartition(".")
    if not module.startswith("head.steps."):
        return f"{OUR_MODULES[module]}.{parameter}"
    _, _, step, part = module.split(".")
    return f"sim_enc.SGR_module.{step}.{OUR_STEP_PARTS[part]}.{parameter}"


def reasoning_steps(names: list[str]) -> int:
    """How many modules of graph reasoning stand among parameters named as in SGRAF's code."""
    return len({found[1] for found in map(STEP.match, names) if found})


def hint(names: list[str]) -> str:
    """What parameters too many or too few point at, as the end of a sentence that lists them."""
    if any(re.search(r"cap_rnn\..*_l[1-9]", name) for name in names):
        return ": the GRU has several layers, the engine here one"
    if any("_reverse" in name for name in names):
        return ": the GRU reads one way only, the engine here both ways"
    if any(".gpool." in name or ".mlp." in name for name in names):
        return ": these belong to a global model (VSE∞)"
    return ""
