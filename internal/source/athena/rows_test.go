package athena_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"almanac/internal/failure"
	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/source"
	"almanac/internal/source/sourcetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// object answers with a result of its own.
type object struct {
	body io.Reader
	err  error
}

func (o object) Open(context.Context, string, string, int64) (io.ReadCloser, error) {
	if o.err != nil {
		return nil, o.err
	}
	return io.NopCloser(o.body), nil
}

func columns(kinds ...string) (out []types.ColumnInfo) {
	for i, k := range kinds {
		out = append(out, types.ColumnInfo{Name: aws.String(fmt.Sprintf("c%d", i)), Type: aws.String(k)})
	}
	return out
}

// result reads a CSV with columns of these types.
func result(t *testing.T, csv io.Reader, kinds ...string) (sourcetest.Table, error) {
	h := newHeld(t)
	h.answer.Columns, h.Results = columns(kinds...), object{body: csv}
	return h.ask(t.Context(), nil)
}

func TestTypesAreExact(t *testing.T) {
	at := func(y, mo, d, h, mi, s, ns int) time.Time {
		return time.Date(y, time.Month(mo), d, h, mi, s, ns, time.UTC)
	}
	for _, row := range []struct {
		kind, cell string
		want       source.Value
	}{
		{"tinyint", "-128", source.Value{Kind: source.KindInt, Int: -128}},
		{"smallint", "32767", source.Value{Kind: source.KindInt, Int: 32767}},
		{"integer", "-2147483648", source.Value{Kind: source.KindInt, Int: math.MinInt32}},
		{"bigint", "9223372036854775807", source.Value{Kind: source.KindInt, Int: math.MaxInt64}},
		{"real", "3.4028235E38", source.Value{Kind: source.KindFloat, Float: 3.4028235e38}},
		{"double", "1.7976931348623157E308", source.Value{Kind: source.KindFloat, Float: math.MaxFloat64}},
		{"double", "-Infinity", source.Value{Kind: source.KindFloat, Float: math.Inf(-1)}},
		{"decimal", "-12345678901234567890123456789012345678", source.Value{Kind: source.KindDecimal, Text: []byte("-12345678901234567890123456789012345678")}},
		{"decimal", "0.1000000000000000055", source.Value{Kind: source.KindDecimal, Text: []byte("0.1000000000000000055")}},
		{"decimal", "5.00", source.Value{Kind: source.KindDecimal, Text: []byte("5.00")}},
		{"boolean", "true", source.Value{Kind: source.KindBool, Int: 1}},
		{"boolean", "false", source.Value{Kind: source.KindBool}},
		{"date", "0001-01-01", source.Value{Kind: source.KindDate, Time: at(1, 1, 1, 0, 0, 0, 0)}},
		{"timestamp", "2013-06-01 13:00:00.000", source.Value{Kind: source.KindTimestamp, Time: at(2013, 6, 1, 13, 0, 0, 0)}},
		{"timestamp", "2013-06-01 13:00:00.123456", source.Value{Kind: source.KindTimestamp, Time: at(2013, 6, 1, 13, 0, 0, 123456000)}},
		{"timestamp with time zone", "2013-06-01 09:00:00.000 America/New_York", source.Value{Kind: source.KindTimestamp, Time: at(2013, 6, 1, 13, 0, 0, 0)}},
		{"timestamp with time zone", "2013-06-01 13:00:00.000 UTC", source.Value{Kind: source.KindTimestamp, Time: at(2013, 6, 1, 13, 0, 0, 0)}},
		{"timestamp with time zone", "2013-06-01 18:45:00.500 +05:45", source.Value{Kind: source.KindTimestamp, Time: at(2013, 6, 1, 13, 0, 0, 5e8)}},
		{"varbinary", "00 ff 0a", source.Value{Kind: source.KindBytes, Text: []byte{0, 0xff, '\n'}}},
		{"varbinary", "", source.Value{Kind: source.KindBytes}},
		{"varchar", "é☃🚚", sourcetest.Text("é☃🚚")},
		{"char", "ab ", sourcetest.Text("ab ")},
		{"array", "[1, null, 3]", sourcetest.Text("[1, null, 3]")},
		{"map", "{a=1, b=2}", sourcetest.Text("{a=1, b=2}")},
		{"row", "{x=1, y=two}", sourcetest.Text("{x=1, y=two}")},
		{"json", `{""a"":1.50}`, sourcetest.Text(`{"a":1.50}`)},
		{"time", "13:00:00.000", sourcetest.Text("13:00:00.000")},
	} {
		t.Run(row.kind+" "+row.cell, func(t *testing.T) {
			out, err := result(t, strings.NewReader("\"c0\"\n\""+row.cell+"\"\n\n\""+row.cell+"\"\n"), row.kind)
			if err != nil || len(out.Rows) != 3 {
				t.Fatalf("%d rows, %v", len(out.Rows), err)
			}
			for _, i := range []int{0, 2} {
				if v := out.Rows[i][0]; v.Kind != row.want.Kind || v.Int != row.want.Int || v.Float != row.want.Float || !bytes.Equal(v.Text, row.want.Text) || !v.Time.Equal(row.want.Time) {
					t.Errorf("row %d: %+v, want %+v", i, v, row.want)
				}
			}
			if v := out.Rows[1][0]; v.Kind != source.KindNull {
				t.Errorf("NULL: %+v", v)
			}
		})
	}
	t.Run("NaN", func(t *testing.T) {
		out, err := result(t, strings.NewReader("\"c0\"\n\"NaN\"\n"), "double")
		if err != nil || !math.IsNaN(out.Rows[0][0].Float) {
			t.Fatalf("%+v %v", out.Rows, err)
		}
	})
	t.Run("columns", func(t *testing.T) {
		h := newHeld(t)
		h.answer.Columns = []types.ColumnInfo{{Name: aws.String("_col0"), Label: aws.String("total"), Type: aws.String("decimal"), Precision: 18, Scale: 2}, {Name: aws.String("at"), Type: aws.String("timestamp with time zone")}}
		h.answer.Rows = nil
		out, err := h.ask(t.Context(), nil)
		want := []source.Column{{Name: "total", Type: source.Decimal, Precision: 18, Scale: 2}, {Name: "at", Type: source.Timestamp, Zoned: true}}
		if err != nil || len(out.Rows) != 0 || fmt.Sprint(out.Columns) != fmt.Sprint(want) {
			t.Fatalf("%+v %v", out, err)
		}
	})
}

