"""Files in the published layouts: the networks read score as the released code does; anything else is refused."""

import io
import pickle
import tarfile

import numpy as np
import pytest
import torch

from tests.engines.released_layout import (
    FEATURES,
    REGIONS,
    SIMILARITY_WIDTH,
    WIDTH,
    WORD_WIDTH,
    Released,
    crcl,
    decl,
    gsc,
    gsc_plus,
    in_data_parallel,
    ncr,
    sgraf,
)
from truepair.data.batch import ImageBatch, pad_words
from truepair.engines.config import SAFConfig, SGRConfig
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.released.checkpoint import read_released
from truepair.engines.retrieval_model import build_engine
from truepair.errors import InputError

WORDS = 20
CAPTIONS = [[1, 5, 2], [1, 7, 9, 11, 2], [1, 19, 2], [1, 4, 6, 8, 4, 10, 2], [1, 3, 3, 2]]
SINGLE = {"sgraf": sgraf, "decl": decl, "crcl": crcl, "gsc": gsc}
DOUBLE = {"ncr": ncr, "gsc+": gsc_plus}


def features(count=6):
    return torch.randn(count, REGIONS, FEATURES, generator=torch.Generator().manual_seed(5))


def written(path, content, **options):
    torch.save(content, path, **options)
    return path


def similarities(network):
    engine = build_engine(network.architecture.config, network.architecture.sizes, network.architecture.needs)
    engine.load_state_dict(network.tensors)
    engine.eval()
    images = ImageBatch(features(), torch.full((6,), REGIONS))
    with torch.no_grad():
        return engine.similarity(engine.encode_images(images), engine.encode_texts(pad_words(CAPTIONS)))


