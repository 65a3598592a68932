package simulate

// deliveryPromises is what the rules of deliveries remember.
type deliveryPromises struct{}

func (p *deliveryPromises) init() {}

var (
	deliveryRowRules   []rowRule
	deliveryStepRules  []stepRule
	deliveryBlobRules  []blobRule
	deliveryWholeRules []wholeRule
)
