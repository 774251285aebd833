"""Duplicates: against naive loops, planted copies, what must not count, and vectors nobody can compare."""

import unicodedata
from collections import defaultdict

import numpy as np
import pytest

from tests.correspondence.test_near_vectors import planted
from truepair.audit.duplicates import find_duplicates
from truepair.audit.duplicates.captions import words_of
from truepair.audit.duplicates.images import image_classes
from truepair.audit.result import DUPLICATES
from truepair.audit.scoring.row_ranges import row_ranges, words_at
from truepair.data.collection import EmbeddingCollection, PairsCollection
from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError


def collection_of(features, captions, image_index=None, pictures=None):
    image_index = np.arange(len(captions)) if image_index is None else np.asarray(image_index)
    ids = tuple(f"image {row}" for row in range(len(features)))
    texts = Texts(tuple(captions), tuple(str(row) for row in range(len(captions))))
    pairs = Pairs(Images(features, ids, pictures), texts, image_index.astype(np.int64), np.arange(len(captions)))
    return PairsCollection(pairs)


class Embeddings(EmbeddingCollection):
    """Vectors in memory; refuses to be read in pieces larger than it says it may be."""

    name, problems = "made", ()

    def __init__(self, images, texts, captions=None):
        self.images, self.texts, self.words, self.width = images, texts, captions, images.shape[1]

    def __len__(self):
        return len(self.images)

    def ids(self, start, stop):
        return [f"p{row}" for row in range(start, stop)]

    def captions(self, start, stop):
        return [""] * (stop - start) if self.words is None else self.words[start:stop]

    def read(self, start, stop):
        assert 0 <= start < stop <= len(self) and stop - start <= 4096
        return self.images[start:stop], self.texts[start:stop]

    def fingerprint(self):
        return "made"


def kinds(groups):
    found = defaultdict(list)
    for group in groups:
        assert group.kind in DUPLICATES
        found[group.kind].append(group.rows.tolist())
    return dict(found)


def found_in(collection, **options):
    return kinds(find_duplicates(collection, np.arange(len(collection)), **options))


def random_features(count, *, seed=0, shape=(3, 8)):
    return np.random.default_rng(seed).normal(size=(count, *shape)).astype(np.float32)


def test_each_kind_by_hand():
    features = random_features(9)
    features[1] = features[0]  # the same image, other caption
    features[3] = features[2]  # the same image and caption
    features[8] = features[7] + 1e-3  # all but the same image
    captions = [
        "a dog",
        "two cats",
        "Red  HOUSE",
        "red house",
        "a ﬁsh, at sea",
        "A fish at  sea",
        "sea at a fish!",
        "x",
        "y",
    ]
    captions[5] = "a fish, at sea"
    assert found_in(collection_of(features, captions)) == {
        "same-pair": [[2, 3]],
        "same-image": [[0, 1]],
        "same-caption": [[4, 5]],
        "near-image": [[7, 8]],
        "near-caption": [[4, 5, 6]],
    }


def test_an_image_with_five_captions_is_no_duplicate():
    captions = [f"caption {row}" for row in range(10)]
    assert found_in(collection_of(random_features(2), captions, np.repeat([0, 1], 5))) == {}
    captions[1] = captions[0]
    assert found_in(collection_of(random_features(2), captions, np.repeat([0, 1], 5))) == {"same-pair": [[0, 1]]}


def test_signs_that_mean_something_and_other_scripts():
    captions = ["keycap: #", "keycap: *", "", "", "…", "!", "他看着海", "他看着 海", "man, boy", "man, man, boy"]
    assert found_in(collection_of(random_features(10), captions)) == {}
    assert words_of("don't stop (now)") == words_of("(now) don't stop!")


