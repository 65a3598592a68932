package source

import "context"

// Watch is for the Next of an engine's Rows: a call may have another context than Open had, and its end stops the query
// as well.
type Watch struct {
	on   context.Context
	stop func() bool
}

// Watching begins with the context of Open, whose end the engine hears of by itself.
func Watching(opened context.Context) Watch { return Watch{on: opened} }

// On reports whether a call's context is the one that is watched.
func (w *Watch) On(ctx context.Context) bool { return ctx == w.on }

// Move watches another context. ended is called when it ends, on a goroutine of its own; if it has ended already, before
// Move returns, and then perhaps twice.
func (w *Watch) Move(ctx context.Context, ended func()) {
	w.Stop()
	w.on, w.stop = ctx, context.AfterFunc(ctx, ended)
	if ctx.Err() != nil {
		ended()
	}
}

// Stop watches nothing any more.
func (w *Watch) Stop() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}
