"""The indicators of one candidate after another, in plain float64 loops."""

import math


def dot(a, b):
    return math.fsum(p * q for p, q in zip(a, b, strict=True))


def log_mean_exp(values):
    top = max(values)
    return top + math.log(math.fsum(math.exp(v - top) for v in values) / len(values))


def rank(own, others):
    return 1 + sum(1.0 if o > own + 1e-6 else 0.5 if o >= own - 1e-6 else 0.0 for o in others)


def mutual_rank(own, first, second):
    if not first:
        return 0.5
    return 1 - math.log(rank(own, first) * rank(own, second)) / (2 * math.log(len(first) + 1))


def naive_trust(images, texts):
    m = len(images)
    return [
        mutual_rank(
            dot(images[j], texts[j]),
            [dot(images[j], texts[k]) for k in range(m) if k != j],
            [dot(images[k], texts[j]) for k in range(m) if k != j],
        )
        for j in range(m)
    ]


def naive_background(images, texts, tau):
    m = len(images)
    return log_mean_exp([dot(images[j], texts[k]) / tau for j in range(m) for k in range(m) if j != k or m == 1])


def asked(near, count):
    """The indices of the `count` largest, with all that tie for the last place."""
    if not near:
        return []
    last = sorted(near, reverse=True)[min(count, len(near)) - 1]
    return [j for j, value in enumerate(near) if value >= last - 1e-6]


def naive_neighbours(near, fit, trust, count):
    chosen = asked(near, count)
    weights = [trust[j] * math.exp((near[j] - max(near)) / 0.1) for j in chosen]
    total = math.fsum(weights)
    return math.fsum(w * fit[j] for w, j in zip(weights, chosen, strict=True)) / total if total else 0.0


def naive_correlation(a, b, trust):
    weights = [t * t for t in trust]
    total = math.fsum(weights)
    if total <= 0:
        return 0.0
    a = [v - dot(weights, a) / total for v in a]
    b = [v - dot(weights, b) / total for v in b]
    aa, bb = dot(weights, [v * v for v in a]), dot(weights, [v * v for v in b])
    if min(aa, bb) <= 1e-12 * total:
        return 0.0
    return dot(weights, [p * q for p, q in zip(a, b, strict=True)]) / math.sqrt(aa * bb)


def naive_score(x, y, rows, bank_images, bank_texts, bank_rows, tau, count):
    """All values of one candidate; `rows` are those of its image and its text."""
    keep = [j for j, row in enumerate(bank_rows) if row not in rows]
    s = dot(x, y)
    if not keep:
        half = dict.fromkeys(("matching", "rank", "structure", "neighbours", "certainty"), 0.5)
        return {"similarity": s, "log_odds": 0.0, **half}
    images, texts = [bank_images[j] for j in keep], [bank_texts[j] for j in keep]
    whole_trust = naive_trust(bank_images, bank_texts)
    trust = [whole_trust[j] for j in keep]
    to_texts, to_images = [dot(x, t) for t in texts], [dot(y, i) for i in images]
    odds = [s / tau - log_mean_exp([o / tau for o in others]) - math.log(len(keep)) for others in (to_texts, to_images)]
    a, b = [dot(x, i) for i in images], [dot(y, t) for t in texts]
    near = (naive_neighbours(a, b, trust, count) + naive_neighbours(b, a, trust, count)) / 2
    background = naive_background(bank_images, bank_texts, tau)
    evidence = [
        (math.exp(p / tau - background) + math.exp(q / tau - background)) / 2
        for p, q in zip([s, *to_texts], [s, *to_images], strict=True)
    ]
    return {
        "similarity": s,
        "log_odds": sum(odds) / 2,
        "matching": sum(1 / (1 + math.exp(-o)) for o in odds) / 2,
        "rank": mutual_rank(s, to_texts, to_images),
        "structure": (1 + naive_correlation(a, b, trust)) / 2,
        "neighbours": (1 + near) / 2,
        "certainty": math.fsum(evidence) / (math.fsum(evidence) + len(evidence)),
    }


def naive_lemon(x, y, rows, bank_images, bank_texts, bank_rows, count):
    keep = [j for j, row in enumerate(bank_rows) if row not in rows]
    a, b = [dot(x, bank_images[j]) for j in keep], [dot(y, bank_texts[j]) for j in keep]
    trust = [math.exp(-5 * (1 - dot(bank_images[j], bank_texts[j]))) for j in keep]
    score = dot(x, y) - 1
    for near, fit in ((a, b), (b, a)):
        chosen = asked(near, count)
        terms = [(1 - fit[j]) * math.exp(-0.1 * (1 - near[j])) * trust[j] for j in chosen]
        score -= 5 * math.fsum(terms) / max(1, len(chosen))
    return score
