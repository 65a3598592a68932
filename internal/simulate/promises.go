package simulate

// promises is what the rules remember of the world so far.
type promises struct{}

func (p *promises) init() {}

// rowRules hold of every changed row.
var rowRules = []struct {
	name  string
	holds func(*World, Change) error
}{}

// wholeRules hold of the whole world: at any time, or only at rest.
var wholeRules = []struct {
	name  string
	rest  bool
	holds func(*World) error
}{}

func blobRule(*World, Blob) error { return nil }
