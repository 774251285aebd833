"""Partners of disbelieved pairs: proposals are a plain loop's, never a pair's own, and a run with them is exact."""

import numpy as np
import pytest
import torch

import truepair
from tests.methods.own.given import CREDIT, IDS, LAST, SMALL, GivenForward, fit, similarity_of
from tests.training.test_resume import assert_same_run, stopped_after
from truepair.correspondence import CorrespondenceMemory
from truepair.engines.config import SGRConfig
from truepair.losses.proposed import proposed_partner
from truepair.methods import build_method
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.partners import propose
from truepair.training.setup import Setup

TAU = 0.05


def unit(count, seed, width=6):
    vectors = torch.randn(count, width, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(vectors, dim=1)


def by_loops(images, texts):
    """(place, probability) of every image, as the docstring says it."""
    found = []
    for i, image in enumerate(images.double()):
        left = [j for j in range(len(images)) if j != i and float(image @ images[j].double()) < 1 - 1e-4]
        weights = [float(torch.exp(image @ texts[j].double() / TAU)) for j in left]
        best = max(range(len(left)), key=weights.__getitem__) if left else None
        found.append((i, 0.0) if best is None else (left[best], weights[best] / sum(weights)))
    return found


@pytest.mark.parametrize("memory_bytes", [1, 300, 1 << 20])
def test_proposals_are_those_of_a_plain_loop(memory_bytes):
    images, texts = unit(17, 0), unit(17, 1)
    images[5] = images[11]  # one picture of two pairs
    place, probability = propose(images, texts, temperature=TAU, memory_bytes=memory_bytes)
    expected = by_loops(images, texts)
    assert place.tolist() == [j for j, _ in expected]
    assert probability.tolist() == pytest.approx([p for _, p in expected], abs=1e-5)


def test_the_temperature_is_that_of_the_scale_in_which_the_network_learns():
    images, texts = unit(8, 0), unit(8, 1)
    scaled = propose(images, 4 * texts, temperature=4 * TAU)
    torch.testing.assert_close(scaled, propose(images, texts, temperature=TAU))


def test_the_order_of_the_pairs_does_not_matter():
    images, texts = unit(9, 0), unit(9, 1)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(2))
    place, probability = propose(images, texts, temperature=TAU)
    moved, same = propose(images[order], texts[order], temperature=TAU)
    assert torch.equal(order[moved], place[order])
    torch.testing.assert_close(same, probability[order])


def test_a_pair_is_never_proposed_what_it_came_with():
    """Neither its own caption nor that of another pair of its picture, however well they fit."""
    images = unit(6, 0)
    images[4] = images[1]
    place, _ = propose(images, images.clone(), temperature=TAU)
    given = {1: {1, 4}, 4: {1, 4}}
    assert all(other not in given.get(pair, {pair}) for pair, other in enumerate(place.tolist()))
    for count in (0, 1):
        place, probability = propose(unit(count, 0), unit(count, 1), temperature=TAU)
        assert place.tolist() == [*range(count)] and probability.tolist() == [0.0] * count
    place, probability = propose(images[:1].expand(4, -1), unit(4, 1), temperature=TAU)  # one picture alone
    assert probability.tolist() == [0.0] * 4


class Teacher(torch.nn.Module):
    """A teacher whose vectors of the batch are given."""

    def __init__(self, images, texts):
        super().__init__()
        self.vectors = images, texts

    def image_vectors(self, encoded):
        return encoded

    text_vectors = image_vectors


def test_what_is_proposed_is_what_the_vectors_of_the_disbelieved_pairs_say():
    """In whatever batches they come; captions in the scale in which the network learns (2)."""
    images, texts, disbelieved = unit(6, 3), unit(6, 4), torch.tensor([0, 2, 3, 5])
    method, memory = build_method("truepair", {"partners": "proposed"}), CorrespondenceMemory(6)
    method.prepare(memory)
    memory.write("credit", disbelieved, torch.zeros(4))
    memory.write("label", None, (torch.arange(6)[:, None] != disbelieved).all(dim=1).float())
    position = EpochPosition(LAST, 1, method.stages(5, 4))
    for ids in (IDS[:2], IDS[2:]):
        forward = GivenForward(similarity_of(0), similarity_of(1), ids)
        teacher = Teacher(images[ids], texts[ids])
        forward.auxiliary.before = torch.nn.ModuleList([teacher, teacher])
        views = type("Views", (), {"engine": teacher, "images": images[ids], "texts": texts[ids]})()
        forward.through = lambda network, views=views: views
        method.survey(forward, position, memory)
    logged = method.start_epoch(position, memory)
    place, probability = propose(images[disbelieved], 2 * texts[disbelieved], temperature=TAU)
    expected = torch.tensor([0.0, 1, 2, 3, 4, 5]).index_copy(0, disbelieved, disbelieved[place].float())
    assert torch.equal(memory.read("partner"), expected)
    assert torch.equal(memory.read("partner_probability", disbelieved), probability)
    assert not memory.read("partner_probability", torch.tensor([1, 4])).any()
    assert logged["partner_probability"] == pytest.approx(float(probability.mean()))
    for stage, epoch in ((0, 2), (LAST - 1, 1), (LAST, 2)):
        assert not method.surveys(EpochPosition(stage, epoch, position.stages))


