package athena

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/athena/types"

	"almanac/internal/source"
)

// What a query costs: 5 US dollars for a terabyte scanned, rounded up to the megabyte, at least 10 MB; a failed query
// nothing, a cancelled one what it has scanned. It is the list price of most regions, without taxes, discounts and
// provisioned capacity. https://aws.amazon.com/athena/pricing/
const (
	megabyte       = 1 << 20
	leastMegabytes = 10
	microsPerTB    = 5_000_000
	megabytesPerTB = 1 << 20
)

func costOf(x *types.QueryExecution) source.Cost {
	c := source.Cost{Scanned: scanned(x)}
	if x.StatementType == types.StatementTypeDdl || x.Status.State == types.QueryExecutionStateFailed {
		return c
	}
	billed := max(leastMegabytes, (c.Scanned+megabyte-1)/megabyte)
	if x.Status.State == types.QueryExecutionStateCancelled && c.Scanned == 0 {
		billed = 0 // it never began
	}
	c.Micros = (billed*microsPerTB + megabytesPerTB - 1) / megabytesPerTB
	return c
}

func scanned(x *types.QueryExecution) int64 {
	if x.Statistics == nil {
		return 0
	}
	return aws.ToInt64(x.Statistics.DataScannedInBytes)
}
