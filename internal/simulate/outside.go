package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"almanac/internal/failure"
	"almanac/internal/source"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/smithy-go"
)

// Mailbox is SES: it keeps what it accepts, and answers as a scenario says.
type Mailbox struct {
	w     *World
	mu    sync.Mutex
	Kept  []Letter
	Asked []Letter // every request that arrived, whatever was answered
	n     map[string]int
	// Answer, if set, refuses the n-th request for an address.
	Answer func(to string, n int) error
	// Cut, if set, says that the n-th mail for an address is taken, and the connection closed instead of an answer.
	Cut func(to string, n int) bool
}

// Letter is one mail that was accepted.
type Letter struct {
	To     string
	Raw    []byte
	At     time.Time
	Header mail.Header
}

func newMailbox(w *World) *Mailbox { return &Mailbox{w: w, n: map[string]int{}} }

// Coded is a refusal with a code of SES's own.
func Coded(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message, Fault: smithy.FaultClient}
}

// SendRawEmail keeps a mail.
func (m *Mailbox) SendRawEmail(ctx context.Context, in *ses.SendRawEmailInput, _ ...func(*ses.Options)) (*ses.SendRawEmailOutput, error) {
	id := ""
	err := m.w.outside(ctx, "SES.SendRawEmail", func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		to := in.Destinations[0]
		m.n[to]++
		read, err := mail.ReadMessage(bytes.NewReader(in.RawMessage.Data))
		if err != nil {
			return Coded("InvalidParameterValue", "Missing final '@domain'")
		}
		l := Letter{to, bytes.Clone(in.RawMessage.Data), m.w.Now(), read.Header}
		m.Asked = append(m.Asked, l)
		if m.Answer != nil {
			if err := m.Answer(to, m.n[to]); err != nil {
				return err
			}
		}
		m.Kept = append(m.Kept, l)
		id = fmt.Sprintf("ses-%s-%d", to, m.n[to]) // so that no order among addresses shows
		if m.Cut != nil && m.Cut(to, m.n[to]) {
			return errCut
		}
		return nil
	})
	m.w.hear(ctx, id, err)
	if err = broken(err); err != nil {
		return nil, err
	}
	return &ses.SendRawEmailOutput{MessageId: aws.String(id)}, nil
}

// broken is what a client sees of a request that was cut.
func broken(err error) error {
	if errors.Is(err, errLost) || errors.Is(err, errDead) {
		return errCut
	}
	return err
}

// To lists the letters that an address got.
func (m *Mailbox) To(address string) (out []Letter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.Kept {
		if l.To == address {
			out = append(out, l)
		}
	}
	return out
}

// Receivers are webhooks at https://example.com/<name>: they keep each request, and answer as a scenario says.
type Receivers struct {
	w     *World
	mu    sync.Mutex
	Posts []Post
	n     map[string]int
	// Answer, if set, is the answer to the n-th request to a receiver; zero: 204.
	Answer func(name string, n int) Reply
	// Slow is how long the answer takes, once the request was taken.
	Slow time.Duration
}

// Reply is what a receiver answers; Cut closes the connection instead, after the request was taken.
type Reply struct {
	Status     int
	RetryAfter string
	Cut        bool
}

// Post is one request as it arrived.
type Post struct {
	Name, Key, Body string
	Notice          string // the event's type, where it is one
	At              time.Time
	Taken           bool // answered with 2xx, or cut after it was taken
}

// Address of a receiver.
func Address(name string) string { return "https://example.com/" + name }

