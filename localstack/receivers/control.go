package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// handler routes: what begins with /_ is control, the rest are deliveries.
func handler(h *hooks, m *mailbox) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_health", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]bool{"ok": true}) })
	mux.HandleFunc("GET /_mails", func(w http.ResponseWriter, r *http.Request) {
		reply(w, m.find(r.URL.Query().Get("to"), r.URL.Query().Get("run")))
	})
	mux.HandleFunc("PUT /_mails/refuse", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Recipients []string `json:"recipients"`
		}
		if read(w, r, &in) {
			m.setRefused(in.Recipients)
			reply(w, in)
		}
	})
	onBox := func(act func(w http.ResponseWriter, r *http.Request, b *box)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			h.mu.Lock()
			defer h.mu.Unlock()
			b, err := h.at("/" + r.PathValue("path"))
			if err != nil {
				problem(w, http.StatusInternalServerError, err.Error())
				return
			}
			act(w, r, b)
		}
	}
	mux.HandleFunc("GET /_received/{path...}", onBox(func(w http.ResponseWriter, _ *http.Request, b *box) {
		reply(w, append([]request{}, b.requests...))
	}))
	mux.HandleFunc("GET /_control/{path...}", onBox(func(w http.ResponseWriter, _ *http.Request, b *box) { reply(w, b.told) }))
	mux.HandleFunc("DELETE /_control/{path...}", onBox(func(w http.ResponseWriter, _ *http.Request, b *box) {
		b.told, b.answered = nil, 0
		reply(w, b.told)
	}))
	mux.HandleFunc("PUT /_control/{path...}", onBox(func(w http.ResponseWriter, r *http.Request, b *box) {
		var t told
		if !read(w, r, &t) {
			return
		}
		if err := t.check(); err != nil {
			problem(w, http.StatusBadRequest, err.Error())
			return
		}
		b.told, b.answered = &t, 0
		reply(w, t)
	}))
	mux.HandleFunc("/", h.receive)
	return mux
}

// read takes a control's JSON strictly, so that a misspelt field is seen.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		problem(w, http.StatusBadRequest, "the body is not the JSON object that is wanted: "+err.Error())
		return false
	}
	return true
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "detail": detail})
}
