"""`fit` from Python: what it returns, and that the truth never reaches a method."""

import shutil

import numpy as np
import pytest
import torch
from pyarrow import parquet

import truepair
from truepair.data.config import Augmentation
from truepair.data.pairs import Images, Pairs, Texts
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError
from truepair.methods.truepair.method import TruePair
from truepair.training.config import RATE_SCALE, TrainingConfig
from truepair.training.loop import set_learning_rate
from truepair.training.setup import Setup

SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
QUICK = {"epochs": 2, "batch_size": 16, "minimum_count": 1, "learning_rate": 5e-3}


def test_result_names_what_later_work_relies_on(tiny, noisy, tmp_path):
    run = truepair.fit(
        noisy, method="crcl", dev=truepair.load(tiny, "dev"), test=truepair.load(tiny, "test"), out=tmp_path / "run",
        setup=SMALL, **QUICK,
    )  # fmt: skip
    assert run.result["test"] == truepair.evaluate(run.model, truepair.load(tiny, "test"))
    assert run.result["dev"]["rsum"] == max(line["dev"]["rsum"] for line in run.metrics if line["stage"] == 1)
    assert run.result["gallery"] == {
        split: {"images": len(pairs.images), "texts": len(pairs.texts)}
        for split, pairs in ((split, truepair.load(tiny, split)) for split in ("dev", "test"))
    }
    assert run.result["mismatch_rate"] == noisy.mismatch_rate
    assert truepair.open_run(run.path).result == run.result
    table = parquet.read_table(run.path / "pairs.parquet").to_pydict()
    assert table["row"] == noisy.source_rows.tolist()
    assert table["pair_id"] == noisy.ids()
    assert table["mismatched"] == noisy.mismatched.tolist()
    assert table["caption"][5] == noisy.texts.captions[noisy.text_index[5]]
    assert table["image"][5] == noisy.images.ids[noisy.image_index[5]]
    assert table["p_match"] == table["memory_label"]


def test_training_learns(tiny, tmp_path):
    """Far above chance on new images (chance: rSum of about 100 for 16 images with two captions each)."""
    run = truepair.fit(
        truepair.load(tiny), method="infonce", dev=truepair.load(tiny, "dev"), out=tmp_path / "run", setup=SMALL,
        **{**QUICK, "epochs": 15},
    )  # fmt: skip
    assert run.result["dev"]["rsum"] > 350
    losses = [line["loss"] for line in run.metrics]
    assert losses[-1] < 0.5 * losses[0]


def test_the_truth_never_reaches_a_method(tiny, noisy, tmp_path, monkeypatch):
    """The same run, byte for byte, whether the truth is known or not; only the scores of the beliefs are missing."""
    seen = []
    batch_loss = TruePair.batch_loss

    def noting(self, forward, position, memory):
        batch = forward.batch
        seen.append(sorted(vars(batch)))
        assert batch.image_rows.tolist() == noisy.image_index[batch.ids.numpy()].tolist()  # as given, right or wrong
        return batch_loss(self, forward, position, memory)

    monkeypatch.setattr(TruePair, "batch_loss", noting)
    known = truepair.fit(noisy, out=tmp_path / "known", setup=SMALL, **QUICK)
    unknown = truepair.fit(noisy.without_truth(), out=tmp_path / "unknown", setup=SMALL, **QUICK)
    assert set(map(tuple, seen)) == {("ids", "image_rows", "images", "labels", "texts")}  # labels as given
    assert (known.path / "model.safetensors").read_bytes() == (unknown.path / "model.safetensors").read_bytes()
    assert known.result["detection"] is not None
    assert unknown.result["detection"] is None
    assert unknown.result["mismatch_rate"] is None


def test_without_dev_the_last_epoch_is_kept(noisy, tmp_path):
    run = truepair.fit(noisy, method="infonce", out=tmp_path / "run", setup=SMALL, **QUICK)
    assert run.result["best_epoch"] == 2
    assert run.result["dev"] is None and run.result["test"] is None and run.result["gallery"] == {}


def test_without_a_folder_the_run_goes_to_a_temporary_one(noisy):
    run = truepair.fit(noisy, method="infonce", setup=SMALL, **QUICK)
    try:
        assert run.path.is_dir()
    finally:
        shutil.rmtree(run.path)


@pytest.mark.parametrize("option", [{"precision": "bf16"}, {"optimizer": "adam"}, {"clip": 0.0}])
def test_training_options_take_effect(noisy, tmp_path, option):
    plain = truepair.fit(noisy, method="infonce", out=tmp_path / "plain", setup=SMALL, **QUICK)
    other = truepair.fit(noisy, method="infonce", out=tmp_path / "other", setup=SMALL, **QUICK, **option)
    losses = [[line["loss"] for line in run.metrics] for run in (plain, other)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.1)


