"""The rows of CRCL, GSC and UGNCL train, and the data of their figures are those of plain loops."""

import math

import numpy as np
import pytest
import torch

import truepair
from tests.reproduce.test_specs import job_shown
from truepair.audit.scoring.vectors import encode
from truepair.data.batch import EpochBatches
from truepair.engines.config import GlobalConfig
from truepair.engines.retrieval_model import evaluating
from truepair.errors import InputError
from truepair.reproduce.figures.of_pairs import agreement, agreements, queries, query_uncertainty
from truepair.reproduce.figures.of_retrieval import retrieved_pairs
from truepair.reproduce.tables import read_specs
from truepair.training.setup import Setup

TABLES = ("crcl-parts", "crcl-losses", "gsc-parts", "ugncl-parts")
ROWS = {
    cell.facts["method"]: cell for name in TABLES for cell in read_specs()[0][name].cells if cell.facts["seed"] == 0
}
SMALL = Setup(model=GlobalConfig(width=16, word_width=8))


@pytest.mark.parametrize("row", ROWS)
def test_every_row_trains(row, tiny, tmp_path):
    job = job_shown(ROWS[row].command)
    short = {  # warm-ups that leave one of two epochs
        "ugncl": {"warm_up_epochs": 1, "least_clean": 0.0},
        "crcl": {"freeze_epochs": 1},
        "gsc": {"warm_up_epochs": min(1, job.method_options.get("warm_up_epochs", 0))},
    }
    options = short.get(job.method, {})
    method = truepair.build_method(job.method, {**job.method_options, **options})
    noisy = truepair.inject_noise(truepair.load(tiny), ROWS[row].facts["noise"], seed=0)
    run = truepair.fit(
        noisy, method=method, out=tmp_path / "run", setup=SMALL, epochs=2, batch_size=24, minimum_count=1
    )
    assert all(math.isfinite(line["loss"]) for line in run.metrics)


@pytest.fixture(scope="module")
def pairs(tiny):
    return truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)


def trained(method, pairs, folder):
    options = {"warm_up_epochs": 1, "least_clean": 0.0} if method == "ugncl" else {"co_train": True}
    method = truepair.build_method(method, options)
    return truepair.fit(pairs, method=method, out=folder, setup=SMALL, epochs=2, batch_size=24, minimum_count=1)


def batches(run, pairs):
    """What the figures see, batch by batch: ids and, of each network, its engine with both encodings."""
    model = run.model
    made = EpochBatches(pairs, model.preparation, batch_size=128, position=(0, 0, 0), order="figure", augmented=False)
    with torch.no_grad(), evaluating(model.engine):
        for step in range(len(made)):
            batch = made[step]
            yield (
                batch.ids,
                [
                    (network, network.encode_images(batch.images), network.encode_texts(batch.texts))
                    for network in model.engine.networks()
                ],
            )


def test_agreement_is_that_of_plain_loops(pairs, tmp_path):
    run = trained("gsc", pairs, tmp_path / "run")
    found = agreement(run, pairs)
    assert found["similarity"].shape == (len(pairs),)
    for ids, networks in batches(run, pairs):
        across, within = [], []
        for _, images, texts in networks:
            images, texts = images.double().numpy(), texts.double().numpy()
            across.append([float(image @ text) for image, text in zip(images, texts, strict=True)])
            rows = []
            for i in range(len(ids)):
                a, b = images @ images[i], texts @ texts[i]
                rows.append(sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt((a @ a) * (b @ b)))
            within.append(rows)
        assert found["similarity"][ids.numpy()] == pytest.approx(np.mean(across, axis=0), abs=1e-5)
        assert found["structure"][ids.numpy()] == pytest.approx(np.mean(within, axis=0), abs=1e-5)


