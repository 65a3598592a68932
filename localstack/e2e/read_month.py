"""Reads a published month with DuckDB and compares it with what the query says of the source.

usage: read_month.py MANIFEST FOLDER SOURCE.sqlite QUERY PARAMETERS

FOLDER holds all objects of the month's prefix under their keys, twins of chunks included, which no manifest lists.
PARAMETERS are the definition's, as JSON. It prints, as JSON, how many rows there are in the source, in the manifest's
files and in all that lies below the prefix; rows of the first two that differ end it with an error.
"""

import json
import os
import sqlite3
import sys

import duckdb

# The columns' types as the manifest names them.
TYPES = {"integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "decimal": "DECIMAL(38, 10)", "boolean": "BOOLEAN", "unknown": "VARCHAR"}

# As the manifest's "files" says: RFC 4180 with a header in each file, NULL is nothing, an empty text is "".
CSV = "header = true, delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, compression = 'gzip', auto_detect = false"


# What DuckDB calls the types that a manifest of Parquet files names.
PARQUET = {"INT64": "BIGINT", "DOUBLE": "DOUBLE", "STRING": "VARCHAR", "BYTE_ARRAY": "BLOB", "BOOLEAN": "BOOLEAN", "DATE": "DATE", "TIMESTAMP(MICROS,UTC)": "TIMESTAMP WITH TIME ZONE", "TIMESTAMP(MICROS)": "TIMESTAMP"}


def reading(manifest, more=""):
    """The table function that reads files of the manifest's format; the files are its parameter."""
    if manifest["files"]["format"] == "parquet":
        return "read_parquet(?%s)" % more
    return "read_csv(?, columns = %s%s, %s)" % (columns(manifest), more, CSV)


def check_schema(manifest, folder):
    """Every file of a Parquet month has the columns and types that the manifest names."""
    if manifest["files"]["format"] != "parquet":
        return
    want = [(c["name"], PARQUET.get(c["parquet"], c["parquet"])) for c in manifest["columns"]]
    for chunk in manifest["chunks"]:
        have = [(row[0], row[1]) for row in duckdb.execute("describe select * from read_parquet(?)", [os.path.join(folder, chunk["object"])]).fetchall()]
        if have != want:
            raise SystemExit("%s has the columns %s, the manifest %s" % (chunk["object"], have, want))


def columns(manifest):
    return "{%s}" % ", ".join("'%s': '%s'" % (c["name"], TYPES[c["type"]]) for c in manifest["columns"])


def listed(manifest, folder):
    """The rows of the files that the manifest lists."""
    files = [os.path.join(folder, c["object"]) for c in manifest["chunks"]]
    return duckdb.execute("select * from %s order by %s" % (reading(manifest), manifest["key"]["column"]), [files]).fetchall()


def by_path(manifest, folder):
    """The same as Athena would do it: all that lies below the prefix, kept by the path of the file; and how many rows that is without."""
    names = ", ".join('"%s"' % c["name"] for c in manifest["columns"])
    everything = reading(manifest, ", filename = true")
    pattern = os.path.join(folder, "**", "*.parquet" if manifest["files"]["format"] == "parquet" else "*.csv.gz")
    files = [os.path.join(folder, c["object"]) for c in manifest["chunks"]]
    rows = duckdb.execute("select %s from %s where list_contains(?, filename) order by %s" % (names, everything, manifest["key"]["column"]), [pattern, files]).fetchall()
    return rows, duckdb.execute("select count(*) from " + everything, [pattern]).fetchone()[0]


def main(manifest, folder, source, query, parameters):
    with open(manifest, encoding="utf-8") as f:
        manifest = json.load(f)
    bound = dict(json.loads(parameters), period_start=manifest["period"]["start"], period_end=manifest["period"]["end"])
    db = sqlite3.connect("file:%s?mode=ro" % source, uri=True)
    want = db.execute("select * from (%s) order by %s" % (query, manifest["key"]["column"]), bound).fetchall()
    check_schema(manifest, folder)
    have = listed(manifest, folder)
    filtered, all_rows = by_path(manifest, folder)
    for name, rows in (("by the manifest's list", have), ("by the path of the file", filtered)):
        if rows != want:
            differ = [(w, h) for w, h in zip(want, rows) if w != h][:3]
            raise SystemExit("%s: %d rows, want %d; the first that differ: %s" % (name, len(rows), len(want), differ))
    print(json.dumps({"source": len(want), "month": len(have), "prefix": all_rows}))


if __name__ == "__main__":
    if len(sys.argv) != 6:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
