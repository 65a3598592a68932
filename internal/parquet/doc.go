// Package parquet writes and reads flat Parquet files: optional columns, in their own order, zstd, no nesting
// (https://parquet.apache.org/docs/file-format/). It holds one row group, whatever the number of rows.
//
// # What is written
//
// Data pages of version 1, which every reader knows. Integers, dates, timestamps and decimals of up to 18 digits are
// DELTA_BINARY_PACKED; texts and bytes RLE_DICTIONARY where the first row group has at most half as many distinct values as
// values, and PLAIN otherwise, or once a row group's dictionary has 512 KiB; the rest PLAIN. A column whose values are whole
// numbers has its least and greatest one in the footer, every column its number of NULLs. created_by is CreatedBy and there is
// no time and no random number, so that equal rows give equal bytes.
//
// # What is read
//
// Files that Writer wrote. Another program's file may hold what Reader does not know, and is an error then. So is a page
// without the checksum that Writer gives it.
//
// # What is parquet-go's
//
// Levels, encodings, dictionaries, pages with their headers and bounds, row groups, and the schema are written by
// github.com/parquet-go/parquet-go; levels, encodings and dictionaries are decoded by it. What is ours, and why:
//
//   - Chunk holds the first row group's cells, since they decide what a column is before there is a schema.
//   - The footer is encoded by parquet-go from its own structures, but not by its Close: that always writes an index of the
//     pages. The bounds of texts have to be skipped, since parquet-go keeps them whole until the file ends, a row group's least
//     and greatest cell of a megabyte each; and the index then says of each page that all its texts are empty. A reader that
//     trusts it leaves rows out.
//   - The zstd coders are the process's: those of parquet-go are made when they are first wanted, which in tests is within one
//     of testing/synctest's bubbles, to be used in another, and read a page of any size.
//   - Reader goes from page to page itself, for that reason and so that checksum and sizes are known to be right before
//     parquet-go decodes: it takes the number of values that a page's bytes claim, up to 16 GiB, and panics at some bytes.
//   - The root of the schema keeps the order of its columns: parquet.Group sorts them by name.
package parquet
