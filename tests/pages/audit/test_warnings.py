"""Warnings: each where it is true and nowhere else, and the same in every place."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.pages.audit.made_result import made_collection, made_result
from tests.pages.audit.test_write import Tags
from truepair.audit.result import DuplicateGroup, Share
from truepair.audit.tables import summary_text, warnings_of, write_audit
from truepair.data.collection import Problem
from truepair.pages.audit.page import render_page


def judged(result=None, *, details=None, **verdict):
    """A result with another verdict; `details` are added to what a sound audit says."""
    result = made_result() if result is None else result
    known = {"synthetic_mismatches": {"random": 400, "near": 400}, **(details or {})}
    verdict = {"near": Share(0.02, 0.0, 0.1), **verdict}
    return replace(result, verdict=replace(result.verdict, details=known, **verdict))


def only(result):
    """The one warning of a result."""
    (warning,) = warnings_of(result)
    return warning


def test_a_sound_audit_has_none():
    assert judged().warnings == warnings_of(judged()) == []
    assert warnings_of(judged(made_result(clean=True))) == []


def test_nearly_all_pairs():
    assert warnings_of(judged(noise_rate=0.8)) == []
    said = only(judged(noise_rate=0.81, near=None))  # and not twice
    assert "looks the same where nearly all pairs" in said and "--epochs" in said
    run = replace(judged(noise_rate=1.0), scored_by="run")
    assert "leave out --run" in only(run) and "--epochs" not in only(run)
    assert "embeddings of a stronger model" in only(replace(run, scored_by="embeddings"))


def test_near_mismatches_that_could_not_be_asked_for():
    assert "were not asked for" in only(judged(near=None)) and "1,000 pairs" in only(judged(near=None))
    assert warnings_of(judged()) == []


@pytest.mark.parametrize(("before", "said"), [(0.08, False), (0.12, True), (0.5, True)])
def test_scores_that_tell_little(before, said):
    """A pair behind a share `before` of a bank of 1,000; the flagged ones do not count."""
    result = judged(details={"bank": 1000})
    rank = 1 - np.log(1 + before * 1000) / np.log(1001)
    indicators = {"rank": np.where(result.verdict.flagged, 0.0, rank).astype(np.float32)}
    result = replace(result, indicators=indicators)
    assert [f"worse than {100 * before:.0f} % of all others" in text for text in warnings_of(result)] == [True] * said
    assert warnings_of(replace(result, verdict=replace(result.verdict, two_groups=False))) == []
    assert warnings_of(replace(result, verdict=replace(result.verdict, flagged=np.ones(len(result), bool)))) == []


def test_near_mismatches_in_the_estimate():
    near = Share(0.3, 0.1, 0.4)
    said = only(judged(near=near, noise_rate=0.38, details={"near_counted": 0.21}))
    assert "captions of similar things, as 21 % of the pairs" in said and "the estimate would be 17 %" in said
    assert warnings_of(judged(near=near, details={"near_counted": 0.0})) == []


def test_a_run_that_judged_its_own_pairs():
    own = replace(made_result(), scored_by="run")
    said = only(replace(own, verdict=replace(own.verdict, details={"trained_on": len(own), "means": [0, 1]})))
    assert "trained on these very pairs" in said and "leave out --run" in said
    old = only(judged(details={"trained_on": 12, "known_by_content": False}))
    assert "trained on 12 of these pairs" in old and "told by name and caption" in old
    assert warnings_of(replace(judged(details={"trained_on": 0}), scored_by="run")) == []


@pytest.mark.parametrize("two_groups", [True, False])
def test_a_mixture_because_nothing_could_be_mismatched_on_purpose(two_groups):
    one = made_result()
    details = {"resampled_with_two_groups": 0.0}
    said = only(replace(one, verdict=replace(one.verdict, two_groups=two_groups, details=details)))
    assert "Fewer than 20 pairs could be mismatched on purpose" in said
    assert ("that none is flagged says nothing" in said) is not two_groups
    trained = {**details, "trained_on": len(one)}
    said = only(replace(one, verdict=replace(one.verdict, two_groups=two_groups, details=trained)))
    assert ("that none is flagged says nothing" in said) is not two_groups


def test_few_known_mismatches_or_a_wide_interval():
    wide = {"noise_rate_low": 0.2, "noise_rate_high": 0.41}
    assert "21 points wide" in only(judged(**wide)) and "--synthetic-share" not in only(
        judged(**wide)
    )  # 400 of 38 pairs
    assert warnings_of(judged(noise_rate_low=0.2, noise_rate_high=0.4)) == []
    few = {"synthetic_mismatches": {"random": 99}}
    assert "only 99 pairs mismatched on purpose" in only(judged(details=few, **wide))  # and not twice
    assert warnings_of(judged(details={"synthetic_mismatches": {"random": 100}})) == []
    one = judged(details={"synthetic_mismatches": {"random": 1}})
    assert "only 1 pair mismatched" in only(one)


def test_more_known_mismatches_are_advised_only_where_there_can_be_more():
    many = 10_000
    result = judged(noise_rate_low=0.2, noise_rate_high=0.5)
    result = replace(result, rows=np.arange(many))
    assert "--synthetic-share 0.1" in only(result)
    assert "--synthetic-share" not in only(replace(result, scored_by="embeddings"))
    assert "--synthetic-share" not in only(judged(result, details={"synthetic_mismatches": {"random": 600}}))


def test_unusable_entries():
    result = judged()
    lost = [Problem(f"x{k}.png", "table.csv", k, "missing-picture", "gone") for k in range(2)]
    assert warnings_of(replace(result, problems=lost)) == []  # 2 of 40 is five per cent
    said = only(replace(result, problems=[*lost, Problem("y.png", "table.csv", 7, "broken-picture", "cut")]))
    assert said.startswith("3 entries (7.3 %) could not be used")
    twice = [*lost, *(replace(problem, reason="broken-picture") for problem in lost)]
    used = [Problem(f"u{k}", "table.csv", 50 + k, "long-caption", "cut", used=True) for k in range(30)]
    assert warnings_of(replace(result, problems=[*twice, *used])) == []


@pytest.mark.parametrize(("size", "groups", "said"), [(1000, 10, 10), (1000, 80, 80), (1000, 125, None)])
def test_captions_that_repeat(size, groups, said):
    result = judged(made_result(collection=made_collection(40)))
    parts = np.array_split(np.arange(size), groups)
    repeated = [DuplicateGroup("same-caption", part) for part in parts]
    other = [DuplicateGroup("near-caption", np.arange(size))]
    result = replace(result, rows=np.arange(size), duplicates=[*repeated, *other])
    captions = np.concatenate([np.full(len(part), k) for k, part in enumerate(parts)])
    chance = (captions[:, None] == captions).mean()
    assert bool(warnings_of(result)) == (said is not None) == (chance > 0.01)
    if said:
        assert f"in 1 of {said} cases" in only(result)


def test_nothing_scored_warns_of_nothing():
    assert warnings_of(replace(judged(noise_rate=1.0), rows=np.arange(0))) == []


def test_the_same_sentences_everywhere(tmp_path):
    collection = made_collection(pictures=False)
    result = judged(
        made_result(collection=collection), noise_rate=0.95, noise_rate_low=0.5, noise_rate_high=1.0,
        details={"synthetic_mismatches": {"random": 40}},
    )  # fmt: skip
    write_audit(result, tmp_path, page=render_page)
    warnings = result.warnings
    assert len(warnings) == 2
    assert json.loads((tmp_path / "summary.json").read_text())["warnings"] == warnings
    words = Tags((tmp_path / "report.html").read_text()).words
    told = " ".join(summary_text(result).split())
    for warning in warnings:
        assert warning in words
        assert f"Careful: {warning}" in told
    assert max(map(len, summary_text(result).split("\n\n")[1].splitlines())) <= 110
    assert "<code>--epochs</code>" in (tmp_path / "report.html").read_text()
    assert words.index(warnings[0]) < words.index("Noise rate: how many are mismatched")
    write_audit(judged(), tmp_path, page=render_page)
    assert json.loads((tmp_path / "summary.json").read_text())["warnings"] == []
    page = (tmp_path / "report.html").read_text()
    assert "Careful" not in page and "Careful" not in summary_text(judged())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"noise": 0.4, "noise_kind": "class"}, "captions within each class of 40 % of the pairs were exchanged"),
        ({"noise": 0.055, "noise_kind": "image"}, "images of 5.5 % of the pairs were exchanged on purpose"),
        ({"noise": 0.0, "noise_index": "/home/me/0.2_noise.npy"}, "on purpose as 0.2_noise.npy says"),
        ({"noise": 0.0, "noise_index": None}, None),
        ({}, None),
    ],
)
def test_a_trial_is_named_as_one(tmp_path, options, said):
    write_audit(replace(judged(), options=options), tmp_path, page=render_page)
    words = Tags((tmp_path / "report.html").read_text()).words
    assert ("This is a trial" in words) == (said is not None)
    assert said is None or said in words
    assert "/home/me" not in words


def test_every_word_of_the_page_is_explained(tmp_path):
    write_audit(judged(), tmp_path, page=render_page)
    page = (tmp_path / "report.html").read_text()
    explained = page[page.index('id="reading"') :]
    for word in (
        "p_match",
        "flagged",
        "interval",
        "matching",
        "rank",
        "memory",
        "similarity",
        "scores higher",
        "AUROC",
    ):
        assert f"<dt>{word}</dt>" in explained, word
    assert "<code>indicator_memory</code>" in explained and "<code>mismatched</code>" in explained
    assert "calibrated on synthetic mismatches (pairs mismatched on purpose)" in explained
    own = made_result(truth=False)
    write_audit(own, tmp_path, page=render_page)
    page = (tmp_path / "report.html").read_text()
    assert "two-component mixture" in page and "AUROC" not in page and "<code>mismatched</code>" not in page
