package schedule

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"almanac/internal/input"
)

// Engines of sources.
const (
	EngineSQLite   = "sqlite"
	EnginePostgres = "postgres"
	EngineAthena   = "athena"
)

// SourceConfig says where a named source is.
type SourceConfig struct {
	Name       string          `json:"name"`
	Engine     string          `json:"engine"`             // "sqlite", "postgres" or "athena"
	Object     string          `json:"object,omitempty"`   // sqlite: key in the data bucket
	Postgres   *PostgresSource `json:"postgres,omitempty"` // postgres
	Athena     *AthenaSource   `json:"athena,omitempty"`   // athena
	Workspaces []string        `json:"workspaces"`         // who may use it; "*" for all
}

// PostgresSource is where a PostgreSQL is and who signs in. It holds no password: Secret names one, IAMUser needs none.
type PostgresSource struct {
	Host       string   `json:"host"`
	Port       int      `json:"port,omitempty"` // 0: 5432
	Database   string   `json:"database"`
	Secret     string   `json:"secret,omitempty"`      // ARN of a secret with username and password, or else …
	IAMUser    string   `json:"iam_user,omitempty"`    // … the user that signs in by IAM authentication of RDS
	TLS        string   `json:"tls,omitempty"`         // verify-full (default), verify-ca or off
	CA         string   `json:"ca,omitempty"`          // root certificates in PEM; empty: the system's
	SearchPath []string `json:"search_path,omitempty"` // schemas; empty: public
}

// The longest ca, in bytes: the bundle of one region of RDS, which has some 10 KB, fits, and the source stays a small
// document.
const maxCA = 32 << 10

// maxSchemas bounds a search path, maxName a name in PostgreSQL in bytes
// (https://www.postgresql.org/docs/current/limits.html).
const maxSchemas, maxPostgresName = 10, 63

var (
	// https://docs.aws.amazon.com/secretsmanager/latest/userguide/auth-and-access_iam-policies.html shows the ARN's form.
	databaseSecretForm = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@!-]{1,512}$`)
	dnsForm            = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?$`)
)

// Place is where a source is, in one line.
func (s SourceConfig) Place() string {
	if p := s.Postgres; p != nil {
		return p.Address() + "/" + p.Database
	}
	if a := s.Athena; a != nil {
		return a.catalog() + "." + a.Database
	}
	return s.Object
}

// Address is host and port.
func (p PostgresSource) Address() string {
	port := p.Port
	if port == 0 {
		port = 5432
	}
	return net.JoinHostPort(p.Host, strconv.Itoa(port))
}

// SameData reports whether two sources lead to the same data.
func (s SourceConfig) SameData(o SourceConfig) bool {
	return s.Engine == o.Engine && strings.EqualFold(s.Place(), o.Place()) && (s.Engine != EngineSQLite || s.Object == o.Object)
}

// Check names every wrong field of a source.
func (s SourceConfig) Check() Problems {
	var c checker
	c.Form("name", s.Name, workspaceForm, "letters, digits, - and _, at most 40, such as flights")
	switch s.Engine {
	case EngineSQLite:
		if s.Object == "" || strings.HasPrefix(s.Object, "/") || strings.Contains(s.Object, "..") || strings.ContainsFunc(s.Object, unicode.IsControl) || len(s.Object) > 512 {
			c.Bad("object", input.Quote(s.Object), "the key of a file in the data bucket, such as sources/flights.sqlite")
		}
		if s.Postgres != nil {
			c.Bad("postgres", "given", `nothing beside engine "sqlite"`)
		}
		if s.Athena != nil {
			c.Bad("athena", "given", `nothing beside engine "sqlite"`)
		}
	case EnginePostgres:
		if s.Object != "" {
			c.Bad("object", input.Quote(s.Object), `nothing beside engine "postgres"`)
		}
		if s.Postgres == nil {
			c.Bad("postgres", "", "host, database and secret or iam_user")
		} else {
			s.Postgres.check(&c)
		}
		if s.Athena != nil {
			c.Bad("athena", "given", `nothing beside engine "postgres"`)
		}
	case EngineAthena:
		s.checkAthena(&c)
	default:
		c.Bad("engine", input.Quote(s.Engine), `"sqlite", "postgres" or "athena"`)
	}
	c.workspaces(s.Workspaces)
	return c.Problems
}

func (p PostgresSource) check(c *checker) {
	_, noAddress := netip.ParseAddr(p.Host)
	if noAddress != nil && (!dnsForm.MatchString(p.Host) || len(p.Host) > 253) {
		c.Bad("postgres.host", input.Quote(p.Host), "the name or the address of a host, such as reports.example.com")
	}
	if p.Port < 0 || p.Port > 65535 {
		c.Bad("postgres.port", strconv.Itoa(p.Port), "1 to 65535, or nothing for 5432")
	}
	c.postgresName("postgres.database", p.Database)
	switch {
	case p.Secret == "" && p.IAMUser == "":
		c.Bad("postgres.secret", "", "the ARN of a secret with username and password, or else iam_user")
	case p.Secret != "" && p.IAMUser != "":
		c.Bad("postgres.iam_user", input.Quote(p.IAMUser), "nothing beside secret, which names the user")
	case p.Secret != "":
		c.Form("postgres.secret", p.Secret, databaseSecretForm, "the ARN of a secret, such as arn:aws:secretsmanager:eu-central-1:111122223333:secret:reports-AbCdEf")
	default:
		c.postgresName("postgres.iam_user", p.IAMUser)
	}
	switch p.TLS {
	case "", "verify-full", "verify-ca":
	case "off":
		if p.IAMUser != "" {
			c.Bad("postgres.tls", `"off"`, "verify-full or verify-ca: a token of IAM authentication is sent as it is")
		}
		if p.CA != "" {
			c.Bad("postgres.ca", "given", `nothing beside tls "off"`)
		}
	default:
		c.Bad("postgres.tls", input.Quote(p.TLS), `"verify-full", "verify-ca" or "off"`)
	}
	if p.CA != "" {
		if why := certificates(p.CA); why != "" {
			c.Bad("postgres.ca", why, fmt.Sprintf("root certificates in PEM, at most %d bytes: of RDS the bundle of one region", maxCA))
		}
	}
	if n := len(p.SearchPath); n > maxSchemas {
		c.Bad("postgres.search_path", strconv.Itoa(n), fmt.Sprintf("at most %d schemas", maxSchemas))
		return
	}
	for i, schema := range p.SearchPath {
		c.postgresName(fmt.Sprintf("postgres.search_path[%d]", i), schema)
	}
}

func (c *checker) postgresName(field, name string) {
	if name == "" || len(name) > maxPostgresName || strings.ContainsFunc(name, unicode.IsControl) {
		c.Bad(field, input.Quote(name), fmt.Sprintf("a name in the database, of 1 to %d bytes on one line", maxPostgresName))
	}
}

// certificates says what is wrong with certificates in PEM, "" if they are some.
func certificates(text string) string {
	if len(text) > maxCA {
		return fmt.Sprintf("%d bytes", len(text))
	}
	n := 0
	for rest := []byte(text); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Sprintf("a %q", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Sprintf("a certificate, the %d. in it, that cannot be read", n+1)
		}
	}
	if n == 0 {
		return "text without a certificate"
	}
	return ""
}