// RoundTrip serves one request.
func (r *Receivers) RoundTrip(in *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	var a Reply
	err = r.w.outside(in.Context(), "Webhook.Post", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		name := strings.TrimPrefix(in.URL.Path, "/")
		if r.n == nil {
			r.n = map[string]int{}
		}
		r.n[name]++
		a = Reply{Status: http.StatusNoContent}
		if r.Answer != nil {
			if b := r.Answer(name, r.n[name]); b != (Reply{}) {
				a = b
			}
		}
		r.Posts = append(r.Posts, Post{Name: name, Key: in.Header.Get("webhook-id"), Body: string(body), At: r.w.Now(), Taken: a.Cut || a.Status/100 == 2})
		if a.Cut {
			return errCut
		}
		return nil
	})
	if err == nil && r.Slow > 0 {
		r.w.sleep(in.Context(), r.Slow)
		err = in.Context().Err()
	}
	if refused := (*smithy.GenericAPIError)(nil); errors.As(err, &refused) {
		a, err = Reply{Status: http.StatusServiceUnavailable}, nil
	}
	r.w.hear(in.Context(), a, err)
	if err = broken(err); err != nil {
		return nil, err
	}
	header := http.Header{}
	if a.RetryAfter != "" {
		header.Set("Retry-After", a.RetryAfter)
	}
	return &http.Response{StatusCode: a.Status, Header: header, Body: http.NoBody, Request: in}, nil
}

// To lists the requests that a receiver got.
func (r *Receivers) To(name string) (out []Post) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.Posts {
		if p.Name == name {
			out = append(out, p)
		}
	}
	return out
}

// secrets sign for every id alike.
type secrets struct{}

func (secrets) Get(context.Context, string) ([]string, error) {
	return []string{"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"}, nil
}

// functionsAPI is Lambda as it is asked for an invocation of the dispatcher of months.
type functionsAPI struct{ w *World }

