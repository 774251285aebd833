"""The estimate of π limits how many pairs our own method disbelieves."""

import pytest
import torch

from tests.conftest import write_tiny_precomp
from tests.methods.own.test_truepair_first_labels import asked, found_labels
from tests.methods.own.test_truepair_first_labels_in_runs import fit as fit_truepair
from truepair.errors import InputError
from truepair.methods import build_method
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.method import BEYOND

PAIRS = 1000


def labels(disbelieved, seed=0):
    """Two groups far apart, the lower one this share of the pairs."""
    generator = torch.Generator().manual_seed(seed)
    lower = round(disbelieved * PAIRS)
    odds = torch.randn(PAIRS, generator=generator) + torch.where(torch.arange(PAIRS) < lower, -6.0, 2.0)
    return torch.sigmoid(odds)[torch.randperm(PAIRS, generator=generator)]


def credit_of(label, share, **options):
    """The credit of a pair by its label, where linear models estimate this π, and at most 0.01 more."""
    method, memory = asked(found_labels(PAIRS, share, 0.0, 0.9))
    method = build_method("truepair", options) if options else method
    memory.write("label", None, label)
    scalars = method.start_epoch(EpochPosition(1, 1, method.stages(10, 8)), memory)
    credit = memory.read("credit")
    assert scalars["disbelieved"] == pytest.approx(float((credit == 0).float().mean()))
    return credit


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.6])
def test_two_groups_that_leave_too_few_are_not_asked(share):
    label = labels(0.5)
    credit, groups = credit_of(label, share), credit_of(label, share, least_believed="any")
    believed = int((groups > 0).sum())
    assert believed == pytest.approx(500, abs=5)
    limit = round((1 - share - 0.01 - BEYOND) * PAIRS)
    if limit <= believed:
        assert torch.equal(credit, groups)
    else:
        assert (credit == 1).sum() == limit and (credit == 0).sum() == PAIRS - limit
        assert label[credit == 1].min() > label[credit == 0].max()


@pytest.mark.parametrize("label", [torch.full((PAIRS,), 0.01), torch.linspace(0.0, 0.12, PAIRS)])
def test_a_threshold_that_leaves_too_few_is_not_asked(label):
    credit = credit_of(label, 0.2)
    assert (credit > 0).sum() >= round((1 - 0.21 - BEYOND) * PAIRS)
    assert (credit[label.argsort()[-700:]] > 0).all()


def test_an_estimate_that_says_nothing_limits_nothing():
    label = labels(0.6)
    assert torch.equal(credit_of(label, 0.66), credit_of(label, 0.66, least_believed="any"))
    assert torch.equal(credit_of(labels(0.99), 0.99), credit_of(labels(0.99), 0.99, least_believed="any"))


def test_where_the_label_is_the_credit_it_stays():
    label = labels(0.5)
    assert torch.equal(credit_of(label, 0.1, credit="label"), label.masked_fill(label < 0.1, 0.0))


@pytest.mark.parametrize("other", [{"credit": "label"}, {"first_labels": "given"}, {"labels": "given"}])
def test_any_number_where_nothing_limits_it_is_refused(other):
    with pytest.raises(InputError, match=f"{next(iter(other))}.*leave it out"):
        build_method("truepair", {"least_believed": "any"} | other)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return write_tiny_precomp(tmp_path_factory.mktemp("many") / "many", images={"train": 600, "dev": 16})


def test_a_run_without_mismatches_believes_nearly_all(many, tmp_path):
    quick = {"batch_size": 32, "learning_rate": 1e-2}
    run = fit_truepair(many, tmp_path / "run", 0.0, **quick)
    free = fit_truepair(many, tmp_path / "free", 0.0, options={"pieces": (3,), "least_believed": "any"}, **quick)
    most = run.metrics[0]["first_share_high"] + BEYOND
    assert max(line["disbelieved"] for line in free.metrics) > most + 0.05
    assert max(line["disbelieved"] for line in run.metrics) <= most + 1e-3
    limited = [line["disbelieved_by_labels"] for line in run.metrics if "disbelieved_by_labels" in line]
    assert limited and min(limited) > most
    assert not any("disbelieved_by_labels" in line for line in free.metrics)
