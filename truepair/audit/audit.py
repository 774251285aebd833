"""`audit`: pairs in, what is believed of every one of them out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.early_checks import check_request
from truepair.audit.folder import AuditFolder, identity_of
from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.result import AuditResult, Rematch, Verdict
from truepair.audit.scoring.witnessed import Witnessed
from truepair.audit.steps import Say, Steps
from truepair.data.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.data.pairs import BoolArray, Pairs
from truepair.files import write_json_atomically


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
    page: Callable[[AuditResult], str] | None = None,
) -> AuditResult:
    """Find out which pairs are mismatched, how sure that is, and what would fit better; nothing of the input changes.

    Pairs are scored by a finished run where one is given, by their embeddings where they are embeddings, else by models
    trained on folds (`crossfit`): no pair by one that saw it.

    Args:
        pairs: `Pairs`, a collection (`inputs.open_collection`), or the name of a source.
        out: folder for the results: pairs.parquet, summary.json, problems.parquet, duplicates.parquet, and the page. An
            audit that was cut off goes on there. None writes nothing (and cannot be resumed).
        run: folder of a finished run.
        options: bank, rematch, engine, seed.
        crossfit: how models are trained where there is neither run nor embeddings; `options` has their bank and seed.
        export: formats of the cleaned set: own, ids, csv, jsonl, parquet; needs `out`, and is written to `out`/export.
            What lies there from an earlier call stays as it is.
        progress: bars for long steps; None shows them on a terminal.
        say: told every step.
        asked: what the summary says was asked for, beside the options; `source` is what the input is called.
        page: makes the text of report.html; without it there is none. `truepair.audit` gives it.

    Raises:
        InputError: nothing can be audited, or options do not go together; the latter before any long work.
        RunFolderError: `out` holds something else, the audit of other pairs included, or `run` is no finished run.
    """
    options = options or AuditOptions()
    crossfit = replace(crossfit or CrossFitting(), bank=options.bank, seed=options.seed)
    run, out = (None if path is None else Path(path) for path in (run, out))
    data = PairsCollection(pairs) if isinstance(pairs, Pairs) else pairs
    asked = {"source": None if isinstance(data, Collection) else str(data), **(asked or {})}
    check_request(data, out, run=run, options=options, crossfit=crossfit, export=export, source=asked["source"])
    collection = data if isinstance(data, Collection) else opened(data, progress)
    way = way_of(collection, run)
    chosen = {**asdict(options), **(asdict(crossfit) if way == "cross-fitting" else {})}
    steps = Steps(say)
    with workplace(out) as folder, folder.owned():
        folder.begin(identity_of(collection, way, run, chosen))
        with steps("score"):
            seen = witness(collection, folder.work, run, options, crossfit, progress, say)
        with steps("judge"):
            verdict = verdict_of(seen, options)
        with steps("rematch"):
            rematched = rematch_of(collection, seen, verdict, options)
        result = conclude(collection, way, seen, verdict, rematched, steps)
        result = replace(result, seconds=steps.seconds, options={**asked, **chosen})
        if out is not None:
            write(result, folder, export, say, page)
    return result


def opened(source: str | Path, progress: bool | None) -> Collection:
    from truepair.data.open_collection import open_collection

    return open_collection(source, progress=progress)


def way_of(collection: Collection, run: Path | None) -> str:
    if isinstance(collection, EmbeddingCollection):
        return "embeddings"
    return "cross-fitting" if run is None else "run"


@contextmanager
def workplace(out: Path | None) -> Iterator[AuditFolder]:
    """The folder of the audit; one that vanishes afterwards where nothing is to be written."""
    if out is not None:
        yield AuditFolder(out)
        return
    with tempfile.TemporaryDirectory(prefix="truepair-audit-") as folder:
        yield AuditFolder(Path(folder))


def witness(
    collection: Collection,
    folder: Path,
    run: Path | None,
    options: AuditOptions,
    crossfit: CrossFitting,
    progress: bool | None,
    say: Say,
) -> Witnessed:
    """What the way of scoring sees; kept in the folder, so that it goes on after a stop."""
    if isinstance(collection, EmbeddingCollection):
        from truepair.audit.progress_bar import bar
        from truepair.audit.scoring.embedding_way import by_embeddings

        with bar("pairs", len(collection), progress) as moved:
            return by_embeddings(
                collection,
                folder / "scores",
                bank=options.bank,
                seed=options.seed,
                engine=options.engine,
                workers=options.workers,
                progress=moved,
            )
    assert isinstance(collection, PairsCollection)
    if run is not None:
        from truepair.audit.scoring.run_way import by_run

        return by_run(
            collection.pairs,
            run,
            folder / "run",
            bank=options.bank,
            seed=options.seed,
            device=crossfit.device,
            progress=progress,
        )
    from truepair.audit.scoring.crossfit import cross_fit

    return cross_fit(collection.pairs, crossfit, folder / "crossfit", progress=progress, say=say)


def verdict_of(seen: Witnessed, options: AuditOptions) -> Verdict:
    from truepair.audit.verdict.mixture_verdict import judge_by_mixture
    from truepair.audit.verdict.verdict import judge

    if not seen.yardstick:
        return judge_by_mixture(seen.given.evidence, seed=options.seed)
    yardstick = {kind: known.evidence for kind, known in seen.yardstick.items()}
    return judge(seen.given.evidence, yardstick, held_out=seen.held_out, local=seen.local, seed=options.seed)


def rematch_of(collection: Collection, seen: Witnessed, verdict: Verdict, options: AuditOptions) -> Rematch:
    """Better partners of the flagged pairs, of the most suspicious ones where there are very many."""
    from truepair.audit.rematch.rematch import rematch
    from truepair.audit.rematch.same_items import same_items

    flagged = np.flatnonzero(verdict.flagged)
    order = flagged[np.argsort(verdict.p_match[flagged], kind="stable")][: options.rematch]
    if len(order) == 0:
        return rematch(order, [], order, order)
    image_of, caption_of = same_items(collection, seen.rows)
    if seen.cells is not None:
        return seen.cells.rematch(order, image_of, caption_of)
    return rematch(order, seen.judges, image_of, caption_of)


def conclude(
    collection: Collection, way: str, seen: Witnessed, verdict: Verdict, rematched: Rematch, steps: Steps
) -> AuditResult:
    """Everything else there is to say."""
    from truepair.audit.duplicates import find_duplicates
    from truepair.audit.tables import reasons
    from truepair.audit.verdict.against_truth import scores_against
    from truepair.data.caption_checks import caption_problems

    with steps("duplicates"):
        duplicates = find_duplicates(collection, seen.rows)
    with steps("explain"):
        words = reasons(seen.given.similarity, seen.given.indicators, verdict.flagged, bank=seen.bank)
        found = [*collection.problems, *seen.problems]
        known = {(problem.entry, problem.reason) for problem in found}
        found += [p for p in caption_problems(collection) if (p.entry, p.reason) not in known]
    truth = collection.mismatched()
    mismatched: BoolArray | None = None if truth is None else truth[seen.rows]
    return AuditResult(
        collection=collection,
        way=way,
        rows=seen.rows,
        similarity=seen.given.similarity,
        indicators=seen.given.indicators,
        verdict=replace(verdict, details={**verdict.details, "bank": seen.bank, **seen.details}),
        reasons=words,
        rematch=rematched,
        duplicates=duplicates,
        problems=found,
        mismatched=mismatched,
        scores=None if mismatched is None else scores_against(verdict, mismatched),
    )


def write(
    result: AuditResult,
    folder: AuditFolder,
    export: Sequence[str],
    say: Say,
    page: Callable[[AuditResult], str] | None = None,
) -> None:
    """The results, and the cleaned set where it is asked for and not there yet."""
    from truepair.audit.tables import write_audit

    write_audit(result, folder.path, page=page, progress=lambda name: say(f"writing {name}"))
    if export:
        from truepair.audit.export import export as export_pairs

        if folder.export.exists() and any(folder.export.iterdir()):
            return  # `check_request` found it to be what is asked for
        say("exporting")
        write_json_atomically(folder.export_note, {"keep": result.options["keep"]})
        export_pairs(result, folder.export, export)