// Invoke queues one asynchronous invocation.
func (f functionsAPI) Invoke(ctx context.Context, _ *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	err := f.w.outside(ctx, "Lambda.Invoke", func() error {
		f.w.mu.Lock()
		f.w.asked++
		f.w.mu.Unlock()
		f.w.ring()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &lambda.InvokeOutput{StatusCode: 202}, nil
}

// Data is every source: it answers by what a query's text holds.
//
//	count(*)         what the control query knows of a month
//	:period_start    the delays of the workspace and month that the parameters name, by id
//	max(at)          the watermark
//	1 = 0            no row
//	from flights     four flights
//	else             the engine does not understand it
type Data struct {
	w        *World
	mu       sync.Mutex
	months   map[string][]int64   // "EWR 2040-01"
	moved    int                  // the version
	held     []map[string][]int64 // the months at each version
	Complete time.Time            // the watermark
	Slow     time.Duration        // how long a query runs until its first row
	tokens   map[string]string    // of Athena's queries: the version that each saw
	Lost     int                  // rows that only the control query knows of
	// Refuse, if set, fails a call, "Source.View", "Source.Open" or "Source.Read", or "Source.Next", each row: then the
	// source has answered, with a failure.
	Refuse func(name string) error
}

func newData(w *World) *Data {
	return &Data{w: w, months: map[string][]int64{}, tokens: map[string]string{}, held: []map[string][]int64{{}}}
}

// Load sets a month's delays, such as "EWR 2040-01". Every other month has three flights.
func (d *Data) Load(month string, delays ...int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moved++
	d.months[month] = delays
	d.held = append(d.held, maps.Clone(d.months))
}

// At is what a month holds at a version of the source.
func (d *Data) At(version, workspace, month string) []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, months := range d.held {
		if version == fmt.Sprintf("v%d", i) {
			return delaysIn(months, workspace+" "+month)
		}
	}
	return nil
}

func delaysIn(months map[string][]int64, month string) []int64 {
	if delays, loaded := months[month]; loaded {
		return delays
	}
	return []int64{10, -3, 25}
}

// Open opens a query on the present version.
func (d *Data) Open(ctx context.Context, name, workspace string, q source.Query) (source.Rows, error) {
	v, err := d.View(ctx, name, workspace)
	if err != nil {
		return nil, err
	}
	return v.Open(ctx, q)
}

// View holds the rows as they are now.
func (d *Data) View(ctx context.Context, _, _ string) (source.View, error) {
	v := &view{d: d, months: map[string][]int64{}}
	err := d.ask(ctx, "Source.View", func() {
		for k, m := range d.months {
			v.months[k] = slices.Clone(m)
		}
		v.version, v.complete, v.lost = fmt.Sprintf("v%d", d.moved), d.Complete, d.Lost
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (d *Data) ask(ctx context.Context, name string, f func()) error {
	err := d.w.outside(ctx, name, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := d.refused(name); err != nil {
			return err
		}
		f()
		return nil
	})
	var answered *failure.Failure
	if errors.As(err, &answered) {
		return err
	}
	if err != nil {
		return failure.New(failure.SourceUnavailable, "the source could not be reached: %v", err)
	}
	return nil
}

func (d *Data) refused(name string) error {
	if d.Refuse == nil {
		return nil
	}
	return d.Refuse(name)
}

type view struct {
	d        *Data
	version  string
	months   map[string][]int64
	complete time.Time
	lost     int
}

func (v *view) Version() string { return v.version }

func (v *view) ByteOrder(column string, _ source.Type) string { return column }
func (v *view) Close() error                                  { return nil }

func (v *view) Open(ctx context.Context, q source.Query) (source.Rows, error) {
	r := &rows{d: v.d}
	if err := v.d.ask(ctx, "Source.Open", func() {}); err != nil {
		return nil, err
	}
	if v.d.Slow > 0 {
		v.d.w.sleep(ctx, v.d.Slow)
	}
	holds := func(part string) bool { return strings.Contains(q.SQL, part) }
	switch {
	case holds("count(*)"):
		v.count(q, r)
	case holds(":period_start"):
		v.month(q, r)
	case holds("max(at)"):
		r.columns, r.cells = []string{"at"}, [][]source.Value{{{Kind: source.KindTimestamp, Time: v.complete}}}
	case holds("1 = 0"):
		r.columns = []string{"id"}
	case holds("from flights"):
		r.columns, r.cells = []string{"id", "delay"}, [][]source.Value{ints(1, 5), ints(2, 0), ints(3, -7), ints(4, 9007199254740993)}
	default:
		return nil, failure.New(failure.QueryInvalid, "no such query: %s", failure.Cut(q.SQL, 60))
	}
	return r, nil
}

// delays are those of the month that a query is about.
func (v *view) delays(q source.Query) []int64 {
	start, _ := q.Params["period_start"].(time.Time)
	return delaysIn(v.months, fmt.Sprintf("%v %s", q.Params["workspace"], start.Format("2006-01")))
}

func (v *view) count(q source.Query, r *rows) {
	sum, n := int64(0), int64(v.lost)
	for _, d := range v.delays(q) {
		sum += d
		n++
	}
	r.columns, r.cells = []string{"rows", "delay"}, [][]source.Value{ints(n, sum)}
}

func (v *view) month(q source.Query, r *rows) {
	r.columns = []string{"id", "delay"}
	after, _ := q.Params["almanac_cursor"].(int64)
	for i, d := range v.delays(q) {
		if id := int64(i + 1); id > after && !strings.HasSuffix(q.SQL, "limit 0") {
			r.cells = append(r.cells, ints(id, d))
		}
	}
}

func ints(list ...int64) (row []source.Value) {
	for _, n := range list {
		row = append(row, source.Value{Kind: source.KindInt, Int: n})
	}
	return row
}

type rows struct {
	d       *Data
	columns []string
	cells   [][]source.Value
	read    bool
}

func (r *rows) Columns() (out []source.Column) {
	for _, n := range r.columns {
		out = append(out, source.Column{Name: n, Type: source.Integer})
	}
	return out
}

// Next is a call to the outside for the first row only: whatever befalls a later one befalls that one too.
func (r *rows) Next(ctx context.Context) ([]source.Value, error) {
	if !r.read {
		r.read = true
		if err := r.d.ask(ctx, "Source.Read", func() {}); err != nil {
			return nil, err
		}
	}
	if err := r.d.refused("Source.Next"); err != nil {
		return nil, err
	}
	if len(r.cells) == 0 {
		return nil, io.EOF
	}
	row := r.cells[0]
	r.cells = r.cells[1:]
	return row, nil
}

func (r *rows) Close() error { return nil }

// mend lets the control query know of no more rows than there are.
func (d *Data) mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Lost = 0
	d.moved++
	d.held = append(d.held, maps.Clone(d.months))
}
