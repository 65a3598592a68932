package boot

import (
	"context"
	"time"

	"almanac/internal/artifact"
	"almanac/internal/channel/email"
	"almanac/internal/schedule"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Version of the product, shown in the OpenAPI document.
const Version = "0.1.0"

// Exhauster wires the consumer of the dead-letter queue.
func (f *Function) Exhauster() *schedule.Exhauster {
	return &schedule.Exhauster{Deliverer: f.Settler(), Ledger: f.Store, Queue: f.Queue(), QueueName: "query-runs"}
}

// FeedbackTaker wires the consumer of the mail service's events.
func (f *Function) FeedbackTaker() *schedule.FeedbackTaker {
	return &schedule.FeedbackTaker{Ledger: f.Store, Parse: email.ParseEvent, Account: f.Config.Account, Wall: f.Clocks.Wall, Log: f.Log, Count: f.Count}
}

// Consumer wires the handler of the delivery queue's batches.
func (f *Function) Consumer(d *schedule.Deliverer) Consumer {
	c := Consumer{Handle: d.Handle, Hide: f.Queue().Hide, Log: f.Log}
	if s, ok := d.Sources.(interface{ Busy() bool }); ok {
		c.Busy = s.Busy
	}
	return c
}

// Editor wires people's commands.
func (f *Function) Editor() *schedule.Editor {
	return &schedule.Editor{Ledger: f.Store, Queue: f.Queue(), Clocks: f.Clocks, Timing: f.Config.Timing, Token: Token, Log: f.Log}
}

// LinkService wires the public routes.
func (f *Function) LinkService() *schedule.Links {
	presign := s3.NewPresignClient(f.objects())
	return &schedule.Links{Ledger: f.Store, Wall: f.Clocks.Wall, Token: Token, Timing: f.Config.Timing,
		Sign: func(ctx context.Context, file schedule.RecordedFile, life time.Duration) (string, error) {
			out, err := presign.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &f.Config.FilesBucket, Key: &file.Key,
				ResponseContentDisposition: aws.String(artifact.ContentDisposition(file.Name))}, s3.WithPresignExpires(life))
			if err != nil {
				return "", err
			}
			return out.URL, nil
		}}
}

// ClockControl sets business time, in the local profile only.
func (f *Function) ClockControl() *ClockControl { return &ClockControl{f.Store, f.Clocks.Wall} }

// ClockControl reads and sets the business clock.
type ClockControl struct {
	Store *store.Store
	Wall  func() time.Time
}

// Clock is the business time now, and whether it stands still.
func (c *ClockControl) Clock(ctx context.Context) (time.Time, bool, error) {
	s, err := c.Store.Clock(ctx)
	return s.At(c.Wall()), s.Frozen, err
}

// SetClock sets business time; it flows on from there unless frozen.
func (c *ClockControl) SetClock(ctx context.Context, at time.Time, frozen bool) error {
	return c.Store.SetClock(ctx, schedule.ClockSetting{Base: at.UTC(), Wall: c.Wall(), Frozen: frozen})
}