class Beside:
    def __init__(self, texts):
        self.networks = [type("Network", (), {"texts": texts})()]


class GivenPartners(GivenForward):
    """A batch whose network scores images with any captions by given vectors, a row a pair of the training set."""

    def __init__(self, similarity, taught, ids, images, texts):
        super().__init__(similarity, taught, ids)
        self.texts = texts
        engine = type("Engine", (GivenForward.Engine,), {})()
        engine.scores, engine.as_similarity = (lambda these, those: these @ those.T), (lambda scores: scores)
        self.networks = [type("Network", (), {"engine": engine, "images": images[ids]})()]

    def beside(self, ids):
        return Beside(self.texts[ids])


def test_the_loss_of_a_batch_has_the_partners_of_its_disbelieved_pairs():
    images, texts = unit(6, 0), unit(6, 1)
    partner, probability = torch.tensor([4, 1, 2, 3, 0, 5]), torch.tensor([0.3, 0.9, 0.0, 0.0, 0.6, 0.0])
    similarity, taught = similarity_of(0), similarity_of(1)
    losses = []
    for partners in ("none", "proposed"):
        method, memory = build_method("truepair", {"partners": partners}), CorrespondenceMemory(6)
        method.prepare(memory)
        memory.write("credit", None, CREDIT)
        if partners == "proposed":
            memory.write("partner", None, partner)
            memory.write("partner_probability", None, probability)
        forward = GivenPartners(similarity, taught, IDS, images, texts)
        losses.append(
            [
                method.batch_loss(forward, EpochPosition(stage, 1, method.stages(5, 4)), memory).per_pair
                for stage in (0, LAST)
            ]
        )
    assert torch.equal(losses[0][0], losses[1][0])  # no teacher yet
    expected = losses[0][1].clone()
    for pair in (0, 4):  # pair 1 has a partner, and is believed
        place, other = IDS.tolist().index(pair), int(partner[pair])
        no_candidate = (pair == IDS) | (other == IDS)
        proposed = images[IDS] @ texts[other][:, None]
        expected[place] += (
            probability[pair]
            * proposed_partner(similarity, proposed, torch.tensor([place]), no_candidate=no_candidate[None])[0]
        )
    torch.testing.assert_close(losses[1][1], expected)


@pytest.mark.parametrize("model", [SMALL.model, SGRConfig(width=16, word_width=8, similarity_width=8)])
def test_a_run_proposes_partners_once_and_among_disbelieved_pairs(tiny, tmp_path, monkeypatch, model):
    method = build_method("truepair", {"pieces": (3,), "partners": "proposed"})
    monkeypatch.setattr(
        type(method), "credit_of", lambda self, label, synthetic: (torch.arange(len(label)) % 3 > 0).float()
    )
    run = fit(tiny, tmp_path / "run", method, Setup(model=model))
    logged = ["partner_probability" in line for line in run.metrics]
    assert logged == [False] * 3 + [True] + [False] * 2
    table = truepair.training.pair_table.read_pair_table(run.folder.pairs)
    partner, probability = (table[f"memory_{name}"].to_numpy() for name in ("partner", "partner_probability"))
    pair = np.arange(len(partner))
    pool = pair % 3 == 0
    assert (partner[~pool] == pair[~pool]).all() and (probability[~pool] == 0).all()
    assert (partner[pool] != pair[pool]).all() and (partner[pool] % 3 == 0).all() and (probability[pool] > 0).all()
    assert run.metrics[3]["partner_probability"] == pytest.approx(probability[pool].mean(), rel=1e-4)


@pytest.mark.parametrize("credit", [0.0, 1.0])
def test_all_pairs_disbelieved_or_none(tiny, tmp_path, monkeypatch, credit):
    method = build_method("truepair", {"pieces": (3,), "partners": "proposed"})
    monkeypatch.setattr(type(method), "credit_of", lambda self, label, synthetic: torch.full_like(label, credit))
    run = fit(tiny, tmp_path / "run", method)
    assert all(np.isfinite(line["loss"]) for line in run.metrics)
    assert (run.metrics[3]["partner_probability"] > 0) == (credit == 0)


@pytest.mark.parametrize("batches", [19, 25])
def test_a_run_cut_off_ends_as_if_it_had_not_been(tiny, tmp_path, monkeypatch, batches):
    method = build_method("truepair", {"pieces": (3,), "partners": "proposed"})
    monkeypatch.setattr(
        type(method), "credit_of", lambda self, label, synthetic: (torch.arange(len(label)) % 3 > 0).float()
    )
    whole = fit(tiny, tmp_path / "whole", method)
    with stopped_after(monkeypatch, batches, saved=True):
        fit(tiny, tmp_path / "cut", method)
    assert_same_run(fit(tiny, tmp_path / "cut", method, resume=True).path, whole.path)
