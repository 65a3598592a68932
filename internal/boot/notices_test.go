package boot

import (
	"log/slog"
	"testing"
	"time"

	"almanac/internal/channel"
	"almanac/internal/schedule"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// The consumer can tell people on every channel that it delivers on; schedule-exhaust holds no client and tells nobody.
func TestEveryChannelOfTheConsumerAnnounces(t *testing.T) {
	f := &Function{Config: Config{MailFrom: "almanac@example.com", MailRate: 14, Timing: schedule.DefaultTiming()}, AWS: aws.Config{Region: "eu-central-1"},
		Log: slog.New(slog.DiscardHandler), Clocks: schedule.Clocks{Wall: time.Now}, Store: store.New(nil, "Schedules", "test")}
	d, err := f.Deliverer()
	if err != nil {
		t.Fatal(err)
	}
	for name := range d.Channels {
		if d.Notices[name] == nil {
			t.Errorf("channel %s sends no notices", name)
		}
	}
	if len(d.Channels) != 2 || len(d.Notices) != 2 {
		t.Errorf("%d channels, %d announce", len(d.Channels), len(d.Notices))
	}
	if r := d.Pace.Rates; len(r) != 1 || r[channel.Email] != 14 || d.Pace.Pause == nil || d.Pace.Times == nil {
		t.Errorf("paced by %v; want mail alone, 14 a second", r)
	}
	if n := f.Exhauster().Deliverer.Notices; n != nil {
		t.Errorf("schedule-exhaust announces on %d channels", len(n))
	}
}
