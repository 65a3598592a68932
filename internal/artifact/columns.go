package artifact

import (
	"strconv"
	"strings"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// unknownKind refuses a value of the i-th column that no kind of file knows.
func unknownKind(i int, v *source.Value) error {
	return failure.New(failure.FileUnsupported, "column %d holds a value of the unknown kind %d: convert the column to text in the query", i+1, v.Kind)
}

// uniqueNames are the names of columns for kinds whose readers know a column by its name, and would lose one of two that
// share theirs. A column without a name is column_N, N being its place from 1. A name that comes again has _2, _3 and so on
// behind it, the first that no column has. Bytes that are not UTF-8 become U+FFFD before.
func uniqueNames(columns []source.Column) []string {
	names := make([]string, len(columns))
	owner := make(map[string]int, len(columns)) // the first column of a name keeps it
	for i, c := range columns {
		names[i] = strings.ToValidUTF8(c.Name, "\uFFFD")
		if names[i] == "" {
			names[i] = "column_" + strconv.Itoa(i+1)
		}
		if _, taken := owner[names[i]]; !taken {
			owner[names[i]] = i
		}
	}
	next := map[string]int{}
	for i, name := range names {
		if owner[name] == i {
			continue
		}
		for n := max(next[name], 2); ; n++ {
			other := name + "_" + strconv.Itoa(n)
			if _, taken := owner[other]; !taken {
				names[i], owner[other], next[name] = other, i, n+1
				break
			}
		}
	}
	return names
}