def test_uncertainty_of_queries_is_that_of_plain_loops(pairs, tmp_path):
    run = trained("ugncl", pairs, tmp_path / "run")
    found = query_uncertainty(run, pairs)
    assert found["uncertainty"].shape == (2 * len(pairs),)
    for ids, [(engine, images, texts)] in batches(run, pairs):
        count = len(ids)
        views = [scores.double() for scores in engine.view_scores(images, texts)]
        for side in (0, 1):
            evidence = []
            for view in views:
                level = sum(math.exp(view[i, k] / 0.05) for i in range(count) for k in range(count) if i != k)
                level /= count * (count - 1)
                made = 0.25 * torch.exp(view / 0.05) / level
                evidence.append(made.T if side else made)
            mean = torch.stack(views).mean(dim=0)
            mean = mean.T if side else mean
            for row, pair in enumerate(ids.tolist()):
                a, b = evidence[0][row].tolist(), evidence[1][row].tolist()
                strength = sum(x + y + x * y / count + 1 for x, y in zip(a, b, strict=True))
                place = pair + side * len(pairs)
                assert found["uncertainty"][place] == pytest.approx(count / strength, rel=1e-3)
                assert found["right"][place] == (int(mean[row].argmax()) == row)
                assert found["similarity"][place] == pytest.approx(float(mean[row].max()), abs=1e-5)


def test_uncertainty_is_of_ugncl_alone(pairs, tmp_path):
    run = trained("gsc", pairs, tmp_path / "run")
    with pytest.raises(InputError, match="uncertainty is UGNCL's, and the run is of gsc"):
        query_uncertainty(run, pairs)


def test_figures_of_pairs_show_what_the_network_says(tiny, tmp_path):
    """The shares drawn are those of the values above, of the matched and the mismatched, the found and the missed."""
    clean = truepair.load(tiny)
    noisy, test = truepair.inject_noise(clean, 0.4, seed=0), truepair.load(tiny, "test")
    for draw, method, options, name, axis in (
        (agreements, "gsc", {"noise": 0.4}, "structure", "similarity of the structures within them"),
        (queries, "ugncl", {}, "uncertainty", "uncertainty u"),
    ):
        run = trained(method, clean, tmp_path / method)
        shown = draw({"run": run.folder}, source=str(tiny), **options).numbers["run"][axis]
        if method == "gsc":
            values, wrong = agreement(run, noisy), noisy.mismatched
        else:
            values = query_uncertainty(run, test)
            wrong = ~values["right"]
        for part, of in (("matched", ~wrong), ("mismatched", wrong)):
            edges = shown["edges"]
            counts = [0] * 40
            for value in values[name][of].tolist():
                place = max(k for k in range(40) if edges[k] <= value + 1e-12)
                counts[place] += 1
            assert shown[part] == pytest.approx([count / max(of.sum(), 1) for count in counts])


def test_queries_are_shown_with_what_is_most_similar_to_them_and_whether_it_is_theirs(tiny, tmp_path):
    run, test = trained("ugncl", truepair.load(tiny), tmp_path / "run"), truepair.load(tiny, "test")
    gsc = trained("gsc", truepair.load(tiny), tmp_path / "gsc")
    with pytest.raises(InputError, match="uncertainty is UGNCL's"):
        retrieved_pairs({"run": gsc.folder}, source=str(tiny), options={}, images=1, texts=1)
    shown = retrieved_pairs({"run": run.folder}, source=str(tiny), options={}, images=2, texts=2)
    rows = shown.numbers["queries"]
    assert [(row["kind"], len(row["found"])) for row in rows] == [("image", 5)] * 2 + [("text", 3)] * 2
    vectors = encode(run.model, test, device="cpu")
    similarity = vectors.images @ vectors.texts.T
    image_of = dict(zip(test.text_index.tolist(), test.image_index.tolist(), strict=True))
    uncertain = query_uncertainty(run, test)["uncertainty"].reshape(2, -1)
    for row in rows:
        scores = similarity[row["place"]] if row["kind"] == "image" else similarity[:, row["place"]]
        assert [each["similarity"] for each in row["found"]] == pytest.approx(
            sorted(scores.tolist(), reverse=True)[: len(row["found"])], abs=1e-3
        )
        assert len({each["place"] for each in row["found"]}) == len(row["found"]), "each item once"
        for each in row["found"]:
            image, text = (row, each) if row["kind"] == "image" else (each, row)
            assert each["right"] == (image_of[text["place"]] == image["place"])
        side, index = (0, test.image_index) if row["kind"] == "image" else (1, test.text_index)
        own = uncertain[side][index == row["place"]]
        assert np.abs(own - row["uncertainty"]).min() < 1e-4, "that of the query, and of its side"
    titles = [axes.get_title() for axes in shown.figure.axes]
    assert titles[0] == f"query, u = {rows[0]['uncertainty']:.2f}" and titles[1][0] in "✓✗"
