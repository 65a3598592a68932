package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"almanac/internal/failure"
	"almanac/internal/source"
)

// phase is what was being done when an error came.
type phase int

const (
	signingIn phase = iota
	compiling       // the query's text
	reading         // its rows
)

// codes of PostgreSQL (https://www.postgresql.org/docs/current/errcodes-appendix.html) that mean another thing than
// their class.
const (
	undefinedDatabase     = "3D000"
	insufficientPrivilege = "42501"
	queryCanceled         = "57014"
	databaseDropped       = "57P04"
	readOnlyTransaction   = "25006"
	activeTransaction     = "25001" // what set_config is told that would make the transaction writable
	idleInTransaction     = "25P03"
	transactionTimeout    = "25P04"
	configurationLimit    = "53400"
	snapshotTooOld        = "72000"
	ambiguousParameter    = "42P08"
	indeterminateType     = "42P18"
)

// refused is the one place where PostgreSQL's codes become the product's.
func refused(e *pgconn.PgError, p phase) *failure.Failure {
	say := func(code failure.Code, format string) *failure.Failure {
		return failure.Wrap(code, e, format, words(e))
	}
	class := ""
	if len(e.Code) == 5 {
		class = e.Code[:2]
	}
	switch e.Code {
	case insufficientPrivilege:
		return say(failure.SourceAccessDenied, "the login lacks a right: %s; grant it the right to read, or read something else")
	case undefinedDatabase, databaseDropped:
		return say(failure.SourceUnknown, "%s: correct the source's database")
	case readOnlyTransaction, activeTransaction:
		return say(failure.QueryNotReadOnly, "the query tries to write (%s); a query may only read: use one SELECT")
	case queryCanceled:
		return say(failure.SourceUnavailable, "the query was stopped in the database: %s")
	case idleInTransaction, transactionTimeout:
		return say(failure.SourceUnavailable, "the database ended a transaction that took too long for it: %s; raise the limit of the login")
	case configurationLimit:
		return say(failure.QueryFailed, "the query needs more than the database allows it: %s; sort or group fewer rows")
	case ambiguousParameter, indeterminateType:
		return say(failure.ParameterInvalid, "the type of a parameter cannot be told: %s; convert it where it is used, as in cast(:name as date)")
	case snapshotTooOld:
		return say(failure.SourceUnavailable, "the database let go of rows that the query was to see: %s")
	}
	switch class {
	case "28":
		return say(failure.SourceAccessDenied, "the database refused to sign in: %s; check the login and what it may do, then resume")
	case "08", "40", "53", "55", "57", "58", "F0", "HV":
		return say(failure.SourceUnavailable, "the database cannot serve the query now: %s")
	}
	switch {
	case p == signingIn:
		return say(failure.SourceUnavailable, "the database did not begin a session: %s")
	case class == "22" && p == reading && numbered.MatchString(e.Where): // "unnamed portal parameter $1"
		return say(failure.ParameterInvalid, "the parameter "+numbered.FindString(e.Where)+" does not fit its place: %s; give a value of the type that is compared, or convert it, as in cast(:name as date)")
	case p == compiling, class == "42", class == "0A":
		return say(failure.QueryInvalid, "PostgreSQL does not understand the query: %s")
	}
	return say(failure.QueryFailed, "the query broke while its rows were read: %s; correct the expression or the data")
}

// words are what PostgreSQL says to people.
func words(e *pgconn.PgError) string {
	text := strings.TrimRight(e.Message, ". ")
	if e.Hint != "" {
		text += " (" + strings.TrimRight(e.Hint, ". ") + ")"
	}
	return failure.Cut(text, 300)
}

// broken is the failure of any error that came while st was asked.
func broken(err error, p phase, st statement, row int64) *failure.Failure {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		f := refused(answer, p)
		f.Message = st.named(f.Message)
		if f.Code == failure.QueryInvalid && answer.Position > 0 {
			// the place is of the text that was sent
			f.Message += source.Where(st.text, st.original(int(answer.Position)))
		}
		return f
	}
	var large *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &large) {
		return failure.From(source.TooLargeRow(row))
	}
	return failure.Wrap(failure.SourceUnavailable, err, "the connection to the database was lost")
}

// unreachable is the failure of an error before the session was there; at says how far it came.
func (c Config) unreachable(err error, at stage) *failure.Failure {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return refused(answer, signingIn)
	}
	say := func(format string, args ...any) *failure.Failure {
		return failure.Wrap(failure.SourceUnavailable, err, format, args...)
	}
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return say("the host %s has no address here: correct the source's host, or place the functions in a network that knows it", c.Host)
	case errors.As(err, &authority):
		return say("the certificate of %s is signed by an authority that is not trusted: put the database's root certificates into the source's ca", c.Host)
	case errors.As(err, &name):
		return say("the certificate of %s is for another host (%s): use the name that it is made for, or tls: verify-ca", c.Host, failure.Cut(strings.Join(name.Certificate.DNSNames, ", "), 120))
	case errors.As(err, &invalid), errors.As(err, &verify):
		return say("the certificate of %s is not valid (expired, or not for a server): renew it", c.Host)
	case at == dialling:
		return say("%s does not answer: check host and port, and that the functions' network and security group reach it", c.address())
	case at == connected:
		return say("%s does not speak TLS as the source asks (tls: %s): switch it on in the database", c.address(), c.mode())
	}
	return say("%s did not begin a session: check that it is PostgreSQL, and how it asks for passwords", c.address())
}
