"""CRCL's global model and UGNCL's two views in their published layouts: they score as released, or are refused."""

import math

import pytest
import torch

from tests.engines.released_global import ReleasedGlobal, crcl_global
from tests.engines.released_layout import (
    FEATURES,
    REGIONS,
    SIMILARITY_WIDTH,
    WIDTH,
    WORD_WIDTH,
    TwoViews,
    in_data_parallel,
    ugncl,
)
from tests.engines.test_released import CAPTIONS, WORDS, changed, check_scores, entry, features, similarities, without
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.released.checkpoint import read_released
from truepair.engines.retrieval_model import Needs
from truepair.engines.views import common_score
from truepair.errors import InputError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model_best.pth.tar"


def read(path, content):
    torch.save(content, path)
    (network,) = read_released(path)
    return network


def test_the_global_model_of_crcl_scores_as_released(path):
    model = ReleasedGlobal(WORDS)
    network = read(path, crcl_global(model))
    assert network.architecture.kind == "global"
    assert network.architecture.config == GlobalConfig(WIDTH, WORD_WIDTH, "gpo")
    assert network.architecture.sizes == InputSizes(FEATURES, 0, WORDS)
    assert network.architecture.needs == Needs()
    assert network.source["opt"]["module_name"] == "VSEinfty" and network.source["best_rsum"] == 480.5
    check_scores(network, model)


def test_the_batch_norm_that_is_never_called_is_left_out(path):
    model = ReleasedGlobal(WORDS)
    content = crcl_global(model)
    kept = [name for name in content["model"][0] if not name.startswith("mlp.bns.1.")]
    assert len(kept) == len(content["model"][0]) - 5
    content["model"][0] = {name: content["model"][0][name] for name in kept}
    check_scores(read(path, content), model)


def test_every_part_of_the_global_model_counts(path):
    model = ReleasedGlobal(WORDS)
    before = similarities(read(path, crcl_global(model)))
    parts = [
        (model.img_enc.mlp.bns[0].running_mean, True),
        (model.img_enc.gpool.linear.weight, True),
        (model.txt_enc.gpool.gru.weight_hh_l0_reverse, True),
        (model.img_enc.mlp.bns[1].running_mean, False),
    ]
    for value, counts in parts:
        kept = value.data.clone()
        value.data.add_(torch.randn_like(value))
        assert bool((similarities(read(path, crcl_global(model))) - before).abs().max() > 1e-3) is counts
        value.data.copy_(kept)


@pytest.mark.parametrize("kind", ["sgr", "saf"])
@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_two_views_score_as_released(kind, tau, path):
    model = TwoViews(kind, WORDS)
    network = read(path, ugncl(model, tau=tau))
    widths = WIDTH, WORD_WIDTH, SIMILARITY_WIDTH
    config = SGRConfig(*widths, reasoning_steps=3) if kind == "sgr" else SAFConfig(*widths)
    assert (network.architecture.kind, network.architecture.config) == (kind, config)
    assert network.architecture.sizes == InputSizes(FEATURES, REGIONS, WORDS)
    assert network.architecture.needs == Needs(views=2, view_temperature=tau)
    found, evidence = similarities(network).double(), model.evidence(features(), CAPTIONS, tau)
    expected = model.similarities(features(), CAPTIONS, tau).double()
    assert expected.std() > 0.1
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert torch.equal(found.flatten().argsort(), evidence.flatten().argsort()), "ranks are those of the evidence"


def test_the_views_differ_and_their_mean_similarity_ranks_otherwise(path):
    """Else the test above would hold for one view, or for the mean of σ(r)."""
    model = TwoViews("saf", WORDS)
    each = [torch.sigmoid(model.logits(projection, features(), CAPTIONS)) for projection in model.projections()]
    assert (each[0] - each[1]).abs().max() > 0.1
    mean, expected = (each[0] + each[1]) / 2, model.similarities(features(), CAPTIONS)
    assert (mean - expected).abs().max() > 1e-2
    assert not torch.equal(mean.flatten().argsort(), expected.flatten().argsort())


def test_the_common_score_has_the_mean_evidence():
    """Against a loop in float64; where the evidence itself is beyond float32 as well."""
    scores = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(1)) * torch.logspace(-1, 1.3, 40)[:, None]
    for tau in (0.1, 1.0):
        found = common_score(scores, tau)
        for row in range(40):
            for column in range(5):
                views = [math.log1p(math.exp(scores[view, row, column].item())) / tau for view in range(2)]
                most = max(views)
                common = tau * (most + math.log(sum(math.exp(view - most) for view in views) / 2))
                expected = common + math.log(-math.expm1(-common))
                assert found[row, column].item() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_the_common_score_of_one_view_is_its_own_at_any_size():
    scores = torch.tensor([-200.0, -60.0, -20.0, -1.0, 0.0, 3.0, 25.0, 80.0])
    common = common_score(torch.stack([scores, scores]), 0.1)
    torch.testing.assert_close(common[1:], scores[1:], rtol=1e-5, atol=1e-5)
    assert torch.sigmoid(common[0]) == 0, "softplus(−200) is 0 in float32"


