"""`EnsembleModel`: the mean of its members, however they cut their matrices; and what it refuses."""

import numpy as np
import pytest
import torch

import truepair
from truepair.data.config import Augmentation
from truepair.data.pairs import Images, Pairs, Texts
from truepair.data.text import Vocabulary
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.ensemble_model import EnsembleModel, aligned, gives_cosines
from truepair.engines.regions_and_words import InputSizes, RegionsAndWords
from truepair.engines.retrieval_model import Needs, new_model
from truepair.errors import InputError
from truepair.evaluation import recall

WORDS = ("red", "blue", "green", "round", "square")
SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")
CONFIGS = {
    "global": GlobalConfig(width=16, word_width=8),
    "wide": GlobalConfig(width=24, word_width=8, pooling="mean"),
    "sgr": SGRConfig(width=16, word_width=8, similarity_width=8, reasoning_steps=2),
    "saf": SAFConfig(width=16, word_width=8, similarity_width=8),
}


def model_of(kind, *, words=WORDS, seed=0, width=6, **needs):
    vocabulary = Vocabulary((*SPECIAL, *words))
    preparation = RegionsAndWords(vocabulary, InputSizes(width, 3, len(vocabulary)), Augmentation())
    torch.manual_seed(seed)
    return new_model(CONFIGS[kind], preparation, Needs(**needs))


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    images, texts = 13, 29
    captions = tuple(" ".join(rng.choice(WORDS, size=rng.integers(1, 6))) for _ in range(texts))
    return Pairs(
        Images(rng.normal(size=(images, 3, 6)).astype(np.float32), tuple(map(str, range(images)))),
        Texts(captions, tuple(map(str, range(texts)))),
        image_index=rng.integers(0, images, size=texts),
        text_index=np.arange(texts),
        name="drawn",
    )


def everything(pairs):
    return np.arange(len(pairs.images)), np.arange(len(pairs.texts))


PAIRS_OF_KINDS = [("global", "wide"), ("sgr", "saf"), ("sgr", "sgr")]


@pytest.mark.parametrize("kinds", PAIRS_OF_KINDS)
def test_similarity_is_the_mean_of_the_members_matrices(kinds, pairs):
    members = [model_of(kind, seed=seed) for seed, kind in enumerate(kinds)]
    matrices = [member.similarity(pairs).double().numpy() for member in members]
    assert np.abs(matrices[0] - matrices[1]).max() > 1e-3
    expected = np.zeros_like(matrices[0])
    for i in range(expected.shape[0]):
        for j in range(expected.shape[1]):
            expected[i, j] = (matrices[0][i, j] + matrices[1][i, j]) / 2
    assert np.allclose(EnsembleModel(members).similarity(pairs), expected, atol=1e-6)


@pytest.mark.parametrize("temperature", [0.1, 0.5])
def test_evidence_is_averaged_as_decl_does(temperature, pairs):
    members = [model_of("sgr"), model_of("saf", seed=1)]
    scores = [torch.logit(member.similarity(pairs).double()) for member in members]
    mean = sum(torch.exp(torch.tanh(score) / temperature) for score in scores) / 2
    expected = (1 + temperature * mean.log()) / 2
    ensemble = EnsembleModel(members, evidence=temperature)
    found = ensemble.similarity(pairs)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)
    assert 0 <= float(found.min()) <= float(found.max()) <= 1
    blocks = ensemble.similarity_blocks(pairs, *everything(pairs), memory_bytes=2_000)
    assert torch.allclose(torch.cat(list(blocks)), found, atol=1e-6)
    images, texts = torch.tensor([0, 3, 3]), torch.tensor([5, 0, 7])
    assert torch.allclose(torch.cat(list(blocks.cells(images, texts))), found[images, texts], atol=1e-6)
    assert not torch.allclose(EnsembleModel(members).similarity(pairs), found, atol=1e-3)
    alone = EnsembleModel(members[:1], evidence=temperature).similarity(pairs)
    order = members[0].similarity(pairs).flatten().argsort()
    assert bool((alone.flatten()[order].diff() >= -1e-6).all())  # of one model it is another scale for the same order


def test_evidence_of_cosines_or_of_no_temperature_is_refused():
    with pytest.raises(InputError, match="evidence with τ = 0.1 of cosines; .*local engines"):
        EnsembleModel([model_of("global"), model_of("wide")], evidence=0.1)
    for temperature in (0.0, -1.0, 0.01, float("nan"), float("inf")):
        with pytest.raises(InputError, match="expected τ of at least 0.025"):
            EnsembleModel([model_of("sgr"), model_of("saf")], evidence=temperature)


@pytest.mark.parametrize("kinds", [*PAIRS_OF_KINDS, ("global", "wide", "global")])
@pytest.mark.parametrize("memory_bytes", [1, 2_000, 1 << 20])
def test_blocks_of_any_size_are_the_same_matrix_every_time(kinds, memory_bytes, pairs):
    ensemble = EnsembleModel([model_of(kind, seed=seed) for seed, kind in enumerate(kinds)])
    blocks = ensemble.similarity_blocks(pairs, *everything(pairs), memory_bytes=memory_bytes)
    once, again = torch.cat(list(blocks)), torch.cat(list(blocks))
    assert torch.equal(once, again)
    assert torch.allclose(once, ensemble.similarity(pairs), atol=1e-6)
    some_rows, some_columns = np.array([5, 2]), np.array([28, 0, 3])
    part = torch.cat(list(ensemble.similarity_blocks(pairs, some_rows, some_columns)))
    assert torch.allclose(part, once[some_rows][:, some_columns], atol=1e-6)


