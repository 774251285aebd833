"""GradCache: a batch in pieces has the loss, the gradients and the memories of the whole batch."""

import pytest
import torch
from torch import nn

import truepair
from tests.methods.labelled import labelled_pairs
from tests.training.test_resume import assert_same_run, stopped_after
from truepair.correspondence import CorrespondenceMemory
from truepair.data.batch import EpochBatches, pair_batch
from truepair.engines.config import MLPConfig, SAFConfig
from truepair.engines.retrieval_model import Needs, build_engine
from truepair.errors import InputError
from truepair.losses import info_nce
from truepair.methods import METHODS, build_method, learns_from_labels
from truepair.methods.base import EpochPosition, Forward, Stage
from truepair.seeding import torch_seeded
from truepair.training.pieces import ForwardInPieces
from truepair.training.setup import Setup

OPTIONS = {
    "gsc": {"co_train": True},
    "ugncl": {"warm_up_epochs": 1},
    "decl": {"warm_up_epochs": 1},
    "ncr": {"warm_up_epochs": 1},
    "bicro": {"warm_up_epochs": 1},
    "l2rm": {"warm_up_epochs": 1},
    "mscn": {"warm_up_epochs": 1, "head_width": 5, "trial": "taken", "trial_rate": 1e-2},
    "npc": {"warm_up_epochs": 1, "trial_rate": 1e-3},
    "in2r, a second pass": {"second_pass": "taken"},
    "rcsl": {"warm_up_epochs": 1, "mining_from": 1.0},  # no pass over all pairs comes before
    "rcsl, its partners encoded": {"paired": "known", "mining_from": 0.25},
    "disncl": {"warm_up_epochs": 1, "subspace_width": 6, "hidden_width": 8, "least_clean": 0.0},
}
STAGE = {"truepair": 1}  # in which all of its loss is there
METHODS_OF_PAIRS = [name for name in METHODS if not learns_from_labels(name)]


class Running(nn.Module):
    """Stands for the batch norms of the MLP engine, which have no pieces: subtracts what never changes."""

    def forward(self, rows):
        return rows - 0.1


@pytest.fixture
def without_batch_norm(monkeypatch):
    monkeypatch.setattr("truepair.engines.mlp_engine.nn.BatchNorm1d", lambda *_, **__: Running())


def in_double(batch):
    object.__setattr__(batch.images, "features", batch.images.features.double())
    return batch


class Parts:
    """One network with a method, a batch and its memory, in float64, always the same."""

    def __init__(self, tiny, name, config, epoch):
        pairs = truepair.load(tiny)
        prepared = Setup(model=config).with_preparation(pairs).preparation
        self.method = build_method(name.partition(",")[0], OPTIONS.get(name))
        subspaces = self.method.auxiliary.subspaces or (0, 0, False)
        needs = Needs(self.method.views, self.method.networks, *subspaces, head_width=self.method.head_width)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.engine = build_engine(config, prepared.sizes, needs).double()
            self.auxiliary = self.method.auxiliary.build(self.engine)
        if self.auxiliary is not None:
            self.auxiliary.double()
        self.memory = CorrespondenceMemory(len(pairs), trusted=torch.arange(len(pairs)) % 4 == 0)
        self.method.prepare(self.memory)
        self.position = EpochPosition(STAGE.get(name, 0), epoch, (Stage(4),), 0, 4, 24)
        self.batch = in_double(EpochBatches(pairs, prepared, batch_size=24, position=(0, 0, epoch), augmented=False)[0])
        self.prepare = lambda ids: in_double(pair_batch(pairs, prepared, ids.numpy()))
        self.learn_a_little()

    def learn_a_little(self):
        """So that some pairs are each other's best."""
        optimizer = torch.optim.Adam(self.engine.parameters(), lr=1e-2)
        for step in range(15):
            optimizer.zero_grad()
            with torch_seeded(0, "a little", step):
                loss = info_nce(Forward(self.engine, self.batch).similarity.double(), temperature=0.1).mean()
            loss.backward()
            optimizer.step()
        self.engine.zero_grad(set_to_none=True)

    def gradients(self, forward):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            result = self.method.batch_loss(forward, self.position, self.memory)
        loss = result.per_pair.mean()
        forward.backward(loss)
        return loss, {
            f"{part}/{name}": parameter.grad
            for part, module in (("engine", self.engine), ("auxiliary", self.auxiliary))
            if module is not None
            for name, parameter in module.named_parameters()
        }


