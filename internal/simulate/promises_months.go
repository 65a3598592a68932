package simulate

// monthPromises is what the rules of months remember.
type monthPromises struct{}

func (p *monthPromises) init() {}

var (
	monthRowRules   []rowRule
	monthStepRules  []stepRule
	monthBlobRules  []blobRule
	monthWholeRules []wholeRule
)
