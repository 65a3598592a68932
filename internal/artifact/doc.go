// Package artifact turns rows into a file: streamed, hashed, with bounded memory (design.md §5).
//
// # CSV
//
// RFC 4180: CRLF ends each record, the header always comes first, and a field is quoted where it must be. In detail:
//
//   - Integers and decimals are written digit by digit, never through a float.
//   - Floats are the shortest text that reads back as the same float, without an exponent between 1e-6 and 1e21; the
//     others are NaN, Infinity and -Infinity.
//   - Booleans are true and false, dates 2006-01-02, timestamps ISO 8601 in UTC with as many groups of three decimals
//     as they need (2006-01-02T15:04:05Z, …05.120Z). A year outside 0 to 9999 is refused as file_unsupported.
//   - Bytes are \x and lower-case hexadecimal digits, which no program takes for a number or a formula.
//   - NULL is Format.Null, by default nothing at all; a text that is spelled the same is quoted, so an empty text is
//     "" and stays distinct. Where a file has one column, a NULL spelled as nothing is "" as well: many readers skip
//     an empty line, and a lost row would be worse.
//   - Text that a spreadsheet may run as a formula is neutralised: an apostrophe is put before it, and it is quoted.
//     Such text begins with = + - @, with their full-width forms, with a control character (tab, line breaks, NUL) or
//     with a byte order mark; headers count as text. Numbers are never changed: -5 stays -5. Format.Exact leaves text as
//     it is.
//   - Bytes of a text that are not UTF-8 become U+FFFD.
//
// # JSON Lines
//
// One object for each row, a line feed behind each, the keys in the order of the columns (https://jsonlines.org). A file
// without a row is empty. In detail:
//
//   - A key is the column's name. Readers keep one of two equal keys, so names become unique: a name that comes again has _2,
//     _3 and so on behind it, the first that no column has; a column without a name is column_N, N being its place from 1.
//   - A number is written as one only where a double gives it back, since most readers make a double of it: integers up to
//     2^53 in magnitude, and decimals up to there whose digits are those of the shortest text of their double, which each
//     decimal of up to 15 significant digits is. They stand as the source wrote them: -5.00 stays -5.00. All others are
//     strings of the same digits, so a column may hold both. What the source calls a decimal and JSON does not call a number,
//     such as NaN or 007, is a string.
//   - Floats are the shortest text that reads back as the same float, as in CSV; NaN, Infinity and -Infinity are strings, for
//     null is NULL.
//   - NULL is null, an empty text "". Booleans are true and false; dates and timestamps are strings, spelled as in CSV.
//   - Bytes are base64 with padding (RFC 4648, section 4): what libraries of JSON read bytes from, in two thirds of the room of
//     hexadecimal digits.
//   - Texts are exact, whatever a spreadsheet would make of them: programs read this kind. Bytes that are not UTF-8 become
//     U+FFFD; only quotes, backslashes and control characters are escaped.
//
// # Parquet
//
// A file with types, for programs: all columns are optional, in the query's order, named as in JSON Lines; zstd; row groups of
// at most 131,072 rows and about 16 MiB, or 4 KiB a column where that is more. How pages are written stands in package
// parquet. Text is exact and never neutralised. In detail:
//
//   - Integers are INT64, reals DOUBLE, texts STRING, bytes BYTE_ARRAY, booleans BOOLEAN, dates DATE; timestamps, which are
//     instants, TIMESTAMP in microseconds with isAdjustedToUTC. A decimal is DECIMAL(p,s) where its engine says p and s, and p
//     is at most 38; otherwise it is STRING and holds the digits as the engine wrote them.
//   - Where the engine's word is no promise, the cells of the first row group decide: an SQLite expression has no type, and
//     SQLite has no decimals, dates, times and booleans of its own. The first cell that is not NULL gives the type, a real
//     among integers makes it DOUBLE, a decimal among them STRING. A column that holds NULLs alone gets the type that the
//     engine names, or STRING.
//   - A cell that does not fit its column exactly is refused as file_unsupported, with column, row and advice: SQLite keeps a
//     text in an INTEGER column if it is given one. So is an integer that no double equals in a DOUBLE column, more digits
//     than a DECIMAL has, a time finer than a microsecond, and a year outside 0 to 9999. What is not kept is how a decimal
//     spells its zeros: 1.5 in DECIMAL(10,2) comes back as 1.50.
//   - Bytes of a text that are not UTF-8 become U+FFFD.
//   - There may be 16,384 columns, and 1,048,576 columns of all row groups together.
//
// # Packing
//
// CSV and JSON Lines may be packed with gzip or zstd, at their fastest levels. Equal rows make equal bytes: no header holds a
// time or a name. Size, SHA-256 and the limit in bytes are those of the packed file, as it is stored and sent; how far it
// unpacks is bounded by the source's limits: by the bytes of all cells, of which none becomes more than six, and by the rows,
// of which each has the names of its columns in JSON Lines. A file that breaks off is never given its end, so no reader takes
// it for whole.
//
// # What a file is not
//
// Files are not encrypted by themselves: there are no passwords and no keys of recipients. S3 encrypts them where they are
// stored; on their way they are as safe as the channel is. Who needs more sends a link and not the file.
package artifact
