// Package snapshot is the second lifecycle: monthly snapshots. For each workspace and snapshot type the numbers of a
// closed local month are planned, admitted under caps, generated at once or in chunks with a cursor, validated and
// published as a version that never changes (lifecycles.md D; seed "Monthly snapshot run").
//
// The domain imports no AWS package. What it needs from outside it declares as small interfaces where it uses them.
package snapshot
