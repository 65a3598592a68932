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
package artifact