@pytest.mark.parametrize("pooling", ["gpo", "mean", "max"])
def test_every_pooling_trains(noisy, tmp_path, pooling):
    setup = Setup(model=GlobalConfig(width=16, word_width=8, pooling=pooling))
    run = truepair.fit(noisy, method="infonce", out=tmp_path / "run", setup=setup, **QUICK)
    assert run.metrics[-1]["loss"] < run.metrics[0]["loss"]


def test_augmentation_takes_effect(noisy, tmp_path):
    setup = Setup(model=SMALL.model, augmentation=Augmentation(word_share=0.0, region_share=0.0))
    plain = truepair.fit(noisy, method="infonce", out=tmp_path / "plain", setup=setup, **QUICK)
    altered = truepair.fit(noisy, method="infonce", out=tmp_path / "altered", setup=SMALL, **QUICK)
    assert plain.metrics[0]["loss"] != altered.metrics[0]["loss"]


def test_one_vector_an_image_is_one_region(tmp_path):
    rng = np.random.default_rng(0)
    pairs = Pairs(
        Images(rng.normal(size=(20, 8)).astype(np.float32), tuple(map(str, range(20)))),
        Texts(tuple(f"word{i} thing" for i in range(20)), tuple(map(str, range(20)))),
        image_index=np.arange(20),
        text_index=np.arange(20),
    )
    run = truepair.fit(pairs, method="infonce", dev=pairs, out=tmp_path / "run", setup=SMALL, **QUICK)
    assert np.isfinite(run.result["dev"]["rsum"])


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ({}, 3, [1, 1, 1, 0.1, 0.1, 0.1, 0.1, 0.1]),
        ({"decay_factor": 0.5}, 4, [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]),
        ({"decay_factor": 0.2, "decay_every": 2}, 2, [1, 1, 0.2, 0.2, 0.04, 0.04, 0.008, 0.008]),
        ({"decay_factor": 0.5, "decay_every": 1}, 5, [1, 1, 1, 1, 1, 0.5, 0.25, 0.125]),
        ({"decay_every": 2}, None, [1] * 8),  # a stage at a constant rate
        ({"decay_factor": 1.0}, 3, [1] * 8),
    ],
)
def test_learning_rate_falls(schedule, after, expected):
    config = TrainingConfig(**schedule)
    assert [config.decay_at(epoch, after) for epoch in range(1, 9)] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ({}, 1, [1, 1, 0.1, 0.1]),
        ({"schedule": "cosine"}, 1, [1, 0.8536, 0.5, 0.1464]),
        ({"schedule": "cosine"}, None, [1] * 4),  # a stage at a constant rate
        ({"warm_up": 0.5}, 1, [1 / 3, 2 / 3, 0.1, 0.1]),
        ({"warm_up": 0.5, "schedule": "cosine"}, 1, [1 / 3, 2 / 3, 1, 0.5]),
        ({"warm_up": 0.3}, None, [1 / 2, 1, 1, 1]),
    ],
)
def test_learning_rate_by_batch(schedule, after, expected):
    """Two epochs of two batches."""
    config = TrainingConfig(**schedule)
    found = [config.rate_at(epoch, step, 2, 2, after) for epoch in (1, 2) for step in range(2)]
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_cosine_schedule_has_no_epoch_of_decay():
    with pytest.raises(InputError, match="leave out decay_after"):
        TrainingConfig(schedule="cosine", decay_after=3)


def test_what_earlier_versions_did_not_know_is_kept_where_it_is_used():
    assert not {"schedule", "warm_up", "piece_size"} & TrainingConfig().saved().keys()
    assert TrainingConfig(warm_up=0.1).saved()["warm_up"] == 0.1


def test_each_group_has_the_rate_in_its_own_units():
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], RATE_SCALE: scale} for scale in (1.0, 3.0)]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    set_learning_rate(optimizer, 0.5)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.5, 1.5])


def test_the_rate_of_every_epoch_is_logged(noisy, tmp_path):
    options = {**QUICK, "epochs": 5, "learning_rate": 0.5e-3, "decay_after": 1, "decay_every": 2, "decay_factor": 0.2}
    run = truepair.fit(noisy, method="infonce", out=tmp_path / "run", setup=SMALL, **options)
    expected = [0.5e-3, 1e-4, 1e-4, 2e-5, 2e-5]
    assert [line["learning_rate"] for line in run.metrics] == pytest.approx(expected)
