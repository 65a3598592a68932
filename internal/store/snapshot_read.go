package store

import (
	"context"
	"strings"
	"time"

	"almanac/internal/calendar"
	"almanac/internal/schedule"
	"almanac/internal/schema"
	"almanac/internal/snapshot"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// between is a consistent read of the rows of one partition from one sort key to another, both included.
func between(pk schema.Partition, from, to string) span {
	var e expression
	cond := e.name(schema.PK) + " = " + e.value(string(pk)) + " AND " + e.name(schema.SK) + " BETWEEN " + e.value(from) + " AND " + e.value(to)
	return span{in: dynamodb.QueryInput{KeyConditionExpression: &cond, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ConsistentRead: aws.Bool(true)},
		partition: schema.PK, of: string(pk), sort: schema.SK, holds: func(sk string) bool { return from <= sk && sk <= to }}
}

// Line reads the months of a series from one to another that have a version, oldest first.
func (s *Snapshots) Line(ctx context.Context, sr snapshot.Series, from, to calendar.Month) (list []snapshot.Month, err error) {
	pk := schema.SeriesPartition(sr.Workspace, sr.Type)
	last := schema.PeriodPrefix + to.String() + schema.VersionMark + "~"
	err = s.each(ctx, between(pk, schema.PeriodPrefix+from.String(), last), 0, func(it item) error {
		if !strings.Contains(string(keyOf(it).SK), schema.VersionMark) { // a head stands before its runs
			h, err := decodeHead(it)
			list = append(list, snapshot.Month{Head: h, Pointer: snapshot.Pointer{Period: h.Period}})
			return err
		}
		r, err := decodeSnapshot(it)
		if n := len(list); err == nil && n > 0 {
			list[n-1].Runs = append(list[n-1].Runs, r)
		}
		return err
	})
	if err != nil || len(list) == 0 {
		return list, err
	}
	pointers, err := s.Pointers(ctx, sr, from, to)
	for i := range list {
		if p, ok := pointers[list[i].Head.Month]; ok {
			list[i].Pointer = p
		}
	}
	return list, err
}

// Pointers reads the current versions of a series' months from one to another.
func (s *Snapshots) Pointers(ctx context.Context, sr snapshot.Series, from, to calendar.Month) (map[calendar.Month]snapshot.Pointer, error) {
	found := map[calendar.Month]snapshot.Pointer{}
	err := s.each(ctx, between(schema.SeriesPartition(sr.Workspace, sr.Type), schema.CurrentPrefix+from.String(), schema.CurrentPrefix+to.String()), 0, func(it item) error {
		p, err := decodePointer(it)
		found[p.Month] = p
		return err
	})
	return found, err
}

// Runs is a page of a series' versions of all months, the latest month first, and of one month the latest version. A page
// may hold fewer than limit, since the months' heads stand between them.
func (s *Snapshots) Runs(ctx context.Context, sr snapshot.Series, from string, limit int) (list []snapshot.Run, next string, err error) {
	p, err := s.Store.list(ctx, below(schema.SeriesPartition(sr.Workspace, sr.Type), schema.PeriodPrefix, true), from, limit)
	if err != nil {
		return nil, "", err
	}
	for _, it := range p.items {
		if !strings.Contains(string(keyOf(it).SK), schema.VersionMark) {
			continue
		}
		r, err := decodeSnapshot(it)
		if err != nil {
			return nil, "", err
		}
		list = append(list, r)
	}
	return list, cursor(p.next), nil
}

// DefinitionVersions is a page of a definition's versions, the latest first.
func (s *Snapshots) DefinitionVersions(ctx context.Context, sc snapshot.Scope, typ, from string, limit int) (list []snapshot.Version, next string, err error) {
	k := schema.SnapshotDefinitionKey(scopeText(sc), typ)
	p, err := s.Store.list(ctx, below(k.PK, string(k.SK)+schema.VersionMark, true), from, limit)
	if err != nil {
		return nil, "", err
	}
	for _, it := range p.items {
		v, err := decodeSnapshotVersion(it)
		if err != nil {
			return nil, "", err
		}
		list = append(list, v)
	}
	return list, cursor(p.next), nil
}

// Audits of a run's id, or of snapshot.DefinitionSubject or snapshot.OwnerSubject, the latest first.
func (s *Snapshots) Audits(ctx context.Context, subject, from string, limit int) ([]schedule.Audit, string, error) {
	return s.Store.Audits(ctx, subject, from, limit)
}

// AuditIDs are the ids of a subject's audits, the latest first.
func (s *Snapshots) AuditIDs(ctx context.Context, subject string) (ids []string, err error) {
	err = s.each(ctx, below(schema.AuditKey(subject, time.Time{}, "").PK, "", true), 0, func(it item) error {
		_, id, _ := strings.Cut(string(keyOf(it).SK), "#")
		ids = append(ids, id)
		return nil
	})
	return ids, err
}
