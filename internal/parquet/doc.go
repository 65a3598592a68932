// Package parquet writes and reads flat Parquet files: optional columns, in their own order, zstd, no nesting
// (https://parquet.apache.org/docs/file-format/). It holds one row group, whatever the number of rows.
//
// # What is written
//
// Data pages of version 1, which every reader knows. Integers, dates, timestamps and decimals of up to 18 digits are
// DELTA_BINARY_PACKED; texts and bytes RLE_DICTIONARY where a row group has at most half as many distinct values as
// values, and PLAIN otherwise; the rest PLAIN. A column whose values are whole numbers has its least and greatest one in
// the footer, every column its number of NULLs. created_by is CreatedBy and there is no time and no random number, so that
// equal rows give equal bytes.
//
// # What is read
//
// Files that Writer wrote. Another program's file may hold what Reader does not know, and is an error then.
package parquet
