"""Data files."""

import bz2
import gzip
import lzma
import os

import numpy as np
import obprox
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.datasets import load_svmlight_file as sklearn_load


@pytest.fixture
def file(problems, tmp_path):
    path = tmp_path / "data.svm"
    dump_svmlight_file(problems.X, problems.real, str(path), zero_based=False)
    return path


def same(found, expected):
    np.testing.assert_array_equal(found[0].toarray(), expected[0].toarray())
    np.testing.assert_array_equal(found[1], expected[1])
    assert found[0].has_canonical_format


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bz2.compress, lzma.compress])
def test_a_file_is_what_scikit_learn_reads(file, tmp_path, pack):
    expected = sklearn_load(str(file))
    packed = tmp_path / "packed"
    packed.write_bytes(pack(file.read_bytes()))
    found = obprox.load_svmlight_file(packed)
    same(found, expected)
    assert found[0].dtype == np.float64 and found[0].indices.dtype == np.int32
    wide = obprox.load_svmlight_file(file, n_features=50)[0]
    assert wide.shape[1] == 50


def test_ones_and_narrow_values(tmp_path):
    path = tmp_path / "ones.svm"
    path.write_text("1 1:1 3:1\n-1 2:1\n")
    X, _ = obprox.load_svmlight_file(path)
    assert X.dtype == np.float64 and X.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert obprox.load_svmlight_file(path, dtype=None)[0].dtype == np.float32
    assert obprox.load_svmlight_file(path, dtype=np.float32)[0].dtype == np.float32
    path.write_text("1,0.5,2\n-1,1.5,3\n")
    assert obprox.load_svmlight_file(path)[0].toarray().tolist() == [[0.5, 2], [1.5, 3]]


def test_a_cache_is_mapped_and_renewed(file, problems, tmp_path):
    plain = obprox.load_svmlight_file(file)
    for _ in range(2):
        cached = obprox.load_svmlight_file(file, cache=True)
        same(cached, plain)
    kept = tmp_path / "data.svm.obx"
    assert kept.exists()
    # The columns are windows on the file: read-only, and owned by whoever holds the map.
    assert not cached[0].indices.flags.writeable and not cached[0].data.flags.writeable
    model = obprox.Lasso(0.1).fit(*cached)
    np.testing.assert_array_equal(model.coef_, obprox.Lasso(0.1).fit(*plain).coef_)
    same(obprox.load_svmlight_file(kept), plain)

    file.write_text("1 1:2\n")
    os.utime(file, (kept.stat().st_mtime + 10,) * 2)
    assert obprox.load_svmlight_file(file, cache=True)[0].shape == (1, 1), "a cache older than its source is renewed"
    elsewhere = tmp_path / "elsewhere.obx"
    obprox.load_svmlight_file(file, cache=elsewhere)
    assert elsewhere.exists()


@pytest.mark.parametrize("hurt", [lambda data: data[:-9], lambda data: data[:70] + b"x" + data[71:], lambda data: b"junk"])
def test_a_damaged_cache_is_written_again(file, tmp_path, hurt):
    plain = obprox.load_svmlight_file(file)
    obprox.load_svmlight_file(file, cache=True)
    kept = tmp_path / "data.svm.obx"
    whole = kept.read_bytes()
    kept.write_bytes(hurt(whole))
    same(obprox.load_svmlight_file(file, cache=True), plain)
    assert kept.read_bytes() == whole


def test_a_model_of_all_features_there_can_be_is_kept_by_its_nonzeros(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(
        '{"format":"obprox-linear","version":1,"loss":"squared","task":"regression","n_features":4294967295,'
        '"intercept":0.5,"indices":[0,4294967294],"values":[2,3],"labels":[],"lambda":0.1,"l2":0,"certificate":null}'
    )
    model = obprox.load(path)
    assert sparse.issparse(model.coef_) and model.coef_.nnz == 2 and model.n_features_in_ == 4294967295
    rows = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [0, 4294967294])), shape=(3, 4294967295))
    assert model.predict(rows).tolist() == [2.5, 3.5, 0.5]
    # Who asks for the array gets it, or an exception that says what it takes.
    available = int(next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable")).split()[1]) << 10
    if available < 30e9:
        with pytest.raises(MemoryError, match="34.4 GB of memory"):
            obprox._core.Model.load(path).coef


def test_arrays_outlive_what_they_came_from(file):
    import gc

    X, y = obprox.load_svmlight_file(file, cache=True)
    total = X.sum()
    data = X.data
    del X, y
    gc.collect()
    assert sparse.csr_matrix(data).sum() == pytest.approx(total)


def test_errors_say_where(tmp_path):
    path = tmp_path / "bad.svm"
    path.write_text("1 1:2\n-1 2:x\n")
    with pytest.raises(obprox.exceptions.ParseError, match=r"bad.svm:2:\d+"):
        obprox.load_svmlight_file(path)
    with pytest.raises(FileNotFoundError, match="missing.svm"):
        obprox.load_svmlight_file(tmp_path / "missing.svm")
    path.write_text("")
    with pytest.raises(obprox.exceptions.FileError, match="no rows"):
        obprox.load_svmlight_file(path)
    assert issubclass(obprox.exceptions.FileError, ValueError)