func TestTheFormOfTheCSV(t *testing.T) {
	const head = "\"c0\",\"c1\"\n"
	for _, row := range []struct{ name, body, want string }{
		{"NULL and empty text", head + ",\"\"\n\"\",\n", `<nil>,""|"",<nil>|`},
		{"only NULL", head + ",\n", "<nil>,<nil>|"},
		{"quotes, commas and line ends", head + "\"a\"\"b\",\"c,\r\nd\n\"\n", "\"a\\\"b\",\"c,\\r\\nd\\n\"|"},
		{"without quotes, and line ends of two", "c0,c1\r\na,b\r\n,\r\n", `"a","b"|<nil>,<nil>|`},
		{"longer than the buffer", head + "\"" + strings.Repeat("x\"\"", 300_000) + "\",\"y\"\n", fmt.Sprintf("%q,\"y\"|", strings.Repeat("x\"", 300_000))},
		{"no rows", head, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			for name, in := range map[string]io.Reader{"whole": strings.NewReader(row.body), "in small parts": iotest.HalfReader(iotest.OneByteReader(strings.NewReader(row.body)))} {
				out, err := result(t, in, "varchar", "varchar")
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				var got strings.Builder
				for _, line := range out.Rows {
					for i, v := range line {
						if i > 0 {
							got.WriteByte(',')
						}
						if v.Kind == source.KindNull {
							got.WriteString("<nil>")
						} else {
							fmt.Fprintf(&got, "%q", v.Text)
						}
					}
					got.WriteByte('|')
				}
				if got.String() != row.want {
					t.Errorf("%s: %.200s, want %.200s", name, got.String(), row.want)
				}
			}
		})
	}
}

