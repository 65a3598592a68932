package schedule_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"almanac/internal/schedule"
)

const secretARN = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:rds!db-a1b2/reports-AbCdEf"

// certificate makes one in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestSourceFields(t *testing.T) {
	ca := certificate(t)
	file := func() schedule.SourceConfig {
		return schedule.SourceConfig{Name: "flights", Engine: "sqlite", Object: "a/b.sqlite", Workspaces: []string{"EWR"}}
	}
	database := func() schedule.SourceConfig {
		return schedule.SourceConfig{Name: "orders", Engine: "postgres", Workspaces: []string{"*"}, Postgres: &schedule.PostgresSource{Host: "db.example.com", Port: 5433, Database: "orders", Secret: secretARN,
			TLS: "verify-full", CA: ca + ca, SearchPath: []string{"reports", `odd "one`}}}
	}
	lake := func() schedule.SourceConfig {
		return schedule.SourceConfig{Name: "lake", Engine: "athena", Workspaces: []string{"*"}, Athena: &schedule.AthenaSource{Workgroup: "almanac-production", Catalog: "s3tablescatalog/lake", Database: "lake", ScanLimit: 10_000_000}}
	}
	for _, row := range []struct {
		name   string
		of     func() schedule.SourceConfig
		change func(*schedule.SourceConfig)
		want   []string
	}{
		{"name absent", file, func(s *schedule.SourceConfig) { s.Name = "" }, []string{"name is missing"}},
		{"name hostile", file, func(s *schedule.SourceConfig) { s.Name = "a b" }, []string{`name is "a b"`}},
		{"engine absent", file, func(s *schedule.SourceConfig) { s.Engine = "" }, []string{"engine is missing", `"sqlite", "postgres" or "athena"`}},
		{"engine unknown", file, func(s *schedule.SourceConfig) { s.Engine = "oracle" }, []string{`engine is "oracle"`}},
		{"object absent", file, func(s *schedule.SourceConfig) { s.Object = "" }, []string{"object is missing"}},
		{"object hostile", file, func(s *schedule.SourceConfig) { s.Object = "../x" }, []string{`object is "../x"`}},
		{"object absolute", file, func(s *schedule.SourceConfig) { s.Object = "/x" }, []string{`object is "/x"`}},
		{"object too long", file, func(s *schedule.SourceConfig) { s.Object = strings.Repeat("x", 513) }, []string{"object is"}},
		{"a file with a database", file, func(s *schedule.SourceConfig) { s.Postgres = &schedule.PostgresSource{} }, []string{"postgres is given", `nothing beside engine "sqlite"`}},
		{"a file with a catalog", file, func(s *schedule.SourceConfig) { s.Athena = &schedule.AthenaSource{} }, []string{"athena is given", `nothing beside engine "sqlite"`}},
		{"a database with a catalog", database, func(s *schedule.SourceConfig) { s.Athena = &schedule.AthenaSource{} }, []string{"athena is given", `nothing beside engine "postgres"`}},
		{"athena absent", lake, func(s *schedule.SourceConfig) { s.Athena = nil }, []string{"athena is missing", "workgroup and database"}},
		{"athena with a file", lake, func(s *schedule.SourceConfig) { s.Object = "a.sqlite" }, []string{`object is "a.sqlite"`, `nothing beside engine "athena"`}},
		{"athena with a database", lake, func(s *schedule.SourceConfig) { s.Postgres = &schedule.PostgresSource{} }, []string{"postgres is given"}},
		{"workgroup absent", lake, func(s *schedule.SourceConfig) { s.Athena.Workgroup = "" }, []string{"athena.workgroup is missing"}},
		{"workgroup hostile", lake, func(s *schedule.SourceConfig) { s.Athena.Workgroup = "a b" }, []string{`athena.workgroup is "a b"`, "almanac-production"}},
		{"catalog hostile", lake, func(s *schedule.SourceConfig) { s.Athena.Catalog = `a"; b` }, []string{`athena.catalog is`}},
		{"database absent", lake, func(s *schedule.SourceConfig) { s.Athena.Database = "" }, []string{"athena.database is missing"}},
		{"database hostile", lake, func(s *schedule.SourceConfig) { s.Athena.Database = "a.b" }, []string{`athena.database is "a.b"`}},
		{"scan_limit negative", lake, func(s *schedule.SourceConfig) { s.Athena.ScanLimit = -1 }, []string{"athena.scan_limit is -1", "10000000 to"}},
		{"scan_limit too small", lake, func(s *schedule.SourceConfig) { s.Athena.ScanLimit = 9_999_999 }, []string{"athena.scan_limit is 9999999"}},
		{"scan_limit too large", lake, func(s *schedule.SourceConfig) { s.Athena.ScanLimit = 1<<50 + 1 }, []string{"athena.scan_limit is"}},
		{"workspaces absent", file, func(s *schedule.SourceConfig) { s.Workspaces = nil }, []string{"workspaces is missing", `"*"`}},
		{"workspace hostile", file, func(s *schedule.SourceConfig) { s.Workspaces = []string{"*", "a#b"} }, []string{`workspaces[1] is "a#b"`}},

		{"a database with a file", database, func(s *schedule.SourceConfig) { s.Object = "x" }, []string{`object is "x"`, `nothing beside engine "postgres"`}},
		{"a database without its part", database, func(s *schedule.SourceConfig) { s.Postgres = nil }, []string{"postgres is missing", "host, database"}},
		{"host absent", database, func(s *schedule.SourceConfig) { s.Postgres.Host = "" }, []string{"postgres.host is missing"}},
		{"host a socket", database, func(s *schedule.SourceConfig) { s.Postgres.Host = "/var/run/postgresql" }, []string{`postgres.host is "/var/run/postgresql"`}},
		{"host a URL", database, func(s *schedule.SourceConfig) { s.Postgres.Host = "postgres://u:p@h" }, []string{"postgres.host is"}},
		{"several hosts", database, func(s *schedule.SourceConfig) { s.Postgres.Host = "a,b" }, []string{`postgres.host is "a,b"`}},
		{"host hostile", database, func(s *schedule.SourceConfig) { s.Postgres.Host = "h\nost sslmode=disable" }, []string{"postgres.host is"}},
		{"host too long", database, func(s *schedule.SourceConfig) { s.Postgres.Host = strings.Repeat("a.", 127) + "b" }, []string{"postgres.host is"}},
		{"port negative", database, func(s *schedule.SourceConfig) { s.Postgres.Port = -1 }, []string{"postgres.port is -1", "1 to 65535"}},
		{"port too high", database, func(s *schedule.SourceConfig) { s.Postgres.Port = 65536 }, []string{"postgres.port is 65536"}},
		{"database absent", database, func(s *schedule.SourceConfig) { s.Postgres.Database = "" }, []string{"postgres.database is missing"}},
		{"database too long", database, func(s *schedule.SourceConfig) { s.Postgres.Database = strings.Repeat("é", 32) }, []string{"postgres.database is", "63 bytes"}},
		{"database hostile", database, func(s *schedule.SourceConfig) { s.Postgres.Database = "a\x00b" }, []string{"postgres.database is"}},
		{"nobody signs in", database, func(s *schedule.SourceConfig) { s.Postgres.Secret = "" }, []string{"postgres.secret is missing", "iam_user"}},
		{"two sign in", database, func(s *schedule.SourceConfig) { s.Postgres.IAMUser = "u" }, []string{`postgres.iam_user is "u"`, "nothing beside secret"}},
		{"secret by name", database, func(s *schedule.SourceConfig) { s.Postgres.Secret = "reports" }, []string{`postgres.secret is "reports"`, "arn:aws:secretsmanager"}},
		{"secret of another service", database, func(s *schedule.SourceConfig) {
			s.Postgres.Secret = "arn:aws:ssm:eu-central-1:111122223333:parameter/x"
		}, []string{"postgres.secret is"}},
		{"secret with a pattern", database, func(s *schedule.SourceConfig) { s.Postgres.Secret = strings.Replace(secretARN, "AbCdEf", "*", 1) }, []string{"postgres.secret is"}},
		{"user hostile", database, func(s *schedule.SourceConfig) { s.Postgres.Secret, s.Postgres.IAMUser = "", "a\nb" }, []string{"postgres.iam_user is"}},
		{"tls of libpq's", database, func(s *schedule.SourceConfig) { s.Postgres.TLS = "prefer" }, []string{`postgres.tls is "prefer"`, "verify-full"}},
		{"ca without tls", database, func(s *schedule.SourceConfig) { s.Postgres.TLS = "off" }, []string{"postgres.ca is given"}},
		{"token without tls", database, func(s *schedule.SourceConfig) {
			s.Postgres.TLS, s.Postgres.CA, s.Postgres.Secret, s.Postgres.IAMUser = "off", "", "", "u"
		}, []string{`postgres.tls is "off"`, "token"}},
		{"ca no PEM", database, func(s *schedule.SourceConfig) { s.Postgres.CA = "/etc/ssl/rds.pem" }, []string{"postgres.ca is text without a certificate"}},
		{"ca a key", database, func(s *schedule.SourceConfig) {
			s.Postgres.CA = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
		}, []string{`postgres.ca is a "PRIVATE KEY"`}},
		{"ca broken", database, func(s *schedule.SourceConfig) {
			s.Postgres.CA = ca + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
		}, []string{"postgres.ca is a certificate, the 2. in it"}},
		{"ca too long", database, func(s *schedule.SourceConfig) { s.Postgres.CA = strings.Repeat(ca, 200) }, []string{"postgres.ca is", "bytes", "one region"}},
		{"schema absent", database, func(s *schedule.SourceConfig) { s.Postgres.SearchPath = []string{"a", ""} }, []string{"postgres.search_path[1] is missing"}},
		{"schemas too many", database, func(s *schedule.SourceConfig) { s.Postgres.SearchPath = make([]string, 11) }, []string{"postgres.search_path is 11"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := row.of()
			row.change(&s)
			var err error
			if ps := s.Check(); len(ps) > 0 {
				err = ps
			}
			mentions(t, "source", err, row.want)
		})
	}
	for _, good := range []func(*schedule.PostgresSource){
		func(*schedule.PostgresSource) {}, func(p *schedule.PostgresSource) { p.Host, p.Port = "10.0.0.7", 0 }, func(p *schedule.PostgresSource) { p.Host = "fd00::7" },
		func(p *schedule.PostgresSource) { p.TLS, p.CA = "off", "" }, func(p *schedule.PostgresSource) { p.TLS, p.Secret, p.IAMUser = "", "", "almanac" }, func(p *schedule.PostgresSource) { p.TLS = "verify-ca" },
	} {
		s := database()
		good(s.Postgres)
		if ps := s.Check(); len(ps) > 0 {
			t.Errorf("%+v: %v", s.Postgres, ps)
		}
	}
	f := file()
	if ps := f.Check(); len(ps) > 0 {
		t.Error(ps)
	}
}

func TestSourcesOfTheSameData(t *testing.T) {
	at := func(host string, port int, database string) schedule.SourceConfig {
		return schedule.SourceConfig{Engine: "postgres", Postgres: &schedule.PostgresSource{Host: host, Port: port, Database: database}}
	}
	a := at("db.example.com", 0, "orders")
	if !a.SameData(at("DB.example.com", 5432, "orders")) || a.Place() != "db.example.com:5432/orders" {
		t.Errorf("%s: a host has no case, and 5432 is the port that is not named", a.Place())
	}
	for _, other := range []schedule.SourceConfig{at("db.example.com", 5433, "orders"), at("db.example.com", 0, "other"), at("db2.example.com", 0, "orders"), {Engine: "sqlite", Object: a.Place()}} {
		if a.SameData(other) {
			t.Errorf("%s is not %s", a.Place(), other.Place())
		}
	}
	if x, y := (schedule.SourceConfig{Engine: "sqlite", Object: "a"}), (schedule.SourceConfig{Engine: "sqlite", Object: "A"}); x.SameData(y) || !x.SameData(x) {
		t.Error("keys of objects have case")
	}
}
