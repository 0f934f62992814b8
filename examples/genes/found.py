"""Which features a model has, strongest first, and what their true weight is: found.py model.json truth.txt."""

import json
import sys

with open(sys.argv[1]) as file:
    model = json.load(file)
with open(sys.argv[2]) as file:
    truth = [float(line) for line in file]

found = sorted(zip(model["indices"], model["values"]), key=lambda pair: -abs(pair[1]))
for feature, weight in found[:6]:
    print(f"feature {feature + 1:<5} {weight:+.3f}   true weight {truth[feature]:+.2f}")
missed = [(at, weight) for at, weight in enumerate(truth) if weight and at not in model["indices"]]
print(f"{len(found)} found, {sum(truth[at] != 0 for at, _ in found)} of them true;", end=" ")
print("missed:", ", ".join(f"feature {at + 1} ({weight:+.2f})" for at, weight in missed) or "none")
