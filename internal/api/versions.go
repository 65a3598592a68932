package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"almanac/internal/api/routes"
	"almanac/internal/schedule"
)

// VersionView is one version of a schedule's definition, as lists show it.
type VersionView struct {
	Version int        `json:"version"`
	By      string     `json:"by,omitempty"`
	At      *time.Time `json:"at,omitempty"`
	Hash    string     `json:"hash" doc:"SHA-256 of the definition: equal hashes, equal definitions"`
}

func versionView(v schedule.Version) VersionView {
	return VersionView{v.Number, v.CreatedBy, instant(v.CreatedAt), v.Hash}
}

// VersionDetail is one version with its definition and, where it was asked for, how it differs from another.
type VersionDetail struct {
	VersionView
	Definition schedule.Definition `json:"definition"`
	Against    int                 `json:"against,omitempty"`
	Diff       []string            `json:"diff,omitzero" doc:"one line per field: name: value in against → value in this version"`
}

func (s *server) registerVersions() {
	op := s.operation
	register(s, op("GET", "/schedules/{schedule}/versions", "list-versions", "Versions of a schedule's definition, the latest first", 404, 422), s.listVersions)
	register(s, op("GET", "/schedules/{schedule}/versions/{version}", "show-version", "One version, and how it differs from another", 404, 422), s.showVersion)
}

func (s *server) listVersions(ctx context.Context, in *runsOf) (*list[VersionView], error) {
	row, err := s.visible(ctx, in.Schedule, routes.Viewer)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, id, from string, limit int) ([]schedule.Version, string, error) {
		rows, next, err := s.Reader.Versions(ctx, id, from, limit)
		own := rows[:0]
		for _, v := range rows {
			if v.Number <= row.Version { // what is above is of a deleted schedule that had the same id
				own = append(own, v)
			}
		}
		return own, next, err
	}
	return pageOf(ctx, in.Listing, "versions", in.Schedule, read, versionView)
}

func (s *server) showVersion(ctx context.Context, in *struct {
	ScheduleID
	Version int `path:"version" minimum:"1" doc:"The version's number"`
	Against int `query:"against" minimum:"1" doc:"the version to compare with"`
}) (*reply[VersionDetail], error) {
	row, err := s.visible(ctx, in.Schedule, routes.Viewer)
	if err != nil {
		return nil, err
	}
	v, err := s.version(ctx, row, in.Version)
	if errors.Is(err, schedule.ErrNotFound) {
		return nil, problem(http.StatusNotFound, "schedule %s has no version %d; it has versions 1 to %d", row.ID, in.Version, row.Version)
	} else if err != nil {
		return nil, err
	}
	right := caller(ctx).In(row.Workspace)
	out := VersionDetail{VersionView: versionView(v), Definition: masked(v.Definition, right)}
	if in.Against == 0 {
		return &reply[VersionDetail]{out}, nil
	}
	other, err := s.version(ctx, row, in.Against)
	if errors.Is(err, schedule.ErrNotFound) {
		return nil, schedule.Problems{{Field: "against", Value: fmt.Sprint(in.Against), Want: fmt.Sprintf("a version of the schedule, 1 to %d", row.Version)}}
	} else if err != nil {
		return nil, err
	}
	out.Against, out.Diff = in.Against, orEmpty(schedule.Diff(other.Definition, v.Definition))
	if right < routes.Operator {
		out.Diff = withoutAddresses(out.Diff)
	}
	return &reply[VersionDetail]{out}, nil
}

// version reads a version of the schedule as it is now.
func (s *server) version(ctx context.Context, row schedule.Schedule, number int) (schedule.Version, error) {
	if number > row.Version {
		return schedule.Version{}, schedule.ErrNotFound
	}
	return s.Reader.Definition(ctx, row.ID, number)
}
