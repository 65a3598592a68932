package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/source"
)

// Engines that let two columns have one name, and results that are too wide.
func TestShapesThatCannotBe(t *testing.T) {
	d := Definition{Key: "id"}
	twice := []source.Column{{Name: "id"}, {Name: "x"}, {Name: "x"}}
	_, err := shapeOf(d, twice, nil)
	if f := failuretest.Want(t, err, failure.DefinitionInvalid); !strings.Contains(f.Message, `two columns "x"`) {
		t.Error(f.Message)
	}
	_, err = controlled([]source.Column{{Name: rowsColumn}, {Name: "x"}, {Name: "x"}})
	if f := failuretest.Want(t, err, failure.DefinitionInvalid); !strings.Contains(f.Message, `two columns "x"`) {
		t.Error(f.Message)
	}
	var wide []source.Column
	for i := range MaxMonthColumns {
		wide = append(wide, source.Column{Name: fmt.Sprint("c", i)})
	}
	wide[0].Name = "id"
	if _, err := shapeOf(d, wide, nil); err != nil {
		t.Error(err)
	}
	_, err = shapeOf(d, append(wide, source.Column{Name: "one more"}), nil)
	if f := failuretest.Want(t, err, failure.DefinitionInvalid); !strings.Contains(f.Message, "1001 columns; want at most 1000") {
		t.Error(f.Message)
	}
}

// What a type check takes for the type, in engines with and without types of their own.
func TestCellsFitTheirTypes(t *testing.T) {
	text := func(s string) source.Value { return source.Value{Kind: source.KindText, Text: []byte(s)} }
	for typ, row := range map[string]struct{ fit, not []source.Value }{
		"integer": {[]source.Value{{Kind: source.KindInt, Int: 7}}, []source.Value{{Kind: source.KindFloat}, text("7"), {Kind: source.KindBool}}},
		"decimal": {[]source.Value{{Kind: source.KindDecimal, Text: []byte("1.5")}, {Kind: source.KindInt}}, []source.Value{{Kind: source.KindFloat}, text("1.5")}},
		"real":    {[]source.Value{{Kind: source.KindFloat}, {Kind: source.KindInt}}, []source.Value{text("1"), {Kind: source.KindDecimal}}},
		"text":    {[]source.Value{text("")}, []source.Value{{Kind: source.KindInt}, {Kind: source.KindBytes}, {Kind: source.KindDecimal}}},
		"boolean": {[]source.Value{{Kind: source.KindBool}, {Kind: source.KindInt, Int: 1}, {Kind: source.KindInt}}, []source.Value{{Kind: source.KindInt, Int: 2}, text("true")}},
		"date":    {[]source.Value{{Kind: source.KindDate}, text("2024-02-29")}, []source.Value{text("2023-02-29"), text("2024-02-29T00:00:00Z"), text("29.02.2024"), {Kind: source.KindInt}}},
		"timestamp": {[]source.Value{{Kind: source.KindTimestamp}, text("2013-06-01T13:00:00Z"), text("2013-06-01 13:00"), text("2013-06-01 13:00:00.5 +0000"), text("2013-06-01T13:00:00+02:00")},
			[]source.Value{text("2013-06-01"), text("2013-13-01T00:00:00Z"), text("soon"), {Kind: source.KindDate}}},
		"": {nil, []source.Value{text("x")}},
	} {
		for _, v := range append(row.fit, source.Value{Kind: source.KindNull}) {
			if !fits(&v, typ) {
				t.Errorf("%s does not take %+v %q", typ, v.Kind, v.Text)
			}
		}
		for _, v := range row.not {
			if fits(&v, typ) {
				t.Errorf("%s takes %+v %q", typ, v.Kind, v.Text)
			}
		}
	}
}
