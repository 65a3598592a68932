package simulate

import (
	"strings"
	"time"

	"almanac/internal/schedule"
	"almanac/internal/schema"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The promises of deliveries. Each has a test that breaks it on purpose.
var (
	deliveryRowRules = []rowRule{
		{"a run moves only as table A says, and stays as it settled", runMoves},
		{"a submission moves only as table B says, and keeps its outcome", submissionMoves},
		{"a schedule moves only as table C says", scheduleMoves},
		{"indexes hold what is open, and nothing else", indexesRight},
		{"what is recorded once stays", recordedOnce},
	}
	deliveryStepRules = []stepRule{
		{"each act of a person has its audit, and each audit its act", actsAudited},
		{"a lease is taken when nobody holds one, and intents are their holder's", leasesHeld},
		{"a settled run's counts are its submissions'", countsTrue},
		{"streak, last run, open run and pause follow a settle, and nothing else", scheduleFollows},
		{"notices come with the settle that they tell of, and go when they are told", noticesTold},
		{"a retry to the missing names nobody who has the delivery", missingOnly},
		{"the recorded file is the object, whole", fileWhole},
		{"nobody is sent to but the recipients, each request as it was first made", sendsRight},
		{"the batch response names what was not done, and nothing else", answersTrue},
	}
	deliveryBlobRules = []blobRule{
		{"one file per run, never overwritten", blobStays},
	}
	deliveryWholeRules = []wholeRule{
		{"every run settles, within its attempts and its time", true, everyRunSettled},
		{"submissions say what their receivers know", true, receiversAgree},
		{"every notice is told", true, everyNoticeTold},
		{"a run's query is paid for once", true, queriesPaidOnce},
	}
)

// deliveryPromises is what the rules of deliveries remember.
type deliveryPromises struct {
	rows    map[string]map[string]Row  // as they stand, by partition and sort key
	objects map[string][]byte          // of the files bucket
	leases  map[string]held            // by token
	notices map[string]bool            // put ever, by id
	reach   map[string]map[string]bool // by run: whom some holder of it found on the schedule
	bodies  map[string]string          // of requests, by receiver and key
	once    map[string]bool            // keys that a receiver has applied, or letters that were taken
	taken   map[string]int             // different keys applied, or letters, by run and recipient
	asked   map[string]int             // requests that arrived, by key or notice
	posts   int                        // that have been looked at
	mails   int
	letters int
	answers []answer
	held    bool          // some process was held up
	idle    time.Duration // how long a scenario has queues, rules or sending off
}

// held is a lease that was given.
type held struct {
	run string
	end time.Time
}

func (p *deliveryPromises) init() {
	p.rows, p.objects, p.leases, p.notices = map[string]map[string]Row{}, map[string][]byte{}, map[string]held{}, map[string]bool{}
	p.reach, p.bodies, p.once, p.taken, p.asked = map[string]map[string]bool{}, map[string]string{}, map[string]bool{}, map[string]int{}, map[string]int{}
}

// hear takes a written row.
func (p *deliveryPromises) hear(old, new Row) {
	it := new
	if it == nil {
		it = old
	}
	pk, sk := Text(it, schema.PK), Text(it, schema.SK)
	if p.rows[pk] == nil {
		p.rows[pk] = map[string]Row{}
	}
	if new == nil {
		delete(p.rows[pk], sk)
		return
	}
	p.rows[pk][sk] = new
}

func (p *deliveryPromises) row(k schema.Key) Row { return p.rows[string(k.PK)][string(k.SK)] }

func (p *deliveryPromises) run(id string) Row {
	sched, occurrence, _ := schema.SplitRunID(id)
	return p.row(schema.RunKey(sched, occurrence))
}

// submissions are those of a run.
func (p *deliveryPromises) submissions(run string) (subs []Row) {
	for sk, it := range p.rows[string(schema.SubmissionPartition(run))] {
		if strings.HasPrefix(sk, schema.SubPrefix) {
			subs = append(subs, it)
		}
	}
	return subs
}

// kinds of rows, as far as the promises tell them apart.
func isRun(it Row) bool {
	return strings.HasPrefix(Text(it, schema.PK), "SCHED#") && strings.HasPrefix(Text(it, schema.SK), schema.RunPrefix)
}

func isSubmission(it Row) bool { return strings.HasPrefix(Text(it, schema.SK), schema.SubPrefix) }

func isSchedule(it Row) bool {
	return strings.HasPrefix(Text(it, schema.PK), "SCHED#") && Text(it, schema.SK) == "STATE"
}

func (c Change) row() Row {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// runID is the id of a run's row; runOfSub that of a submission's run.
func runID(it Row) string {
	return schema.RunID(strings.TrimPrefix(Text(it, schema.PK), "SCHED#"), strings.TrimPrefix(Text(it, schema.SK), schema.RunPrefix))
}

func runOfSub(it Row) string { return strings.TrimPrefix(Text(it, schema.PK), "RUN#") }

func stateNow(it Row) schedule.RunState { return schedule.RunState(Text(it, schema.State)) }

func settled(it Row) bool { return schedule.Runs.Settled(stateNow(it)) }

func yes(it Row, name string) bool {
	v, ok := it[name].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

// wallOf is a row's time; zero where there is none.
func wallOf(it Row, name string) time.Time {
	if s := Text(it, name); s != "" {
		return instant(s)
	}
	return time.Time{}
}

// maxSkew is how far ahead of true time a worker's clock may be.
func (w *World) maxSkew() time.Duration {
	if w.SkewOf == nil {
		return 0
	}
	return 5 * time.Minute
}
