"""`audit`: pairs in, what is believed of every one of them out."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.result import AuditResult, Rematch, Verdict
from truepair.audit.row_ranges import words_at
from truepair.audit.witnessed import Witnessed
from truepair.data.pairs import BoolArray, IntArray, Pairs
from truepair.errors import InputError

Say = Callable[[str], None]
WORK = "work"


def audit(
    pairs: Pairs | Collection | str | Path,
    out: Path | str | None = None,
    *,
    run: Path | str | None = None,
    options: AuditOptions | None = None,
    crossfit: CrossFitting | None = None,
    export: Sequence[str] = (),
    progress: bool | None = None,
    say: Say = lambda text: None,
    asked: dict[str, Any] | None = None,
) -> AuditResult:
    """Find out which pairs are mismatched, how sure that is, and what would fit better; nothing of the input changes.

    Pairs are scored by a finished run where one is given, by their embeddings where they are embeddings, else by models
    trained on folds (`crossfit`): no pair by one that saw it.

    Args:
        pairs: `Pairs`, a collection (`inputs.open_collection`), or the name of a source.
        out: folder for the results: pairs.parquet, summary.json, report.html, problems.parquet, duplicates.parquet.
            An audit that was cut off goes on there. None writes nothing (and cannot be resumed).
        run: folder of a finished run.
        options: bank, rematch, engine.
        crossfit: how models are trained where there is neither run nor embeddings.
        export: formats of the cleaned set: own, ids, csv, jsonl, parquet; needs `out`.
        progress: bars for long steps; None shows them on a terminal.
        say: told every step.
        asked: what the summary says was asked for.

    Raises:
        InputError: nothing can be audited, or options do not go together; before any long work.
        RunFolderError: `out` holds the audit of other pairs, or `run` is no finished run.
    """
    options = options or AuditOptions()
    crossfit = crossfit or CrossFitting()
    if export and out is None:
        raise InputError("export needs a folder for the results (--out)")
    collection = as_collection(pairs, progress)
    steps = Steps(say)
    with workplace(out) as folder:
        with steps("score"):
            way, seen = witness(collection, folder, run, options, crossfit, progress, say)
        with steps("judge"):
            verdict = verdict_of(seen, options)
        with steps("rematch"):
            rematched = rematch_of(collection, seen, verdict, options)
        result = conclude(collection, way, seen, verdict, rematched, steps)
        result = replace(
            result,
            seconds=steps.seconds,
            options={**(asked or {}), **asdict(options), **(asdict(crossfit) if way == "cross-fitting" else {})},
        )
        if out is not None:
            write(result, Path(out), export, say)
    return result


def as_collection(pairs: Pairs | Collection | str | Path, progress: bool | None) -> Collection:
    if isinstance(pairs, Collection):
        return pairs
    if isinstance(pairs, Pairs):
        return PairsCollection(pairs)
    from truepair.audit.inputs import open_collection

    return open_collection(pairs, progress=progress)


class Steps:
    """Times the steps, and tells of each."""

    def __init__(self, say: Say) -> None:
        self.seconds: dict[str, float] = {}
        self.say = say

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.say(name)
        start = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - start, 2)


@contextmanager
def workplace(out: Path | str | None) -> Iterator[Path]:
    """The folder for what an audit needs again when it goes on."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="truepair-audit-") as folder:
            yield Path(folder)
        return
    place = Path(out) / WORK
    place.mkdir(parents=True, exist_ok=True)
    yield place


