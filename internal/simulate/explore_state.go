package simulate

import (
	"hash/maphash"
	"reflect"
	"slices"
	"sync"
	"time"

	"almanac/internal/memcloud"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// state is all that decides how a world with two workers can go on: what lies outside, what the promises remember, the
// time, and what each worker has asked and been answered, in order. A worker is a function of its answers, so that two
// worlds whose states are equal have the same future, however they came there.
//
// What depends on the order of calls and decides nothing is left out: the ids that SQS gives to messages and receipts.
// Rows and objects are sums of hashes, kept up with each write.
type state struct {
	mu      sync.Mutex
	w       *World
	rows    uint64
	objects uint64
	workers map[*Worker]*history
}

// history is what a worker has asked and heard, hashed.
type history struct {
	sum   uint64
	calls int // that were let go
}

var stateSeed = maphash.MakeSeed()

// observeStates keeps a world's state from now on; there must be nothing in it yet.
func observeStates(w *World) *state {
	s := &state{w: w, workers: map[*Worker]*history{}}
	rows, objects := w.DB.Changed, w.S3.Changed
	w.DB.Changed = func(table string, old, new map[string]types.AttributeValue) {
		s.rows += rowSum(table, new) - rowSum(table, old)
		rows(table, old, new)
	}
	w.S3.Changed = func(bucket, key string, old, new []byte) {
		s.objects += objectSum(bucket, key, new) - objectSum(bucket, key, old)
		objects(bucket, key, old, new)
	}
	w.heard = s.hear
	return s
}

// follow keeps a worker's history from now on.
func (s *state) follow(ks ...*Worker) {
	for _, k := range ks {
		s.workers[k] = &history{}
	}
}

// hear notes an answer.
func (s *state) hear(k *Worker, answer any, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.workers[k]
	if h == nil {
		return
	}
	if sent, ok := answer.(*sqs.SendMessageBatchOutput); ok && sent != nil {
		answer = sent.Failed // the ids of what was taken depend on who came first
	}
	h.sum = mix(h.sum, sumOf(answer), sumOf(err), uint64(s.w.Now().UnixNano()))
}

// asked notes a call that is about to be let go.
func (s *state) asked(c *Call) {
	h := s.workers[c.Worker]
	h.calls++
	h.sum = mix(h.sum, maphash.String(stateSeed, c.Name), maphash.String(stateSeed, c.Key), uint64(s.w.Now().UnixNano()))
}

// stands is what stands outside: rows, objects, messages, executions, and what receivers got.
func (s *state) stands() uint64 {
	w := s.w
	sum := mix(s.rows, s.objects, uint64(w.Now().UnixNano()))
	for _, q := range []string{w.runs, w.dlq} {
		for _, m := range w.SQS.Messages(q) {
			sum = mix(sum, maphash.String(stateSeed, m.Body), uint64(m.VisibleAt.UnixNano()), uint64(m.Sent.UnixNano()), uint64(m.Received))
		}
		sum = mix(sum, 1)
	}
	for _, e := range w.Steps.Executions() {
		sum = mix(sum, sumOf(e))
	}
	return mix(sum, w.Mail.sum(), w.Hooks.sum())
}

// around is the state of everything but the workers: besides what stands outside, what was asked for and what the promises
// remember.
func (s *state) around() uint64 {
	w := s.w
	sum := mix(s.stands(), sumOf(w.promises))
	w.mu.Lock()
	defer w.mu.Unlock()
	sum = mix(sum, uint64(w.asked), sumOf(w.saved))
	for _, r := range w.steps {
		sum = mix(sum, sumOf(r.in))
	}
	return sum
}

// whole is the state, with the workers'.
func (s *state) whole(ks ...*Worker) uint64 {
	sum := s.around()
	for _, k := range ks {
		k.mu.Lock()
		sum = mix(sum, s.workers[k].sum, sumOf(k.ended), sumOf(k.expired))
		k.mu.Unlock()
	}
	return sum
}

// sum is what each address has got, in order.
func (m *Mailbox) sum() (sum uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return inOrderByName(m.Asked, func(l Letter) string { return l.To }) + 3*inOrderByName(m.Kept, func(l Letter) string { return l.To })
}

func (r *Receivers) sum() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return inOrderByName(r.Posts, func(p Post) string { return p.Name })
}

