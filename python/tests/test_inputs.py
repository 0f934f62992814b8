"""What may be given, what is copied, and what is refused."""

import sys

import numpy as np
import obprox
import pandas
import pytest
from obprox.solvers import OBProxSG, ProxSG, RDA
from obprox import _core, _tables
from scipy import sparse


@pytest.fixture(scope="module")
def expected(problems):
    return obprox.Lasso(alpha=0.05).fit(problems.X, problems.real)


def int64(X):
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def unsorted(X):
    X = sparse.csr_matrix(X)
    for row in range(X.shape[0]):
        span = slice(X.indptr[row], X.indptr[row + 1])
        X.indices[span], X.data[span] = X.indices[span][::-1].copy(), X.data[span][::-1].copy()
    X.has_sorted_indices = False
    return X


def repeated(X):
    """Every entry in two halves at the same place."""
    X = sparse.csr_matrix(X)
    return sparse.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)


def longer(X):
    """Arrays with room to spare, as scipy allows."""
    X = sparse.csr_matrix(X)
    rest = np.full(5, 99)
    X.data, X.indices = np.append(X.data, rest), np.append(X.indices, rest.astype(X.indices.dtype))
    return X


@pytest.mark.parametrize(
    "given",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        np.ndarray.tolist,
        lambda X: X.astype(np.longdouble),
        pandas.DataFrame,
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.csc_array,
        sparse.coo_matrix,
        int64,
        lambda X: int64(X).tocsc(),
        unsorted,
        repeated,
        longer,
    ],
)
def test_every_kind_of_rows_is_the_same_rows(problems, expected, given):
    X = given(problems.X)
    model = obprox.Lasso(alpha=0.05).fit(X, problems.real)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-8)
    if given is not longer:
        np.testing.assert_allclose(model.predict(X), expected.predict(problems.X), atol=1e-7)


def test_arrays_that_need_no_change_are_taken_as_they_are(problems):
    """The shortcut past scikit-learn's questions leads where those do."""
    X, y = problems.X, problems.real
    assert _tables._is_ready(X, y) and X.flags.carray
    frame = pandas.DataFrame(X, columns=[f"c{at}" for at in range(X.shape[1])])
    model = obprox.Lasso(alpha=0.05).fit(frame, y)
    assert hasattr(model, "feature_names_in_")
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == X.shape[1]
    # A list goes the long way round.
    np.testing.assert_array_equal(model.coef_, obprox.Lasso(alpha=0.05).fit(X, y.tolist()).coef_)
    not_ready = [
        (X[:, ::2], y), (np.asfortranarray(X), y), (X.astype(int), y), (X[:0], y[:0]), (X[:, :0], y), (X, y[:-1]),
        (X, y[:, None]), (X, y.astype(int)), (X, np.where(y == y.max(), np.nan, y)), (frame, y), (np.ma.array(X), y),
    ]
    assert not any(_tables._is_ready(*given) for given in not_ready)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint16, bool])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_every_type_of_values(problems, dtype, kind):
    if kind is sparse.csr_matrix and dtype is np.float16:
        pytest.skip("scipy has no such matrices")
    X = (10 * np.abs(problems.X)).astype(dtype)
    model = obprox.Lasso(alpha=0.05).fit(kind(X), problems.real)
    expected = obprox.Lasso(alpha=0.05).fit(X.astype(np.float64), problems.real)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-8)


def keeps(array, make):
    """Whether what is made refers to the array's memory."""
    before = sys.getrefcount(array)
    made = make()
    after = sys.getrefcount(array)
    del made
    assert sys.getrefcount(array) == before, "the reference is given back"
    return after > before


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sound_memory_is_used_where_it_lies(problems, dtype):
    X = sparse.csr_matrix(problems.X.astype(dtype))
    assert X.indices.dtype == np.int32
    make = lambda: _core.Matrix.csr(X.shape[1], X.indptr, X.indices, X.data)
    assert keeps(X.data, make) and keeps(X.indices, make)
    dense = problems.X.astype(dtype) + 1
    assert keeps(dense, lambda: _core.Matrix.dense(dense))
    # An array that is mostly zeros takes fewer bytes when stored sparse, so that is a copy.
    zeros = np.zeros((50, 50), dtype=dtype)
    assert not keeps(zeros, lambda: _core.Matrix.dense(zeros))
    # int64 row offsets are the library's own; its columns are narrower.
    X = int64(X)
    make = lambda: _core.Matrix.csr(X.shape[1], X.indptr, X.indices, X.data)
    assert keeps(X.indptr, make) and not keeps(X.indices, make) and keeps(X.data, make)


def test_memory_of_another_layout_is_never_lent():
    for strided in (np.ones((4, 6))[:, ::2], np.asfortranarray(np.ones((4, 3))), np.broadcast_to(1.0, (4, 3))):
        with pytest.raises(ValueError, match="contiguous"):
            _core.Matrix.dense(strided)
    shifted = np.frombuffer(bytes(8 * 6 + 1), dtype=np.uint8)[1:].view(np.float64).reshape(2, 3)
    with pytest.raises(ValueError, match="aligned"):
        _core.Matrix.dense(shifted)
    assert obprox.Lasso().fit(shifted, [1.0, 2.0]).coef_.tolist() == [0, 0, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, pandas.DataFrame])
