package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"almanac/internal/api"
	"almanac/internal/failure"
	"almanac/internal/snapshot"
	"almanac/scripts/almanac/client"
)

// manifest prints the manifest of a month's current version, or of another, byte for byte.
func (p *Program) manifest(ctx context.Context, c *call) error {
	_, body, _, err := p.readManifest(ctx, c.args)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Out, "%s\n", body)
	return err
}

// readManifest reads that of WORKSPACE TYPE MONTH [VERSION], and checks its bytes against their name.
func (p *Program) readManifest(ctx context.Context, args []string) (m snapshot.Manifest, body []byte, conn *client.Client, err error) {
	path, err := monthOf(args)
	if err != nil {
		return m, nil, nil, err
	}
	path += "/manifest"
	if len(args) == 4 {
		version, err := versionOf(args[3])
		if err != nil {
			return m, nil, nil, err
		}
		path += "?" + url.Values{"version": {strconv.Itoa(version)}}.Encode()
	}
	if conn, err = p.connect(); err != nil {
		return m, nil, nil, err
	}
	resp, err := conn.Open(ctx, path)
	if err != nil {
		return m, nil, conn, err
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(resp.Body, snapshot.MaxManifest)); err != nil {
		return m, nil, conn, &client.Unreachable{Base: conn.Base, Cause: err}
	}
	sum := sha256.Sum256(body)
	if name := strings.Trim(resp.Header.Get("ETag"), `"`); name != hex.EncodeToString(sum[:]) {
		return m, nil, conn, fmt.Errorf("the manifest that came is not the one that was recorded: its SHA-256 is %x, its name says %q", sum, name)
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, nil, conn, fmt.Errorf("the manifest is not what this version understands: %w", err)
	}
	return m, body, conn, nil
}

// remote reads the files of versions by the API's signed addresses.
type remote struct {
	conn *client.Client
	path map[string]string // by object
}

func newRemote(conn *client.Client, versions ...snapshot.Manifest) remote {
	r := remote{conn, map[string]string{}}
	for _, m := range versions {
		for i, c := range m.Chunks {
			r.path[c.Object] = client.Path("snapshots", "runs", m.Run, "chunks", strconv.Itoa(i))
		}
	}
	return r
}

// Open reads a file as it comes.
func (r remote) Open(ctx context.Context, object string) (io.ReadCloser, int64, error) {
	resp, err := r.conn.Open(ctx, r.path[object])
	var down *client.Unreachable
	if errors.As(err, &down) {
		return nil, 0, failure.Wrap(failure.FileUnavailable, err, "the file %q could not be read: %v", object, err)
	} else if err != nil {
		return nil, 0, err
	}
	return resp.Body, resp.ContentLength, nil
}

// Write and List are what reading does without.
func (r remote) Write(context.Context, string, string, string, func(io.Writer) error) error {
	return errors.New("files of snapshots are only read here")
}

func (r remote) List(context.Context, string, func(string, int64) error) error {
	return errors.New("files of snapshots are not listed here")
}

// verify compares a version's bytes with their digests: by the API, part after part, or here.
func (p *Program) verify(ctx context.Context, c *call) error {
	m, _, conn, err := p.readManifest(ctx, c.args)
	if err != nil {
		return err
	}
	var found snapshot.Verification
	if c.here {
		found, err = snapshot.Reader{Objects: newRemote(conn, m)}.Verify(ctx, m)
	} else {
		found, err = verifyThere(ctx, conn, m.Run)
	}
	if err != nil {
		return err
	}
	if c.json {
		err = printJSON(p.Out, found)
	} else {
		p.printf("%s: %d files, %d bytes, %d not as recorded\n", m.Run, found.Chunks, found.Bytes, found.Bad)
		for _, b := range found.Wrong {
			p.printf("  %s: %s\n", plain(b.Object), plain(b.Why))
		}
	}
	if err == nil && found.Bad > 0 {
		return errFailed
	}
	return err
}

