package seed

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"almanac/localstack/internal/deploy"
	"almanac/localstack/internal/instance"
)

func seeder(t *testing.T, outputs deploy.Outputs) Seeder {
	t.Helper()
	i, err := instance.New(t.TempDir(), "test", instance.MiniStack, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(i.Folder(), 0o755); err != nil {
		t.Fatal(err)
	}
	return Seeder{Instance: i, Outputs: outputs, HTTP: http.DefaultClient}
}

func TestPasswordsAreMadeOnceAndForTheirOwnerOnly(t *testing.T) {
	s := seeder(t, nil)
	first, err := s.passwords()
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.passwords()
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for i, u := range first {
		groups[u.Group] = true
		if u != again[i] {
			t.Errorf("%s has another password the second time", u.Name)
		}
		if len(u.Password) < 20 || (i > 0 && u.Password == first[0].Password) {
			t.Errorf("%s has a weak password", u.Name)
		}
	}
	if !groups["admin"] || !groups["operator"] || !groups["viewer"] {
		t.Errorf("groups %v", groups)
	}
	if info, err := os.Stat(s.Instance.Users()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the passwords: %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(s.Instance.Users(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.passwords(); err == nil || !strings.Contains(err.Error(), s.Instance.Users()) || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestUsersOfACloudWithoutUserPoolsAreAFile(t *testing.T) {
	s := seeder(t, nil)
	s.Instance.Cloud = instance.LocalStack
	if _, err := s.Users(t.Context()); err != nil {
		t.Fatal(err)
	}
	var users []User
	text, err := os.ReadFile(s.Instance.Users())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &users); err != nil || len(users) != 3 || users[0].Password == "" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestEachPartNamesTheOutputThatItMisses(t *testing.T) {
	s := seeder(t, deploy.Outputs{})
	for name, part := range map[string]func() (string, error){
		OutPool:    func() (string, error) { return s.Users(t.Context()) },
		OutBucket:  func() (string, error) { return s.Data(t.Context()) },
		OutSecrets: func() (string, error) { return s.Secret(t.Context()) },
		OutSender:  func() (string, error) { return s.Mail(t.Context()) },
	} {
		if _, err := part(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error that names %s", err, name)
		}
	}
}

func TestPartsSayWhatIsMissingOnThisMachine(t *testing.T) {
	s := seeder(t, deploy.Outputs{OutBucket: "bucket", OutSecrets: "prefix/", OutSender: "no address"})
	if _, err := s.Data(t.Context()); err == nil || !strings.Contains(err.Error(), "flights.sqlite") || !strings.Contains(err.Error(), "scripts/up") {
		t.Errorf("no demo data: %v", err)
	}
	if _, err := s.Secret(t.Context()); err == nil || !strings.Contains(err.Error(), "webhook-secret") || !strings.Contains(err.Error(), "scripts/up") {
		t.Errorf("no secret: %v", err)
	}
	if _, err := s.Mail(t.Context()); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("a wrong sender: %v", err)
	}
}

// secrets is a Secrets Manager with one secret at most.
type secrets struct {
	value string
	calls []string
}

func (s *secrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.calls = append(s.calls, action)
	var in struct{ SecretId, Name, SecretString string }
	body, _ := io.ReadAll(r.Body)
	json.Unmarshal(body, &in) //nolint:errcheck // an empty request is refused below
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if action == "GetSecretValue" && s.value == "" {
		w.WriteHeader(400)
		io.WriteString(w, `{"__type":"ResourceNotFoundException"}`) //nolint:errcheck // the test sees it
		return
	}
	if action != "GetSecretValue" {
		s.value = in.SecretString
	}
	json.NewEncoder(w).Encode(map[string]string{"SecretString": s.value}) //nolint:errcheck // the test sees it
}

func TestSecretIsWrittenOnlyWhenItDiffers(t *testing.T) {
	s := seeder(t, deploy.Outputs{OutSecrets: "almanac/local/webhook/"})
	store := &secrets{}
	server := httptest.NewServer(store)
	defer server.Close()
	s.HTTP = &http.Client{Transport: redirect(server.Listener.Addr().String())}
	for _, step := range []struct{ file, calls string }{
		{"one", "GetSecretValue CreateSecret"}, {"one", "GetSecretValue"}, {"two", "GetSecretValue PutSecretValue"},
	} {
		if err := os.WriteFile(filepath.Join(s.Instance.Folder(), "webhook-secret"), []byte(step.file+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		store.calls = nil
		if _, err := s.Secret(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(store.calls, " "); got != step.calls || store.value != step.file {
			t.Errorf("calls %q, value %q; want %q and %q", got, store.value, step.calls, step.file)
		}
	}
}

// data is a bucket with one object at most.
type data struct {
	sum    string
	puts   int
	broken bool
}

func (d *data) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case d.broken:
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodPut:
		d.puts++
		d.sum = r.Header.Get("X-Amz-Meta-Sha256")
	case d.sum == "":
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("X-Amz-Meta-Sha256", d.sum)
	}
}

func TestTheIncompleteWeatherIsNotPutOverTheMendedOne(t *testing.T) {
	s := seeder(t, deploy.Outputs{OutBucket: "bucket"})
	if err := os.MkdirAll(s.Instance.DemoData(), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{s.Instance.WeatherDB(): "whole", s.Instance.IncompleteWeatherDB(): "less"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bucket := &data{}
	server := httptest.NewServer(bucket)
	defer server.Close()
	s.HTTP = &http.Client{Transport: redirect(server.Listener.Addr().String())}
	for i, step := range []struct {
		put  func(context.Context) (string, error)
		puts int
	}{{s.IncompleteWeather, 1}, {s.IncompleteWeather, 1}, {s.Weather, 2}, {s.Weather, 2}, {s.IncompleteWeather, 2}} {
		if _, err := step.put(t.Context()); err != nil || bucket.puts != step.puts {
			t.Errorf("step %d: %d uploads, %v; want %d", i, bucket.puts, err, step.puts)
		}
	}
	// Where it is unknown what the bucket has, nothing is put over it.
	bucket.broken = true
	if _, err := s.IncompleteWeather(t.Context()); err == nil || !strings.Contains(err.Error(), WeatherKey) || bucket.puts != 2 {
		t.Errorf("%d uploads, %v; want an error that names %s", bucket.puts, err, WeatherKey)
	}
}

// redirect sends every request to one address.
type redirect string

func (r redirect) RoundTrip(req *http.Request) (*http.Response, error) {
	req.URL.Host = string(r)
	return http.DefaultTransport.RoundTrip(req)
}
