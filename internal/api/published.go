package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/failure"
	"almanac/internal/snapshot"
)

// chunkPath is the path of the files of a month.
const chunkPath = "/snapshots/runs/{snapshot}/chunks/{chunk}"

func (s *server) registerPublished() {
	op := s.operation
	register(s, op("GET", monthPath+"/manifest", "show-current-manifest", "The manifest of a month's current version, or of another", 404, 422), s.showMonthManifest)
	register(s, op("GET", snapshotPath+"/manifest", "show-manifest", "The manifest of a published version", 404), s.showManifest)
	register(s, op("GET", chunkPath, "download-chunk", "One file of a published version: signs its address for a minute", 404, 422), s.openChunk)
	registerBody[verifyBody](s, op("POST", snapshotPath+"/verify", "verify-snapshot", "Compare the bytes of a version's files with their digests, as many as fit an answer", 404, 422), false, s.verifySnapshot)
	register(s, op("GET", monthPath+"/compare", "compare-versions", "How two versions of a month differ, by their keys", 404, 422), s.compareVersions)
}

// AnswerBounds bound what is done with files while the caller waits; a zero is the default.
type AnswerBounds struct {
	Manifest int64 // bytes of a manifest that is answered; a larger one is a redirection
	Verified int64 // bytes that one request verifies, but one file at least
	Chunk    int64 // bytes of a file that can be verified
	Compared int64 // bytes of two versions that are compared
	Rows     int64 // rows of two versions that are compared
}

// filled are the bounds with their defaults: about ten seconds of a function of 512 MB, whose answer ends at 6 MB
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
func (b AnswerBounds) filled() AnswerBounds {
	return AnswerBounds{cmp.Or(b.Manifest, 4<<20), cmp.Or(b.Verified, 64<<20), cmp.Or(b.Chunk, 256<<20), cmp.Or(b.Compared, 64<<20), cmp.Or(b.Rows, 500_000)}
}

// signedFor is how long a signed address works.
const signedFor = time.Minute

type manifestReply struct {
	Status      int
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag"`
	Location    string `header:"Location"`
	Body        []byte
}

// SeenManifest is what the caller has already.
type SeenManifest struct {
	IfNoneMatch string `header:"If-None-Match" doc:"the ETag of an earlier answer; 304 when it is still that one"`
}

func (s *server) showMonthManifest(ctx context.Context, in *struct {
	MonthID
	SeenManifest
	Version int `query:"version" minimum:"1" doc:"a published version; absent: the current one"`
}) (*manifestReply, error) {
	p, err := s.period(ctx, in.MonthID, routes.Viewer)
	if err != nil {
		return nil, err
	}
	m, err := s.manifest(ctx, p, in.Version)
	if err != nil {
		return nil, err
	}
	return s.manifestReply(ctx, m, in.IfNoneMatch)
}

// manifest reads that of a version, 0: of the current one.
func (s *server) manifest(ctx context.Context, p snapshot.Period, version int) (m snapshot.Manifest, err error) {
	if version == 0 {
		m, err = s.Months.Files.Current(ctx, p)
	} else {
		m, err = s.Months.Files.Version(ctx, p, version)
	}
	if errors.Is(err, snapshot.ErrNotFound) {
		what := "it has no published version"
		if version > 0 {
			what = fmt.Sprintf("it has no published version %d", version)
		}
		return m, problem(http.StatusNotFound, "%s %s %s: %s", clip(p.Workspace), clip(p.Type), p.Month, what)
	}
	return m, err
}

func (s *server) showManifest(ctx context.Context, in *struct {
	SnapshotID
	SeenManifest
}) (*manifestReply, error) {
	m, err := s.publishedManifest(ctx, in.Snapshot, routes.Viewer)
	if err != nil {
		return nil, err
	}
	return s.manifestReply(ctx, m, in.IfNoneMatch)
}

// publishedManifest reads the manifest of a version by its id.
func (s *server) publishedManifest(ctx context.Context, id string, right routes.Right) (snapshot.Manifest, error) {
	r, err := s.visibleSnapshot(ctx, id, right)
	if err != nil {
		return snapshot.Manifest{}, err
	}
	return s.manifest(ctx, r.Period, r.Version)
}

func (s *server) manifestReply(ctx context.Context, m snapshot.Manifest, seen string) (*manifestReply, error) {
	body, hash, err := m.Encode()
	if err != nil {
		return nil, err
	}
	out := &manifestReply{Status: http.StatusOK, ContentType: "application/json", ETag: `"` + hash + `"`, Body: body}
	for _, tag := range strings.Split(seen, ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == out.ETag || tag == "*" {
			out.Status, out.Body, out.ContentType = http.StatusNotModified, nil, ""
			return out, nil
		}
	}
	if int64(len(body)) > s.Months.Bounds.filled().Manifest {
		p := snapshot.Period{Series: snapshot.Series{Workspace: m.Workspace, Type: m.Type}, Month: m.Month}
		address, err := s.Months.Sign(ctx, snapshot.ManifestKey(p, m.Version, hash), m.Run+".json", signedFor)
		if err != nil {
			return nil, err
		}
		out.Status, out.Location, out.Body = http.StatusSeeOther, address, nil
	}
	return out, nil
}

