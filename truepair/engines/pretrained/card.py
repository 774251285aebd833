"""The model card of a trained model: what it was made of, by which method, how noisy its data were, how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truepair.engines.pretrained.config import PretrainedConfig
    from truepair.engines.pretrained.engine import PretrainedEngine

TUNED = {
    "heads": "a linear layer on each frozen tower, joined with the last layer of the tower",
    "lora": "low-rank changes (LoRA) of the towers' linear layers, merged, and the last layers",
    "full": "all weights",
}

HEAD = """\
---
library_name: transformers
pipeline_tag: zero-shot-image-classification
tags:
- image-text-retrieval
- noisy-correspondence
- truepair
---
"""

USE = """\
## Use

With transformers:

```python
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

model = AutoModel.from_pretrained("FOLDER")
tokenizer = AutoTokenizer.from_pretrained("FOLDER")
processor = AutoImageProcessor.from_pretrained("FOLDER", backend="pil")
```

With sentence-transformers:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("FOLDER")
vectors = model.encode(["a caption", image])
```
"""


def model_card(
    config: PretrainedConfig, engine: PretrainedEngine, facts: dict[str, Any], *, more_than_vectors: str
) -> str:
    """The text of README.md.

    Args:
        facts: the figures of the run, the name of its data and the options of its training.
        more_than_vectors: what the run compares beside the vectors of this model.
    """
    training, rate = facts["training"], facts["training"].get("learning_rate")
    trained = [
        f"- data: {facts['data']}, {facts['pairs']:,} training pairs",
        f"- method: {facts['method']} (truepair)",
        f"- began with: {Path(config.encoder).name}, a {engine.base.opened.kind} model",
        f"- trained: {TUNED[config.tune]}",
        f"- {training['epochs']} epochs in the last stage, the best was number {facts['best_epoch']} of all; batches "
        f"of {training['batch_size']}; learning rate {config.default_rate if rate is None else rate:g}; seed "
        f"{training['seed']}",
    ]
    about = (
        f"# {Path(config.encoder).name}, trained with {facts['method']}\n\nVectors of images and texts in one space."
    )
    parts = [HEAD + about, "## Training\n\n" + "\n".join(trained), "## Noise\n\n" + noise(facts)]
    if figures := recalls(facts):
        parts.append("## Retrieval\n\n" + figures)
    if more_than_vectors:
        parts.append(more_than_vectors)
    return "\n\n".join([*parts, USE])


def noise(facts: dict[str, Any]) -> str:
    """What the method came to believe of the pairs, and the truth where it is known."""
    division = facts["division"]
    count = facts["pairs"]
    parts = ", ".join(
        f"{100 * division[name] / count:.1f} % {name}" for name in ("clean", "hard", "noisy") if division.get(name)
    )
    known = facts["mismatch_rate"]
    told = f"The method divides its training pairs into {parts}."
    if known is not None:
        told += f" In truth {100 * known:.1f} % were mismatched."
    return told


def recalls(facts: dict[str, Any]) -> str:
    """A table of dev and test."""
    found = {split: facts[split] for split in ("dev", "test") if facts[split] is not None}
    if not found:
        return ""
    names = [name for name in next(iter(found.values())) if name.startswith(("i2t_r", "t2i_r", "rsum", "map"))]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    lines += [
        f"| {split} | " + " | ".join(f"{figures[name]:.1f}" for name in names) + " |"
        for split, figures in found.items()
    ]
    return "\n".join(lines)
