"""Reads or writes Parquet with DuckDB, for the tests and the benchmark of the product's own writer.

usage: duckdb_parquet.py hash FILE...     a line of JSON for each file: its columns, rows, and the SHA-256 of its cells
       duckdb_parquet.py copy FILE TO     loads FILE into memory; then, for each line of input, writes it to TO on one thread
                                          with zstd, and prints the seconds of processor time that took
"""

import hashlib
import json
import sys
import time

import duckdb


def spelled(name, kind):
    """A cell as text, whatever DuckDB would make of it for people."""
    name = '"%s"' % name.replace('"', '""')
    if kind == "DOUBLE":
        return name  # its bits are taken below
    if kind in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP"):
        return "cast(epoch_us(%s) as varchar)" % name
    if kind == "DATE":
        return "cast(%s - date '1970-01-01' as varchar)" % name
    if kind == "BLOB":
        return "lower(hex(%s))" % name
    return "cast(%s as varchar)" % name


def cell(value):
    if value is None:
        return "\x00"
    if isinstance(value, float):
        return value.hex() if value == value else "nan"
    return value


def digest(db, path):
    columns = [(row[0], row[1]) for row in db.execute("describe select * from read_parquet(?)", [path]).fetchall()]
    rows = db.execute("select %s from read_parquet(?)" % ", ".join(spelled(*c) for c in columns), [path])
    sum, count = hashlib.sha256(), 0
    while batch := rows.fetchmany(10_000):
        for row in batch:
            sum.update("\x1f".join(cell(v) for v in row).encode() + b"\n")
        count += len(batch)
    return {"columns": ["%s %s" % c for c in columns], "rows": count, "sha256": sum.hexdigest()}


def main(what, *paths):
    db = duckdb.connect()
    db.execute("set threads = 1")
    if what == "hash":
        for path in paths:
            print(json.dumps(digest(db, path)), flush=True)
        return
    db.execute("create table t as select * from read_parquet(?)", [paths[0]])
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.process_time()
        db.execute("copy t to '%s' (format parquet, compression zstd)" % paths[1].replace("'", "''"))
        print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("hash", "copy"):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