def test_grouping_equals_a_naive_loop():
    rng = np.random.default_rng(3)
    images, image_index = random_features(30)[rng.integers(0, 12, 40)], rng.integers(0, 40, 300)
    words = ["dog", "cat", "Dog ", "cat dog", "dog cat", "dog, cat", "", "ﬁsh", "fish", "ＦＩＳＨ"]
    captions = [words[k] for k in rng.integers(0, len(words), 300)]
    plain = [" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in captions]
    content = [images[row].tobytes() for row in image_index]
    facts = list(zip(content, image_index.tolist(), plain, strict=True))

    def naive(key, *varying):
        groups = defaultdict(list)
        for row, fact in enumerate(facts):
            if key(fact) is not None:
                groups[key(fact)].append(row)
        kept = [g for g in groups.values() if len(g) > 1 and all(len({v(facts[r]) for r in g}) > 1 for v in varying)]
        return sorted(kept, key=lambda group: (-len(group), group[0]))

    found = found_in(collection_of(images, captions, image_index))
    assert found["same-pair"] == naive(lambda f: (f[0], f[2]) if f[2] else None)
    assert found["same-image"] == naive(lambda f: f[0], lambda f: f[1], lambda f: f[2])
    assert found["same-caption"] == naive(lambda f: f[2] or None, lambda f: f[0])
    by_words = naive(lambda f: " ".join(sorted(f[2].replace(",", " ").split())) or None, lambda f: f[2])
    assert found["near-caption"] == by_words
    kept = found_in(collection_of(images, captions, image_index), most=2)
    assert kept["same-pair"] == found["same-pair"][:2]


def test_groups_name_the_rows_of_the_source():
    features = random_features(6)
    features[5] = features[2]
    collection = collection_of(features, list("abcdef"))
    groups = find_duplicates(collection, np.array([1, 2, 5]))
    assert kinds(groups) == {"same-image": [[2, 5]]}
    assert find_duplicates(collection, np.array([], dtype=np.int64)) == []


def test_pictures_saved_again_are_near_and_variants_are_not():
    from io import BytesIO

    from PIL import Image

    rng = np.random.default_rng(1)
    small = rng.integers(0, 256, size=(40, 6, 6, 3), dtype=np.uint8)
    pictures = np.stack([np.asarray(Image.fromarray(p).resize((48, 48), Image.Resampling.BICUBIC)) for p in small])
    file = BytesIO()
    Image.fromarray(pictures[0]).save(file, "JPEG", quality=80)
    pictures[39] = np.asarray(Image.open(file))
    pictures[38] = pictures[1][:, ::-1]
    pictures[37] = np.where(np.arange(48)[:, None, None] < 40, pictures[2], 255 - pictures[2])
    captions = [f"caption {row}" for row in range(40)]
    assert found_in(collection_of(random_features(40), captions, pictures=pictures)) == {"near-image": [[0, 39]]}


def test_embeddings_are_read_in_ranges_and_need_no_words():
    images, texts = planted(6000, 5, close=0.01), random_features(6000, shape=(64,))
    images[10], texts[21] = images[11], texts[20]
    found = found_in(Embeddings(images, texts))
    assert found["same-image"] == [[10, 11]]
    assert found["same-caption"] == [[20, 21]]
    assert found["near-image"] == [[row, 5995 + row] for row in range(5)]
    assert found_in(Embeddings(images, texts), near=0.9999).get("near-image") is None


def test_vectors_nobody_can_compare_do_no_harm():
    images = random_features(50, shape=(16,))
    images[3], images[4], images[5, 2], images[6] = 0, np.nan, np.inf, 1e38
    images[7] = images[8] * (1 + 1e-3)
    found = found_in(Embeddings(images, random_features(50, shape=(16,))))
    assert found == {"near-image": [[7, 8]]}
    same = np.ones((4, 16), dtype=np.float32)
    assert found_in(Embeddings(same, random_features(4, shape=(16,)))) == {"same-image": [[0, 1, 2, 3]]}


def test_images_known_by_one_name_are_one_image():
    images = random_features(4, shape=(16,))
    images[1] = images[0]
    collection = Embeddings(images, random_features(4, shape=(16,)), ["a", "b", "c", "d"])
    collection.image_names = lambda start, stop: ["dog.png", "dog.png", "x.png", "y.png"][start:stop]
    assert found_in(collection) == {}
    content, name = image_classes(collection, np.arange(4), lambda start, stop: images[start:stop])
    assert content[0] == content[1] and name[0] == name[1] and len(set(name.tolist())) == 3


def test_the_limit_is_checked():
    with pytest.raises(InputError, match="near is 1.5; expected a cosine"):
        found_in(collection_of(random_features(3), list("abc")), near=1.5)


@pytest.mark.parametrize("seed", range(5))
def test_ranges_cover_rows_in_order(seed):
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.integers(0, [10, 300, 5000, 100_000, 2][seed], size=[4, 200, 4000, 500, 2][seed]))
    read = []
    for piece, start, stop in row_ranges(rows):
        assert start == rows[piece][0] and stop == rows[piece][-1] + 1 and stop - start <= 4096
        read += rows[piece].tolist()
    assert read == rows.tolist()
    assert words_at(lambda start, stop: [f"{row}\ud800" for row in range(start, stop)], rows[:5]) == [
        f"{row}?" for row in rows[:5]
    ]


def test_on_fashion(fashion):
    from truepair.data.open import load

    found = found_in(PairsCollection(load(fashion, "train").first_images(3000)))
    assert all(len(group) == 2 for group in found.get("same-image", []))
    assert len(found["near-caption"]) > 5