def test_values_that_are_not_finite_are_refused(problems, bad, kind):
    X = problems.X.copy()
    X[7, 3] = bad
    model = obprox.Lasso()
    with pytest.raises(ValueError, match="Input X contains (NaN|infinity)") as error:
        model.fit(kind(X), problems.real)
    assert "X[7, 3]" in str(error.value)
    assert isinstance(error.value, obprox.exceptions.NotFiniteError)
    model.fit(problems.X, problems.real)
    with pytest.raises(ValueError, match="NaN|infinity"):
        model.predict(kind(X))


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        (np.ones(3), np.ones(3), "Expected 2D array"),
        (np.ones((3, 2, 2)), np.ones(3), "dim 3"),
        (np.ones((3, 2)), np.ones(4), "inconsistent numbers of samples"),
        (np.empty((0, 2)), np.empty(0), "0 sample"),
        (np.empty((3, 0)), np.ones(3), "0 feature"),
        (np.ones((3, 2)), [1.0, np.nan, 2.0], "Input y contains NaN"),
        ([["a", "b"]], [1.0], "could not convert"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(X, y, said):
    with pytest.raises(ValueError, match=said):
        obprox.Lasso().fit(X, y)


def test_a_matrix_whose_arrays_lie_is_refused(problems):
    X = sparse.csr_matrix(problems.X)
    X.indices[5] = 99
    with pytest.raises(ValueError, match="column index"):
        obprox.Lasso().fit(X, problems.real)
    X = sparse.csr_matrix(problems.X)
    X.indices[5] = -1
    with pytest.raises(ValueError, match="column index"):
        obprox.Lasso().fit(X, problems.real)
    X = sparse.csr_matrix(problems.X)
    X.indptr[5] = X.indptr[4] - 2
    with pytest.raises(ValueError, match="row offsets"):
        obprox.Lasso().fit(X, problems.real)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"solver": "newton"}, "solver"),
        ({"alpha": -1.0}, "alpha: "),
        ({"alpha": np.nan}, "alpha: "),
        ({"alpha": "much"}, "alpha: 'much' is not a number"),
        ({"max_iter": 0}, "max_iter: 0 must be a whole number, at least 1"),
        ({"max_iter": 1.5}, "max_iter: 1.5 must be"),
        ({"solver": ProxSG(random_state="a")}, "random_state: 'a' cannot be used as a seed"),
        ({"tol": -1}, "tol"),
        ({"solver": ProxSG}, "solver"),
        ({"solver": ProxSG(step="fast")}, "step: "),
        ({"solver": ProxSG(step=0)}, "step: "),
        ({"solver": ProxSG(batch=0)}, "batch: "),
        ({"solver": ProxSG(schedule="up")}, "schedule"),
        ({"solver": OBProxSG(switch="never")}, "switch"),
        ({"solver": OBProxSG(n_o=1.5)}, "n_o"),
        ({"solver": OBProxSG(n_p=-1)}, "n_p: -1 must be"),
        ({"solver": RDA(gamma=0)}, "gamma: "),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_parameters_out_of_range_are_refused(problems, given, said):
    with pytest.raises(ValueError, match=said):
        obprox.Lasso(**given).fit(problems.X, problems.real)


def test_what_belongs_to_a_method_is_sent_there():
    with pytest.raises(TypeError, match="'random_state'; random_state is for the methods of obprox.solvers"):
        obprox.Lasso(random_state=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'alhpa'$"):
        obprox.Lasso(alhpa=0)


def test_refusals_of_classes_and_weights(problems):
    X, y = problems.X, problems.binary
    with pytest.raises(ValueError, match="one class"):
        obprox.LogisticRegression().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="class_weight: 7"):
        obprox.LogisticRegression(class_weight={7: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        obprox.LogisticRegression(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="class 0 has weight 0"):
        obprox.LogisticRegression().fit(X, y, sample_weight=y.astype(float))
    with pytest.raises(ValueError, match="not negative"):
        obprox.LogisticRegression().fit(X, y, sample_weight=np.where(y, 1.0, -1.0))
    with pytest.raises(ValueError, match="C: 0"):
        obprox.LogisticRegression(C=0).fit(X, y)
    with pytest.raises(ValueError, match="l1_ratio"):
        obprox.LogisticRegression(l1_ratio=1.5).fit(X, y)
    with pytest.raises(ValueError, match="negative"):
        obprox.SparseRegressor("poisson").fit(X, -problems.counts - 1)
    with pytest.raises(ValueError, match="delta"):
        obprox.SparseRegressor("huber", delta=0).fit(X, problems.real)
    with pytest.raises(ValueError, match="loss"):
        obprox.SparseRegressor("logistic").fit(X, problems.real)
    with pytest.raises(TypeError, match="Lasso: .*precompute"):
        obprox.Lasso(precompute=True)


def test_penalty_weights_and_the_number_of_features(problems):
    X, y = problems.X, problems.real
    weights = np.ones(X.shape[1])
    weights[9] = 0
    free = obprox.SparseRegressor(alpha=100.0, penalty_weights=weights).fit(X, y)
    assert np.flatnonzero(free.coef_).tolist() == [9]
    for most in (0, 1, 3):
        few = obprox.SparseRegressor(max_features=most).fit(X, y)
        assert np.count_nonzero(few.coef_) == most
    with pytest.raises(ValueError, match="penalty_weights"):
        obprox.SparseRegressor(penalty_weights=[1.0]).fit(X, y)
