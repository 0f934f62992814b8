"""Quick start: fit, read the certificate, save and load. See docs/quick-start.md."""

# %% A planted problem: 400 rows, 1000 features, of which five matter.
import tempfile
from pathlib import Path

import numpy as np
import obprox

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 1000))
score = X[:, :5] @ [2.0, -1.5, 1.0, 1.0, -0.5]
y = np.where(score + 0.5 * rng.normal(size=400) > 0, "yes", "no")

# %% Fit. The first call takes milliseconds: nothing is compiled.
model = obprox.LogisticRegression(C=0.05, verbose=1).fit(X, y)
print("features in use:", np.flatnonzero(model.coef_))

# %% What is proved about it, and how the run went.
print(model.certificate_)
print(model.trace_[["stage", "working_set", "F", "gap", "nnz"]])

# %% Keep it. The command reads the same file: obprox predict model.json new.svm
folder = Path(tempfile.mkdtemp())
model.save(folder / "model.json")
again = obprox.load(folder / "model.json")
assert (again.predict(X) == model.predict(X)).all()
print("saved and loaded:", again)

# %% From a file, the second time from a cache that is mapped into memory.
from sklearn.datasets import dump_svmlight_file

dump_svmlight_file(X, (score > 0).astype(int), str(folder / "train.svm"), zero_based=False)
for _ in range(2):
    rows, labels = obprox.load_svmlight_file(folder / "train.svm", cache=True)
print(type(rows).__name__, rows.shape, "nonzeros:", rows.nnz)
