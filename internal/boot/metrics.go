package boot

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"almanac/internal/schedule"
)

// NewMetrics counts in CloudWatch's embedded metric format: one JSON line per count, with the stage and at most an
// outcome and a kind as dimensions, so that the number of metrics, and their price, stays bounded.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
func NewMetrics(w io.Writer, namespace, stage string, now func() time.Time) schedule.Counter {
	if namespace == "" {
		return func(string, int, string, string) {}
	}
	var mu sync.Mutex
	return func(name string, n int, outcome, kind string) {
		dims := []string{"stage"}
		line := map[string]any{"stage": stage, name: n}
		for _, d := range []struct{ name, v string }{{"outcome", outcome}, {"kind", kind}} {
			if d.v != "" {
				dims = append(dims, d.name)
				line[d.name] = d.v
			}
		}
		line["_aws"] = map[string]any{
			"Timestamp": now().UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": namespace, "Dimensions": [][]string{dims}, "Metrics": []any{map[string]string{"Name": name, "Unit": "Count"}},
			}},
		}
		b, err := json.Marshal(line)
		if err != nil {
			return // cannot happen: text and numbers only
		}
		mu.Lock()
		defer mu.Unlock()
		w.Write(append(b, '\n')) // a metric that cannot be written must not fail a run
	}
}
