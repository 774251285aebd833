"""SGR and SAF scores against two oracles: the plain loop over captions, and a loop over cells as the equations read.

Weights and biases are inflated, so that raw scores differ by far more than any tolerance.
"""

import copy
import math

import pytest
import torch

from benchmarks.plain_local import plain_image_scores, plain_scores, plain_text_scores
from tests.engines.naive_cells import cell_nodes, cell_sgr, column_saf
from truepair.data.batch import ImageBatch, pad_words
from truepair.engines.config import SAFConfig, SGRConfig
from truepair.engines.region_word.layout import by_length, padded
from truepair.engines.region_word.local_engine import Fragments, LocalEngine
from truepair.engines.similarity import similarity_blocks
from truepair.engines.unit import unit

KINDS = [SGRConfig, SAFConfig]
REGIONS = 5
FULL, RAGGED = [5, 5, 5, 5], [2, 5, 1, 4]
CAPTIONS = [[1, 5, 2], [1, 7, 9, 11, 2], [4], [3, 5, 6], [8]]
WAYS = {
    "scores": (LocalEngine.scores, plain_scores),
    "image_scores": (
        lambda engine, images, texts: engine.image_scores(images),
        lambda e, i, t: plain_image_scores(e, i),
    ),
    "text_scores": (lambda engine, images, texts: engine.text_scores(texts), lambda e, i, t: plain_text_scores(e, t)),
}


