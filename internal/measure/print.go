package measure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Read reads the rows that Report added to a file.
func Read(r io.Reader) ([]Row, error) {
	var rows []Row
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var row Row
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if row.What == "" || row.Peer == "" || row.Bound != AtLeast && row.Bound != AtMost || row.Ours.Wall <= 0 || row.Theirs.Wall <= 0 {
			return nil, fmt.Errorf("line %d names not both sides, their times above zero and the bound: %s", n, lines.Bytes())
		}
		rows = append(rows, row)
	}
	return rows, lines.Err()
}

// Print prints the rows as one table of Markdown. An aim that was missed is marked.
func Print(w io.Writer, rows []Row) error {
	table := [][]string{{"what", "peer", "aim", "ratio", "by processor time", "ms", "peer's ms", "beside", "benchmark"}, nil}
	for range table[0] {
		table[1] = append(table[1], "---")
	}
	for _, r := range rows {
		aim := ""
		if r.Aim > 0 {
			aim = string(r.Bound) + " " + strconv.FormatFloat(r.Aim, 'f', -1, 64)
		}
		ratio := fmt.Sprintf("%.2f", r.Wall())
		if !r.Met() {
			ratio += " MISSED"
		}
		table = append(table, []string{r.What, r.Peer, aim, ratio, fmt.Sprintf("%.2f", r.CPU()), fmt.Sprintf("%.0f", r.Ours.Wall), fmt.Sprintf("%.0f", r.Theirs.Wall), r.Beside, r.Command})
	}
	width := make([]int, len(table[0]))
	for _, cells := range table {
		for i, cell := range cells {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	out := bufio.NewWriter(w)
	for _, cells := range table {
		for i, cell := range cells {
			fmt.Fprintf(out, "| %s%s ", cell, strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
		}
		out.WriteString("|\n")
	}
	return out.Flush()
}
