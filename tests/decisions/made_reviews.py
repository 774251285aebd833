"""Populations with a known truth, and people who review them."""

import numpy as np

from truepair.decisions import Decision
from truepair.decisions.order import ReviewOrder
from truepair.decisions.population import Population


def population(p_match):
    return Population([f"p{row}" for row in range(len(p_match))], np.asarray(p_match, dtype=np.float64))


def drawn_population(rng, size, *, share=0.2, skill=1.5, honest=True):
    """(pairs, truth): scores of two normal distributions; p_match is calibrated, or far too sure of a match."""
    truth = rng.random(size) < share
    score = rng.normal(size=size) - skill * truth
    odds = np.log((1 - share) / share) + skill * (score + skill / 2)
    p_match = 1 / (1 + np.exp(-odds))
    return population(p_match if honest else 1 - 0.2 * (1 - p_match)), truth


def decision(pairs, row, truth, by="gain", probability=None, mistaken=False):
    return Decision(
        pair_id=pairs.ids[row],
        verdict="mismatch" if truth[row] != mistaken else "match",
        person="Ada",
        chosen_by=by,
        probability_chosen=probability,
    )


def reviewed(pairs, truth, count, *, seed=0, worst_every=0, ahead=None, shuffle=None):
    """`count` decisions in the order in which they are made: by gain, every so often one of the worst in between.

    Args:
        ahead: pairs that are fetched at once; default: all, where nothing comes in between.
        shuffle: generator; fetched pairs are decided in any order, as in a grid.
    """
    gain, worst, made = ReviewOrder(pairs, seed=seed), ReviewOrder(pairs, "worst"), {}
    ahead = ahead or (1 if worst_every else count)
    while len(made) < count:
        fetched = gain.next(ahead, made.keys())
        for row, probability in fetched if shuffle is None else [fetched[i] for i in shuffle.permutation(len(fetched))]:
            made.setdefault(pairs.ids[row], decision(pairs, row, truth, probability=probability))
            if worst_every and len(made) % worst_every == 0:
                for other, none in worst.next(1, made.keys()):
                    made[pairs.ids[other]] = decision(pairs, other, truth, "worst", none)
    return list(made.values())[:count]


def reviewed_by_several(pairs, truth, count, people, *, seed=0, ahead=24):
    """`count` decisions of several people in turn; each has a page that holds `ahead` to twice as many pairs, fetched
    earlier, and leaves out what others decided since.
    """
    orders = [ReviewOrder(pairs, seed=seed, person=f"person {number}") for number in range(people)]
    screens, made = [order.next(2 * ahead) for order in orders], {}
    while len(made) < count:
        for place, order in enumerate(orders):
            screen = [(row, chance) for row, chance in screens[place] if pairs.ids[row] not in made]
            if len(screen) < ahead:
                skip = {*made, *(pairs.ids[row] for row, _ in screen)}
                screen += order.next(2 * ahead - len(screen), skip)
            (row, chance), *screens[place] = screen
            made[pairs.ids[row]] = decision(pairs, row, truth, probability=chance)
    return list(made.values())[:count]
