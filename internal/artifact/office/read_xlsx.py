"""Reads a spreadsheet with openpyxl, a warning being an error, and prints its sheets as JSON.

usage: read_xlsx.py FILE

Of each sheet: its name, its frozen cell, its filter, the widths of its columns, whether its first cell is bold, and its
rows. A cell is its type and its value; a date is written as ISO 8601, and no cell is null.
"""

import datetime
import json
import sys
import warnings

import openpyxl

warnings.simplefilter("error")


def value(cell):
    v = cell.value
    if v is None:
        return None
    if isinstance(v, (datetime.date, datetime.datetime)):
        return ["d", v.isoformat()]
    return [cell.data_type, v]


def sheet(s):
    rows = [[value(c) for c in row] for row in s.iter_rows()]
    return {
        "name": s.title,
        "frozen": s.freeze_panes,
        "filter": s.auto_filter.ref,
        "widths": [s.column_dimensions[c].width for c in sorted(s.column_dimensions)],
        "bold": bool(s["A1"].font.b),
        "count": len(rows),
        "rows": rows[:100],
    }


def main(path):
    book = openpyxl.load_workbook(path)
    print(json.dumps([sheet(s) for s in book.worksheets]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
