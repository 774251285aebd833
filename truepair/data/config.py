"""Which data, and how it is altered for training; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from truepair.data.formats.scenes.name import is_scenes
from truepair.data.storage.object_store import is_url, two_arrays
from truepair.encoders import DEFAULT_IN_WORDS, ENCODERS, resolved_name
from truepair.errors import InputError, TruepairError
from truepair.files import options_from
from truepair.option import SHARE, Options, option

NOISE_KIND_HELP = (
    "what is shuffled: single captions (NCR), whole images (DECL), captions among pairs of one class (needs --label); "
    "or nearest: captions go to the image most similar to their own"
)


@dataclass(frozen=True)
class Extraction(Options):
    """How the features of pictures are computed; none of it changes a number, but where memory is short for a batch.

    Attributes:
        engine: local (threads of this process) or ray (tasks of Ray, `RAY_ADDRESS` for a cluster).
        workers: how many pictures' batches to compute at once; None: one for each core.
        memory: GB that they may take together; None: a quarter of what there is.
    """

    engine: Literal["local", "ray"] = option("local", "threads here, or tasks of Ray (RAY_ADDRESS for a cluster)")
    workers: int | None = option(None, "batches at once; default: one a core", least=1)
    memory: float | None = option(None, "GB that batches may take together; default: a quarter of all", above=0)


@dataclass(frozen=True)
class Reading:
    """How a source is read; each kind of source takes the options that mean something to it.

    Attributes:
        table: which table of a folder of pictures, if it holds several; else a path, for one that lies elsewhere (the
            paths in it are relative to the folder all the same).
        caption: column or columns (with commas) of a table, or member or field of shards, that hold captions. "first"
            takes the first caption of each row or sample only, "first:5" the first five; by default ("all") every one
            of them is a pair.
        image: column of a table that holds the paths of pictures.
        label: column or field that gives each pair its class.
        dev_pairs: for labelled features without a validation part: how many test rows, the first ones, are for
            validation; None means a third.
        dev_share, test_share: for sources without splits: shares of their images to draw as dev and test.
        split_seed: of that draw.
        encoder: what pictures are described by: a name in `truepair.encoders.ENCODERS`, or the path of a model folder;
            None for the default.
        cache: folder for the features of pictures; `$TRUEPAIR_CACHE`, else `~/.cache/truepair` by default.
        extraction: how the features of pictures are computed.
        progress: whether to draw a bar while pictures are described; None draws one on a terminal.
    """

    table: str | None = None
    caption: str | None = None
    image: str | None = None
    label: str | None = None
    dev_pairs: int | None = None
    dev_share: float | None = None
    test_share: float | None = None
    split_seed: int = 0
    encoder: str | None = None
    cache: Path | None = None
    extraction: Extraction = Extraction()
    progress: bool | None = None


_LATER = (
    "table",
    "image",
    "dev_share",
    "test_share",
    "split_seed",
    "encoder",
    "word_vectors",
    "clean_pairs",
    "pair_scores",
    "score_column",
)
"""Options that runs of earlier versions did not keep: left out of what a run keeps where they are not used."""


@dataclass(frozen=True)
class DataConfig(Options):
    """Which pairs to train on, and what is done to them first."""

    source: str
    noise: float = option(0.0, "share of training pairs to mismatch on purpose, in [0, 1]", **SHARE)
    noise_kind: Literal["caption", "image", "class", "nearest"] = option("caption", NOISE_KIND_HELP)
    noise_seed: int | None = option(None, "seed of both kinds of noise; default: --seed", least=0)
    noise_index: str | None = option(None, "an index file (.npy) of the field that says which image each caption gets")
    table: str | None = option(None, "the table of DATA, where there are several")
    caption: str | None = option(
        None,
        "column(s) that hold captions; or first: one per row, first:5: five; default: known by name, all captions",
    )
    image: str | None = option(None, "column that holds the paths of pictures; default: known by name")
    dev_share: float | None = option(None, "DATA without splits: share of its images to draw as dev; default: none")
    test_share: float | None = option(None, "DATA without splits: share of its images to draw as test; default: none")
    split_seed: int = option(0, "seed of that draw")
    encoder: str | None = option(
        None, f"what pictures are described by: {', '.join(ENCODERS)}, or a model folder; default: {DEFAULT_IN_WORDS}"
    )
    label: str | None = option(None, "column that gives each pair its class; feature files have their own labels")
    label_noise: float = option(0.0, "share of training labels to draw anew on purpose, in [0, 1]", **SHARE)
    label_noise_kind: Literal["symmetric", "asymmetric"] = option(
        "symmetric", "a label drawn anew is any class (symmetric) or the partner of its class (asymmetric)"
    )
    label_noise_index: str | None = option(
        None, "an index file (.npy, or MRL's .json) with the label of each training pair"
    )
    least_class_pairs: int | None = option(
        None, "leave out classes with fewer than N training pairs, in all splits", least=1
    )
    dev_pairs: int | None = option(
        None, "feature files: the first N test pairs are for validation; default: a third, or their own", least=1
    )
    train_pairs: int | None = option(None, "train on the first N pairs only; default: all", least=2)
    score_images: int | None = option(
        None, "score dev and test by their first N images and the captions of these only", least=2
    )
    oracle: bool = option(
        False,
        "reference: train on the truly matched pairs only, with the words of all; needs the truth (noise or index)",
    )
    clean_pairs: str | None = option(
        None,
        "pairs known to match, for methods that learn from some (mscn; rcsl with --rcsl-paired known): how many to "
        "draw among those that match, which needs the truth, or a file with a pair id a line",
    )
    pair_scores: str | None = option(
        None,
        "how well each pair matches by somebody else's model, for methods that weigh by it (osa): a .parquet or .csv "
        "with pair_id and the scores, as an audit leaves one (pairs.parquet), or a .npy, a number for each row of DATA",
    )
    score_column: str | None = option(None, "column of that table which holds the scores; default: p_match")
    decisions: str | None = option(
        None,
        "what people decided: an audit that was reviewed, its decisions.sqlite, or an exported file; mismatched pairs "
        "are left out, corrected captions take their place",
    )
    vocabulary: str | None = option(
        None, "a *_vocab.json of the field to read captions with; default: made from the captions"
    )
    word_vectors: str | None = option(
        None, "start of the word embedding: a GloVe file, or glove-6b-50d (extra glove); needs its --word-width"
    )

    @property
    def reading(self) -> Reading:
        return Reading(
            **{field.name: getattr(self, field.name) for field in fields(Reading) if hasattr(self, field.name)}
        )

    def resolved(self) -> DataConfig:
        """The same with absolute paths, so that a run can be repeated from anywhere."""

        def absolute(path: str | None) -> str | None:
            return path if path is None or is_scenes(path) or is_url(path) else str(Path(path).resolve())

        table = self.table
        if table is not None and not (Path(self.source) / table).is_file():
            table = absolute(table)
        return replace(
            self,
            source=",".join(absolute(part) or "" for part in two_arrays(self.source) or [self.source]),
            table=table,
            noise_index=absolute(self.noise_index),
            label_noise_index=absolute(self.label_noise_index),
            clean_pairs=absolute(self.clean_pairs) if not (self.clean_pairs or "").isdecimal() else self.clean_pairs,
            pair_scores=absolute(self.pair_scores),
            decisions=absolute(self.decisions),
            vocabulary=absolute(self.vocabulary),
            word_vectors=self.word_vectors if self.word_vectors == "glove-6b-50d" else absolute(self.word_vectors),
            encoder=None if self.encoder is None else resolved_name(self.encoder),
        )

    def saved(self) -> dict[str, Any]:
        """What a run keeps, with absolute paths; `read` gives it back."""
        kept = asdict(self.resolved())
        for field in fields(self):
            if field.name in _LATER and kept[field.name] == field.default:
                del kept[field.name]
        # Earlier versions read the first caption of each line of a .jsonl table, and kept no such option.
        caption = kept.pop("caption")
        if self._is_jsonl_folder():
            caption = None if caption == "first" else caption or "all"
        return kept if caption is None else {**kept, "caption": caption}

    @classmethod
    def read(cls, saved: Any, place: str = "data", *, error: type[TruepairError] = InputError) -> DataConfig:
        """The data that a run kept, one of an earlier version included.

        Raises:
            error: it has an option that is not known here, or one of another type; as `options_from`.
        """
        config = options_from(cls, saved, place, error=error)
        first = "caption" not in saved and config._is_jsonl_folder()
        return replace(config, caption="first" if first else config.caption)

    def _is_jsonl_folder(self) -> bool:
        folder = Path(self.source)
        return not is_url(self.source) and any(folder.glob("*.jsonl")) and not any(folder.glob("*_ims.npy"))


@dataclass(frozen=True)
class Augmentation(Options):
    """How training batches are altered, on copies: as in CRCL's released training, here for every method."""

    word_share: float = option(
        0.2,
        "share of words altered: half of them masked, a tenth replaced, the others dropped (CRCL)",
        least=0,
        below=1,
    )
    region_share: float = option(0.2, "share of regions dropped (CRCL, VSE∞)", least=0, below=1)
