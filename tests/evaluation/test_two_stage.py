"""Two stages of retrieval against the definition written as plain loops, on similarities full of ties."""

import importlib
import json

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tqdm import tqdm

from truepair.data.config import Augmentation
from truepair.data.pairs import Images, Pairs, Texts
from truepair.data.text import Vocabulary
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.ensemble_model import EnsembleModel
from truepair.engines.regions_and_words import InputSizes, RegionsAndWords
from truepair.engines.retrieval_model import Needs, new_model
from truepair.errors import InputError
from truepair.evaluation import evaluate, recall, recall_from_ranks
from truepair.evaluation.two_stage import evaluate_two_stage, propose

LEVELS = (-torch.inf, -1.0, 0.0, 0.5, 1.0, torch.inf)


def naive_first(similarity, own, top):
    """The first `top` candidates of one query: more similar first, then wrong ones, then lower numbers."""
    return sorted(range(len(similarity)), key=lambda place: (-similarity[place], own[place], place))[:top]


def naive_query(proposing, ranking, own, top):
    """(rank, proposed candidates) of one query; its row of both matrices, and which candidates are right."""
    proposed = naive_first(proposing, own, top)
    right = [ranking[place] for place in proposed if own[place]]
    if right:
        return sum(ranking[place] >= max(right) for place in proposed if not own[place]), proposed
    best = max(value for value, mine in zip(proposing, own, strict=True) if mine)
    return sum(value >= best for value, mine in zip(proposing, own, strict=True) if not mine), proposed


def naive_two_stage(proposing, ranking, image_of_text, top):
    """(image ranks, text ranks, {(image, text) computed})."""
    images, texts = len(proposing), len(image_of_text)
    image_ranks, text_ranks, cells = [], [], set()
    for i in range(images):
        own = [image_of_text[j] == i for j in range(texts)]
        if not any(own):
            image_ranks.append(-1)
            continue
        rank, proposed = naive_query(proposing[i], ranking[i], own, top)
        image_ranks.append(rank)
        cells |= {(i, j) for j in proposed}
    for j in range(texts):
        own = [image_of_text[j] == i for i in range(images)]
        columns = [[row[j] for row in matrix] for matrix in (proposing, ranking)]
        rank, proposed = naive_query(*columns, own, top)
        text_ranks.append(rank)
        cells |= {(i, j) for i in proposed}
    return image_ranks, text_ranks, cells


class GivenBlocks:
    def __init__(self, model):
        self.model = model

    def __iter__(self):
        self.model.passes += 1
        return iter(torch.split(self.model.whole, self.model.rows))

    def cells(self, image_index, text_index):
        self.model.asked += list(zip(image_index.tolist(), text_index.tolist(), strict=True))
        return iter(torch.split(self.model.whole[image_index, text_index], 3))


class GivenModel:
    """A model whose similarity is given; it remembers what it is asked for."""

    def __init__(self, similarity, rows=3):
        self.whole, self.rows = similarity, rows
        self.passes, self.asked = 0, []

    def similarity_blocks(self, pairs, image_rows, text_rows):
        return GivenBlocks(self)


def pairs_of(images, image_of_text):
    texts = len(image_of_text)
    return Pairs(
        Images(np.zeros((images, 1, 2), np.float32), tuple(map(str, range(images)))),
        Texts(tuple(f"caption {j}" for j in range(texts)), tuple(map(str, range(texts)))),
        image_index=np.asarray(image_of_text, dtype=np.int64),
        text_index=np.arange(texts),
        name="given",
    )


@st.composite
def problems(draw):
    """Two matrices full of ties; any number of texts per image, none included, in any order."""
    images, texts = draw(st.integers(1, 7)), draw(st.integers(1, 12))
    size = images * texts
    proposing, ranking = (
        torch.tensor(draw(st.lists(st.sampled_from(LEVELS), min_size=size, max_size=size))).reshape(images, texts)
        for _ in range(2)
    )
    image_of_text = draw(st.lists(st.integers(0, images - 1), min_size=texts, max_size=texts))
    return proposing, ranking, image_of_text, draw(st.integers(1, 13)), draw(st.integers(1, 8))


@settings(max_examples=300, deadline=None)
@given(problems())
def test_figures_and_cells_follow_the_definition(problem):
    proposing, ranking, image_of_text, top, rows = problem
    expected = naive_two_stage(proposing.tolist(), ranking.tolist(), image_of_text, top)
    model = GivenModel(ranking)
    found = evaluate_two_stage(GivenModel(proposing, rows), model, pairs_of(len(ranking), image_of_text), top=top)
    assert found.figures == recall_from_ranks(np.array(expected[0]), np.array(expected[1]))
    assert set(model.asked) == expected[2]
    assert found.cells == len(model.asked) == len(expected[2]), "each cell is computed once"
    assert found.share == len(expected[2]) / ranking.numel()
    assert model.passes == 0, "the whole matrix is not computed"


