"""LoRA training of a model of images and texts by CRCL, and what comes of it: a run, and a folder of transformers.

pip install 'truepair[hf,lora]'
python examples/lora_training.py                                   # a tiny model with random weights, on drawings
python examples/lora_training.py --encoder FOLDER --data PHOTOS    # a CLIP or SigLIP and pictures of your own

The same on the command line:
truepair train PHOTOS --model pretrained --encoder FOLDER --tune lora --method crcl --out RUN
"""

import argparse
import tempfile
from pathlib import Path

from drawings import write_tiny_clip
from transformers import AutoModel

import truepair
from truepair.engines.pretrained.config import PretrainedConfig
from truepair.training.setup import Setup


def main(data: str = "scenes:200", encoder: str | None = None, epochs: int = 3, out: str | None = None) -> Path:
    """Trains on the data with 40 % of the captions exchanged; returns the folder for transformers."""
    pairs = truepair.inject_noise(truepair.load(data), 0.4, seed=0)  # to have a truth to compare with; leave it out
    folder = Path(out or tempfile.mkdtemp(prefix="truepair-lora-"))
    if encoder is None:
        encoder = str(write_tiny_clip(folder / "model", list(pairs.texts.captions)))
    run = truepair.fit(
        pairs,
        method=truepair.build_method("crcl", {"pieces": ()}),
        setup=Setup(model=PretrainedConfig(encoder=encoder, tune="lora", lora_rank=8)),
        out=folder / "run",
        epochs=epochs,
        schedule="cosine",
        warm_up=0.1,
        progress=False,
    )
    print(f"Mismatched pairs found with an AUROC of {run.result['detection']['auroc']:.3f}")
    published = run.path / "pretrained"
    model = AutoModel.from_pretrained(published)  # an ordinary model: the low-rank changes are part of its weights
    print(f"{published}: {type(model).__name__}, {sum(each.numel() for each in model.parameters()):,} parameters")
    return published


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="scenes:200", help="pairs with pictures [scenes:200]")
    parser.add_argument("--encoder", help="folder of a transformers model [a tiny one with random weights]")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", help="folder for the run [a temporary one]")
    options = parser.parse_args()
    main(options.data, options.encoder, options.epochs, options.out)
