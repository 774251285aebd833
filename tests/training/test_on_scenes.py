"""The drawn scenes are neither too easy nor too hard for a model trained on clean pairs."""

import truepair
from truepair.data.formats.scenes.source import COUNTS
from truepair.engines.config import GlobalConfig
from truepair.training.setup import Setup


def test_a_clean_model_learns_and_does_not_saturate(tmp_path):
    """rSum between 300 and 560 on 500 pictures, as the demo needs it; chance is about 10."""
    dev = truepair.load("scenes:400", "dev")
    assert len(dev.images) == COUNTS["test"] == 500
    run = truepair.fit(
        truepair.load("scenes:400"),
        method="infonce",
        dev=dev,
        out=tmp_path / "run",
        setup=Setup(model=GlobalConfig(width=128, word_width=64)),
        epochs=7,
        batch_size=64,
    )
    assert 300 < run.result["dev"]["rsum"] < 560
