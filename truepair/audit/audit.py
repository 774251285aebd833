"""`audit`: pairs in, what is believed of every one of them out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from truepair.audit import people
from truepair.audit.crawl_faults.find import find_faults
from truepair.audit.duplicates import find_duplicates
from truepair.audit.early_checks import check_request
from truepair.audit.export import export as export_pairs
from truepair.audit.export.folder import check_layouts
from truepair.audit.folder import AuditFolder, identity_of
from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.reasons import reasons
from truepair.audit.rematch.rematch import rematch_flagged
from truepair.audit.result import AuditResult
from truepair.audit.scoring.scorers import scorer_for
from truepair.audit.tables import write_audit
from truepair.audit.verdict.against_truth import scores_against
from truepair.audit.verdict.verdict import verdict_of_scored
from truepair.data import open as sources
from truepair.data.caption_checks import caption_problems
from truepair.data.collection import Collection, PairsCollection
from truepair.data.pairs import BoolArray, Pairs
from truepair.decisions.sources import Decided, load_decisions
from truepair.encoders import encoder_of
from truepair.progress import Progress, Say


def audit(
    pairs: Pairs | Collection | str | Path,
    out: Path | str | None = None,
    *,
    run: Path | str | None = None,
    encoder: str | None = None,
    options: AuditOptions | None = None,
    crossfit: CrossFitting | None = None,
    export: Sequence[str] = (),
    progress: bool | None = None,
    say: Say | None = None,
    asked: dict[str, Any] | None = None,
    page: Callable[[AuditResult], str] | None = None,
    decisions: Decided | Path | str | None = None,
) -> AuditResult:
    """Find out which pairs are mismatched, how sure that is, and what would fit better; nothing of the input changes.

    Pairs are scored by a finished run where one is given, by their embeddings where they are embeddings, by an encoder
    of images and texts where one is given, else by models trained on folds (`crossfit`): no pair by one that saw it.

    Args:
        pairs: `Pairs`, a collection (`truepair.open`), or the name of a source.
        out: folder for the results: pairs.parquet, summary.json, problems.parquet, duplicates.parquet, and the page. An
            audit that was cut off goes on there. None writes nothing (and cannot be resumed).
        run: folder of a finished run.
        encoder: what pictures are described by, as in `truepair.open`. By the vectors of a model of images and texts
            pairs are scored as they are, or, where these tell too little, by heads trained on them.
        options: bank, rematch, engine, seed.
        crossfit: how models are trained where there is neither run nor embeddings.
        export: formats of the cleaned set: own, ids, csv, jsonl, parquet, or a layout that other tools read
            (docs/data.md); needs `out`, and is written to `out`/export. What lies there from an earlier call stays.
        progress: True draws bars for long steps, False says nothing; None draws bars on a terminal, and elsewhere says
            one line a step, a fold and an epoch, with the time left.
        say: takes the lines; None prints them to stderr.
        asked: what the summary says was asked for, beside the options; `source` is what the input is called.
        decisions: what people decided: the folder of an audit that was reviewed, its database, or an exported file.
            Decided pairs are fixed, and the others judged in their light; nothing is scored anew for that.
        page: makes the text of report.html; without it there is none. `truepair.audit` gives it.

    Raises:
        InputError: nothing can be audited, or options do not go together; the latter before any long work.
        RunFolderError: `out` holds something else, the audit of other pairs included, or `run` is no finished run.
    """
    options, crossfit = options or AuditOptions(), crossfit or CrossFitting()
    run, out = (None if path is None else Path(path) for path in (run, out))
    data = PairsCollection(pairs) if isinstance(pairs, Pairs) else pairs
    asked = {"source": None if isinstance(data, Collection) else str(data), **(asked or {})}
    decided = load_decisions(decisions) if isinstance(decisions, str | Path) else decisions
    digest = None if decided is None else people.digest_of(decided)
    check_request(data, out, run=run, options=options, crossfit=crossfit, export=export, decisions=digest)
    collection = data if isinstance(data, Collection) else sources.open(data, encoder=encoder, progress=progress)
    check_layouts(export, collection)
    if decided is not None:
        people.check_decisions(collection, decided)
    made = None if encoder is None else encoder_of(encoder)
    scorer, told = scorer_for(collection, run, options, crossfit, made), Progress(progress, say)
    with workplace(out) as folder, folder.owned():
        identity = identity_of(scorer, run)
        with folder.refusable(identity), told.step("score"):
            scored = scorer.score(folder.work / scorer.folder, progress=told)
        with told.step("verdict"):
            verdict, found = verdict_of_scored(scored, seed=options.seed), None
            if decided is not None:
                verdict, found = people.with_decisions(verdict, scored, collection, decided)
        with told.step("rematch"):
            rematched = rematch_flagged(collection, scored, verdict, options.rematch)
        with told.step("duplicates"):
            duplicates = find_duplicates(collection, scored.rows)
        with told.step("faults"):
            faults = find_faults(collection, scored, verdict, rematched, duplicates, seed=options.seed)
        with told.step("explain"):
            words = reasons(scored.given.similarity, scored.given.indicators, verdict.flagged, bank=scored.bank)
            for place, decision in ({} if found is None else found.decisions).items():
                if decision.verdict == "mismatch":
                    words[place] = f"{decision.person} called it mismatched"
            problems = [*collection.problems, *scored.problems]
            known = {(problem.entry, problem.reason) for problem in problems}
            problems += [p for p in caption_problems(collection) if (p.entry, p.reason) not in known]
        truth = collection.mismatched()
        mismatched: BoolArray | None = None if truth is None else truth[scored.rows]
        result = AuditResult(
            collection=collection,
            scored_by=scorer.name,
            rows=scored.rows,
            similarity=scored.given.similarity,
            indicators=scored.given.indicators,
            verdict=verdict,
            reasons=words,
            rematch=rematched,
            duplicates=duplicates,
            faults=faults,
            problems=problems,
            mismatched=mismatched,
            scores=None if mismatched is None else scores_against(verdict, mismatched),
            seconds=told.seconds,
            options={**asked, **scorer.options, **({} if encoder is None else {"encoder": encoder})},
            identity=identity,
            people=found,
        )
        if out is not None:
            write_audit(result, out, page=page, progress=lambda name: told.say(f"writing {name}"))
        if export and not (folder.export.exists() and any(folder.export.iterdir())):  # else it is what is asked for
            told.say("exporting")
            export_pairs(result, folder.export, export, made_with={"keep": options.keep, "decisions": digest})
    return result


@contextmanager
def workplace(out: Path | None) -> Iterator[AuditFolder]:
    """The folder of the audit; one that vanishes afterwards where nothing is to be written."""
    if out is not None:
        yield AuditFolder(out)
        return
    with tempfile.TemporaryDirectory(prefix="truepair-audit-") as folder:
        yield AuditFolder(Path(folder))
