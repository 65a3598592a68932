package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"

	"almanac/internal/api/routes"
)

// trace is what the log line of a request is made of; the guard fills it in on the way.
type trace struct {
	id        string
	route     string
	principal string
}

type traceKey struct{}

func requestID(ctx context.Context) string {
	if t, ok := ctx.Value(traceKey{}).(*trace); ok {
		return t.id
	}
	return ""
}

type gatewayIDKey struct{}

// observe writes one line per request, sets the headers that every answer bears, and turns a panic into a problem. The
// line names the route's pattern: a path may hold a token.
func (s *server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := s.Now()
		t := &trace{route: "-"}
		if t.id, _ = r.Context().Value(gatewayIDKey{}).(string); t.id == "" {
			t.id = s.NewID()
		}
		seen := &statusWriter{ResponseWriter: w}
		headers(w.Header())
		w.Header().Set("X-Request-Id", t.id)
		defer func() {
			level := slog.LevelInfo
			attrs := []slog.Attr{slog.String("request", t.id)}
			if broken := recover(); broken != nil {
				level = slog.LevelError
				attrs = append(attrs, slog.Any("panic", broken), slog.String("stack", string(debug.Stack())))
				if seen.status == 0 {
					p := problem(http.StatusInternalServerError, "something unforeseen went wrong; the log has it under request_id")
					p.RequestID = t.id
					p.write(seen)
				}
			}
			attrs = append(attrs, slog.String("method", r.Method), slog.String("route", t.route), slog.Int("status", seen.status),
				slog.Int64("ms", s.Now().Sub(began).Milliseconds()), slog.String("principal", t.principal))
			s.Log.LogAttrs(r.Context(), level, "request", attrs...)
		}()
		next.ServeHTTP(seen, r.WithContext(context.WithValue(r.Context(), traceKey{}, t)))
	})
}

// headers keep answers out of caches and frames, and the address of a page with a token out of Referer.
func headers(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Strict-Transport-Security", "max-age=31536000")
}

// guard lets in what the route table lists, and whom it lists it for. Where a right depends on a workspace the handler
// asks again; here the caller needs it in any.
func (s *server) guard(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		right, listed := s.rights[pattern]
		if !listed || r.URL.Path != path.Clean(r.URL.Path) {
			missing(mux, r).write(w)
			return
		}
		t, _ := r.Context().Value(traceKey{}).(*trace)
		if r.Method == http.MethodHead && (pattern == "GET "+download || pattern == "GET "+chunkPath) {
			// Its GET signs an address and records an access: whoever only looks must cause neither.
			t.route = strings.TrimPrefix(pattern, "GET ")
			problem(http.StatusMethodNotAllowed, "HEAD is not possible here; possible are GET").header("Allow", "GET").write(w)
			return
		}
		t.route = pattern[strings.IndexByte(pattern, ' ')+1:]
		if right != routes.Public {
			id, refused := s.admit(r, right)
			if id.Subject != "" {
				t.principal = id.Hash()
			}
			if refused != nil {
				refused.write(w)
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), identityKey{}, id))
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *server) admit(r *http.Request, right routes.Right) (Identity, *Problem) {
	claims, err := s.Claims.Claims(r)
	if err != nil {
		return Identity{}, s.unclaimed(r.Context(), err)
	}
	id, ok := identify(claims)
	if !ok {
		return id, problem(http.StatusUnauthorized, "the token names nobody: it has no sub").header("WWW-Authenticate", `Bearer realm="almanac", error="invalid_token"`)
	}
	if have := id.Highest(); have < routes.Viewer {
		return id, problem(http.StatusForbidden, "your account is in no group of Almanac; ask an administrator for the group viewer, operator or admin, or viewer@WORKSPACE for one workspace")
	} else if have < min(right, routes.Admin) {
		return id, lacking(right, "")
	}
	if right >= routes.Stage && id.Everywhere() < routes.Admin {
		return id, lacking(right, "")
	}
	return id, nil
}

// unclaimed tells a caller who brought no token from one whose token is refused (RFC 6750, section 3.1), and both from
// an issuer that cannot be asked, where the caller may be anybody.
func (s *server) unclaimed(ctx context.Context, err error) *Problem {
	switch {
	case err == ErrNoClaims:
		return problem(http.StatusUnauthorized, "a token is needed: sign in, and send it as Authorization: Bearer …").
			header("WWW-Authenticate", `Bearer realm="almanac"`)
	case errors.Is(err, ErrNoClaims):
		return problem(http.StatusUnauthorized, "the token is refused: %s; sign in again", strings.TrimPrefix(err.Error(), ErrNoClaims.Error()+": ")).
			header("WWW-Authenticate", `Bearer realm="almanac", error="invalid_token"`)
	}
	p := problem(http.StatusServiceUnavailable, "whether the token is valid cannot be found out now; asking again is safe").header("Retry-After", "10")
	p.RequestID = requestID(ctx)
	s.Log.ErrorContext(ctx, "tokens cannot be verified", "request", p.RequestID, "error", err.Error())
	return p
}

// lacking names the group to ask for.
func lacking(right routes.Right, workspace string) *Problem {
	name := rightNames[right]
	if workspace == "" {
		return problem(http.StatusForbidden, "this needs the role %s; ask an administrator for the group %s", name, name)
	}
	return problem(http.StatusForbidden, "this needs the role %s in workspace %s; ask an administrator for the group %s@%s, or %s for all workspaces", name, workspace, name, workspace, name)
}

// missing tells an unknown path from a known one with another method.
func missing(mux *http.ServeMux, r *http.Request) *Problem {
	h, pattern := mux.Handler(r)
	if pattern == "" {
		answer := &buffer{header: http.Header{}}
		h.ServeHTTP(answer, r)
		if answer.status == http.StatusMethodNotAllowed {
			allow := answer.header.Get("Allow")
			return problem(http.StatusMethodNotAllowed, "%s is not possible here; possible are %s", r.Method, allow).header("Allow", allow)
		}
	}
	return problem(http.StatusNotFound, "there is no such path; /openapi.json lists what there is")
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the writer below.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