def engine(kind, *, dtype=torch.float64, width=8, similarity_width=6, training=True):
    """With parameters as large as those of a trained network, running statistics that are not 0 and 1, and dropout."""
    torch.manual_seed(0)
    model = LocalEngine(6, REGIONS, 20, kind(width=width, word_width=5, similarity_width=similarity_width)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            size = 1.5 / parameter.shape[1] ** 0.5 if parameter.ndim == 2 else 0.5
            parameter.add_(torch.randn_like(parameter) * size)
        model.align.local.weight.mul_(3)
        model.score.weight.mul_(5)
        for name, buffer in model.named_buffers():
            if name.endswith(("mean", "var")):
                buffer.copy_(torch.rand_like(buffer) + 0.2)
    return model.to(dtype).train(training)


def unit_rows(*shape, seed):
    return unit(torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


def fragments(lengths, *, width=8, seed=0, dtype=torch.float64):
    """Random encodings; the tensors of the gradients are `vectors` and `whole`."""
    vectors = unit_rows(len(lengths), max(lengths), width, seed=seed)
    for row, length in enumerate(lengths):
        vectors[row, length:] = 0
    whole = unit_rows(len(lengths), width, seed=seed + 100)
    return Fragments(vectors.to(dtype).requires_grad_(), torch.tensor(lengths), whole.to(dtype).requires_grad_())


def random_pictures(lengths, seed=1, dtype=torch.float64):
    features = torch.randn(len(lengths), max(lengths), 6, generator=torch.Generator().manual_seed(seed)).to(dtype)
    for row, length in enumerate(lengths):
        features[row, length:] = 0
    return ImageBatch(features, torch.tensor(lengths))


def gradients(model, scores, images, texts):
    """Of a random combination of the scores, for both encodings and every parameter that takes part in comparing."""
    weight = torch.randn(scores.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(scores)
    leaves = [images.vectors, images.whole, texts.vectors, texts.whole]
    parameters = [(name, p) for name, p in model.named_parameters() if name.startswith(("align.", "head.", "score."))]
    found = torch.autograd.grad((scores * weight).sum(), leaves + [p for _, p in parameters], allow_unused=True)
    names = ["regions", "whole images", "words", "whole texts"] + [name for name, _ in parameters]
    return dict(zip(names, found, strict=True))


def assert_same_gradients(ours, theirs, *, relative):
    for name, expected in theirs.items():
        if expected is None:
            assert ours[name] is None or ours[name].abs().max() == 0, name
            continue
        scale = max(float(expected.abs().max()), float(max(g.abs().max() for g in theirs.values() if g is not None)))
        assert float((ours[name] - expected).abs().max()) <= relative * scale, name


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("lengths", [FULL, RAGGED, [3]])
@pytest.mark.parametrize("kind", KINDS)
def test_values_gradients_and_running_statistics_equal_the_plain_loop(kind, lengths, training, way):
    ours, theirs = (engine(kind, training=training) for _ in range(2))
    images, texts = fragments(lengths), fragments([3, 5, 1, 3, 1], seed=3)
    vectorised, looped = WAYS[way]
    scores, expected = vectorised(ours, images, texts), looped(theirs, images, texts)
    if expected.numel() > 1:
        assert expected.std() > 0.1
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-12)
    assert_same_gradients(
        gradients(ours, scores, images, texts), gradients(theirs, expected, images, texts), relative=1e-10
    )
    if way != "scores":  # the running statistics are those of images with texts
        theirs.load_state_dict(engine(kind, training=training).state_dict())
    for (name, buffer), other in zip(ours.named_buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(buffer, other, rtol=0, atol=1e-12, msg=name)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_float32_agrees_to_1e_5_of_the_spread(kind, way):
    ours, theirs = (engine(kind, dtype=torch.float32, width=64, similarity_width=32) for _ in range(2))
    images = fragments([5] * 12, width=64, dtype=torch.float32)
    texts = fragments([3, 5, 1, 3, 9, 9, 2, 4], width=64, seed=3, dtype=torch.float32)
    vectorised, looped = WAYS[way]
    scores, expected = vectorised(ours, images, texts), looped(theirs, images, texts)
    assert scores.dtype == torch.float32
    spread = float((expected.max() - expected.min()).detach())
    assert spread > 0.1
    assert float((scores - expected).detach().abs().max()) <= 1e-5 * spread
    assert_same_gradients(
        gradients(ours, scores, images, texts), gradients(theirs, expected, images, texts), relative=1e-5
    )


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_equal_a_loop_over_cells_written_from_the_equations(kind, training):
    model = engine(kind, training=training)
    before = copy.deepcopy(model)
    images, texts = fragments(RAGGED), fragments([3, 1, 2], seed=3)
    scores = model.scores(images, texts)
    for j, words in enumerate(texts.lengths.tolist()):
        column = [
            cell_nodes(
                before,
                images.vectors[i, :regions].tolist(),
                images.whole[i].tolist(),
                texts.vectors[j, :words].tolist(),
                texts.whole[j].tolist(),
            )
            for i, regions in enumerate(images.lengths.tolist())
        ]
        if kind is SGRConfig:
            expected = [cell_sgr(before, nodes) for nodes in column]
        else:
            norm = before.head.norm
            statistics = (None, None) if training else (float(norm.running_mean), float(norm.running_var))
            expected = column_saf(before, column, *statistics)
        assert scores[:, j].tolist() == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("lengths", [FULL, RAGGED])
@pytest.mark.parametrize("kind", KINDS)
def test_the_layout_for_a_cpu_and_that_for_an_accelerator_give_the_same(kind, lengths):
    images, texts = fragments(lengths), fragments([3, 5, 1, 3, 1], seed=3)
    found = []
    for lay_out in (by_length, padded):
        model = engine(kind)
        scores = model.scores(images, texts, lay_out)
        found.append((scores, gradients(model, scores, images, texts), list(model.buffers())))
    (grouped, grouped_gradients, grouped_buffers), (masked, masked_gradients, masked_buffers) = found
    torch.testing.assert_close(grouped, masked, rtol=0, atol=1e-12)
    assert_same_gradients(masked_gradients, grouped_gradients, relative=1e-10)
    for one, other in zip(grouped_buffers, masked_buffers, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_memory_budget_changes_no_number(kind, way):
    # One image and caption at a time; all images, one after the other; everything at once.
    images, texts = fragments(RAGGED, width=64), fragments([3, 5, 1, 3, 1], width=64, seed=3)
    found = []
    for memory_bytes in (1, 7000, 1 << 30):
        model = engine(kind, width=64, similarity_width=3)
        model.memory_bytes = memory_bytes
        scores = WAYS[way][0](model, images, texts)
        found.append((scores, gradients(model, scores, images, texts)))
        with torch.no_grad():
            torch.testing.assert_close(WAYS[way][0](model, images, texts), scores, rtol=0, atol=1e-12)
    for scores, found_gradients in found[:-1]:
        torch.testing.assert_close(scores, found[-1][0], rtol=0, atol=1e-12)
        assert_same_gradients(found_gradients, found[-1][1], relative=1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_reasoning_that_is_computed_again_in_the_backward_pass_gives_the_same(way):
    images, texts = fragments(RAGGED), fragments([3, 5, 1, 3, 1], seed=3)
    found = []
    for kept_bytes in (0, 1 << 30):
        model = engine(SGRConfig)
        model.kept_bytes = kept_bytes
        scores = WAYS[way][0](model, images, texts)
        found.append((scores, gradients(model, scores, images, texts)))
    assert torch.equal(found[0][0], found[1][0])
    assert_same_gradients(found[0][1], found[1][1], relative=1e-12)


def test_reasoning_keeps_for_the_backward_pass_what_its_budget_allows(monkeypatch):
    asked = []
    model = engine(SGRConfig)
    forward = model.head.forward
    monkeypatch.setattr(model.head, "forward", lambda *a, keep: asked.append(keep) or forward(*a, keep=keep))
    images, texts = fragments(RAGGED), fragments([3, 1], seed=3)
    nodes = 4 * (4 + 2)  # images times the nodes of both captions; queries and values of two steps, 6 wide, 8 bytes
    for model.kept_bytes, kept in ((2 * 2 * nodes * 6 * 8, True), (2 * 2 * nodes * 6 * 8 - 1, False)):
        model.scores(images, texts)
        assert asked.pop() is kept


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_does_not_depend_on_what_else_is_in_the_batch(kind):
    model = engine(kind, training=False)
    pictures, captions = random_pictures(RAGGED), pad_words(CAPTIONS)
    with torch.no_grad():
        images, texts = model.encode_images(pictures), model.encode_texts(captions)
        scores, between = model.scores(images, texts), model.image_scores(images)
        for i, regions in enumerate(RAGGED):
            alone = model.encode_images(ImageBatch(pictures.features[i : i + 1, :regions], torch.tensor([regions])))
            for j, caption in enumerate(CAPTIONS):
                one = model.scores(alone, model.encode_texts(pad_words([caption])))
                torch.testing.assert_close(one[0, 0], scores[i, j], rtol=0, atol=1e-12)
            torch.testing.assert_close(model.image_scores(alone)[0, 0], between[i, i], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_image_scores_are_symmetric_but_for_the_batch_norm_of_saf_in_training(kind):
    images = fragments(RAGGED)
    evaluated = engine(kind, training=False).image_scores(images)
    assert torch.equal(evaluated, evaluated.T)
    trained = engine(kind).image_scores(images)
    assert torch.equal(trained, trained.T) == (kind is SGRConfig)


def degenerate_inputs():
    full, nothing = random_pictures(FULL, dtype=torch.float32), torch.zeros(4, 5, 6)
    twice = full.features[:1].repeat(4, 1, 1)
    captions, unknown, single = CAPTIONS[:4], [[0, 0], [0, 0, 0], [0], [0]], [[3]] * 4
    return {
        "all regions zero": (nothing, captions),
        "one image four times": (twice, captions),
        "all words unknown": (full.features, unknown),
        "one word, four times": (full.features, single),
        "nothing at all": (nothing, single),
    }


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("case", degenerate_inputs())
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_finite_and_moderate_where_differences_and_norms_are_zero(kind, case, training):
    torch.manual_seed(0)
    model = LocalEngine(6, REGIONS, 20, kind(width=8, word_width=5, similarity_width=6)).train(training)
    features, captions = degenerate_inputs()[case]
    images = model.encode_images(ImageBatch(features, torch.tensor(FULL)))
    texts = model.encode_texts(pad_words(captions))
    total = model.scores(images, texts).sum() + model.image_scores(images).sum() + model.text_scores(texts).sum()
    total.backward()
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        # A norm differentiated at zero would give 1e8; a batch norm of identical values alone gives 1 / sqrt(1e-5).
        assert parameter.grad.abs().max() < 1e5, name


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_learns(kind):
    model = engine(kind)
    images, texts = model.encode_images(random_pictures(RAGGED)), model.encode_texts(pad_words(CAPTIONS[:4]))
    scores = model.scores(images, texts)
    (scores * torch.randn_like(scores)).sum().backward()
    # What adds the same to every argument of a softmax, or of a batch norm in training, has a true gradient of zero.
    cancels = {"image_attention.common.bias", "text_attention.common.bias", "image_attention.whole.bias"}
    if kind is SGRConfig:
        cancels |= {f"head.steps.{step}.key.bias" for step in range(3)}
    else:
        cancels |= {"head.attention.bias"}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert (parameter.grad.abs().max() > 1e-12) == (name not in cancels), name


@pytest.mark.parametrize("kind", KINDS)
def test_mixed_precision_ends_in_float32_and_stays_close(kind):
    model = engine(kind, dtype=torch.float32, width=64, similarity_width=32, training=False)
    pictures, captions = random_pictures(FULL, dtype=torch.float32), pad_words(CAPTIONS)
    with torch.no_grad():
        exact = model.scores(model.encode_images(pictures), model.encode_texts(captions))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            images, texts = model.encode_images(pictures), model.encode_texts(captions)
            mixed_scores = model.scores(images, texts)
            others = [model.image_scores(images), model.text_scores(texts)]
    for found in (images.vectors, images.whole, texts.vectors, mixed_scores, *others):
        assert found.dtype == torch.float32
    assert (mixed_scores - exact).abs().max() < 0.05 * (exact.max() - exact.min())
    assert mixed_scores.to(torch.bfloat16).float().ne(mixed_scores).any()  # finer than bf16


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_under_mixed_precision_are_close(kind):
    ours, theirs = (engine(kind, dtype=torch.float32, width=64, similarity_width=32, training=False) for _ in range(2))
    images = fragments(FULL, width=64, dtype=torch.float32)
    texts = fragments([3, 5, 1, 3], width=64, seed=3, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = ours.scores(images, texts)
    assert_same_gradients(
        gradients(ours, scores, images, texts),
        gradients(theirs, theirs.scores(images, texts), images, texts),
        relative=0.15,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_concatenate_and_select_keep_every_score(kind):
    model = engine(kind, training=False)
    with torch.no_grad():
        images = [model.encode_images(random_pictures(lengths, seed)) for seed, lengths in enumerate([[2, 1], [5, 3]])]
        texts = [model.encode_texts(pad_words(captions)) for captions in (CAPTIONS[:3], CAPTIONS[3:])]
        whole = model.scores(model.concatenate(images), model.concatenate(texts))
        by_parts = torch.cat([torch.cat([model.scores(i, t) for t in texts], dim=1) for i in images])
        torch.testing.assert_close(whole, by_parts, rtol=0, atol=1e-12)
        every = model.concatenate(images)
        for rows in (slice(1, 3), torch.tensor([3, 0, 0])):
            some = model.select(every, rows)
            assert some.lengths.tolist() == every.lengths[rows].tolist()
            assert some.vectors.shape[1] == int(some.lengths.max())
            torch.testing.assert_close(model.scores(some, model.concatenate(texts)), whole[rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_similarity_in_blocks_equals_the_whole(kind):
    model = engine(kind, training=False)
    images, texts = fragments([5, 2, 3, 1, 5]), fragments([3, 5, 1], seed=3)
    whole = torch.sigmoid(model.scores(images, texts))
    for memory_bytes in (1, model.cell_bytes(images, texts) * 2, 1 << 30):
        blocks = torch.cat(list(similarity_blocks(model, images, 5, texts, memory_bytes=memory_bytes)))
        torch.testing.assert_close(blocks, whole, rtol=0, atol=1e-12)


def test_similarity_is_a_sigmoid_and_ranking_a_tanh():
    model, scores = engine(SGRConfig), torch.tensor([-1.5, 0.0, 2.0])
    assert model.as_similarity(scores).tolist() == pytest.approx([1 / (1 + math.exp(-x)) for x in (-1.5, 0, 2)])
    assert model.as_ranking(scores).tolist() == pytest.approx([math.tanh(x) for x in (-1.5, 0, 2)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_dict_round_trip_keeps_every_score(kind):
    model, other = engine(kind, training=False), LocalEngine(6, REGIONS, 20, kind(8, 5, 6)).double().eval()
    images, texts = fragments(RAGGED), fragments([3, 5, 1], seed=3)
    assert not torch.equal(other.scores(images, texts), model.scores(images, texts))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.scores(images, texts), model.scores(images, texts))
