"""Data frames and tables with Arrow's C interface: the same rows, whoever holds them, and the names of their columns."""

import subprocess
import sys
from decimal import Decimal

import numpy as np
import obprox
import pandas
import pytest
from obprox import _core

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

NAMES = [f"x{at}" for at in range(8)]


class Foreign:
    """Nothing but the interface, as libraries have it that nobody here knows."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def frame(X):
    return pandas.DataFrame(X, columns=NAMES)


def table(X):
    return pyarrow.table({name: column for name, column in zip(NAMES, X.T)})


KINDS = {
    "pandas": frame,
    "pandas, nullable": lambda X: frame(X).astype("Float64"),
    "pandas, Arrow": lambda X: frame(X).astype("float64[pyarrow]"),
    "pandas, Arrow, an index": lambda X: frame(X).astype("float64[pyarrow]").set_index(np.arange(len(X))[::-1]),
    "polars": lambda X: polars.DataFrame(X, schema=NAMES),
    "polars, in parts": lambda X: polars.concat([polars.DataFrame(part, schema=NAMES) for part in np.array_split(X, 3)]),
    "pyarrow": table,
    "pyarrow, a batch": lambda X: table(X).to_batches()[0],
    "foreign": lambda X: Foreign(table(X)),
}


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(3)
    X = random.standard_normal((300, 8))
    return X, X[:, 0] - 2 * X[:, 3] + 0.1 * random.standard_normal(300)


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_is_the_same_rows(data, kind):
    X, y = data
    expected = obprox.Lasso(alpha=0.05).fit(X, y)
    given = KINDS[kind](X)
    model = obprox.Lasso(alpha=0.05).fit(given, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_allclose(model.predict(KINDS[kind](X)), expected.predict(X), rtol=1e-12)
    # Who was fitted on names takes another's table of the same names.
    np.testing.assert_allclose(model.predict(table(X)), expected.predict(X), rtol=1e-12)
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_names_go_on_to_paths_models_and_cross_validation(data, tmp_path):
    X, y = data
    given = polars.DataFrame(X, schema=NAMES)
    assert list(obprox.path(given, y, loss="squared").feature_names) == NAMES
    model = obprox.LassoCV().fit(given, polars.Series(y))
    model.save(tmp_path / "model.json")
    assert '"x3"' in (tmp_path / "model.json").read_text()
    labels = polars.Series(["yes" if value > 0 else "no" for value in y])
    classifier = obprox.LogisticRegression().fit(given, labels)
    assert set(classifier.predict(given)) == {"yes", "no"}


def test_other_names_are_refused(data):
    X, y = data
    model = obprox.Lasso().fit(polars.DataFrame(X, schema=NAMES), y)
    with pytest.raises(ValueError, match="unseen at fit time: z\n.*now missing: x0"):
        model.predict(polars.DataFrame(X, schema=["z", *NAMES[1:]]))
    with pytest.raises(ValueError, match="same order"):
        model.predict(polars.DataFrame(X, schema=NAMES[::-1]))


def test_every_type_of_numbers():
    columns = {
        "int": pyarrow.array([1, 2, 3], pyarrow.int8()),
        "unsigned": pyarrow.array([1, 2, 2**40], pyarrow.uint64()),
        "flag": pyarrow.array([True, False, True]),
        "single": pyarrow.array([0.5, 1.5, -2.0], pyarrow.float32()),
        "decimal": pyarrow.array([Decimal("1.25"), Decimal("-0.10"), Decimal("3.00")]),
        "dictionary": pyarrow.array([4.5, 4.5, 7.0]).dictionary_encode(),
        "gap": pyarrow.array([1, None, 3]),
        "nothing": pyarrow.array([None, None, None], pyarrow.dictionary(pyarrow.int8(), pyarrow.float64())),
    }
    array, names = _core.columns(pyarrow.table(columns).__arrow_c_stream__())
    assert names == list(columns)
    expected = [
        [1, 1, 1, 0.5, 1.25, 4.5, 1, np.nan],
        [2, 2, 0, 1.5, -0.1, 4.5, np.nan, np.nan],
        [3, 2**40, 1, -2, 3, 7, 3, np.nan],
    ]
    np.testing.assert_array_equal(array, expected)
    assert array.dtype == np.float64 and array.flags.c_contiguous
    single, _ = _core.columns(polars.DataFrame({"a": [1.5]}, schema={"a": polars.Float32}).__arrow_c_stream__())
    assert single.dtype == np.float32


def test_words_and_gaps_are_refused_by_name():
    words = polars.DataFrame({"a": [1.0, 2.0], "country": ["FR", "DE"]})
    with pytest.raises(ValueError, match='column "country" is of type Utf8.*OneHotEncoder'):
        obprox.Lasso().fit(words, [1.0, 2.0])
    with pytest.raises(ValueError, match='column "country".*OneHotEncoder'):
        obprox.Lasso().fit(words.to_pandas(), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"column \"country\": 'FR' in row 1 is no number; .*OneHotEncoder"):
        obprox.Lasso().fit(pandas.DataFrame({"a": [1.0, 2.0], "country": pandas.Series([1, "FR"], dtype=object)}), [1.0, 2.0])
    days = pandas.DataFrame({"a": [1.0, 2.0], "when": pandas.to_datetime(["2024-01-01", "2024-02-01"])})
    for dates in (days, polars.from_pandas(days)):
        with pytest.raises(ValueError, match='column "when" is of type .*give numbers'):
            obprox.Lasso().fit(dates, [1.0, 2.0])
    with pytest.raises(ValueError):
        _core.columns(pyarrow.table({"a": [1]}).schema.__arrow_c_schema__())


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_is_no_number_has_a_column(data, kind, value):
    X, y = data
    model = obprox.Lasso().fit(KINDS[kind](X), y)
    broken = X.copy()
    broken[7, 3] = value
    says = r"Input X contains (NaN|infinity).*: X\[7, 3\] \(column \"x3\"\)"
    with pytest.raises(ValueError, match=says) as found:
        obprox.Lasso().fit(KINDS[kind](broken), y)
    assert found.value.column == 3
    with pytest.raises(ValueError, match=says):
        model.predict(KINDS[kind](broken))


def test_every_type_of_column_goes_from_fit_to_file_to_prediction(tmp_path):
    """Numbers of all kinds, flags and categories with a number for each, gaps that were filled."""
    random = np.random.default_rng(4)
    y = random.standard_normal(40)
    plain = pandas.DataFrame(
        {
            "whole": random.integers(0, 9, 40).astype("int8"),
            "flag": random.integers(0, 2, 40).astype(bool),
            "single": random.standard_normal(40).astype("float32"),
            "double": random.standard_normal(40),
        }
    )
    nullable = plain.astype({"whole": "Int8", "flag": "boolean", "single": "Float32", "double": "Float64"})
    category = plain.assign(whole=plain["whole"].astype("category"))
    tables = [plain, nullable, category, polars.from_pandas(plain), pyarrow.Table.from_pandas(plain, preserve_index=False)]
    expected = obprox.Lasso(0.01).fit(plain, y)
    assert list(expected.feature_names_in_) == list(plain.columns)
    for table in tables:
        model = obprox.Lasso(0.01).fit(table, y)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
        model.save(tmp_path / "model.json")
        again = obprox.load(tmp_path / "model.json")
        for other in tables:
            np.testing.assert_allclose(again.predict(other), model.predict(table), rtol=1e-9)


def test_without_scikit_learn_too(data):
    X, y = data
    code = """
import sys
sys.modules["sklearn"] = None
import numpy as np, pyarrow, obprox
table = pyarrow.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [0, 1, 0, 1]})
model = obprox.Lasso(alpha=0.01).fit(table, [1.0, 2.0, 3.0, 4.0])
assert list(model.feature_names_in_) == ["a", "b"], model.feature_names_in_
assert model.predict(table).shape == (4,)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