@pytest.mark.parametrize("kind", CONFIGS)
def test_an_ensemble_of_one_is_the_model_itself(kind, pairs):
    model = model_of(kind)
    ensemble = EnsembleModel([model])
    assert torch.equal(ensemble.similarity(pairs), model.similarity(pairs))
    blocks = zip(
        ensemble.similarity_blocks(pairs, *everything(pairs)),
        model.similarity_blocks(pairs, *everything(pairs)),
        strict=True,
    )
    assert all(torch.equal(one, other) for one, other in blocks)
    assert truepair.evaluate(ensemble, pairs) == truepair.evaluate(model, pairs)


def test_members_read_captions_in_their_own_vocabulary(pairs):
    """The second member knows fewer words, in another order."""
    first, second = model_of("global"), model_of("wide", words=("square", "blue"), seed=1)
    ensemble = EnsembleModel([first, second])
    expected = (first.similarity(pairs) + second.similarity(pairs)) / 2
    assert torch.allclose(ensemble.similarity(pairs), expected, atol=1e-6)
    assert truepair.evaluate(ensemble, pairs) == recall(ensemble.similarity(pairs), pairs.image_of_text)


def test_members_may_be_ensembles_or_have_several_views(pairs):
    members = [model_of("global", networks=2), model_of("wide", views=2)]
    expected = sum(member.similarity(pairs) for member in members) / 2
    assert torch.allclose(EnsembleModel(members).similarity(pairs), expected, atol=1e-6)


@pytest.mark.parametrize("kinds", [("global",), *PAIRS_OF_KINDS])
def test_cells_are_those_of_the_matrix(kinds, pairs, monkeypatch):
    monkeypatch.setattr("truepair.engines.retrieval_model.TEXTS_AT_ONCE", 4)
    ensemble = EnsembleModel([model_of(kind, seed=seed) for seed, kind in enumerate(kinds)])
    matrix = ensemble.similarity(pairs)
    images, texts = np.nonzero(np.random.default_rng(1).random(matrix.shape) < 0.4)
    blocks = ensemble.similarity_blocks(pairs, *everything(pairs))
    found = torch.cat(list(blocks.cells(torch.from_numpy(images), torch.from_numpy(texts))))
    assert torch.allclose(found, matrix[images, texts], atol=1e-6)


def test_blocks_are_aligned_and_one_of_each_member_is_held():
    matrix = torch.arange(20.0).reshape(10, 2)
    taken = []

    def cut(name, sizes):
        for size, part in zip(sizes, torch.split(matrix, sizes), strict=True):
            taken.append((name, size))
            yield part

    steps = []
    for parts in aligned([cut("a", [4, 0, 6]), cut("b", [1, 2, 3, 4]), cut("c", [10])]):
        steps.append(parts[0])
        assert all(torch.equal(part, parts[0]) for part in parts)
        if len(steps) == 1:
            assert taken == [("a", 4), ("b", 1), ("c", 10)], "nothing is computed ahead"
    assert torch.equal(torch.cat(steps), matrix)
    assert [len(step) for step in steps] == [1, 2, 1, 2, 4]


def test_cosines_and_logits_are_told_apart():
    assert [kind for kind in CONFIGS if gives_cosines(model_of(kind))] == ["global", "wide"]
    assert gives_cosines(model_of("global", views=2, networks=2))


@pytest.mark.parametrize(
    ("kinds", "names", "message"),
    [
        ([], None, "an ensemble of 0 models"),
        (["global", "wide"], ["runs/a"], "2 models with 1 names"),
        (["global", "sgr"], ["runs/a", "runs/b"], r"runs/a gives cosines, runs/b gives σ\(r\)"),
        (["saf", "sgr", "wide"], None, r"model 1 of 3 gives σ\(r\), model 3 of 3 gives cosines"),
    ],
)
def test_what_cannot_answer_together_is_refused(kinds, names, message):
    with pytest.raises(InputError, match=message):
        EnsembleModel([model_of(kind) for kind in kinds], names=names)


def test_a_member_that_does_not_fit_the_data_is_named(pairs):
    ensemble = EnsembleModel([model_of("global"), model_of("wide", width=7)], names=["runs/a", "runs/b"])
    for attempt in (
        lambda: ensemble.similarity(pairs),
        lambda: ensemble.similarity_blocks(pairs, *everything(pairs)),
        lambda: truepair.evaluate(ensemble, pairs),
    ):
        with pytest.raises(InputError, match="runs/b: drawn: features are 6 wide, this model takes 7"):
            attempt()


def test_a_member_in_training_mode_is_evaluated_and_left_as_it_was(pairs):
    model = model_of("saf")
    expected = EnsembleModel([model]).similarity(pairs)
    model.engine.train()
    blocks = EnsembleModel([model]).similarity_blocks(pairs, *everything(pairs))
    assert torch.allclose(torch.cat(list(blocks)), expected, atol=1e-6)
    assert model.engine.training
