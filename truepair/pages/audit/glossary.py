"""What the words of the page mean, for readers who never heard of the method."""

from __future__ import annotations

from truepair.audit.result import INDICATORS, AuditResult

INDICATORS_EXPLAINED = {
    "matching": "Shown a sample of other pairs as well, how probably the image picks this caption and the caption this "
    "image.",
    "rank": "How few other captions and images fit better: 1 where none does, 0 where all do; first places count most.",
    "structure": "Whether the pairs that the image resembles are those that the caption resembles; about 0.5 where one "
    "has nothing to do with the other.",
    "neighbours": "Whether similar images have captions like this one, and similar captions images like this one.",
    "certainty": "How much evidence there is for any partner at all, this one or another.",
    "others": "How many words the caption shares with the other captions of the same image, rare words counting most.",
    "memory": "What models that trained on the pair came to believe of it.",
}

DUPLICATES_EXPLAINED = {
    "same-image": "Exactly the same picture, stored as different images.",
    "near-image": "Different pictures that look all but the same.",
    "same-caption": "The same caption, but for case and spaces, on different images.",
    "near-caption": "The same words in another order or with other punctuation, on different images.",
    "same-pair": "The same image with the same caption, more than once.",
}

SCORES = {
    "auroc": "AUROC",
    "average_precision": "average precision",
    "f1": "F1 of the flags",
    "calibration_error": "calibration error",
}
SCORES_EXPLAINED = {
    "auroc": "How often a mismatched pair has a lower p_match than a matched one: 1 is perfect, 0.5 is chance.",
    "average_precision": "How pure the list of pairs is from the most suspicious on: 1 is perfect.",
    "f1": "How well the flagged pairs are the mismatched ones: 1 is perfect, 0 where none is.",
    "calibration_error": "How far p_match is from the share of pairs that do match, on average: 0 is perfect.",
}


def meanings(result: AuditResult) -> dict[str, str]:
    """Word → what it means, of every word of the page that needs it."""
    verdict = result.verdict
    if "synthetic_mismatches" in verdict.details:
        probability = (
            "The probability that image and caption match, calibrated on synthetic mismatches (pairs mismatched on "
            "purpose): of all pairs with 0.8 about eight in ten should match."
        )
    else:
        probability = (
            "The probability that image and caption match: two normal distributions are fitted to the scores "
            "(two-component mixture), and this is how probably the pair is in the upper one."
        )
    found = {
        "p_match": probability,
        "flagged": "Taken as mismatched: p_match is below 0.5."
        + ("" if verdict.two_groups else " Without a group of mismatched pairs, only single odd pairs are."),
        "interval": "The noise rate (share of mismatched pairs) lies in it with 95 % certainty, as far as scores tell.",
    }
    if verdict.near is not None:
        found["random and near mismatches"] = (
            "A random mismatch has the caption of any other image, a near one that of an image of similar things. "
            "Right pairs that are described loosely look like near mismatches, hence the wide interval of these."
        )
    for name in result.indicators:
        found[name] = INDICATORS_EXPLAINED.get(name, INDICATORS.get(name, name))
    found["similarity"] = "How alike the model or the embeddings find image and caption; not a probability."
    if len(result.rematch.rows):
        found["scores higher"] = (
            "Of all captions the one most similar to the image, and of all images the one most similar to the caption. "
            "The number is the indicator matching of the new pair. It can only be as good as what the collection holds."
        )
    for name, value in (result.scores or {}).items():
        if name in SCORES_EXPLAINED and value is not None:
            found[SCORES[name]] = SCORES_EXPLAINED[name]
    return found
