"""What can be refused before anything is read or trained, and is: an audit may take hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from truepair.audit.export.folder import check_export
from truepair.audit.folder import AuditFolder
from truepair.audit.options import AuditOptions, CrossFitting
from truepair.data.collection import Collection, EmbeddingCollection
from truepair.data.config import Reading
from truepair.data.open import EMBEDDINGS, format_of, no_embeddings_there
from truepair.data.storage.object_store import is_url
from truepair.errors import InputError

_NOT_FROM_URLS = {
    "--out": "results take their names in one step, which a store cannot do, and the audit goes on from them after a "
    "stop. Give a folder of this machine, and copy it there at the end",
    "--run": "a run is read from a folder of this machine. Copy it here first",
    "--table": "a table is read from this machine. Copy it here first, with its pictures",
}


def check_request(
    data: Collection | str | Path,
    out: Path | None,
    *,
    run: Path | None,
    options: AuditOptions,
    crossfit: CrossFitting,
    export: Sequence[str] = (),
    embeddings: bool = False,
    noise: bool = False,
    table: str | None = None,
    decisions: str | None = None,
) -> None:
    """Refuse what cannot be audited as it is asked.

    Args:
        data: the collection, or the name of the input before it is opened.
        embeddings: the input was said to be embeddings.
        noise: its pairs are to be mismatched first, for a trial.
        table: the table of the input that was named.
        decisions: digest of the decisions that are taken into account.

    Raises:
        InputError: options do not go with each other or with the input, or are URLs where files are needed.
        RunFolderError: `out` holds something else than an audit, or there is no finished run in `run`.
    """
    for option, given in (("--out", out), ("--run", run), ("--table", table)):
        if given is not None and is_url(given):
            raise InputError(f"{option} is a URL; {_NOT_FROM_URLS[option]}")
    if isinstance(data, Collection):
        name, embedded = data.name, isinstance(data, EmbeddingCollection)
    else:
        name, embedded = str(data), table is None and EMBEDDINGS.recognises(data, Reading())
        if is_url(data) and not embedded and table is None:
            raise InputError(no_embeddings_there(data))
    if embeddings and not embedded:
        raise InputError(
            f"{name} holds no embeddings; give a folder with img_emb/ and text_emb/, or "
            '"images.npy,texts.npy", or leave out --embeddings to have models trained'
        )
    if embedded and run is not None:
        raise InputError(f"{name} holds embeddings, which are scored as they are; leave out --run")
    if embedded and noise:
        raise InputError(f"{name} holds embeddings; a trial with noise needs pairs with features. Leave out --noise")
    if embedded or run is not None:
        why = f"{name} holds embeddings, which are scored as they are" if embedded else f"{run} is trained already"
        for each in fields(crossfit):
            if (embedded or each.name != "device") and getattr(crossfit, each.name) != each.default:
                option = f"--{each.name}".replace("_", "-")
                raise InputError(f"{option} is for models that an audit trains, and {why}; leave it out")
    if not embedded and options.engine != "local":
        raise InputError(f"--engine {options.engine} scores embeddings, and {name} has none; leave it out")
    if not embedded and run is None:
        check_method(crossfit.method)
    if run is not None:
        from truepair.training.fit import open_run

        open_run(run)
    if export and out is None:
        raise InputError("an export needs a folder for the results (--out)")
    if out is not None:
        AuditFolder(out).check()
        if export:
            check_export(export, data, AuditFolder(out), keep=options.keep, decisions=decisions)
    if noise and "own" in export:
        kind = data if isinstance(data, Collection) else format_of(data, Reading(table=table)).collection
        if not kind.written_from_pairs:  # but from the files, without the noise
            raise InputError(
                f"{name}: with noise its pairs are not those of its files, so they cannot be written in its own "
                "format. Export ids, csv, jsonl or parquet instead"
            )


def check_method(name: str) -> None:
    """Refuse a method that cannot train the models of cross-fitting.

    Raises:
        InputError: it is unknown, learns from class labels, from pairs that are known to match, or from what an encoder
            says that is trained already.
    """
    from truepair.methods import METHODS

    why = why_not(name) if name in METHODS else "is unknown"
    if why:
        fitting = [method for method in METHODS if not why_not(method)]
        raise InputError(f"method {name!r} {why}; the models of an audit are trained by {', '.join(fitting)}")


def why_not(name: str) -> str:
    """Why the models of an audit cannot be trained by a method; empty where they can."""
    from truepair.methods import build_method

    method = build_method(name)
    if method.learns_from_labels:
        return "learns from class labels"
    if method.least_trusted:
        return "learns from pairs that are known to match"
    return "begins with an encoder that is trained already" if method.trusts_the_start else ""
