package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"almanac/internal/load"
	"almanac/internal/schedule"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// mail and post are what the receivers tell of what they took.
type (
	mail struct {
		To       []string  `json:"to"`
		Run      string    `json:"run"`
		Fault    string    `json:"fault"`
		Received time.Time `json:"received"`
	}
	post struct {
		ID          string    `json:"id"`
		Received    time.Time `json:"received"`
		Answer      int       `json:"answer"`
		SignatureOK bool      `json:"signature_ok"`
	}
)

// mails lists what came of this part's runs.
func (s *site) mails(ctx context.Context) (mine []mail, err error) {
	var all []mail
	if err := s.ask(ctx, "GET", "/_mails", nil, &all); err != nil {
		return nil, err
	}
	for _, m := range all {
		if strings.HasPrefix(m.Run, s.name) {
			mine = append(mine, m)
		}
	}
	return mine, nil
}

// posts lists what came to one of this part's paths.
func (s *site) posts(ctx context.Context, path string) (list []post, err error) {
	return list, s.ask(ctx, "GET", "/_received/"+s.name+path, nil, &list)
}

// answers tells a path what to answer.
func (s *site) answers(ctx context.Context, path string, status int, delay string) error {
	return s.ask(ctx, "PUT", "/_control/"+s.name+path, map[string]any{"answers": []map[string]any{{"status": status, "delay": delay}}}, nil)
}

func (s *site) ask(ctx context.Context, method, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.receiver+path, strings.NewReader(string(b)))
	if err != nil {
		return err
	}
	res, err := s.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("receiver: %s %s: %s", method, path, res.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// outside lists what this part left outside the table: its files, and the requests that were accepted. The emulator
// relays a mail after it has answered, so that as many as are expected are waited for.
func (s *site) outside(ctx context.Context, expected int, paths ...string) (load.Outside, error) {
	out := load.Outside{Accepted: map[string]int{}}
	var mails []mail
	for end := time.Now().Add(time.Minute); ; {
		var err error
		if mails, err = s.mails(ctx); err != nil || len(mails) >= expected || time.Now().After(end) {
			if err != nil {
				return out, err
			}
			break
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	for _, m := range mails {
		if m.Fault != "" {
			return out, fmt.Errorf("a mail of %s: %s", m.Run, m.Fault)
		}
		for _, to := range m.To {
			out.Accepted[load.At(m.Run, to)]++
		}
	}
	for _, p := range paths {
		posts, err := s.posts(ctx, p)
		if err != nil {
			return out, err
		}
		for _, x := range posts {
			if !x.SignatureOK {
				return out, fmt.Errorf("a request under key %s is not signed well", x.ID)
			}
			if x.Answer/100 == 2 {
				run, _, _ := strings.Cut(x.ID, "/")
				out.Accepted[load.At(run, s.receiver+"/"+s.name+p)]++
			}
		}
	}
	return out, s.files(ctx, &out)
}

// files lists the files of this part's runs.
func (s *site) files(ctx context.Context, out *load.Outside) error {
	pages := s3.NewListObjectsV2Paginator(s.objects(), &s3.ListObjectsV2Input{Bucket: aws.String(s.outputs["FilesBucket"]), Prefix: aws.String("files/1d/" + s.name)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			out.Files = append(out.Files, *o.Key)
		}
	}
	return nil
}

// judge checks every promise and shows how it went.
func (s *site) judge(ctx context.Context, out load.Outside, settle func(schedule.Run) error) ([]schedule.Run, error) {
	runs, broken, err := load.Kept(ctx, s.store, s.promises, out, settle)
	if err != nil {
		return runs, err
	}
	for i, b := range broken {
		if i == 20 {
			fmt.Printf("  and %d more\n", len(broken)-i)
			break
		}
		fmt.Println("  BROKEN:", b)
	}
	if len(broken) > 0 {
		return runs, fmt.Errorf("%d promises were broken", len(broken))
	}
	fmt.Printf("  every promise kept: %d runs, %d files, %d accepted requests; 0 lost, 0 double\n", len(runs), len(out.Files), len(out.Accepted))
	return runs, nil
}

// show writes when runs were admitted and settled, counted from the moment at which they were due.
func (s *site) show(name string, runs []schedule.Run) {
	var admitted, settled []time.Duration
	attempts, yields := 0, 0
	for _, r := range runs {
		admitted, settled = append(admitted, r.CreatedAt.Sub(s.began)), append(settled, r.SettledAt.Sub(s.began))
		attempts, yields = attempts+r.Attempts, yields+r.Yields
	}
	fmt.Printf("  %s: %d runs in %d attempts, %d of which yielded\n", name, len(runs), attempts, yields)
	load.Percentiles(os.Stdout, "admitted after its due time", admitted)
	load.Percentiles(os.Stdout, "settled after its due time", settled)
	load.Histogram(os.Stdout, load.Column{Name: "admitted", After: admitted}, load.Column{Name: "settled", After: settled})
}