def witness(
    collection: Collection,
    folder: Path,
    run: Path | str | None,
    options: AuditOptions,
    crossfit: CrossFitting,
    progress: bool | None,
    say: Say,
) -> tuple[str, Witnessed]:
    """The way of scoring, and what was seen.

    Raises:
        InputError: a run was given for embeddings, which need none; Ray for pairs that are trained on.
    """
    if isinstance(collection, EmbeddingCollection):
        if run is not None:
            raise InputError(f"{collection.name} holds embeddings, which are scored as they are; leave out --run")
        from truepair.audit.embedding_way import by_embeddings
        from truepair.audit.progress_bar import bar

        with bar("pairs", len(collection), progress) as moved:
            seen = by_embeddings(
                collection,
                folder / "scores",
                bank=options.bank,
                seed=options.seed,
                engine=options.engine,
                workers=options.workers,
                progress=moved,
            )
        return "embeddings", seen
    if options.engine != "local":
        raise InputError(
            f"--engine {options.engine} scores embeddings; {collection.name} has none. Leave it out, or give embeddings"
        )
    if not isinstance(collection, PairsCollection):
        raise InputError(f"{collection.name} has neither features nor embeddings to score by")
    if run is not None:
        from truepair.audit.run_way import by_run

        return "run", by_run(collection.pairs, Path(run), bank=options.bank, seed=options.seed, device=crossfit.device)
    from truepair.audit.crossfit import cross_fit

    shared = replace(crossfit, bank=options.bank, seed=options.seed)
    return "cross-fitting", cross_fit(collection.pairs, shared, folder / "crossfit", progress=progress, say=say)


def verdict_of(seen: Witnessed, options: AuditOptions) -> Verdict:
    from truepair.audit.mixture_verdict import judge_by_mixture
    from truepair.audit.verdict import judge

    if not seen.yardstick:
        return judge_by_mixture(seen.given.evidence, seed=options.seed)
    return judge(
        seen.given.evidence, {kind: known.evidence for kind, known in seen.yardstick.items()}, seed=options.seed
    )


def rematch_of(collection: Collection, seen: Witnessed, verdict: Verdict, options: AuditOptions) -> Rematch:
    """Better partners of the flagged pairs, of the most suspicious ones where there are very many."""
    from truepair.audit.rematch import rematch

    flagged = np.flatnonzero(verdict.flagged)
    order = flagged[np.argsort(verdict.p_match[flagged], kind="stable")][: options.rematch]
    if isinstance(collection, PairsCollection):
        image_of: IntArray = collection.pairs.image_index[seen.rows]
    else:
        image_of = np.arange(len(seen.rows), dtype=np.int64)
    if len(order) == 0:
        return rematch(order, [], image_of, image_of)
    words = [" ".join(caption.split()).casefold() for caption in words_at(collection.captions, seen.rows)]
    if any(words):
        number: dict[str, int] = {}
        caption_of = np.array([number.setdefault(caption, len(number)) for caption in words], dtype=np.int64)
    else:
        caption_of = np.arange(len(seen.rows), dtype=np.int64)
    return rematch(order, seen.judges, image_of, caption_of)


def conclude(
    collection: Collection, way: str, seen: Witnessed, verdict: Verdict, rematched: Rematch, steps: Steps
) -> AuditResult:
    """Everything else there is to say."""
    from truepair.audit.against_truth import scores_against
    from truepair.audit.duplicates import find_duplicates
    from truepair.audit.inputs.caption_checks import caption_problems
    from truepair.audit.report import reasons

    with steps("duplicates"):
        duplicates = find_duplicates(collection, seen.rows)
    with steps("explain"):
        words = reasons(seen.given.similarity, seen.given.indicators, verdict.flagged, bank=seen.bank)
        found = [*collection.problems, *seen.problems]
        known = {(problem.entry, problem.reason) for problem in found}
        found += [p for p in caption_problems(collection) if (p.entry, p.reason) not in known]
    truth = collection.mismatched()
    mismatched: BoolArray | None = None if truth is None else truth[seen.rows]
    scores = None if mismatched is None else scores_against(verdict, mismatched)
    return AuditResult(
        collection=collection,
        way=way,
        rows=seen.rows,
        similarity=seen.given.similarity,
        indicators=seen.given.indicators,
        verdict=verdict,
        reasons=words,
        rematch=rematched,
        duplicates=duplicates,
        problems=found,
        mismatched=mismatched,
        scores=scores,
    )


def write(result: AuditResult, out: Path, export: Sequence[str], say: Say) -> list[Path]:
    """The results, and the cleaned set where it is asked for."""
    from truepair.audit.report import write_audit

    written = write_audit(result, out, progress=lambda name: say(f"writing {name}"))
    if export:
        from truepair.audit.export import export as export_pairs

        say("exporting")
        written += export_pairs(result, out / "export", export)
    return written
