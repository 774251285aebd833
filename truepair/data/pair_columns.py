"""The columns of `pairs.parquet`, which every run and every audit leaves: one description for both.

The tables of docs/pairs.md are made of it: `python -m truepair.data.pair_columns` prints them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHARED = {
    "pair_id": ("string", "what the source knows the pair by, unique; runs and audits of the same data join on it"),
    "row": ("int64", "place of the pair in its source, from 0"),
    "image": ("string", "name of the image"),
    "caption": ("string", "the caption as given"),
    "p_match": (
        "float32",
        "probability that image and caption match, 0 to 1: calibrated in an audit, in a run what the method believes; "
        "not in a run that learns from class labels",
    ),
    "flagged": (
        "bool",
        "taken as mismatched: p_match below 0.5 in an audit, the noisy side of the division in a run; in a run "
        "that learns from class labels, the given label is taken as wrong",
    ),
    "mismatched": ("bool", "whether the pair is mismatched in truth; only where that is known"),
}
RUN = {
    "division": ("string", "part of the division: clean, hard or noisy"),
    "image_index": ("int64", "row of the image among those that were trained on"),
    "text_index": ("int64", "row of the text among those that were trained on"),
    "text": ("string", "name of the text"),
    "image_digest": ("int64", "64 bits of the image's features; an audit tells by them which pairs the run knows"),
    "memory_…": ("", "what the method keeps of the pair, one column each; its page in docs/methods/ names them"),
}
LABELS = {
    "given_label": ("string", "class of the pair as given"),
    "corrected_label": ("string", "most probable class; the given one where several are"),
    "label_belief": ("float32", "probability that the given label is right, 0 to 1"),
    "confidence": ("float32", "how sure the corrected label is, 0 to 1"),
    "label_distribution": ("float32[]", "probability of every class, in the order of `classes` in config.json"),
    "true_label": ("string", "class of the pair in truth; only where that is known"),
    "wrong_label": ("bool", "whether the given label is wrong in truth; only where that is known"),
    "given_class": ("int64", "number of the given label"),
    "corrected_class": ("int64", "number of the corrected label"),
    "true_class": ("int64", "number of the true label; only where that is known"),
}
AUDIT = {
    "reason": ("string", "what spoke against a flagged pair; empty for the others"),
    "similarity": ("float32", "similarity of image and caption as the model or the embeddings give it"),
    "indicator_…": ("float32", "evidence of one kind, 0 to 1, larger = better matched, one column each"),
    "proposed_caption": ("string", "the caption that fits the image of a suspicious pair best"),
    "proposed_caption_pair": ("string", "pair_id the proposed caption comes from"),
    "proposed_caption_fit": ("float32", "how well it fits the image: the indicator matching of the two, 0 to 1"),
    "proposed_image": ("string", "name of the image that fits the caption of a suspicious pair best"),
    "proposed_image_pair": ("string", "pair_id the proposed image comes from"),
    "proposed_image_fit": ("float32", "how well it fits the caption: the indicator matching of the two, 0 to 1"),
    "swap_with": (
        "string",
        "pair_id of the flagged pair whose caption belongs to this image, and whose image to this caption",
    ),
    "duplicate_kind": ("string", "kinds of duplicate the pair is in, separated by spaces; see duplicates.parquet"),
    "duplicate_group": ("int64", "number in duplicates.parquet of the group of the first of these kinds"),
    "duplicate_of": ("string", "pair_id of the first pair of that group; empty for that pair itself"),
}
DECIDED = {
    "decision": ("string", "what people decided: match, mismatch or unsure; empty where nobody did"),
    "decided_by": ("string", "who, separated by commas"),
    "corrected_caption": ("string", "the caption that people put in the place of the given one"),
    "p_match_undecided": ("float32", "p_match as the audit has it without decisions"),
}
COLUMNS = {**SHARED, **RUN, **LABELS, **AUDIT, **DECIDED}
"""Column → (type, what it holds); an empty type is that of the values."""


def described_schema(columns: Mapping[str, tuple[str, str]]) -> Any:
    """An arrow schema whose fields say in their metadata what they hold.

    Args:
        columns: name → (type, what it holds); a type is one that arrow knows by this name, or a list of it (`…[]`).
    """
    import pyarrow

    def arrow(kind: str) -> Any:
        return pyarrow.list_(arrow(kind[:-2])) if kind.endswith("[]") else pyarrow.type_for_alias(kind)

    return pyarrow.schema(
        [pyarrow.field(name, arrow(kind), metadata={"description": text}) for name, (kind, text) in columns.items()]
    )


def markdown() -> str:
    """The tables of docs/pairs.md."""
    parts = {
        "Of every run and every audit": SHARED,
        "Of a run as well": RUN,
        "Of a run that learns from class labels as well": LABELS,
        "Of an audit as well": AUDIT,
        "Of an audit with decisions (--decisions) as well": DECIDED,
    }
    lines = []
    for title, columns in parts.items():
        lines += [f"{title}:", "", "| column | type | what it holds |", "|---|---|---|"]
        lines += [f"| `{name}` | {kind or 'any'} | {text} |" for name, (kind, text) in columns.items()]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown())
