package main

// swaps are written by hand, since what must come before what is no property of the code's form. Whoever adds a record that
// must be there before something is sent, started, stored or shown adds its swap.
var swaps = []swap{
	{id: "deliver/send-before-intent", what: "a recipient is asked, and the intent recorded after that", places: []place{{
		function: "schedule.work.first", before: "if err := w.Ledger.Intend(",
		code: `if reason == "" {
			ch = mutantSent{ch, ch.Send(ctx, w.delivery(t, sub), sub.Frozen)}
		}`}}},
	{id: "deliver/send-before-take-over", what: "a recipient is asked again, and the submission taken over after that", places: []place{{
		function: "schedule.work.once", before: "if err := w.Ledger.TakeOver(",
		code: `if reason == "" {
			ch = mutantSent{ch, ch.Send(ctx, w.delivery(t, sub), sub.Frozen)}
		}`}}},
	{id: "deliver/resend-before-record", what: "an unknown is asked again, and made this worker's after that", places: []place{{
		function: "schedule.work.again", before: "if err := w.Ledger.Resend(",
		code: `if reason == "" {
			ch = mutantSent{ch, ch.Send(ctx, w.delivery(t, taken), taken.Frozen)}
		}`}}},
	{id: "deliver/outcome-before-send", what: "acceptance is recorded, and the recipient asked after that", places: []place{{
		function: "schedule.work.send", before: "sendCtx, cancel := context.WithTimeout(",
		code: `if err := w.record(ctx, func(ctx context.Context) error { return w.Ledger.Accepted(ctx, sub, "before") }); err != nil {
			return err
		}`}}},
	{id: "deliver/file-recorded-before-it-is-stored", what: "the file is recorded on the run, and its object stored after that", places: []place{{
		function: "schedule.work.produce", before: "began := w.Clocks.Wall()",
		code: `var held strings.Builder
		result, err := artifact.Write(ctx, first, format, &held, limits.Or(source.Defaults).Bytes)
		if err != nil {
			return w.timely(ctx, err)
		}
		file.Rows, file.Bytes, file.SHA256 = result.Rows, result.Bytes, result.SHA256
		file.Expires, file.LinksEnd = expiry(w.def, w.Clocks.Wall())
		if err := w.Ledger.RecordFile(ctx, w.run, w.now(), file); err != nil {
			w.unsure = !IsConflict(err)
			return err
		}
		w.run.File, w.fresh = &file, true
		return w.Files.Write(ctx, file.Key, artifact.MediaType(format), artifact.ContentDisposition(file.Name), func(to io.Writer) error {
			_, err := io.WriteString(to, held.String())
			return err
		})`}}},
	{id: "deliver/recipients-before-file-is-recorded", what: "recipients are asked and the run settled, and the file recorded after that", places: []place{{
		function: "schedule.work.produce", before: "if err := w.Ledger.RecordFile(",
		code: `w.run.File, w.fresh = &file, true
		if err := w.deliver(ctx); err != nil {
			return err
		}
		return w.Ledger.RecordFile(ctx, w.run, w.now(), file)`}}},
	{id: "outbox/removed-before-told", what: "a notice leaves the outbox before it is sent", places: []place{{
		function: "schedule.Deliverer.tellOnce", before: "var v channel.Verdict",
		code: `if err := d.Ledger.RemoveNotice(ctx, n.ID); err != nil {
			return err
		}`}}},
	{id: "outbox/removed-before-resent", what: "a wish leaves the outbox before it is carried out", places: []place{{
		function: "schedule.Deliverer.handleResend", before: "wait, err := w.resend(",
		code: `if err := d.Ledger.RemoveNotice(ctx, id); err != nil {
			return done
		}`}}},
	{id: "sweep/notice-offered-before-postponed", what: "a notice's message is sent, and its next time moved after that", places: []place{{
		function: "schedule.tick.postpone", before: "switch err := t.Ledger.PostponeNotice(",
		code: `send := t.Queue.SendNotices
		if n.Resend {
			send = t.Queue.SendResends
		}
		offer(ctx, send, []string{n.ID}, t.Log)
		_ = t.Ledger.PostponeNotice(ctx, n, next)
		return false`}}},
	{id: "sweep/run-offered-before-moved", what: "a run's message is sent, and its wake_at moved after that", places: []place{{
		function: "schedule.tick.reoffer", before: "switch err := t.Ledger.Reoffer(",
		code: `t.offer(ctx, []string{id})
		_ = t.Ledger.Reoffer(ctx, r, now, now.Add(OfferPause(r.Offers, t.Timing)), false)
		return false`}}},
	{id: "exhaust/offered-before-moved", what: "a dead letter's run is offered, and its wake_at moved after that", places: []place{{
		function: "schedule.Exhauster.reoffer", before: "if err := e.Ledger.Reoffer(",
		code: `w.Count("dead_letters", 1, "reoffered", "")
		Offer(ctx, e.Queue, []string{w.id}, w.log)
		return e.Ledger.Reoffer(ctx, w.run, now, now.Add(OfferPause(w.run.Offers, w.Timing)), true)`}}},
	{id: "dispatch/offered-before-admitted", what: "a due run's message is sent, and the run admitted after that", places: []place{{
		function: "schedule.tick.admitNext", before: "err = t.Ledger.Admit(",
		code: `t.offer(ctx, []string{r.ID()})
		return "", true, t.Ledger.Admit(ctx, Admission{Run: r, Token: t.Token(), Schedule: &s, NextDue: next.At, Skips: skips(id, next.Skipped), TTL: ttl})`}}},
	{id: "admit/schedule-before-run", what: "the schedule moves on, and the run is admitted after that, in writes of their own", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("schedule.Admit", "true")}}},
	{id: "admit/run-before-schedule", what: "the run is admitted, and the schedule moves on after that, in writes of their own", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("schedule.Admit", "false")}}},
	{id: "settle/schedule-before-run", what: "notices and the schedule's part of a settle are written before the run settles", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("schedule.Succeed", "true") + "\n" + mutantApart("schedule.Fail", "true")}}},
	{id: "settle/run-before-schedule", what: "the run settles, and its notices and the schedule's part are written after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("schedule.Succeed", "false") + "\n" + mutantApart("schedule.Fail", "false")}}},
	{id: "claim/slot-before-row", what: "the slot is taken, and the run claimed after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Claim", "true")}}},
	{id: "claim/row-before-slot", what: "the run is claimed, and the slot taken after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Claim", "false")}}},
	{id: "claim/job-before-row", what: "the job is started, and the run claimed after that", places: []place{{
		function: "snapshot.dispatchTick.claim", before: "claimed, err := t.Ledger.Claim(",
		code: `next := r
		next.Job++
		if _, err := t.offerer.jobs.Start(ctx, next.JobName(), Job{Run: next.ID(), Job: next.Job}); err != nil && !errors.Is(err, ErrJobExists) {
			return Run{}, false, err
		}`}}},
	{id: "plan/head-before-run", what: "the period's head names a version, and its run is planned after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Plan", "true")}}},
	{id: "plan/run-before-head", what: "a run is planned, and the period's head names it after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Plan", "false")}}},
	{id: "chunk/cursor-before-record", what: "the cursor moves, and the chunk is recorded after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.CommitChunk", "false")}}},
	{id: "chunk/record-before-cursor", what: "the chunk is recorded, and the cursor moves after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.CommitChunk", "true")}}},
	{id: "chunk/committed-before-it-is-stored", what: "a chunk is committed, and its object stored after that", places: []place{
		{function: "snapshot.press.work", before: "if p.err = p.store(",
			code: `w, steps := *p.w, *p.w.Steps
			if _, again := steps.Objects.(*mutantHeld); !again {
				steps.Objects = &mutantHeld{Objects: steps.Objects}
				w.Steps = &steps
				p.w = &w
			}`},
		{function: "snapshot.press.work", before: "p.run.Cursor = c.to",
			code: `if p.err = p.w.Objects.(*mutantHeld).store(ctx); p.err != nil {
				return
			}`}}},
	{id: "publish/verdict-before-manifest", what: "the verdict is recorded, and the manifest stored after that", places: []place{
		{function: "snapshot.work.judge", before: "if v.Passed = refusal(checks) == nil;",
			code: `steps := *w.Steps
			steps.Objects = &mutantHeld{Objects: steps.Objects}
			w.Steps = &steps`},
		{function: "snapshot.work.judge", before: "w.run.Verdict = &v",
			code: `if err := w.Objects.(*mutantHeld).store(ctx); err != nil {
				return err
			}`}}},
	{id: "publish/pointer-before-run", what: "the pointer moves, and the run is published after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Publish", "true")}}},
	{id: "publish/run-before-pointer", what: "the run is published, and the pointer moves after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Publish", "false")}}},
	{id: "fail/slot-before-run", what: "head and slot are freed, and the attempt settled after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Fail", "true")}}},
	{id: "fail/run-before-slot", what: "the attempt is settled, and head and slot are freed after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Fail", "false")}}},
	{id: "cancel/slot-before-run", what: "head and slot are freed, and the run cancelled after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Cancel", "true")}}},
	{id: "cancel/run-before-slot", what: "the run is cancelled, and head and slot are freed after that", places: []place{{
		function: "store.Store.transact", before: "in := &dynamodb.TransactWriteItemsInput{}",
		code: mutantApart("mutantEvents.Cancel", "false")}}},
	{id: "clean/noted-before-removed", what: "a run is noted as cleaned, and its objects removed after that", places: []place{{
		function: "snapshot.reconcileTick.cleanShard", before: "removed, err := t.clean(",
		code: `if err := t.Ledger.Cleaned(ctx, r.ID()); err != nil {
			return err
		}`}}},
	{id: "resend/offered-before-wished", what: "a resend's message is sent, and its wish recorded after that", places: []place{{
		function: "schedule.Editor.Resend", before: "if err = e.Ledger.AskToResend(",
		code: `offer(ctx, e.Queue.SendResends, []string{schema.ResendID(id, sub.Channel, sub.RecipientHash, wish)}, e.Log)
		err = e.Ledger.AskToResend(ctx, sub, wish, a.At.Add(e.Timing.SweepQueued.Std()), until, a)
		sub.Wish = Wish{wish, by, reason}
		return sub, err`}}},
	{id: "run-now/offered-before-admitted", what: "a person's run is offered, and admitted after that", places: []place{{
		function: "schedule.Editor.RunNow", before: "err = e.Ledger.Admit(",
		code: `Offer(ctx, e.Queue, []string{r.ID()}, e.Log)
		err = e.Ledger.Admit(ctx, Admission{Run: r, Token: e.Token(), TTL: e.Clocks.Wall().Add(e.Timing.RunRetention.Std()), Audit: &a})
		return r, true, err`}}},
	{id: "redrive/offered-before-audited", what: "a dead letter's run is offered, and the act audited after that", places: []place{{
		function: "schedule.Editor.Redrive", before: "if err := e.Ledger.Redriven(",
		code: `if left := offer(ctx, send, []string{what}, e.Log); left > 0 {
			return d, failure.New(failure.StoreUnavailable, "the queue did not take the message; asking again is safe")
		}
		if err := e.Ledger.Redriven(ctx, id, a); err != nil {
			return d, err
		}
		return e.Ledger.DeadLetter(ctx, id)`}}},
	{id: "link/shown-before-logged", what: "a file's address is handed out, and the access recorded after that", places: []place{{
		function: "schedule.Links.Open", before: "if err := l.Ledger.RecordAccess(",
		code: `address, err := l.Sign(ctx, *run.File, l.Timing.DownloadLife.Std())
		if err == nil {
			_ = l.Ledger.RecordAccess(ctx, sub, now, l.Token(), "download", now.Add(l.Timing.RunRetention.Std()))
		}
		return address, err`}}},
	{id: "list/named-before-it-is-kept", what: "a row names a list of recipients, and the list is kept after that", places: []place{{
		function: "store.Store.CreateSchedule", before: "def, err := s.definitionWrite(",
		code: `late, held := *s, &mutantList{Lists: s.Lists}
		late.Lists = held
		def, err := late.definitionWrite(ctx, v)
		if err != nil {
			return err
		}
		if err := s.transact(ctx, withSkips([]write{w, def, auditWrite(a)}, skips, ttl)...); err != nil {
			return err
		}
		return held.keep(ctx)`}}},
}