// inOrderByName sums a list whose order matters among those of one name only.
func inOrderByName[T any](list []T, name func(T) string) (sum uint64) {
	n := map[string]uint64{}
	for _, x := range list {
		n[name(x)]++
		sum += mix(n[name(x)], sumOf(x))
	}
	return sum
}

func rowSum(table string, it Row) uint64 {
	if it == nil {
		return 0
	}
	return mix(maphash.String(stateSeed, table), attributesSum(it))
}

func objectSum(bucket, key string, body []byte) uint64 {
	if body == nil {
		return 0
	}
	return mix(maphash.String(stateSeed, bucket), maphash.String(stateSeed, key), maphash.Bytes(stateSeed, body))
}

func attributesSum(it Row) (sum uint64) {
	for name, v := range it {
		sum += mix(maphash.String(stateSeed, name), valueSum(v))
	}
	return sum
}

func valueSum(v types.AttributeValue) uint64 {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return mix(1, maphash.String(stateSeed, v.Value))
	case *types.AttributeValueMemberN:
		return mix(2, maphash.String(stateSeed, v.Value))
	case *types.AttributeValueMemberM:
		return mix(3, attributesSum(v.Value))
	}
	return sumOf(v)
}

// mix hashes numbers in order.
func mix(list ...uint64) (sum uint64) {
	sum = 0x9e3779b97f4a7c15
	for _, n := range list {
		sum ^= n + 0x9e3779b97f4a7c15 + sum<<6 + sum>>2
		sum ^= sum >> 33
		sum *= 0xff51afd7ed558ccd
		sum ^= sum >> 29
		sum *= 0xc4ceb9fe1a85ec53
		sum ^= sum >> 32
	}
	return sum
}

// sumOf hashes a value by what it holds, pointers followed and maps without order. Worlds, workers, functions, channels
// and locks are left out: they hold no news. So are fields with the tag state:"-", which decide nothing in a later step.
func sumOf(x any) uint64 {
	if r, ok := x.(Row); ok {
		return attributesSum(r)
	}
	if v, ok := x.(types.AttributeValue); ok && v != nil {
		switch v.(type) {
		case *types.AttributeValueMemberS, *types.AttributeValueMemberN, *types.AttributeValueMemberM:
			return valueSum(v)
		}
	}
	return deepSum(reflect.ValueOf(x))
}

var (
	timeType = reflect.TypeFor[time.Time]()
	noNews   = []reflect.Type{reflect.TypeFor[World](), reflect.TypeFor[Worker](), reflect.TypeFor[sync.Mutex](), reflect.TypeFor[memcloud.Dynamo]()}
)

func deepSum(v reflect.Value) uint64 {
	switch v.Kind() {
	case reflect.Invalid, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return 5
	case reflect.Bool:
		if v.Bool() {
			return 7
		}
		return 11
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return mix(13, uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return mix(17, v.Uint())
	case reflect.Float32, reflect.Float64:
		return maphash.Comparable(stateSeed, v.Float())
	case reflect.String:
		return maphash.String(stateSeed, v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 5
		}
		return mix(19, deepSum(v.Elem()))
	case reflect.Slice, reflect.Array:
		return listSum(v)
	case reflect.Map:
		sum := uint64(v.Len())
		for i := v.MapRange(); i.Next(); {
			sum += mix(deepSum(i.Key()), deepSum(i.Value()))
		}
		return mix(23, sum)
	case reflect.Struct:
		return structSum(v)
	}
	panic("a value of kind " + v.Kind().String() + " has no sum")
}

func listSum(v reflect.Value) uint64 {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return maphash.Bytes(stateSeed, v.Bytes())
	}
	sum := uint64(v.Len())
	for i := range v.Len() {
		sum = mix(sum, deepSum(v.Index(i)))
	}
	return sum
}

func structSum(v reflect.Value) uint64 {
	t := v.Type()
	if slices.Contains(noNews, t) {
		return 5
	}
	fields := t.NumField()
	if t == timeType {
		fields = 2 // without its zone
	}
	sum := maphash.String(stateSeed, t.Name())
	for i := range fields {
		if t.Field(i).Tag.Get("state") != "-" {
			sum = mix(sum, deepSum(v.Field(i)))
		}
	}
	return sum
}
