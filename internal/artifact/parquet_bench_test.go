package artifact_test

import (
	"context"
	"io"
	"math/rand/v2"

	"almanac/internal/source"
)

// noise makes rows that hardly compress.
type noise struct {
	n   int
	r   *rand.Rand
	row []source.Value
}

func newNoise(n int) *noise {
	return &noise{n: n, r: rand.New(rand.NewPCG(1, 2)), row: []source.Value{{Kind: source.KindInt}, {Kind: source.KindBytes, Text: make([]byte, 100)}}}
}

func (g *noise) Columns() []source.Column {
	return []source.Column{{Name: "n", Type: source.Integer}, {Name: "b", Type: source.Bytes}}
}
func (g *noise) Close() error { return nil }
func (g *noise) Next(context.Context) ([]source.Value, error) {
	if g.n == 0 {
		return nil, io.EOF
	}
	g.n--
	g.row[0].Int = g.r.Int64()
	for i := range g.row[1].Text {
		g.row[1].Text[i] = byte(g.r.Uint32())
	}
	return g.row, nil
}
