"""Choosing λ: paths, folds, a number of features. See docs/choosing-lambda.md."""

# %% Data: 200 rows, 40 features, three of them real.
import numpy as np
import obprox

rng = np.random.default_rng(1)
X = rng.normal(size=(200, 40))
y = X[:, :3] @ [3.0, -2.0, 1.0] + rng.normal(size=200)

# %% The path: every penalty from the one that leaves nothing down to a thousandth of it.
path = obprox.path(X, y, alphas=50)
print(path.table[["alpha", "nnz", "F", "relative_gap", "n_iter"]].iloc[::7])
assert (path.table["status"] == "converged").all()

# %% See it.
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2))
obprox.plot_path(path, ax=left)
obprox.plot_density(path, ax=right)
figure.tight_layout()
figure.savefig("path.png", dpi=120)

# %% Folds choose: the best, or the simplest that cannot be told from it.
best = obprox.LassoCV().fit(X, y)
simple = obprox.LassoCV(rule="1se").fit(X, y)
for name, model in (("best", best), ("1se", simple)):
    print(f"{name:5} alpha {model.alpha_:.4f} = {model.alpha_ / model.alphas_[0]:.3f} of the largest,", end=" ")
    print(np.count_nonzero(model.coef_), "features")

# %% Or say how many features.
for most in (1, 2, 3, 5):
    few = obprox.SparseRegressor(max_features=most).fit(X, y)
    print(most, "→", np.flatnonzero(few.coef_), f"R² {few.score(X, y):.3f} at λ = {few.certificate_.lambda_:.4f}")
