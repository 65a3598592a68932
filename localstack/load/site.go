package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"almanac/internal/artifact/bucket"
	"almanac/internal/load"
	"almanac/internal/loopback"
	"almanac/internal/queue"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/store"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// site is the deployed stack and what receives from it.
type site struct {
	outputs  map[string]string
	receiver string
	aws      aws.Config
	store    *store.Store
	editor   *schedule.Editor
	http     *http.Client
	due      time.Time // business time at which this part's schedules are due

	name     string // of this part's schedules: each id begins with it
	began    time.Time
	promises []load.Promise
	made     []schedule.Schedule
}

// beside is how many requests of this program are under way at once.
const beside = 8

func open() (*site, error) {
	for _, name := range []string{"ALMANAC_ENDPOINT", "ALMANAC_OUTPUTS", "ALMANAC_WEBHOOK_RECEIVER"} {
		if os.Getenv(name) == "" {
			return nil, fmt.Errorf("%s is empty; run this by scripts/load, or after eval \"$(.local/bin/cloud env)\"", name)
		}
	}
	s := &site{receiver: os.Getenv("ALMANAC_WEBHOOK_RECEIVER"), http: loopback.Client(time.Minute)}
	b, err := os.ReadFile(os.Getenv("ALMANAC_OUTPUTS"))
	if err != nil {
		return nil, err
	}
	var stacks map[string]map[string]string
	if err := json.Unmarshal(b, &stacks); err != nil {
		return nil, fmt.Errorf("%s: %w", os.Getenv("ALMANAC_OUTPUTS"), err)
	}
	for _, outputs := range stacks {
		s.outputs = outputs
	}
	s.aws = aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv("ALMANAC_ENDPOINT")), HTTPClient: s.http, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	s.store = store.New(dynamodb.NewFromConfig(s.aws), s.outputs["SchedulesTable"], "local")
	s.store.Lists = bucket.Lists{API: s.objects(), Bucket: s.outputs["FilesBucket"]}
	s.editor = &schedule.Editor{Ledger: s.store, Queue: &queue.Queue{API: sqs.NewFromConfig(s.aws), URL: s.outputs["QueryRunsQueueUrl"]},
		Clocks: schedule.Clocks{Wall: time.Now, Business: s.business}, Timing: schedule.DefaultTiming(), Token: rand.Text, Log: slog.New(slog.DiscardHandler)}
	return s, nil
}

func (s *site) objects() *s3.Client {
	return s3.NewFromConfig(s.aws, func(o *s3.Options) { o.UsePathStyle = true })
}

func (s *site) business(ctx context.Context) (time.Time, error) {
	c, err := s.store.Clock(ctx)
	return c.At(time.Now()), err
}

// freeze stops business time.
func (s *site) freeze(ctx context.Context, at time.Time) error {
	return s.store.SetClock(ctx, schedule.ClockSetting{Base: at, Wall: time.Now(), Frozen: true})
}

// part runs one load. Business time stands still meanwhile and flows on from there afterwards.
func (s *site) part(ctx context.Context, p part, o options) (err error) {
	now, err := s.business(ctx)
	if err != nil {
		return err
	}
	s.name, s.promises, s.made = fmt.Sprintf("load-%s-%d-", p.name, time.Now().Unix()), nil, nil
	s.due = now.Truncate(time.Hour).Add(time.Hour)
	if err := s.freeze(ctx, s.due.Add(-time.Minute)); err != nil {
		return err
	}
	defer func() {
		end := context.WithoutCancel(ctx)
		now, clockErr := s.business(end)
		if clockErr == nil {
			clockErr = s.store.SetClock(end, schedule.ClockSetting{Base: now, Wall: time.Now()})
		}
		err = errors.Join(err, clockErr)
		if !o.keep {
			err = errors.Join(err, s.clear(end))
		}
	}()
	return p.run(s, ctx, o)
}

// definition is one that is due once, in the minute that this part is about.
func (s *site) definition(id string, to ...schedule.Recipient) schedule.Definition {
	d := schedule.Definition{ID: s.name + id, Workspace: "EWR", Name: "Load " + id, Owner: "ops@example.com", Source: "flights",
		Query: "select flight_id, carrier, flight from flights where origin = :workspace order by flight_id limit 10", Recipients: to}
	d.Recurrence.Cron, d.Recurrence.Zone = "0 * * * *", "UTC"
	d.Recurrence.End = s.due.Add(time.Minute).Format(time.RFC3339)
	d.File.Kind, d.File.RetentionDays, d.Empty = "csv", 1, schedule.DeliverEmpty
	return d
}