// A result that is not as it should be is a failure that passes, never the end.
func TestBrokenResults(t *testing.T) {
	reset := errors.New("connection reset by peer")
	for name, in := range map[string]io.Reader{
		"empty":                    strings.NewReader(""),
		"within the header":        strings.NewReader("\"c0\",\"c"),
		"a header of other width":  strings.NewReader("\"c0\"\n"),
		"within a row":             strings.NewReader("\"c0\",\"c1\"\n\"1\""),
		"within quotes":            strings.NewReader("\"c0\",\"c1\"\n\"1\",\"x"),
		"too few fields":           strings.NewReader("\"c0\",\"c1\"\n\"1\"\n"),
		"too many fields":          strings.NewReader("\"c0\",\"c1\"\n\"1\",\"x\",\"y\"\n"),
		"text behind quotes":       strings.NewReader("\"c0\",\"c1\"\n\"1\"2,\"x\"\n"),
		"a quote within a field":   strings.NewReader("\"c0\",\"c1\"\n1\"2,\"x\"\n"),
		"a lone carriage return":   strings.NewReader("\"c0\",\"c1\"\n\"1\",\"x\"\r\"2\",\"y\"\n"),
		"and without quotes":       strings.NewReader("\"c0\",\"c1\"\n1,x\ry\n"),
		"no number":                strings.NewReader("\"c0\",\"c1\"\n\"one\",\"x\"\n"),
		"reset within a row":       io.MultiReader(strings.NewReader("\"c0\",\"c1\"\n\"1\","), iotest.ErrReader(reset)),
		"reset between rows":       io.MultiReader(strings.NewReader("\"c0\",\"c1\"\n\"1\",\"x\"\n"), iotest.ErrReader(reset)),
		"cut short between rows":   io.MultiReader(strings.NewReader("\"c0\",\"c1\"\n\"1\",\"x\"\n"), iotest.ErrReader(io.ErrUnexpectedEOF)),
		"an integer beyond bigint": strings.NewReader("\"c0\",\"c1\"\n\"9223372036854775808\",\"x\"\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := result(t, in, "bigint", "varchar")
			failuretest.Want(t, err, failure.SourceUnavailable)
		})
	}
	for kind, cell := range map[string]string{"double": "x", "decimal": "1.2.3", "boolean": "yes", "date": "2013-02-30", "timestamp": "2013-06-01", "varbinary": "0g",
		"timestamp with time zone": "2013-06-01", "Timestamp With Time Zone": "2013-06-01 00:00:00.000 Mars/Olympus", "TIMESTAMP WITH TIME ZONE": "2013-06-01 00:00:00.000 +5"} {
		t.Run(kind, func(t *testing.T) {
			_, err := result(t, strings.NewReader("\"c0\"\n\""+cell+"\"\n"), kind)
			if f := failuretest.Want(t, err, failure.SourceUnavailable); !strings.Contains(f.Message, `column "c0"`) || !strings.Contains(f.Message, cell) {
				t.Fatal(f.Message)
			}
		})
	}
	t.Run("no columns", func(t *testing.T) {
		_, err := result(t, strings.NewReader(""))
		failuretest.Want(t, err, failure.QueryInvalid)
	})
}

func TestARowBeyondWhatIsHeldInMemory(t *testing.T) {
	for name, cell := range map[string]string{"in quotes": `"` + strings.Repeat("x", source.MaxRow+1) + `"`, "without": strings.Repeat("x", source.MaxRow+1), "a quote too many": `"` + strings.Repeat("x", source.MaxRow) + `"""`} {
		_, err := result(t, strings.NewReader("\"c0\"\n\"a\"\n"+cell+"\n"), "varchar")
		if f := failuretest.Want(t, err, failure.QueryFailed); !strings.Contains(f.Message, "row 2 has more than") {
			t.Errorf("%s: %s", name, f.Message)
		}
	}
}

func TestResultsThatCannotBeRead(t *testing.T) {
	status := func(code int) error {
		return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}}, Err: errors.New("no")}}
	}
	for name, row := range map[string]struct {
		err  error
		code failure.Code
	}{
		"forbidden": {status(403), failure.SourceAccessDenied}, "gone": {status(404), failure.SourceUnavailable}, "no answer": {io.ErrUnexpectedEOF, failure.SourceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			h.Results = object{err: row.err}
			ticket := h.ticket("1", "")
			_, err := h.ask(t.Context(), ticket)
			failuretest.Want(t, err, row.code)
			if ticket.Over != (name == "gone") {
				t.Fatalf("another query is asked: %v; only a result that is gone is paid for again", ticket.Over)
			}
		})
	}
	t.Run("its columns", func(t *testing.T) {
		h := newHeld(t)
		h.api.Before = func(_ context.Context, c memcloud.Call) error {
			if c.Operation == "GetQueryResults" {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		_, err := h.ask(t.Context(), nil)
		failuretest.Want(t, err, failure.SourceUnavailable)
	})
	t.Run("its place", func(t *testing.T) {
		h := newHeld(t)
		h.Output, h.answer.Takes = "s3://files", 0
		h.api.Workgroups["primary"] = memcloud.AthenaWorkgroup{}
		_, err := h.ask(t.Context(), nil)
		if f := failure.From(err); err == nil || f.Passing() {
			t.Fatal(err)
		}
	})
	t.Run("in time", func(t *testing.T) {
		h := newHeld(t)
		ctx := h.until(t, time.Hour).(deadline)
		h.Results = object{body: io.MultiReader(strings.NewReader("\"n\"\n\"1\"\n"), closing{ctx.done})}
		_, err := h.ask(ctx, nil)
		failuretest.Want(t, err, failure.QueryTimeout)
	})
}

// closing ends a context's time when somebody reads on.
type closing struct{ done chan struct{} }

func (c closing) Read([]byte) (int, error) { close(c.done); return 0, context.DeadlineExceeded }
