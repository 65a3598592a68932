package snapshot

import (
	"slices"
	"strings"
	"testing"

	"almanac/internal/parquet"
)

// The first chunk's record names the types of all files; what cannot be one is an error, not another file.
func TestRecordedTypesAreTheFiles(t *testing.T) {
	columns := []Column{{Name: "a", Type: "unknown", Parquet: "DECIMAL(10,2)"}, {Name: "b", Type: "text", Parquet: "STRING"}}
	s := shape{file: make([]parquet.Column, 2)}
	if err := s.as(columns); err != nil || !slices.Equal(s.file, []parquet.Column{{Name: "a", Type: parquet.Decimal, Precision: 10, Scale: 2}, {Name: "b", Type: parquet.String}}) {
		t.Errorf("%+v %v", s.file, err)
	}
	columns[1].Parquet = "INT96"
	if err := s.as(columns); err == nil || !strings.Contains(err.Error(), `column "b": "INT96"`) {
		t.Errorf("%v", err)
	}
}
