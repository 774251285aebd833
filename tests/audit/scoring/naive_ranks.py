"""Local ranks and the share they say, in plain float64 loops."""

import statistics


def dot(left, right):
    return sum(a * b for a, b in zip(left, right, strict=True))


def naive_neighbours(images, texts, count, same):
    """[(most alike by image), (most alike by text)] of each row: lists of rows, best first."""
    found = []
    for i in range(len(images)):
        others = [
            j
            for j in range(len(images))
            if dot(images[i], images[j]) < same and dot(texts[i], texts[j]) < same
        ]  # fmt: skip
        found.append([sorted(others, key=lambda j, s=side: -dot(s[i], s[j]))[:count] for side in (images, texts)])
    return found


def naive_rank(own, others):
    """Where `own` stands among the others: 0 the lowest, 1 the highest; equals count half."""
    if not others:
        return 0.5
    return sum((own > other + 1e-6) + (abs(own - other) <= 1e-6) / 2 for other in others) / len(others)


def naive_sum(image, caption, images, texts, nearest, count):
    own = dot(images[image], texts[caption])
    by_image = naive_rank(own, [dot(images[image], texts[j]) for j in nearest[caption][1][:count]])
    by_caption = naive_rank(own, [dot(images[j], texts[caption]) for j in nearest[image][0][:count]])
    return by_image + by_caption


def naive_share(given, known, left):
    """(π, how many of the given are below the median of the known, as a part of those that should be)."""
    middle = statistics.median(known)

    def below(ranks):
        return sum((rank < middle) + (rank == middle) / 2 for rank in ranks) / len(ranks)

    ratio = min(below(given) / below(known), 1.0)
    return max(ratio - left, 0.0) / (1 - left)
