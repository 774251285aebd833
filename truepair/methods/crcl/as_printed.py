"""CRCL as its paper prints it."""

from __future__ import annotations

from truepair.data.config import Augmentation
from truepair.engines.config import GlobalConfig
from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, ENCODERS, Preset, sgraf

PRINTED = Preset(
    source="CRCL (NeurIPS 2023), section 3.2 and appendix B, Table 5, rows of Flickr30K",
    models={**sgraf(), "global": GlobalConfig(width=1024, word_width=300, pooling="gpo")},
    method={
        "temperature": 0.05,
        "scale": 5.0,
        "active_weight": 1.0,
        "exponent": None,  # 1 − ŷ
        "complementary": "tan",
        "labels": "refined",
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
        **DECAY_ONCE,
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
    not_expressed=(
        ENCODERS,
        "MS-COCO has 22 epochs (pieces 4,4,4, decay after 12), CC152K 32 (after 17) or 42 (after 20): give these",
    ),
)
