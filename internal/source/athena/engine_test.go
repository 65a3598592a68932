package athena_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"almanac/internal/failure"
	"almanac/internal/memcloud"
	"almanac/internal/source"
	"almanac/internal/source/sqlite"

	gosqlite "database/sql"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"
)

// engine answers a query in Athena's stead, with SQLite: so the suite proves what goes to Athena and what is made of its
// answers (tokens, states, literals, the CSV's form, types, limits, ends), and nothing about Trino's SQL.
type engine struct{ file *sqlite.File }

func newEngine(t testing.TB, ddl []string) engine {
	path := filepath.Join(t.TempDir(), "lake.sqlite")
	db, err := gosqlite.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range ddl {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return engine{&sqlite.File{Path: path}}
}

// user is a failure of the query's own making.
func user(kind int32, sub, reason string) memcloud.AthenaAnswer {
	return memcloud.AthenaAnswer{Type: types.StatementTypeDml, Sub: sub, Reason: reason,
		Error: &types.AthenaError{ErrorCategory: aws.Int32(2), ErrorType: aws.Int32(kind), ErrorMessage: aws.String(reason)}}
}

var (
	statement = regexp.MustCompile(`^(?:\s|/\*.*?\*/)*(?i:(select|with|values|insert|update|delete|merge|unload|create|drop|alter|msck|show|describe|explain))`)
	where     = regexp.MustCompile(`(?i)\bwhere\b`)
	timestamp = regexp.MustCompile(`TIMESTAMP ('[^']*')`)
)

const runaway = "SELECT never FROM the_end"

func (e engine) answer(q memcloud.AthenaQuery) memcloud.AthenaAnswer {
	if q.SQL == runaway {
		return memcloud.AthenaAnswer{Takes: 1000 * time.Hour, Type: types.StatementTypeDml, Sub: "SELECT"}
	}
	word := ""
	if m := statement.FindStringSubmatch(q.SQL); m != nil {
		word = strings.ToUpper(m[1])
	}
	switch word {
	case "CREATE", "DROP", "ALTER", "MSCK": // a role that may only read is refused them
		a := user(1500, word, "Insufficient permissions to execute the query")
		a.Type = types.StatementTypeDdl
		return a
	case "INSERT", "UPDATE", "DELETE", "MERGE", "UNLOAD":
		return user(1501, word, "Access denied when writing output")
	case "SHOW", "DESCRIBE", "EXPLAIN":
		return memcloud.AthenaAnswer{Type: types.StatementTypeUtility, Sub: word}
	}
	sql, err := bind(q.SQL, q.Parameters)
	if err != nil {
		return user(1006, "SELECT", err.Error())
	}
	rows, err := e.file.Open(context.Background(), source.Query{SQL: sql})
	if err != nil {
		return user(1006, "SELECT", failure.From(err).Message)
	}
	defer rows.Close()
	a := memcloud.AthenaAnswer{Type: types.StatementTypeDml, Sub: "SELECT", Scanned: 4096}
	columns := slices.Clone(rows.Columns())
	for {
		row, err := rows.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return user(1009, "SELECT", failure.From(err).Message)
		}
		line := make([]*string, len(row))
		for i := range row {
			line[i] = written(&row[i])
			if columns[i].Type == source.Unknown {
				columns[i].Type = typeOf(row[i].Kind)
			}
		}
		a.Rows = append(a.Rows, line)
	}
	for _, c := range columns {
		a.Columns = append(a.Columns, types.ColumnInfo{Name: aws.String(c.Name), Label: aws.String(c.Name), Type: aws.String(typeNames[c.Type])})
	}
	return a
}

var typeNames = map[source.Type]string{source.Unknown: "varchar", source.Integer: "bigint", source.Real: "double", source.Decimal: "decimal", source.Text: "varchar",
	source.Bytes: "varbinary", source.Boolean: "boolean", source.Date: "date", source.Timestamp: "timestamp"}

func typeOf(k source.Kind) source.Type {
	switch k {
	case source.KindInt:
		return source.Integer
	case source.KindFloat:
		return source.Real
	case source.KindBytes:
		return source.Bytes
	case source.KindText:
		return source.Text
	}
	return source.Unknown
}

// written is a cell as Athena writes it; nil: NULL.
func written(v *source.Value) *string {
	switch v.Kind {
	case source.KindNull:
		return nil
	case source.KindInt:
		return aws.String(strconv.FormatInt(v.Int, 10))
	case source.KindFloat:
		text := strings.ReplaceAll(strconv.FormatFloat(v.Float, 'G', -1, 64), "E+", "E")
		return aws.String(strings.Replace(text, "+Inf", "Infinity", 1))
	case source.KindBytes:
		return aws.String(fmt.Sprintf("% x", v.Text))
	}
	return aws.String(string(v.Text))
}

// bind puts the parameters' literals in the place of their marks, as EXECUTE … USING does. The marks may stand in the
// WHERE clause alone: https://docs.aws.amazon.com/athena/latest/ug/querying-with-prepared-statements.html
func bind(sql string, literals []string) (string, error) {
	var b strings.Builder
	first, n, quoted := where.FindStringIndex(sql), 0, byte(0)
	for i := 0; i < len(sql); i++ {
		c := sql[i]
		switch {
		case quoted != 0 && c == quoted:
			quoted = 0
		case quoted == 0 && (c == '\'' || c == '"'):
			quoted = c
		case quoted == 0 && c == '?':
			if first == nil || i < first[0] {
				return "", errors.New("a parameter outside of the WHERE clause")
			}
			if n == len(literals) {
				return "", fmt.Errorf("Incorrect number of parameters: expected %d but found %d", n+1, len(literals))
			}
			b.WriteString("(" + timestamp.ReplaceAllString(literals[n], "$1") + ")")
			n++
			continue
		}
		b.WriteByte(c)
	}
	if n != len(literals) {
		return "", fmt.Errorf("Incorrect number of parameters: expected %d but found %d", n, len(literals))
	}
	return b.String(), nil
}
