package simulate

import "slices"

// promises is what the rules remember of the world so far.
type promises struct {
	delivery deliveryPromises
	months   monthPromises
}

func (p *promises) init() {
	p.delivery.init()
	p.months.init()
}

// rowRule holds of every changed row.
type rowRule struct {
	name  string
	holds func(*World, Change) error
}

// stepRule holds of all that one step changed together, the rows of a transaction among it.
type stepRule struct {
	name  string
	holds func(*World, []Change) error
}

// blobRule holds of every object that was written or deleted.
type blobRule struct {
	name  string
	holds func(*World, Blob) error
}

// wholeRule holds of the whole world: at any time, or only at rest.
type wholeRule struct {
	name  string
	rest  bool
	holds func(*World) error
}

var (
	rowRules   = slices.Concat(deliveryRowRules, monthRowRules)
	stepRules  = slices.Concat(deliveryStepRules, monthStepRules)
	blobRules  = slices.Concat(deliveryBlobRules, monthBlobRules)
	wholeRules = slices.Concat(deliveryWholeRules, monthWholeRules)
)
