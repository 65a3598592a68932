package athena

import (
	"context"
	"strings"

	"almanac/internal/source"
)

// apart is the source for who asks several queries of it: each is one of its own, and sees the objects that it finds.
type apart struct{ *Source }

var (
	_ source.Apart  = apart{}
	_ source.Placed = (*rows)(nil)
)

// Apart is the source as months are read from it.
func (s *Source) Apart() source.Apart { return apart{s} }

func (apart) Apart() {}

// Version: tables of Hive's kind have none.
func (apart) Version() string { return "" }

// ByteOrder is the column itself: Athena compares numbers by their value, and texts by the bytes of their UTF-8, whatever
// collation anybody thinks of. https://trino.io/docs/current/language/types.html#string
func (apart) ByteOrder(column string, _ source.Type) string { return column }

// Close has nothing to let go of: queries go on.
func (apart) Close() error { return nil }

// Capitals reports whether a name of a column is none that a result can have: Athena lower-cases the names of columns.
// https://docs.aws.amazon.com/athena/latest/ug/tables-databases-columns-names.html
func Capitals(name string) bool { return name != strings.ToLower(name) }

func (a apart) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	return a.Source.Open(ctx, q)
}
