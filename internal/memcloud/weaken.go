//go:build !mutants

package memcloud

// weaken leaves a condition as it was sent; see weaken_mutants.go for the build in which parts of it can be switched off.
func weaken(_ request, _ *action) {}