type chunkReply struct {
	Status   int
	Location string `header:"Location"`
}

func (s *server) openChunk(ctx context.Context, in *struct {
	SnapshotID
	Chunk int `path:"chunk" minimum:"0" doc:"Its place in the manifest's list, from 0 on"`
}) (*chunkReply, error) {
	m, err := s.publishedManifest(ctx, in.Snapshot, routes.Viewer)
	if err != nil {
		return nil, err
	}
	if in.Chunk >= len(m.Chunks) {
		return nil, problem(http.StatusNotFound, "%s has %d chunks, from 0 on", m.Run, len(m.Chunks))
	}
	address, err := s.Months.Sign(ctx, m.Chunks[in.Chunk].Object, fmt.Sprintf("%s-%05d%s", m.Run, in.Chunk, m.Files.Extension()), signedFor)
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "file of a snapshot", "request", requestID(ctx), "principal", caller(ctx).Hash(), "run", m.Run, "chunk", in.Chunk)
	return &chunkReply{http.StatusFound, address}, nil
}

type verifyBody struct {
	From int `json:"from,omitempty" doc:"the first chunk; next of the answer before"`
}

// VerifyView is what some files of a version are found to be.
type VerifyView struct {
	Run     string              `json:"run"`
	Chunks  int                 `json:"chunks" doc:"of the version"`
	From    int                 `json:"from"`
	Checked int                 `json:"checked" doc:"how many this answer is about"`
	Bytes   int64               `json:"bytes"`
	Bad     int                 `json:"bad" doc:"how many are not what was recorded"`
	Wrong   []snapshot.BadChunk `json:"wrong" doc:"the first 20 of them"`
	Next    int                 `json:"next,omitempty" doc:"ask again from here; absent: all were checked"`
}

func (s *server) verifySnapshot(ctx context.Context, in *struct {
	SnapshotID
	Raw
}) (*reply[VerifyView], error) {
	m, err := s.publishedManifest(ctx, in.Snapshot, routes.Operator)
	if err != nil {
		return nil, err
	}
	var body verifyBody
	if len(in.RawBody) > 0 {
		if err := decode(in.RawBody, &body); err != nil {
			return nil, err
		}
	}
	all := m.Chunks
	if body.From < 0 || body.From > 0 && body.From >= len(all) {
		return nil, wrong("from", fmt.Sprint(body.From), fmt.Sprintf("0 to %d, a chunk of the version", max(len(all)-1, 0)))
	}
	bounds := s.Months.Bounds.filled()
	end, bytes := body.From, int64(0)
	for end < len(all) && (end == body.From || bytes+all[end].Bytes <= bounds.Verified) {
		bytes += all[end].Bytes
		end++
	}
	if bytes > bounds.Chunk {
		return nil, wrong("from", fmt.Sprint(body.From), fmt.Sprintf("a chunk of at most %d MiB; this one has %d bytes: download it and compare its SHA-256, as `almanac verify --here` does", bounds.Chunk>>20, bytes))
	}
	m.Chunks = all[body.From:end]
	found, err := s.Months.Files.Verify(ctx, m)
	if err != nil {
		return nil, err
	}
	v := VerifyView{Run: m.Run, Chunks: len(all), From: body.From, Checked: found.Chunks, Bytes: found.Bytes, Bad: found.Bad, Wrong: orEmpty(found.Wrong)}
	if end < len(all) {
		v.Next = end
	}
	return &reply[VerifyView]{v}, nil
}

func (s *server) compareVersions(ctx context.Context, in *struct {
	MonthID
	From     int `query:"from" minimum:"1" required:"true" doc:"a published version"`
	To       int `query:"to" minimum:"1" required:"true" doc:"another one"`
	Examples int `query:"examples" minimum:"0" maximum:"20" default:"5" doc:"how many rows of each kind are shown"`
}) (*reply[snapshot.Comparison], error) {
	p, err := s.period(ctx, in.MonthID, routes.Viewer)
	if err != nil {
		return nil, err
	}
	from, err := s.manifest(ctx, p, in.From)
	if err != nil {
		return nil, err
	}
	to, err := s.manifest(ctx, p, in.To)
	if err != nil {
		return nil, err
	}
	bounds := s.Months.Bounds.filled()
	if rows, bytes := from.Totals.Rows+to.Totals.Rows, from.Totals.Bytes+to.Totals.Bytes; rows > bounds.Rows || bytes > bounds.Compared {
		return nil, wrong(TooLarge, fmt.Sprintf("%d rows, %d bytes", rows, bytes), fmt.Sprintf("at most %d rows and %d MiB in both versions together; `almanac compare --here` compares larger ones on your machine", bounds.Rows, bounds.Compared>>20))
	}
	c, err := s.Months.Files.Compare(ctx, from, to, in.Examples)
	if failure.Is(err, failure.DefinitionInvalid) { // the key has another column
		return nil, wrong("to", fmt.Sprint(in.To), failure.From(err).Cut())
	}
	return &reply[snapshot.Comparison]{c}, err
}

// TooLarge is the field under which a comparison is refused that takes too long for an answer.
const TooLarge = "versions"
