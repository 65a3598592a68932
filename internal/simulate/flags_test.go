package simulate

import "flag"

var (
	full   = flag.Bool("simulate.full", false, "the long sets: everything that the quick ones take a part of")
	replay = flag.String("simulate.replay", "", "one world, as a failure prints it")
)
