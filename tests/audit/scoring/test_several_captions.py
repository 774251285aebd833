"""Embeddings in which an image stands several times: what is the same, and that nobody is a stranger to itself."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

import truepair
from tests.audit.array_collection import ArrayCollection
from tests.audit.made_pairs import made_pairs
from tests.audit.scoring.naive_scores import dot, log_mean_exp, mutual_rank
from truepair.audit import AuditOptions
from truepair.audit.rematch.same_items import MOST_CAPTIONS, same_items
from truepair.audit.scoring import bank as bank_module
from truepair.audit.scoring import by_embeddings
from truepair.audit.scoring.bank import Bank, fitted_temperature
from truepair.audit.scoring.by_embeddings import synthetic_mismatches
from truepair.audit.scoring.chunks import SAME, draw_bank
from truepair.audit.scoring.indicators import score
from truepair.data.collection import PairsCollection

EACH = 5


class Named(ArrayCollection):
    """Embeddings with names of images, words, and the truth, as far as given."""

    names, words, wrong = None, None, None

    def image_names(self, start, stop):
        return self.ids(start, stop) if self.names is None else self.names[start:stop]

    def captions(self, start, stop):
        return super().captions(start, stop) if self.words is None else self.words[start:stop]

    def mismatched(self):
        return self.wrong


def several(images, *, noise=0.0, jitter=0.0, seed=0, error=1.0, each=EACH):
    """Images of eight kinds with five captions each; a share of the captions is exchanged among all pairs."""
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(8, 48))[draw.integers(0, 8, images)] + draw.normal(size=(images, 48))
    repeated = np.repeat(vectors, each, axis=0)
    texts = repeated + error * draw.normal(size=repeated.shape)
    wrong = draw.permutation(len(texts))[: int(noise * len(texts))]
    texts[wrong] = texts[np.roll(wrong, 1)]
    repeated = repeated + jitter * draw.normal(size=repeated.shape)
    collection = Named(repeated.astype(np.float16), texts.astype(np.float16))
    collection.wrong = np.isin(np.arange(len(texts)), wrong)
    return collection


# --- What is the same ---------------------------------------------------------------------------------------------


def groups(numbers):
    """Which places share a number, whatever it is."""
    return [np.flatnonzero(numbers == number).tolist() for number in dict.fromkeys(numbers.tolist())]


def test_images_by_their_vectors_and_captions_by_theirs():
    collection = several(4, each=2)
    collection.texts[6] = collection.texts[1]
    rows = np.array([0, 1, 3, 4, 5, 6])
    images, captions = same_items(collection, rows)
    assert groups(images) == [[0, 1], [2], [3, 4], [5]] and images.dtype == captions.dtype == np.int64
    assert groups(captions) == [[0], [1, 5], [2], [3], [4]]


def test_images_by_their_names_where_vectors_differ():
    collection = several(6, each=2, jitter=0.01)
    collection.names = ["a", "a", "b", "", "", "c", "c", "d", "d", "e", "f", "b"]
    collection.images[10] = collection.images[9]  # a copy of another name
    assert groups(same_items(collection, np.arange(12))[0]) == [[0, 1], [2, 11], [3], [4], [5, 6], [7, 8], [9, 10]]


@pytest.mark.parametrize("shared", [MOST_CAPTIONS, MOST_CAPTIONS + 1])
def test_a_name_of_very_many_is_no_name_of_an_image(shared):
    collection = several(shared, each=1)
    collection.names = ["image.jpg"] * shared
    assert len(groups(same_items(collection, np.arange(shared))[0])) == (1 if shared == MOST_CAPTIONS else shared)


def test_words_tell_captions_and_where_there_are_none_the_vectors():
    collection = several(6, each=1)
    collection.words = ["A  dog", "a dog ", "", "", " ", "a cat\ud800"]
    collection.texts[4] = collection.texts[2]
    assert groups(same_items(collection, np.arange(6))[1]) == [[0, 1], [2, 4], [3], [5]]


def test_pairs_of_features_have_an_index():
    pairs, _ = made_pairs(6, each=3)
    images, captions = same_items(PairsCollection(pairs), np.arange(1, 18))
    assert images.tolist() == pairs.image_index[1:].tolist() and len(set(captions.tolist())) == 17


# --- The bank -----------------------------------------------------------------------------------------------------


def alike(collection, rows):
    """Unit vectors of the rows, and which two of them share image or text, by a double loop in float64."""
    images, texts = (normalize(torch.from_numpy(side[rows].astype(np.float64)), dim=1) for side in
                     (collection.images, collection.texts))  # fmt: skip
    shared = [
        [dot(images[i].tolist(), images[j].tolist()) >= SAME or dot(texts[i].tolist(), texts[j].tolist()) >= SAME
         for j in range(len(rows))] for i in range(len(rows))
    ]  # fmt: skip
    return images, texts, shared


@pytest.mark.parametrize("jitter", [0.0, 0.003])
def test_other_captions_of_an_image_are_no_strangers_to_it(jitter, monkeypatch):
    """Matching, rank and certainty against loops that leave them out; the rest is as if nobody knew."""
    monkeypatch.setattr(bank_module, "_BLOCK_ROWS", 8)
    collection = several(12, each=3, jitter=jitter)
    collection.texts[20] = collection.texts[3]
    images, texts, shared = alike(collection, np.arange(36))
    rows = torch.arange(0, 36, 2)
    bank = Bank.of(images[rows].float(), texts[rows].float(), rows, temperature=0.1, neighbours=3, same=SAME)
    x, y = images.tolist(), texts.tolist()
    inside = rows.tolist()
    strangers = [[k for k in inside if not shared[j][k]] for j in range(36)]
    assert min(map(len, strangers)) < len(inside) - 1 and shared[3][20]
    trust = [
        mutual_rank(dot(x[j], y[j]), [dot(x[j], y[k]) for k in strangers[j]], [dot(x[k], y[j]) for k in strangers[j]])
        for j in inside
    ]
    np.testing.assert_allclose(bank.trust, trust, atol=1e-5)
    background = log_mean_exp([dot(x[j], y[k]) / 0.1 for j in inside for k in strangers[j]])
    assert bank.background == pytest.approx(background, abs=1e-4)
    numbers = torch.arange(36)
    found = score(images.float(), texts.float(), bank, image_rows=numbers, text_rows=numbers)
    for j in range(36):
        own = dot(x[j], y[j])
        to_texts, to_images = [dot(x[j], y[k]) for k in strangers[j]], [dot(y[j], x[k]) for k in strangers[j]]
        odds = [own / 0.1 - math.log(math.fsum(math.exp(s / 0.1) for s in side)) for side in (to_texts, to_images)]
        evidence = math.fsum(math.exp(s / 0.1 - background) for s in (own, *to_texts, own, *to_images)) / 2
        assert found["log_odds"][j].item() == pytest.approx(sum(odds) / 2, abs=1e-3)
        assert found["rank"][j].item() == pytest.approx(mutual_rank(own, to_texts, to_images), abs=1e-5)
        certainty = evidence / (evidence + len(to_texts) + 1)
        assert found["certainty"][j].item() == pytest.approx(certainty, abs=1e-4)
    unaware = score(images.float(), texts.float(), replace(bank, same=math.inf), image_rows=numbers, text_rows=numbers)
    for name in ("structure", "neighbours"):
        assert torch.equal(found[name], unaware[name])
    assert (found["log_odds"] > unaware["log_odds"]).sum() > 20


def test_a_bank_of_copies_of_one_image_knows_nothing():
    images = normalize(torch.ones(4, 3), dim=1)
    texts = normalize(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), dim=1)
    bank = Bank.of(images, texts, torch.arange(4), same=SAME)
    assert math.isfinite(bank.temperature) and math.isfinite(bank.background) and bank.trust.tolist() == [0.5] * 4
    found = score(images, texts, bank, image_rows=torch.arange(4), text_rows=torch.arange(4))
    assert found["log_odds"].tolist() == [0] * 4 and found["certainty"].tolist() == [0.5] * 4


def test_the_temperature_does_not_suffer_from_copies():
    collection = several(80, error=0.8)
    images, texts, _ = alike(collection, np.arange(0, 400, EACH))
    one = fitted_temperature(images.float(), texts.float(), SAME)
    sides = [normalize(torch.from_numpy(side.astype(np.float32)), dim=1) for side in
             (collection.images, collection.texts)]  # fmt: skip
    assert fitted_temperature(*sides, SAME) == pytest.approx(one, rel=0.35)
    assert fitted_temperature(*sides) > 2 * one


# --- The audit ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("jitter", "named"), [(0.0, False), (0.003, False), (0.2, True)])
def test_synthetic_mismatches_are_never_an_image_with_its_own_caption(jitter, named, monkeypatch):
    """Also where it was embedded again with each caption, or only its name tells that it is the same."""
    collection = several(60, jitter=jitter)
    image = np.arange(len(collection)) // EACH
    if named:
        collection.names = [f"{number}.jpg" for number in image]
    bank, scored = draw_bank(collection, 64, seed=0, neighbours=30), []
    whole = by_embeddings.scored_columns

    def noted(images, texts, known, image_rows, text_rows):
        scored.append((image_rows, text_rows))
        return whole(images, texts, known, image_rows, text_rows)

    monkeypatch.setattr(by_embeddings, "scored_columns", noted)
    found = synthetic_mismatches(collection, bank, 0)
    for (left, right), evidence in zip(scored, found.values(), strict=True):
        assert len(left) == len(evidence.log_odds) >= 0.6 * len(collection)
        assert (image[left] != image[right]).all()


def test_several_captions_an_image_are_no_noise():
    clean = truepair.audit(several(200), options=AuditOptions(rematch=0), progress=False).verdict
    assert not clean.two_groups and clean.flagged.sum() <= 10


@pytest.mark.parametrize("named", [False, True])
def test_nothing_is_proposed_to_an_image_that_it_has_already(named):
    options = AuditOptions(rematch=300)
    collection = several(200, noise=0.3, jitter=0.2 if named else 0.0)
    image = np.arange(len(collection)) // EACH
    if named:
        collection.names = [f"{number}.jpg" for number in image]
    found = truepair.audit(collection, options=options, progress=False)
    assert found.verdict.noise_rate == pytest.approx(0.3, abs=0.05) and found.scores["auroc"] > 0.99
    proposed = found.rematch
    texts = [collection.texts[row].tobytes() for row in range(len(collection))]
    of_image = {number: {texts[row] for row in np.flatnonzero(image == number)} for number in set(image.tolist())}
    with_caption = {text: {image[row] for row in range(len(texts)) if texts[row] == text} for text in texts}
    assert (proposed.caption_from >= 0).mean() > 0.9 and (proposed.image_from >= 0).mean() > 0.9
    for row, caption, picture in zip(proposed.rows, proposed.caption_from, proposed.image_from, strict=True):
        assert caption < 0 or texts[caption] not in of_image[image[row]]
        assert picture < 0 or image[picture] not in with_caption[texts[row]]
