package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// echo shows what arrives, and answers with all that an answer may hold.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/binary" {
		w.Write([]byte{0xff, 0x00, 0xfe})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
	http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
	w.Header().Add("Vary", "Accept")
	w.Header().Add("Vary", "Origin")
	w.WriteHeader(http.StatusTeapot)
	json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "path": r.URL.Path, "q": r.URL.Query(), "agent": r.Header.Get("User-Agent"),
		"cookies": len(r.Cookies()), "body": string(body), "host": r.Host, "from": r.RemoteAddr})
})

const sample = `{"version":"2.0","rawPath":"/runs/a@2013-07-01T13:00:00Z","rawQueryString":"x=1&x=2&y=a%20b","cookies":["c1=v1","c2=v2"],
"headers":{"user-agent":"Mail/1 (KHTML, like Gecko)","content-type":"application/octet-stream"},
"requestContext":{"domainName":"api.example","requestId":"r-9","http":{"method":"POST","sourceIp":"2001:db8::1"},
"authorizer":{"jwt":{"claims":{"sub":"s","cognito:groups":"[admin viewer]"},"scopes":[]}}},"body":"aGVsbG8=","isBase64Encoded":true}`

func TestEventBecomesRequestAndBack(t *testing.T) {
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal([]byte(sample), &e); err != nil {
		t.Fatal(err)
	}
	out, err := Lambda(echo)(context.Background(), e)
	if err != nil || out.StatusCode != 418 {
		t.Fatalf("%v %+v", err, out)
	}
	var got struct {
		Method, Path, Agent, Body, Host, From string
		Q                                     map[string][]string
		Cookies                               int
	}
	if err := json.Unmarshal([]byte(out.Body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.Path != "/runs/a@2013-07-01T13:00:00Z" || got.Agent != "Mail/1 (KHTML, like Gecko)" || got.Body != "hello" || got.Host != "api.example" ||
		got.Cookies != 2 || len(got.Q["x"]) != 2 || got.Q["y"][0] != "a b" || got.From != "[2001:db8::1]:0" {
		t.Fatalf("%+v", got)
	}
	if len(out.Cookies) != 2 || out.Headers["Vary"] != "Accept, Origin" || out.Headers["Set-Cookie"] != "" || out.IsBase64Encoded {
		t.Fatalf("%+v", out)
	}
}

func TestAnswerThatIsNoTextGoesInBase64(t *testing.T) {
	e := events.APIGatewayV2HTTPRequest{RawPath: "/binary"}
	e.RequestContext.HTTP.Method = "GET"
	out, err := Lambda(echo)(context.Background(), e)
	if b, _ := base64.StdEncoding.DecodeString(out.Body); err != nil || !out.IsBase64Encoded || string(b) != "\xff\x00\xfe" || out.StatusCode != 200 {
		t.Fatalf("%v %+v", err, out)
	}
}

func TestEventsThatAreNoRequest(t *testing.T) {
	for name, change := range map[string]func(*events.APIGatewayV2HTTPRequest){
		"no method":     func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "" },
		"impossible":    func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "GET /x" },
		"broken base64": func(e *events.APIGatewayV2HTTPRequest) { e.IsBase64Encoded, e.Body = true, "%%%" },
	} {
		var e events.APIGatewayV2HTTPRequest
		e.RawPath, e.RequestContext.HTTP.Method = "/", "GET"
		change(&e)
		out, err := Lambda(echo)(context.Background(), e)
		if err != nil || out.StatusCode != 400 || !strings.Contains(out.Body, "cannot be read") {
			t.Errorf("%s: %v %+v", name, err, out)
		}
	}
}

// FuzzEvent: no event makes the function fail, and each answer is one that the gateway can send.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"rawPath":"%zz","requestContext":{"http":{"method":"GET"}}}`))
	f.Add([]byte(`{"rawPath":"/files/%2e%2e/\u0000","rawQueryString":"a=%zz;b","requestContext":{"http":{"method":"GET"}}}`))
	f.Add([]byte(`{"rawPath":"/schedules","headers":{"":"x","a b":"\n"},"requestContext":{"http":{"method":"OPTIONS"}}}`))
	w := newWorld()
	h := API{Editor: w, Reader: w, Links: w, Clock: w, Claims: AuthorizerClaims{}, Log: discard(), Now: nowOf(w), NewID: func() string { return "x" }}.Handler()
	serve := Lambda(h)
	f.Fuzz(func(t *testing.T, b []byte) {
		var e events.APIGatewayV2HTTPRequest
		if json.Unmarshal(b, &e) != nil {
			return
		}
		out, err := serve(context.Background(), e)
		if err != nil || out.StatusCode < 200 || out.StatusCode == 500 || out.StatusCode > 599 || !utf8.ValidString(out.Body) {
			t.Fatalf("%s: %v %+v", b, err, out)
		}
	})
}