func (s *site) hook(path string) schedule.Recipient {
	return schedule.Recipient{Webhook: s.receiver + "/" + s.name + path, Secret: "demo"}
}

// save puts schedules into the table, and owes what they are due.
func (s *site) save(ctx context.Context, ds []schedule.Definition) error {
	from := time.Now()
	err := inParallel(len(ds), func(i int) error {
		d := ds[i]
		v := schedule.Version{Definition: d, Number: 1, Hash: d.Hash(), CreatedBy: "load", CreatedAt: time.Now()}
		a := schedule.Audit{ID: rand.Text(), Subject: d.ID, At: time.Now(), Who: "load", What: "create"}
		return s.store.CreateSchedule(ctx, v, schedule.Schedule{ID: d.ID, Workspace: d.Workspace, Name: d.Name, NextDue: s.due}, nil, time.Time{}, a)
	})
	if err != nil {
		return err
	}
	for _, d := range ds {
		p := load.Promise{Schedule: d.ID, Occurrences: []string{schedule.OccurrenceKey(s.due)}}
		for _, t := range schedule.Targets(d.Recipients) {
			p.Addresses = append(p.Addresses, t.Address())
		}
		s.promises = append(s.promises, p)
		s.made = append(s.made, schedule.Schedule{ID: d.ID})
	}
	fmt.Printf("  %d schedules put in %s\n", len(ds), time.Since(from).Round(100*time.Millisecond))
	return nil
}

// clear deletes what save has made.
func (s *site) clear(ctx context.Context) error {
	return inParallel(len(s.made), func(i int) error {
		sched, err := s.store.Schedule(ctx, s.made[i].ID)
		if err != nil {
			return err
		}
		a := schedule.Audit{ID: rand.Text(), Subject: sched.ID, At: time.Now(), Who: "load", What: "delete", Why: "the load is over"}
		return s.store.DeleteSchedule(ctx, sched, time.Now(), a)
	})
}

// inParallel does n things, a few at once, and reports the first error.
func inParallel(n int, do func(int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, beside)
	for w := range beside {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += beside {
				errs[w] = do(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// tick invokes the deployed dispatcher, as the rule does beside it.
func (s *site) tick(ctx context.Context) (t schedule.Tally, err error) {
	out, err := lambda.NewFromConfig(s.aws).Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(s.outputs["DispatchFunction"]), Payload: []byte(`{}`)})
	if err != nil {
		return t, err
	}
	if out.FunctionError != nil {
		return t, fmt.Errorf("the dispatcher: %s: %s", *out.FunctionError, out.Payload)
	}
	return t, json.Unmarshal(out.Payload, &t)
}

// admits moves business time to the due time and ticks until everything is admitted.
func (s *site) admits(ctx context.Context) error {
	if err := s.freeze(ctx, s.due); err != nil {
		return err
	}
	s.began = time.Now()
	for n := 1; ; n++ {
		from := time.Now()
		t, err := s.tick(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("  tick %d: %d admitted in %s, partial %v, errors %d, backlog %d\n", n, t.Admitted, time.Since(from).Round(time.Millisecond), t.Partial, t.Errors, t.Backlog)
		if !t.Partial && t.Errors == 0 {
			return nil
		}
	}
}

// drained waits until no run is open; the rule's own ticks and the deployed consumer do the work.
func (s *site) drained(ctx context.Context) error {
	for last, since := -1, time.Now(); ; {
		open := 0
		for i := range 2 * schema.Shards {
			ids, _, err := s.store.Open(ctx, i%2 == 0, i/2, time.Now().AddDate(1, 0, 0), "", 0)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if strings.HasPrefix(id, s.name) {
					open++
				}
			}
		}
		switch {
		case open == 0:
			return nil
		case open != last:
			last, since = open, time.Now()
		case time.Since(since) > 5*time.Minute:
			return fmt.Errorf("%d runs are open, and none has settled for 5 minutes", open)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}
