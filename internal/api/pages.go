package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"strings"

	"almanac/internal/schedule"

	"github.com/danielgtaylor/huma/v2"
)

// page is an answer for a person with a browser.
type page struct {
	Status      int
	ContentType string `header:"Content-Type"`
	Policy      string `header:"Content-Security-Policy"`
	Location    string `header:"Location"`
	Body        []byte
}

const style = `body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem;color:#1b1f24;background:#fff}` +
	`h1{font-size:1.4rem}button{font:inherit;padding:.5rem 1.2rem;border:0;border-radius:.3rem;background:#1b4f8f;color:#fff;cursor:pointer}`

// policy allows what the page has: its one style sheet and its one form. The pages run no script.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">
<title>{{.Title}}</title><style>` + style + `</style></head>
<body><h1>{{.Title}}</h1>
{{range .Lines}}<p>{{.}}</p>
{{end}}{{with .Button}}<form method="post"><input type="hidden" name="List-Unsubscribe" value="One-Click"><button type="submit">{{.}}</button></form>
{{end}}</body></html>
`))

type pageText struct {
	Title  string
	Lines  []string
	Button string
}

func render(status int, t pageText) *page {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, t); err != nil {
		panic(err) // the template and its data are ours
	}
	return &page{Status: status, ContentType: "text/html; charset=utf-8", Policy: policy, Body: b.Bytes()}
}

type TokenPath struct {
	Token string `path:"token" doc:"The secret of one recipient's link"`
}

// download is the path of the links to files.
const download = "/files/{token}"

func (s *server) registerPages() {
	register(s, s.operation("GET", download, "download-file", "The file of a link: signs its address at the click"), s.openFile)
	register(s, s.operation("GET", "/unsubscribe/{token}", "show-unsubscribe", "A page with a button; changes nothing"), s.showUnsubscribe)
	op := s.operation("POST", "/unsubscribe/{token}", "unsubscribe", "Unsubscribe, also in one click from a mail client (RFC 8058)")
	op.RequestBody = &huma.RequestBody{}
	register(s, op, s.unsubscribe)
	op.RequestBody.Required = false
	op.RequestBody.Content = map[string]*huma.MediaType{"application/x-www-form-urlencoded": {Schema: &huma.Schema{Type: "object",
		Properties: map[string]*huma.Schema{"List-Unsubscribe": {Type: "string", Enum: []any{"One-Click"}}}}}}
}

// token reports a text that can be a token at all.
func token(s string) bool {
	return len(s) <= 1024 && printable(s) && !strings.Contains(s, " ")
}

func (s *server) openFile(ctx context.Context, in *TokenPath) (*page, error) {
	if !token(in.Token) {
		return unknownLink(), nil
	}
	address, err := s.Links.Open(ctx, in.Token)
	if err != nil {
		return s.gone(ctx, err)
	}
	return &page{Status: http.StatusFound, Location: address}, nil
}

func (s *server) showUnsubscribe(ctx context.Context, in *TokenPath) (*page, error) {
	if !token(in.Token) {
		return unknownLink(), nil
	}
	u, err := s.Links.Unsubscription(ctx, in.Token)
	if err != nil {
		return s.gone(ctx, err)
	}
	if u.Done {
		return unsubscribed(u), nil
	}
	return render(http.StatusOK, pageText{"Stop receiving “" + u.ScheduleName + "”?",
		[]string{"You will get no more deliveries of this schedule at this address. Others are not affected.", ask(u.Owner, "Questions")}, "Unsubscribe"}), nil
}

// unsubscribe takes any POST: RFC 8058 asks senders for the body List-Unsubscribe=One-Click, and a no that lacks it is
// still a no. Cookies play no part.
func (s *server) unsubscribe(ctx context.Context, in *struct {
	TokenPath
	Raw
}) (*page, error) {
	if !token(in.Token) {
		return unknownLink(), nil
	}
	u, err := s.Links.Unsubscribe(ctx, in.Token)
	if err != nil {
		return s.gone(ctx, err)
	}
	return unsubscribed(u), nil
}

func unsubscribed(u schedule.Unsubscription) *page {
	return render(http.StatusOK, pageText{"You are unsubscribed",
		[]string{"“" + u.ScheduleName + "” will not be sent to this address any more.", ask(u.Owner, "To receive it again")}, ""})
}

func ask(owner, why string) string {
	if owner == "" {
		return why + ": ask the person who told you about it."
	}
	return why + ": ask " + owner + "."
}

func unknownLink() *page {
	return render(http.StatusNotFound, pageText{"This link leads nowhere",
		[]string{"Perhaps a part of it was cut off: copy the whole link from the message. If that does not help, ask the person who sent it to you."}, ""})
}

// gone explains a link that does not work; other errors are the same problems as everywhere.
func (s *server) gone(ctx context.Context, err error) (*page, error) {
	var g *schedule.LinkGone
	switch {
	case !errors.As(err, &g):
		return nil, err
	case g.Owner == "" && g.ScheduleName == "" || g.Why == "unknown":
		return unknownLink(), nil
	case g.Why == "revoked":
		return render(http.StatusGone, pageText{"This link was withdrawn", []string{"The file of “" + g.ScheduleName + "” is no longer available by this link.", ask(g.Owner, "To get it")}, ""}), nil
	}
	return render(http.StatusGone, pageText{"This link has expired", []string{"The file of “" + g.ScheduleName + "” was kept for a limited time, which is over.", ask(g.Owner, "To get it again")}, ""}), nil
}