def check_scores(network, model):
    expected = model.similarities(features(), CAPTIONS)
    assert expected.std() > 0.1, "scores without spread would agree whatever the network does"
    torch.testing.assert_close(similarities(network), expected, atol=1e-5, rtol=0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model_best.pth.tar"


@pytest.mark.parametrize("kind", ["sgr", "saf"])
@pytest.mark.parametrize("layout", SINGLE)
def test_a_single_network_scores_as_released(kind, layout, path):
    model = Released(kind, WORDS)
    (network,) = read_released(written(path, SINGLE[layout](model)))
    assert (network.name, network.architecture.kind) == ("model", kind)
    check_scores(network, model)


@pytest.mark.parametrize("kind", ["sgr", "saf"])
@pytest.mark.parametrize("layout", DOUBLE)
def test_both_of_two_networks_score_as_released(kind, layout, path):
    models = Released(kind, WORDS, seed=0), Released(kind, WORDS, seed=1)
    networks = read_released(written(path, DOUBLE[layout](*models)))
    assert [network.name for network in networks] == ["A", "B"]
    for network, model in zip(networks, models, strict=True):
        check_scores(network, model)


def test_sizes_are_those_of_the_tensors(path):
    widths = {"width": WIDTH, "word_width": WORD_WIDTH, "similarity_width": SIMILARITY_WIDTH}
    (network,) = read_released(written(path, sgraf(Released("sgr", WORDS, steps=2))))
    assert network.architecture.config == SGRConfig(**widths, reasoning_steps=2)
    assert network.architecture.sizes == InputSizes(FEATURES, REGIONS, WORDS)
    (network,) = read_released(written(path, sgraf(Released("saf", WORDS))))
    assert network.architecture.config == SAFConfig(**widths)


def test_source_is_what_the_file_says_of_itself(path):
    (network,) = read_released(written(path, crcl(Released("saf", WORDS))))
    said = network.source
    assert {key: said[key] for key in said if key != "opt"} == {
        "epoch": 3, "best_rsum": 480.5, "step": 9, "schedule": 2,
    }  # fmt: skip
    assert type(said["epoch"]) is int and type(said["best_rsum"]) is float
    assert said["opt"]["data_name"] == "f30k_precomp" and said["opt"]["schedules"] == [5, 5, 30]


def test_options_without_a_json_form_are_named(path):
    content = sgraf(Released("saf", WORDS))
    content["opt"].learning_rate = float("nan")
    content["opt"].device = torch.device("cpu")
    content["opt"].itself = content["opt"]
    (network,) = read_released(written(path, content))
    assert (network.source["opt"]["learning_rate"], network.source["opt"]["device"]) == ("nan", "<device>")


def test_the_format_before_zip_files(path):
    model = Released("sgr", WORDS)
    written(path, gsc(model), _use_new_zipfile_serialization=False)
    assert path.read_bytes()[:2] != b"PK"
    (network,) = read_released(path)
    check_scores(network, model)


@pytest.mark.parametrize("new", [True, False])
def test_tensors_of_a_gpu_come_to_the_cpu(new, path, monkeypatch):
    model = Released("saf", WORDS)
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:2")
    written(path, decl(model), _use_new_zipfile_serialization=new)
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.load(path, weights_only=False)
    (network,) = read_released(path)
    check_scores(network, model)


@pytest.mark.parametrize("where", ["front", "inside"])
def test_names_of_data_parallel(where, path):
    model = Released("sgr", WORDS)
    content = decl(model)
    if where == "front":
        content["model"] = in_data_parallel(content["model"])
    else:
        similarity = content["model"][2]
        content["model"][2] = {
            name.replace("v_global_w.", "v_global_w.module."): value for name, value in similarity.items()
        }
    (network,) = read_released(written(path, content))
    check_scores(network, model)


def test_files_of_old_pytorch_lack_the_counters_of_batch_norms(path):
    model = Released("saf", WORDS)
    content = sgraf(model)
    content["model"] = [
        {name: value for name, value in state.items() if "num_batches" not in name} for state in content["model"]
    ]
    (network,) = read_released(written(path, content))
    assert sum(name.endswith("num_batches_tracked") for name in network.tensors) == 3
    check_scores(network, model)


def test_weights_in_another_precision_become_float32(path):
    model = Released("sgr", WORDS)
    content = sgraf(model)
    content["model"][0] = {name: value.double() for name, value in content["model"][0].items()}
    (network,) = read_released(written(path, content))
    assert {value.dtype for value in network.tensors.values()} == {torch.float32, torch.int64}
    check_scores(network, model)


def test_numpy_numbers_of_either_version_are_read(path):
    """NumPy 1 wrote `numpy.core`, NumPy 2 writes `numpy._core`."""
    content = {**sgraf(Released("saf", WORDS)), "best_rsum": np.float32(1.5), "step": np.int32(7)}
    written(path, content, _use_new_zipfile_serialization=False)
    both = [path.read_bytes(), path.read_bytes().replace(b"numpy._core.", b"numpy.core.")]
    assert both[0] != both[1]
    for data in both:
        path.write_bytes(data)
        (network,) = read_released(path)
        assert (network.source["best_rsum"], network.source["step"]) == (1.5, 7)


@pytest.mark.parametrize("new", [True, False])
def test_lists_with_a_value_per_pair_may_follow_the_networks(new, path):
    """GSC keeps its two indicators behind the three state dicts, as NumPy arrays; they are no part of a network."""
    model = Released("sgr", WORDS)
    content = sgraf(model)
    content["model"] = [*content["model"], np.linspace(0, 1, 9), torch.ones(9)]
    (network,) = read_released(written(path, content, _use_new_zipfile_serialization=new))
    check_scores(network, model)


def test_a_table_behind_the_networks_is_refused(path):
    content = sgraf(Released("sgr", WORDS))
    content["model"] = [*content["model"], torch.ones(9, 2)]
    with pytest.raises(InputError, match="after the three state dicts comes Tensor"):
        read_released(written(path, content))


class Creates:
    """Unpickled, it creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


class Runs(Creates):
    def __reduce__(self):
        import os

        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize(("attack", "named"), [(Creates, "io.open"), (Runs, "posix.system|nt.system|os.system")])
@pytest.mark.parametrize("new", [True, False])
def test_nothing_in_a_file_is_executed(attack, named, new, path, tmp_path):
    target = tmp_path / "created"
    content = {**sgraf(Released("saf", WORDS)), "extra": attack(target)}
    written(path, content, _use_new_zipfile_serialization=new)
    with pytest.raises(InputError, match=named):
        read_released(path)
    assert not target.exists()
    torch.load(path, weights_only=False)
    assert target.exists(), "the file does hold the attack"


def test_arrays_of_python_objects_are_not_unpickled(path, tmp_path):
    target = tmp_path / "created"
    content = {**sgraf(Released("saf", WORDS)), "move_gt": np.array([Creates(target)], dtype=object)}
    with pytest.raises(InputError, match="io.open"):
        read_released(written(path, content))
    assert not target.exists()


def test_reading_leaves_what_the_program_allowed(path):
    import argparse

    written(path, sgraf(Released("saf", WORDS)))
    with torch.serialization.safe_globals([argparse.Namespace]):
        before = set(torch.serialization.get_safe_globals())
        read_released(path)
        assert set(torch.serialization.get_safe_globals()) == before


def changed(part, name, value):
    def change(content):
        content["model"][part][name] = value

    return change


def without(part, *names):
    def change(content):
        for name in names:
            del content["model"][part][name]

    return change


def entry(value):
    return lambda content: content.update(model=value(content["model"]))


REVERSE = [f"cap_rnn.{kind}_{gate}_l0_reverse" for kind in ("weight", "bias") for gate in ("ih", "hh")]
LOCAL_NORM = "v_global_w.embedding_local.1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content.pop("model"),
            "neither `model` nor model_A and model_B among its entries .epoch, best",
        ),
        (
            entry(lambda parts: parts[:2]),
            "txt_enc.cap_rnn.weight_ih_l0.*which CRCL's global models .VSE∞. do not have.*third state dict .sim_enc.",
        ),
        (entry(lambda parts: parts[:1]), "is a list of OrderedDict; expected a list of three"),
        (entry(lambda parts: [parts[0], torch.ones(3), *parts[1:]]), "is a list of OrderedDict, Tensor, OrderedDict"),
        (
            entry(lambda parts: [*parts, *parts]),
            "list of OrderedDict, OrderedDict, OrderedDict, OrderedDict and 2 more",
        ),
        (entry(lambda parts: [*parts, "more"]), "after the three state dicts comes str"),
        (entry(lambda parts: parts[0]), "is a OrderedDict with the keys fc.weight, fc.bias"),
        (changed(0, "cnn.0.weight", torch.ones(2)), "img_enc.cnn.0.weight, which SGRAF's networks do not have"),
        (changed(0, "mlp.fcs.0.weight", torch.ones(2)), "belong to a global model"),
        (changed(0, "fc.weight_g", torch.ones(2)), "img_enc.fc.weight_g, which no SAF network of SGRAF has"),
        (changed(1, "cap_rnn.weight_ih_l1", torch.ones(2, 2)), "several layers"),
        (changed(2, "SGR_module.0.sim_graph_w.bias", torch.ones(6)), "both SGR_module and SAF_module"),
        (changed(0, "fc.bias", [1.0]), "img_enc.fc.bias is a list; expected a tensor"),
        (changed(0, "fc.bias", torch.ones(WIDTH, dtype=torch.int64)), "img_enc.fc.bias is torch.int64"),
        (changed(0, "fc.bias", torch.ones(1).expand(WIDTH)), "img_enc.fc.bias is no plain tensor"),
        (changed(0, "fc.bias", torch.ones(WIDTH).to_sparse()), "img_enc.fc.bias is no plain tensor"),
        (changed(0, "module.fc.bias", torch.ones(WIDTH)), "img_enc.fc.bias twice"),
        (without(0, "fc.weight"), "lacks img_enc.fc.weight"),
        (without(2, "sim_eval_w.bias"), "lacks sim_enc.sim_eval_w.bias"),
        (without(1, *REVERSE), "lacks txt_enc.cap_rnn.weight_ih_l0_reverse.*one way only"),
        (without(2, "SAF_module.bn.running_mean"), "lacks sim_enc.SAF_module.bn.running_mean"),
        (changed(0, "fc.weight", torch.ones(WIDTH)), r"img_enc.fc.weight has shape \(12,\); expected 2 sizes"),
        (changed(0, "fc.bias", torch.ones(9)), r"img_enc.fc.bias has shape \(9,\), expected \(12,\)"),
        (changed(2, f"{LOCAL_NORM}.running_mean", torch.ones(36)), r"running_mean has shape \(36,\), expected \(4,\)"),
        (changed(2, "sim_tranglo_w.weight", torch.ones(5, WIDTH)), r"shape \(5, 12\), expected \(6, 12\)"),
        (
            changed(1, "embed.weight", torch.full((WORDS, WORD_WIDTH), torch.nan)),
            "100 of the 100 values of txt_enc.embed",
        ),
        (
            changed(1, "embed.weight", torch.full((WORDS, WORD_WIDTH), 1e300, dtype=torch.float64)),
            "100 of the 100 values",
        ),
        (changed(2, f"{LOCAL_NORM}.running_var", -torch.ones(REGIONS)), "4 of the 4 values of sim_enc.v_global_w"),
        (lambda content: vars(content["opt"]).update(no_imgnorm=True), "trained with no_imgnorm"),
        (lambda content: vars(content["opt"]).update(no_txtnorm=True), "trained with no_txtnorm"),
    ],
)
def test_what_cannot_be_imported_is_named(change, message, path):
    content = sgraf(Released("saf", WORDS))
    change(content)
    with pytest.raises(InputError, match=message) as caught:
        read_released(written(path, content))
    assert str(path) in str(caught.value)


def archive(path, data):
    with tarfile.open(path, "w") as file:
        file.addfile(tarfile.TarInfo("model_best.pth"), io.BytesIO(data))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: None, "cannot be read .No such file"),
        (lambda path: path.write_bytes(b""), "not a whole file of torch.save"),
        (lambda path: path.write_text("<html>too many downloads</html>"), "not a whole file of torch.save"),
        (lambda path: path.write_bytes(pickle.dumps({"model": 1})), "not a whole file of torch.save"),
        (lambda path: archive(path, b""), "tar archive"),
        (lambda path: torch.save([1, 2], path), "holds a list; expected a dict"),
    ],
)
def test_other_files_are_refused(write, message, path):
    write(path)
    with pytest.raises(InputError, match=message):
        read_released(path)


@pytest.mark.parametrize("new", [True, False])
def test_a_file_cut_short_is_refused(new, path):
    written(path, sgraf(Released("saf", WORDS)), _use_new_zipfile_serialization=new)
    data = path.read_bytes()
    for share in (0.2, 0.6, 0.97):
        path.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(InputError, match="download it again"):
            read_released(path)