@settings(max_examples=100, deadline=None)
@given(problems())
def test_what_is_proposed_follows_from_the_ranks(problem):
    """A right item is proposed exactly if the proposer ranks it below k."""
    proposing, ranking, image_of_text, top, _ = problem
    found = evaluate_two_stage(
        GivenModel(proposing), GivenModel(ranking), pairs_of(len(ranking), image_of_text), top=top
    )
    index = torch.tensor(image_of_text)
    texts_of_image, images_of_text = propose([proposing], index, top)
    image_side = [bool((index[texts] == i).any()) for i, texts in enumerate(texts_of_image) if i in image_of_text]
    text_side = [bool((images == i).any()) for i, images in zip(image_of_text, images_of_text, strict=True)]
    assert found.proposed["i2t"] == pytest.approx(100 * np.mean(image_side))
    assert found.proposed["t2i"] == pytest.approx(100 * np.mean(text_side))
    assert found.proposer == recall(proposing, image_of_text)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_with_every_candidate_the_figures_are_those_of_evaluate(problem):
    proposing, ranking, image_of_text, _, _ = problem
    pairs = pairs_of(len(ranking), image_of_text)
    found = evaluate_two_stage(GivenModel(proposing), GivenModel(ranking), pairs, top=12, compare=True)
    assert found.figures == found.full == evaluate(GivenModel(ranking), pairs)
    assert set(found.difference.values()) == {0.0}
    assume(len(ranking) == len(set(image_of_text)))  # else rows of images without a text may not be needed
    assert found.share == 1


def test_the_candidates_do_not_depend_on_how_the_matrix_is_cut(monkeypatch):
    draw = torch.Generator().manual_seed(0)
    similarity = torch.randint(4, (40, 90), generator=draw).float()
    image_of_text = torch.randint(40, (90,), generator=draw)
    expected = propose([similarity], image_of_text, 7)
    for at_once, rows in [(1, 1), (16, 9), (1000, 40)]:
        monkeypatch.setattr("truepair.evaluation.two_stage.QUERIES_AT_ONCE", at_once)
        found = propose(torch.split(similarity, rows), image_of_text, 7)
        assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