func verifyThere(ctx context.Context, conn *client.Client, run string) (found snapshot.Verification, err error) {
	for from := 0; ; {
		var v api.VerifyView
		if _, err := conn.Call(ctx, "POST", client.Path("snapshots", "runs", run, "verify"), nil, map[string]int{"from": from}, &v); err != nil {
			return found, err
		}
		found.Chunks, found.Bytes, found.Bad = found.Chunks+v.Checked, found.Bytes+v.Bytes, found.Bad+v.Bad
		found.Wrong = append(found.Wrong, v.Wrong...)
		if v.Next <= from {
			return found, nil
		}
		from = v.Next
	}
}

// compare tells how two versions of a month differ.
func (p *Program) compare(ctx context.Context, c *call) error {
	path, err := monthOf(c.args)
	if err != nil {
		return err
	}
	for _, text := range c.args[3:] {
		if _, err := versionOf(text); err != nil {
			return err
		}
	}
	var v snapshot.Comparison
	if c.here {
		v, err = p.compareHere(ctx, c)
	} else {
		conn, failed := p.connect()
		if failed != nil {
			return failed
		}
		_, err = conn.Call(ctx, "GET", path+"/compare?"+url.Values{"from": {c.args[3]}, "to": {c.args[4]}}.Encode(), nil, nil, &v)
		if tooLarge(err) {
			fmt.Fprintf(p.Err, "the versions are too large for the API to compare in one answer: they are compared here\n")
			v, err = p.compareHere(ctx, c)
		}
	}
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(p.Out, v)
	}
	p.printComparison(v)
	return nil
}

func tooLarge(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && problem.Status == http.StatusUnprocessableEntity && len(problem.Errors) > 0 && problem.Errors[0].Field == api.TooLarge
}

// examples is how many rows of each kind are shown.
const examples = 5

func (p *Program) compareHere(ctx context.Context, c *call) (v snapshot.Comparison, err error) {
	from, _, conn, err := p.readManifest(ctx, c.args[:4])
	if err != nil {
		return v, err
	}
	to, _, _, err := p.readManifest(ctx, []string{c.args[0], c.args[1], c.args[2], c.args[4]})
	if err != nil {
		return v, err
	}
	return snapshot.Reader{Objects: newRemote(conn, from, to)}.Compare(ctx, from, to, examples)
}

func (p *Program) printComparison(v snapshot.Comparison) {
	p.printf("%s → %s\n", v.From.Run, v.To.Run)
	t := newTable()
	t.row("  Rows", fmt.Sprintf("%d → %d", v.From.Totals.Rows, v.To.Totals.Rows))
	for _, name := range slices.Sorted(maps.Keys(v.To.Totals.Sums)) {
		t.row("  Sum of "+name, fmt.Sprintf("%s → %s", dash(v.From.Totals.Sums[name]), v.To.Totals.Sums[name]))
	}
	t.row("  Added", counted(v.Added, v.AddedKeys))
	t.row("  Removed", counted(v.Removed, v.RemovedKeys))
	t.row("  Changed", fmt.Sprint(v.Changed))
	t.row("  Unchanged", fmt.Sprint(v.Unchanged))
	for _, x := range []struct {
		title string
		names []string
	}{{"  New columns", v.AddedColumns}, {"  Columns gone", v.RemovedColumns}} {
		if len(x.names) > 0 {
			t.row(x.title, strings.Join(x.names, ", "))
		}
	}
	t.write(p.Out)
	for _, r := range v.ChangedRows {
		for _, column := range slices.Sorted(maps.Keys(r.Columns)) {
			p.printf("  %s: %s: %s → %s\n", plain(r.Key), plain(column), cellText(r.Columns[column][0]), cellText(r.Columns[column][1]))
		}
	}
}

// counted is a number with the first of what it counts.
func counted(n int64, keys []string) string {
	if n == 0 {
		return "0"
	}
	more := ""
	if n > int64(len(keys)) {
		more = ", …"
	}
	return fmt.Sprintf("%d: %s%s", n, strings.Join(keys, ", "), more)
}

func cellText(s *string) string {
	if s == nil {
		return "NULL"
	}
	return strconv.Quote(*s)
}
