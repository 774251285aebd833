"""CRCL as its paper prints it."""

from __future__ import annotations

from truepair.data.config import Augmentation
from truepair.engines.config import GlobalConfig
from truepair.methods.preset import CLIPPING, COMMON, ENCODERS, Preset, sgraf

PRINTED = Preset(
    source="CRCL (NeurIPS 2023), section 3.2 and appendix B, Table 5, rows of Flickr30K",
    models={**sgraf(), "global": GlobalConfig(width=1024, word_width=300, pooling="gpo")},
    method={
        "temperature": 0.05,
        "scale": 5.0,
        "momentum": 0.8,
        "threshold": 0.1,
        "freeze_epochs": 2,
        "pieces": (7, 7, 7),
    },
    training={
        "epochs": 32,
        "batch_size": 128,
        "learning_rate": 5e-4,
        "decay_after": 15,
    },
    augmentation=Augmentation(word_share=0.2, region_share=0.2),  # "the size augmentation" of VSE∞
    reasons={
        **COMMON,
        "method.pieces": "in proportion to the epochs: short pieces of short training refine nothing",
    },
    silent=(
        "the optimizer and its decay: AdamW with 1e-4, as VSE∞, whose settings the paper shares",
        CLIPPING,
    ),
    not_expressed=(ENCODERS, "the rows of MS-COCO (4,4,4,22 epochs, decay after 12) and CC152K are other settings"),
)