def test_a_matrix_too_large_to_keep_gives_the_same_in_several_passes(monkeypatch):
    draw = torch.Generator().manual_seed(1)
    proposing, ranking = torch.randn(20, 40, generator=draw), torch.randn(20, 40, generator=draw)
    pairs = pairs_of(20, np.arange(40) // 2)
    kept, passed = GivenModel(proposing), GivenModel(proposing)
    expected = evaluate_two_stage(kept, GivenModel(ranking), pairs, top=5)
    monkeypatch.setattr("truepair.evaluation.two_stage.WHOLE_MATRIX_BYTES", 100)
    found = evaluate_two_stage(passed, GivenModel(ranking), pairs, top=5)
    assert found.figures == expected.figures
    assert (kept.passes, passed.passes) == (1, 3)


def test_one_candidate_is_the_proposers_first_choice():
    """With k = 1 there is nothing left to rank: recall at 1 is the proposer's, whatever the model says."""
    draw = torch.Generator().manual_seed(2)
    proposing = torch.randn(15, 30, generator=draw)
    pairs = pairs_of(15, np.arange(30) // 2)
    proposing[pairs.image_of_text, torch.arange(30)] += 2
    found = evaluate_two_stage(GivenModel(proposing), GivenModel(-proposing), pairs, top=1)
    assert found.figures == found.proposer
    assert 0 < found.figures["t2i_r1"] < 100
    assert found.cells <= 15 + 30


def test_collapsed_models_find_nothing():
    """Whoever finds all candidates equal gets no credit for the order they stand in."""
    pairs = pairs_of(20, np.arange(20))
    constant, perfect = torch.zeros(20, 20), torch.eye(20)
    by_proposer = evaluate_two_stage(GivenModel(constant), GivenModel(perfect), pairs, top=10)
    assert by_proposer.proposed == {"i2t": 0.0, "t2i": 0.0}
    assert by_proposer.figures["rsum"] == 0
    by_model = evaluate_two_stage(GivenModel(perfect), GivenModel(constant), pairs, top=5)
    assert by_model.figures["i2t_mean_rank"] == by_model.figures["t2i_mean_rank"] == 5
    assert by_model.figures["t2i_r1"] == 0


def test_compare_gives_what_two_stages_lose():
    pairs = pairs_of(20, np.arange(20))
    draw = torch.Generator().manual_seed(3)
    proposing = torch.randn(20, 20, generator=draw)
    model = GivenModel(torch.eye(20))
    found = evaluate_two_stage(GivenModel(proposing), model, pairs, top=5, compare=True)
    assert found.full["i2t_r1"] == 100
    assert found.difference["i2t_r1"] == found.figures["i2t_r1"] - 100 < 0
    assert found.difference["i2t_mean_rank"] == found.figures["i2t_mean_rank"] - 1 > 0
    assert found.seconds > 0 and found.full_seconds > 0
    assert model.passes == 1, "expensive cells are computed once"
    assert json.loads(json.dumps(found.to_dict()))["difference"] == found.difference
    assert evaluate_two_stage(GivenModel(proposing), model, pairs, top=5).to_dict()["full"] is None


def test_nan_and_nonsense_are_refused():
    pairs = pairs_of(4, np.arange(4))
    odd = torch.eye(4)
    odd[2, 1] = torch.nan
    with pytest.raises(InputError, match=r"similarity\[2, 1\] \(image, text\) is NaN"):
        evaluate_two_stage(GivenModel(odd), GivenModel(torch.eye(4)), pairs, top=2)
    with pytest.raises(InputError, match="the similarity of image 2 and text 1 is NaN"):
        evaluate_two_stage(GivenModel(torch.eye(4)), GivenModel(odd), pairs, top=4)
    with pytest.raises(InputError, match="top is 0"):
        evaluate_two_stage(GivenModel(torch.eye(4)), GivenModel(torch.eye(4)), pairs, top=0)
    with pytest.raises(InputError, match="text 3 .* stands in 0 pairs"):
        evaluate_two_stage(GivenModel(odd), GivenModel(odd), pairs.take(np.arange(3)), top=2)


WORDS = ("red", "blue", "green", "round", "square", "small", "large", "plain")


@pytest.fixture(scope="module")
def drawn():
    """Features that tell the items apart, five captions an image or none."""
    rng = np.random.default_rng(0)
    images = 12
    image_of_text = np.repeat(np.array([0, 1, 2, 3, 5, 6, 7, 8, 9, 11]), 5)
    captions = tuple(" ".join(rng.choice(WORDS, size=rng.integers(2, 9))) for _ in image_of_text)
    return Pairs(
        Images(rng.normal(size=(images, 4, 6)).astype(np.float32), tuple(map(str, range(images)))),
        Texts(captions, tuple(map(str, range(len(captions))))),
        image_index=image_of_text,
        text_index=np.arange(len(captions)),
        name="drawn",
    )


def model_of(config, seed=0, **needs):
    vocabulary = Vocabulary(("<pad>", "<start>", "<end>", "<unk>", *WORDS))
    preparation = RegionsAndWords(vocabulary, InputSizes(6, 4, len(vocabulary)), Augmentation())
    torch.manual_seed(seed)
    return new_model(config, preparation, Needs(**needs))


SGR = SGRConfig(width=16, word_width=8, similarity_width=8, reasoning_steps=2)
SAF = SAFConfig(width=16, word_width=8, similarity_width=8)
GLOBAL = GlobalConfig(width=16, word_width=8)


@pytest.mark.parametrize("kind", ["sgr", "saf", "ensemble", "dual", "global"])
@pytest.mark.parametrize("top", [1, 4, 1000])
def test_engines_rank_their_own_cells(kind, top, drawn):
    models = {
        "sgr": lambda: model_of(SGR),
        "saf": lambda: model_of(SAF),
        "ensemble": lambda: EnsembleModel([model_of(SGR), model_of(SAF, seed=1)]),
        "dual": lambda: model_of(SAF, networks=2),
        "global": lambda: model_of(GLOBAL, seed=3),
    }
    model, proposer = models[kind](), model_of(GLOBAL, seed=2)
    found = evaluate_two_stage(proposer, model, drawn, top=top)
    proposing, ranking = proposer.similarity(drawn).tolist(), model.similarity(drawn).tolist()
    image_ranks, text_ranks, cells = naive_two_stage(proposing, ranking, drawn.image_of_text.tolist(), top)
    assert found.figures == recall_from_ranks(np.array(image_ranks), np.array(text_ranks))
    assert found.cells == len(cells)
    if top == 1000:
        assert found.figures == evaluate(model, drawn)


def test_progress_counts_every_cell_once(drawn, monkeypatch):
    bars = []

    class Bar(tqdm):
        def close(self):
            bars.append((self.desc, self.n, self.total))
            super().close()

    # The package's `evaluate` is the function.
    monkeypatch.setattr(importlib.import_module("truepair.evaluation.evaluate"), "tqdm", Bar)
    found = evaluate_two_stage(
        model_of(GLOBAL), EnsembleModel([model_of(SAF), model_of(SGR)]), drawn, top=2, compare=True, progress=True
    )
    every = len(drawn.images) * len(drawn.texts)
    expected = [("ranking the proposed", found.cells, found.cells), ("similarity", every, every)]
    assert [(title.rstrip(": "), done, total) for title, done, total in dict.fromkeys(bars)] == expected


def test_progress_is_silent_without_a_terminal(drawn, capsys):
    evaluate_two_stage(model_of(GLOBAL), model_of(SAF), drawn, top=2, compare=True)
    assert capsys.readouterr().err == ""
    evaluate_two_stage(model_of(GLOBAL), model_of(SAF), drawn, top=2, progress=True)
    assert "ranking the proposed" in capsys.readouterr().err