@pytest.mark.parametrize("epoch", [1, 3])
@pytest.mark.parametrize("size", [1, 7, 23])
@pytest.mark.parametrize("name", [*METHODS_OF_PAIRS, "in2r, a second pass", "rcsl, its partners encoded"])
def test_loss_gradients_and_memory_are_those_of_the_whole_batch(tiny, without_batch_norm, name, size, epoch):
    whole, cut = (Parts(tiny, name, MLPConfig(width=12, hidden_width=16), epoch) for _ in range(2))
    loss, expected = whole.gradients(Forward(whole.engine, whole.batch, whole.auxiliary, whole.prepare))
    place = (0, 0, 1, 0)
    pieces = ForwardInPieces(cut.engine, cut.batch, cut.auxiliary, size, place, loop_precision, cut.prepare)
    found_loss, found = cut.gradients(pieces)
    assert found_loss.item() == pytest.approx(loss.item(), abs=1e-9)
    for key, gradient in expected.items():
        assert (gradient is None) == (found[key] is None), key
        if gradient is not None:
            assert torch.allclose(found[key], gradient, atol=1e-9, rtol=1e-6), key
    assert any(gradient is not None and bool(gradient.any()) for gradient in expected.values())
    for field, values in whole.memory.tensors().items():
        assert torch.allclose(cut.memory.tensors()[field], values, atol=1e-6), field


def loop_precision():
    return torch.autocast("cpu", torch.bfloat16, enabled=False)


def test_dropout_is_the_same_in_both_passes(tiny):
    """The gradient is that of a function: small steps along it change the loss by what it says."""
    parts = Parts(tiny, "infonce", SAFConfig(width=8, word_width=8, similarity_width=4, dropout=0.5), 1)
    for module in parts.engine.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eval()

    def loss_of():
        forward = ForwardInPieces(parts.engine, parts.batch, None, 9, (0, 0, 1, 0), loop_precision)
        return parts.gradients(forward)

    loss, gradients = loss_of()
    words = parts.engine.get_parameter("words.embed.weight")
    direction = gradients["engine/words.embed.weight"].clone()
    words.data += 1e-5 * direction
    changed = loss_of()[0] - loss
    assert changed.item() == pytest.approx(1e-5 * float((direction**2).sum()), rel=1e-2)


def fit(out, **more):
    setup = Setup(model=MLPConfig(width=8, hidden_width=12))
    options = {"epochs": 3, "batch_size": 20, "piece_size": 6, "learning_rate": 1e-2}
    return truepair.fit(labelled_pairs(40), method="infonce", out=out, setup=setup, **{**options, **more})


def test_training_in_pieces_resumes_exactly(tmp_path, monkeypatch, without_batch_norm):
    expected = fit(tmp_path / "whole")
    with stopped_after(monkeypatch, 3):
        fit(tmp_path / "run")
    assert_same_run(fit(tmp_path / "run", resume=True).path, expected.path, texts=("metrics.jsonl",))


def test_a_run_in_pieces_learns_what_one_of_whole_batches_learns(tmp_path, without_batch_norm):
    runs = [fit(tmp_path / str(size), piece_size=size) for size in (None, 6)]
    losses = [[line["loss"] for line in run.metrics] for run in runs]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def test_batch_norms_are_refused(tmp_path):
    with pytest.raises(InputError, match="normalises over the batch"):
        fit(tmp_path / "run")