// mutantApart writes a transaction of an event piece by piece.
func mutantApart(event, backwards string) string {
	return "if ws[0].event == string(" + event + ") {\nreturn s.mutantApart(ctx, " + backwards + ", ws)\n}"
}

// helpers are what swaps need besides, by the source whose end they stand at.
var helpers = map[string]string{
	"internal/schedule/send.go": `
// mutantSent has been sent to already.
type mutantSent struct {
	channel.Channel
	verdict channel.Verdict
}

func (m mutantSent) Send(context.Context, channel.Delivery, channel.Frozen) channel.Verdict { return m.verdict }
`,
	"internal/store/write.go": `
// mutantApart writes one after another what belongs into one transaction.
func (s *Store) mutantApart(ctx context.Context, backwards bool, ws []write) error {
	for i := range ws {
		if backwards {
			i = len(ws) - 1 - i
		}
		if ws[i].check {
			continue
		}
		if err := s.send(ctx, ws[i]); err != nil {
			return err
		}
	}
	return nil
}
`,
	// write.go knows no event of months.
	"internal/store/snapshot_dispatch.go": `
var mutantEvents = struct{ Cancel, Claim, CommitChunk, Fail, Plan, Publish snapshot.Event }{snapshot.Cancel, snapshot.Claim, snapshot.CommitChunk, snapshot.Fail, snapshot.Plan, snapshot.Publish}
`,
	"internal/store/recipients.go": `
// mutantList holds a list back until it is told to keep it.
type mutantList struct {
	Lists
	hash string
	list []byte
}

func (m *mutantList) PutList(_ context.Context, hash string, b []byte) error {
	m.hash, m.list = hash, b
	return nil
}

func (m *mutantList) keep(ctx context.Context) error {
	if m.hash == "" {
		return nil
	}
	return m.Lists.PutList(ctx, m.hash, m.list)
}
`,
	"internal/snapshot/press.go": `
// mutantHeld holds an object back until it is told to store it.
type mutantHeld struct {
	Objects
	key, mediaType, disposition string
	body                        mutantBody
}

type mutantBody []byte

func (b *mutantBody) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (h *mutantHeld) Write(_ context.Context, key, mediaType, disposition string, produce func(io.Writer) error) error {
	h.key, h.mediaType, h.disposition, h.body = key, mediaType, disposition, nil
	return produce(&h.body)
}

func (h *mutantHeld) store(ctx context.Context) error {
	if h.key == "" {
		return nil
	}
	return h.Objects.Write(ctx, h.key, h.mediaType, h.disposition, func(to io.Writer) error {
		_, err := to.Write(h.body)
		return err
	})
}
`,
}
