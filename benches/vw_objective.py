"""F of what Vowpal Wabbit has learnt: its readable model as model.json, then the mean loss there and λ‖x‖₁.

    vw_objective.py vw.txt model.json vw.json      weights of vw.txt in a model like model.json
    obprox eval vw.json DATA --json | vw_objective.py vw.json -
"""

import json
import sys

BIAS = 11650396


def weights(path, bits=22):
    """Feature numbers and weights; the intercept has a number of its own."""
    with open(path) as lines:
        entries = [line.strip().split(":") for line in lines]
    found = {}
    for entry in entries:
        if len(entry) == 2 and entry[0].isdigit():
            found[int(entry[0])] = float(entry[1])
    intercept = found.pop(BIAS % (1 << bits), 0.0)
    return found, intercept


if sys.argv[2] == "-":
    model, figures = json.load(open(sys.argv[1])), json.load(sys.stdin)
    l1 = sum(map(abs, model["values"]))
    print(f"F = {figures['loss'] + model['lambda'] * l1:.6f}, {len(model['values'])} nonzero; obprox: {model['certificate']['F']:.6f}")
else:
    model = json.load(open(sys.argv[2]))
    found, intercept = weights(sys.argv[1])
    at = sorted(number for number, value in found.items() if value and 1 <= number <= model["n_features"])
    model.update(indices=[number - 1 for number in at], values=[found[number] for number in at], intercept=intercept)
    json.dump(model, open(sys.argv[3], "w"))
