"""Writes the Parquet and Arrow files of ../columns.rs, by the libraries that people write such files with.

pip install pyarrow polars pandas && python make.py
"""

from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

here = Path(__file__).parent

# Every type of column, with gaps; rows.csv has the same in words.
people = pa.table(
    {
        "churn": pa.array([True, False, True, False, True, False]),
        "age": pa.array([31, 45, None, 60, 22, 51], pa.int8()),
        "visits": pa.array([1, 2, 3, 4, 5, 2**40], pa.uint64()),
        "half": pa.array([0.5, 1.0, 1.5, -2.0, 0.0, 4.0], pa.float32()).cast(pa.float16()),
        "score": pa.array([0.25, float("nan"), -1.5, 2.0, 0.0, 1e-3], pa.float64()),
        "price": pa.array([Decimal("1.25"), Decimal("0.00"), None, Decimal("-3.50"), Decimal("9.99"), Decimal("7.00")]),
        "country": pa.array(["FR", "DE", "FR", None, "US", "DE"]),
        "plan": pa.array(["a, b", "pro", "pro", "a, b", "pro", "ü"]).dictionary_encode(),
        "ok": pa.array([True, None, False, True, True, False]),
    }
)
pq.write_table(people, here / "pyarrow.parquet", compression="snappy", row_group_size=4)
pq.write_table(people, here / "zstd.parquet", compression="zstd", data_page_version="2.0")
pq.write_table(people, here / "gzip.parquet", compression="gzip", use_dictionary=False)
feather.write_feather(people, here / "pyarrow.feather", compression="lz4")
with ipc.new_stream(here / "stream.arrow", people.schema) as out:
    out.write_table(people, max_chunksize=4)
with ipc.new_file(here / "zstd.arrow", people.schema, options=ipc.IpcWriteOptions(compression="zstd")) as out:
    out.write_table(people, max_chunksize=4)
# Its own views of strings, and categoricals.
frame = pl.from_arrow(people).with_columns(pl.col("half").cast(pl.Float32), pl.col("plan").cast(pl.Categorical))
frame.write_parquet(here / "polars.parquet", compression="lz4")
frame.write_ipc(here / "polars.arrow")
people.to_pandas().astype({"age": "Int8", "price": "float64", "ok": "boolean"}).to_parquet(here / "pandas.parquet")

# Lists: indices with values beside them, indices alone, vectors, maps, structs.
lists = pa.table(
    {
        "y": pa.array([1.0, -1.0, 1.0, -1.0]),
        "word_indices": pa.array([[3, 1], [], [7], None], pa.list_(pa.int32())),
        "word_values": pa.array([[0.5, 2.0], [], [-1.0], None], pa.list_(pa.float32())),
        "tags": pa.array([[0], [2, 1], None, [2]], pa.large_list(pa.uint16())),
        "vector": pa.array([[1.0, 2.0], [0.0, 0.5], [3.0, 0.0], [0.0, 0.0]], pa.list_(pa.float64(), 2)),
        "map": pa.array([[(4, 1.5)], [], [(0, 2.0), (1, 3.0)], None], pa.map_(pa.int64(), pa.float64())),
        "pair": pa.array(
            [{"indices": [1], "values": [4.0]}, {"indices": [], "values": []}, None, {"indices": [0, 2], "values": [1.0, 1.0]}],
            pa.struct([("indices", pa.list_(pa.int64())), ("values", pa.list_(pa.float64()))]),
        ),
    }
)
pq.write_table(lists, here / "lists.parquet")
feather.write_feather(lists, here / "lists.feather", compression="uncompressed")

# What cannot be features.
dates = pa.table({"y": [1, 2], "when": pa.array([0, 1], pa.timestamp("s")), "raw": pa.array([b"a", b"b"])})
pq.write_table(dates, here / "dates.parquet")
twice = pa.table({"y": [1, 2], "tags": pa.array([[1, 1], [2]])})
pq.write_table(twice, here / "twice.parquet")
infinite = pa.table({"y": [1, 2], "a": [1.0, float("inf")]})
feather.write_feather(infinite, here / "infinite.feather", compression="uncompressed")
