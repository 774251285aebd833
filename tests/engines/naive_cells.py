"""SGR and SAF of one image and one caption as the equations read (SGRAF, eq. 1 to 10): plain loops over lists."""

import math


def l2(vector):
    norm = math.sqrt(sum(x * x for x in vector))
    return [x / (norm + 1e-8) for x in vector]


def affine(weight, bias, vector):
    return [b + sum(w * x for w, x in zip(row, vector, strict=True)) for row, b in zip(weight, bias, strict=True)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def softmax(values):
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


def mixed(weights, vectors):
    return [sum(w * vector[d] for w, vector in zip(weights, vectors, strict=True)) for d in range(len(vectors[0]))]


def cell_nodes(model, regions, whole_image, words, whole_text):
    """The similarity vectors of one image and one caption, as lists: eq. 1–6 of SGRAF."""
    parameters = {name: p.tolist() for name, p in model.named_parameters()}

    def vector_of(name, first, second):
        squares = [(a - b) ** 2 for a, b in zip(first, second, strict=True)]
        return l2(affine(parameters[f"align.{name}.weight"], parameters[f"align.{name}.bias"], squares))

    activated = [[max(0.1 * dot(region, word), dot(region, word)) for word in words] for region in regions]
    activated = [l2(row) for row in activated]
    nodes = [vector_of("whole", whole_image, whole_text)]
    for t, word in enumerate(words):
        weights = softmax([9 * row[t] for row in activated])
        nodes.append(vector_of("local", l2(mixed(weights, regions)), word))
    return nodes


def cell_sgr(model, nodes):
    """Eq. 7, 8 of SGRAF on one pair."""
    parameters = {name: p.tolist() for name, p in model.named_parameters()}
    for step in range(3):

        def through(name, vector, step=step):
            return affine(
                parameters[f"head.steps.{step}.{name}.weight"], parameters[f"head.steps.{step}.{name}.bias"], vector
            )

        queries, keys = [through("query", s) for s in nodes], [through("key", s) for s in nodes]
        gathered = [mixed(softmax([dot(query, key) for key in keys]), nodes) for query in queries]
        nodes = [[max(0.0, x) for x in through("graph", s)] for s in gathered]
    return affine(parameters["score.weight"], parameters["score.bias"], nodes[0])[0]


def column_saf(model, column, mean, variance):
    """Eq. 9, 10 of SGRAF on the pairs of one column; statistics of the column itself where none are given."""
    parameters = {name: p.tolist() for name, p in model.named_parameters()}
    weight, bias = parameters["head.attention.weight"], parameters["head.attention.bias"]
    logits = [[affine(weight, bias, s)[0] for s in nodes] for nodes in column]
    flat = [x for pair in logits for x in pair]
    if mean is None:
        mean = sum(flat) / len(flat)
        variance = sum((x - mean) ** 2 for x in flat) / len(flat)
    scores = []
    for pair, nodes in zip(logits, column, strict=True):
        normal = [(x - mean) / math.sqrt(variance + 1e-5) for x in pair]
        gates = [
            1 / (1 + math.exp(-(parameters["head.norm.weight"][0] * x + parameters["head.norm.bias"][0])))
            for x in normal
        ]
        total = sum(gates) + 1e-8
        filtered = l2(mixed([gate / total for gate in gates], nodes))
        scores.append(affine(parameters["score.weight"], parameters["score.bias"], filtered)[0])
    return scores
