// Package storetest is the conformance suite of internal/store: the same promises, kept on every DynamoDB that the
// product is tested on. A test of internal/store calls Run with a client; the suite makes its own tables.
//
// The tables of internal/schedule and internal/snapshot are walked, not copied. For every row and each of its alternatives there is a
// way: the store's operation that asks for it, the rows that stand before, and exactly what is written. A row without a
// way fails the suite by its name. From the ways follow, without further cases:
//
//   - the row lands and writes what its `With` says, every other attribute of every row around it staying as it is;
//   - asked in any other state it leaves the item as it is, be the caller's read right or stale;
//   - each of its guards falsified leaves the item as it is and hands back the row that stands;
//   - each call to DynamoDB fails before and after it took effect, and no wrong state comes of it.
package storetest
