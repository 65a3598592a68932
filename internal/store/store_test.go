package store_test

import (
	"context"
	"testing"
	"time"

	"almanac/internal/failure/failuretest"
	"almanac/internal/memcloud"
	"almanac/internal/store"
	"almanac/internal/storetest"
)

func TestMain(m *testing.M) { failuretest.Main(m, "store") }

// harness runs the suite over a DynamoDB.
func harness(db storetest.Client) storetest.Harness {
	return storetest.Harness{DB: db, Advance: func(ctx context.Context, s *store.Store, st storetest.Step) error {
		return store.Advance(ctx, s, st.Table, st.From, st.Event, st.Key, store.Facts(st.Facts), st.Put)
	}}
}

func TestConformanceInMemory(t *testing.T) {
	storetest.Run(t, harness(memcloud.NewDynamo(time.Now)))
}
