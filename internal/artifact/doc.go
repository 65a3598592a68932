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
// # XLSX
//
// A workbook by ECMA-376 that goes straight into the zip stream, compressed on a goroutine of its own, without a temporary
// file. Equal rows make equal bytes: no part says when it was made, unless the details are asked for. In detail:
//
//   - A number is a number where JSON Lines has one: where a double gives its very digits back. Everything else is text,
//     spelled by the source: longer numbers, NaN, Infinity, -Infinity, and what is smaller than Excel's smallest, 2.2250738585072014e-308. Excel computes with the
//     whole double, but shows 15 digits at most: of an integer of 16 digits it shows the last one as 0, and types that in
//     when a person edits the cell. Who needs such numbers as they are converts the column to text in the query.
//   - Decimals are shown with as many decimals as the source wrote, integers with all their digits, without groups.
//   - Booleans are booleans. Dates and timestamps are Excel's serial numbers with a format for dates; timestamps by the
//     clocks of Origin.Zone, to a fraction of a microsecond, shown in seconds, or thousandths where there are some. An
//     hour that comes twice when clocks go back is shown twice. Before 1 March 1900 and after the year 9999, which Excel
//     cannot show, they are ISO 8601 text, timestamps in UTC.
//   - Bytes are the text that CSV has for them. NULL is no cell, an empty text a cell with an empty text.
//   - Text is a string in its cell, which Excel never takes for a formula, so nothing is put before it. Text that CSV
//     would neutralise, and numbers that are text, have the format "text" besides, so that editing the cell changes
//     nothing either. Line breaks and spaces are kept, lines shown as lines. What XML cannot hold is escaped as Excel does, _xHHHH_, and text
//     that reads so itself as well. Bytes that are not UTF-8 become U+FFFD.
//   - The header is bold on a colour and stays in view, with a filter over all that is used; the columns are as wide as
//     the header and the first rows ask for, from 6 to 60 characters. The sheet is called by Origin.Name, as far as Excel
//     takes it, the details' one "Run details".
//   - What a sheet cannot hold is refused, never cut off: more than 1,048,576 rows with the header, and a sheet of more
//     than 4,000,000,000 bytes before compression (a part of 4 GiB would need ZIP64, which Excel repairs where it is not
//     announced in advance), as file_too_large; more than 16,384 columns, and 32,767 characters a cell, counted by UTF-16 as Excel
//     does, as file_unsupported.
//
// # Parquet
//
// A file with types, for programs: all columns are optional, in the query's order, named as in JSON Lines; zstd; row groups of
// at most 131,072 rows and about 16 MiB, or 4 KiB a column where that is more. How pages are written stands in package
// parquet. Text is exact and never neutralised. In detail:
//
//   - Integers are INT64, reals DOUBLE, texts STRING, bytes BYTE_ARRAY, booleans BOOLEAN, dates DATE, timestamps
//     TIMESTAMP in microseconds, with isAdjustedToUTC where the engine's column holds instants. A decimal is DECIMAL(p,s) where its engine says p and s, and p
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
//   - There may be 16,384 columns, and 131,072 columns of all row groups together.
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
