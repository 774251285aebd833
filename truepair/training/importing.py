"""`import_checkpoint`: a released checkpoint in, a run folder out that `open_run` and `truepair evaluate` take.

Such a run holds `config.json` (what was imported from where), `vocabulary.json`, `model.safetensors` and `result.json`
(without figures: nothing was trained or scored here). It cannot be resumed.

UGNCL's networks look at an image in two views. Their authors rank by the mean evidence of the views, exp(softplus(r) /
τ), and so does the run (`truepair.engines.views.common_score`). SGR and SAF of UGNCL are files of their own; as an
ensemble (`EnsembleModel`) they give the mean of two similarities, where the authors take the mean evidence of four.

The authors split captions with NLTK's `word_tokenize`, for which punctuation marks are words and "isn't" is "is" and
"n't". A vocabulary made that way has captions read so here, too (`Vocabulary.reads_signs`). What still differs is rare:
quotation marks, abbreviations ("mr."), words joined by a slash. `unreachable_words` lists the words of a vocabulary
that are never read.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from truepair.data.config import Augmentation
from truepair.data.text import SPECIALS, Vocabulary, tokenise
from truepair.engines.regions_and_words import RegionsAndWords
from truepair.engines.released.checkpoint import ReleasedModel, read_released
from truepair.engines.retrieval_model import RetrievalModel, new_model, save_model
from truepair.errors import InputError
from truepair.files import write_json_atomically
from truepair.seeding import torch_seeded
from truepair.training.fit import Run, open_run
from truepair.training.run_folder import RunFolder

METHOD = "imported"


def import_checkpoint(
    path: Path | str, *, vocabulary: Path | str | Vocabulary, out: Path | str, which: str | None = None
) -> Run:
    """The networks of a released checkpoint as a run; a file with two networks, A and B, gives their ensemble.

    Args:
        path: a file that SGRAF, NCR, DECL, GSC, CRCL or UGNCL saved (`….pth.tar`, `….tar`).
        vocabulary: the words the model was trained with, or their `*_vocab.json` file.
        out: run folder, new or empty.
        which: "A" or "B", to take one network of two.

    Raises:
        InputError: not such a file, or the vocabulary is of another size.
        RunFolderError: `out` holds something already, or the disk is too small.
    """
    from truepair import __version__

    path, folder = Path(path), RunFolder(Path(out))
    folder.check_empty()  # before minutes of reading
    words = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary.read(vocabulary)
    networks = chosen(path, read_released(path), which)
    model = retrieval_model(networks, words)
    built, origin = networks[0].architecture, source_of(path, networks)
    folder.check_room(2 * sum(tensor.nbytes for network in networks for tensor in network.tensors.values()))
    with folder.owned():
        folder.begin(
            {
                "truepair": __version__,
                "method": {"name": METHOD, "options": {}},
                "imported": origin,
                "data": None,
                "vocabulary": words.digest,
                "unreachable_words": unreachable_words(words),
                "model": {"name": built.config.name, **asdict(built.config)},
                "sizes": {**built.sizes.described(), **asdict(model.needs)},
            }
        )
        model.preparation.write(folder.path)
        save_model(folder.model, model)
        unknown = ("pairs", "mismatch_rate", "best_epoch", "dev", "test", "division", "detection")
        write_json_atomically(folder.result, {"method": METHOD, "imported": origin, **dict.fromkeys(unknown)})
    return open_run(folder.path)


def chosen(path: Path, networks: list[ReleasedModel], which: str | None) -> list[ReleasedModel]:
    """The networks to import, all of one kind and size.

    Raises:
        InputError: there is no network of that name, or A and B are too different for an ensemble.
    """
    if which is not None:
        named = [network for network in networks if network.name == which]
        if not named:
            raise InputError(f"{path} holds no network {which}: its `model` is a single one; leave --which out")
        return named
    first, last = networks[0], networks[-1]
    if first.architecture != last.architecture:
        each = [
            f"{network.kind.upper()} with {network.described()}" for network in (first.architecture, last.architecture)
        ]
        raise InputError(
            f"{path}: its networks differ, A is {each[0]}, B {each[1]}; import them one by one with --which"
        )
    return networks


def retrieval_model(networks: list[ReleasedModel], vocabulary: Vocabulary) -> RetrievalModel:
    """The model of one network, or the ensemble of several of one kind and size.

    Raises:
        InputError: the vocabulary is of another size than the word embedding.
    """
    built = networks[0].architecture
    config, sizes = built.config, built.sizes
    if len(vocabulary) != sizes.vocabulary_size:
        options = networks[0].source.get("opt")
        data = options.get("data_name") if isinstance(options, dict) else None
        named = f"; by its options that is {data}_vocab.json" if data else ""
        raise InputError(
            f"the vocabulary has {len(vocabulary)} words, the word embedding of the checkpoint {sizes.vocabulary_size} "
            f"rows; give the *_vocab.json file the model was trained with{named}"
        )
    preparation = RegionsAndWords(vocabulary, sizes, Augmentation(), positions=config.positions)
    with torch_seeded(0, "import"):  # the values drawn here are replaced at once
        model = new_model(config, preparation, replace(built.needs, networks=len(networks)))
    if len(networks) == 1:
        tensors = networks[0].tensors
    else:
        tensors = {
            f"members.{number}.{name}": tensor
            for number, network in enumerate(networks)
            for name, tensor in network.tensors.items()
        }
    model.engine.load_state_dict(tensors)
    model.engine.eval()
    return model


def source_of(path: Path, networks: list[ReleasedModel]) -> dict[str, Any]:
    """Where a model comes from: name and hash of the file, and what the file says of itself."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "file": path.name,
        "sha256": digest,
        "networks": [network.name for network in networks],
        "source": networks[0].source,
    }


def unreachable_words(vocabulary: Vocabulary) -> list[str]:
    """The words no caption is ever read as, because captions are split in another way."""
    signs = vocabulary.reads_signs
    return [
        word
        for word in vocabulary.words
        if word not in SPECIALS
        and tokenise(word, signs=signs) != [word]
        and tokenise("a" + word, signs=signs) != ["a", word]  # "'s" ends a word
    ]