def test_temperature_of_a_file_without_options_is_the_published_one(path):
    content = ugncl(TwoViews("saf", WORDS))
    del content["opt"]
    assert read(path, content).architecture.needs == Needs(views=2, view_temperature=0.1)


def test_names_of_data_parallel(path):
    for model, layout in ((ReleasedGlobal(WORDS), crcl_global), (TwoViews("sgr", WORDS), ugncl)):
        content = layout(model)
        check_scores(read(path, {**content, "model": in_data_parallel(content["model"])}), model)


GRU = [f"rnn.{kind}_{gate}_l0_reverse" for kind in ("weight", "bias") for gate in ("ih", "hh")]
MLP = [f"mlp.{name}" for name in ("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(1, "bert.pooler.dense.weight", torch.ones(2, 2)), "bert.pooler.*global models.*is BERT"),
        (changed(0, "backbone.conv1.weight", torch.ones(2, 2)), "backbone.conv1.*is a CNN"),
        (changed(0, "mlp.layers.2.weight", torch.ones(2, 2)), "mlp.layers.2.*one residual MLP of two layers"),
        (changed(0, "fc.weight_g", torch.ones(2)), "img_enc.fc.weight_g, which no global model of CRCL"),
        (without(0, *MLP), "lacks img_enc.mlp.layers.0.weight.*one residual MLP"),
        (without(0, "gpool.linear.weight"), "lacks img_enc.gpool.linear.weight"),
        (without(1, "embed.weight"), "lacks txt_enc.embed.weight; expected a global model of CRCL"),
        (without(1, *GRU), "lacks txt_enc.rnn.weight_ih_l0_reverse.*one way only"),
        (changed(1, "rnn.weight_ih_l1", torch.ones(2, 2)), "several layers"),
        (changed(0, "gpool.linear.weight", torch.ones(1, 16)), r"shape \(1, 16\), expected \(1, 32\) beside feature"),
        (changed(0, "mlp.bns.0.running_var", -torch.ones(WIDTH // 2)), "6 of the 6 values of img_enc.mlp.bns.0"),
        (changed(0, "mlp.bns.1.weight", [1.0]), "img_enc.mlp.bns.1.weight is a list"),
        (lambda content: vars(content["opt"]).update(no_imgnorm=True), "no_imgnorm, .* of images that are not norm"),
        (lambda content: vars(content["opt"]).update(no_txtnorm=True), "no_txtnorm, .* of captions that are not norm"),
        (entry(lambda parts: [*parts, torch.ones(3)]), "is a list of OrderedDict, OrderedDict, Tensor; expected a"),
        (entry(lambda parts: [*parts, {}]), "a third state dict .sim_enc. that is empty"),
    ],
)
def test_global_models_that_cannot_be_imported_are_named(change, message, path):
    content = crcl_global(ReleasedGlobal(WORDS))
    change(content)
    with pytest.raises(InputError, match=message):
        read(path, content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without(0, "fc2.weight", "fc2.bias"), "lacks img_enc.fc2.weight, img_enc.fc2.bias"),
        (without(0, "fc1.weight"), "lacks img_enc.fc1.weight; expected an SGR or SAF network of UGNCL"),
        (changed(0, "fc.weight", torch.ones(2, 2)), "img_enc.fc.weight, which UGNCL's networks do not have"),
        (changed(0, "fc2.weight", torch.ones(WIDTH, 3)), r"img_enc.fc2.weight has shape \(12, 3\).*, 2 views;"),
        (without(2, "sim_eval_w.bias"), "lacks sim_enc.sim_eval_w.bias"),
        (changed(2, "SAF_module.more.weight", torch.ones(2)), "sim_enc.SAF_module.more.weight, which UGNCL's"),
        (lambda content: vars(content["opt"]).update(tau="0.1"), "options say tau = '0.1'; expected a number above 0"),
        (lambda content: vars(content["opt"]).update(tau=0), "options say tau = 0; expected a number above 0"),
        (lambda content: vars(content["opt"]).update(no_imgnorm=True), "trained with no_imgnorm"),
    ],
)
def test_networks_of_two_views_that_cannot_be_imported_are_named(change, message, path):
    content = ugncl(TwoViews("saf", WORDS))
    change(content)
    with pytest.raises(InputError, match=message):
        read(path, content)
