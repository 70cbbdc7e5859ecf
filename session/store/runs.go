// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// RunLister is a [session.Service] that lists the runs of a user page by page, and reads no more values than
// a page has. The services of this project that keep sessions in a database are RunListers;
// sessiontest.TestService tests them.
type RunLister interface {
	// ListRuns lists the sessions that have a run, without their events. Their state holds what
	// session.RunOf reads. The errors are those of [session.Service.List].
	ListRuns(context.Context, *RunsRequest) (*RunsResponse, error)
}

// RunsRequest asks for some runs of a user. Empty fields match all runs.
type RunsRequest struct {
	AppName, UserID string
	// Name and Status are those of the last run in a session.
	Name   string
	Status mark.RunStatus
	// SessionID is the ID of a session, Prefix the beginning of an ID: a session that matches either is listed.
	SessionID, Prefix string
	// Since leaves out sessions that have not changed after it.
	Since time.Time
	// After is the place of the last run on the previous page; zero for the first page.
	After RunPlace
	// Limit is the largest number of sessions in the page; 0: no limit.
	Limit int
}

// RunsResponse is a page of runs.
type RunsResponse struct {
	// Sessions are ordered by RunPlace.
	Sessions []session.Session
	// Total counts the runs on all pages.
	Total int
}

// RunPlace is the place of a run in a list: the latest change comes first, and the ID decides between runs
// that changed at the same time. A run that begins or changes never moves other runs behind a place.
type RunPlace struct {
	Updated   time.Time
	SessionID string
}

// PlaceOf returns the place of a session.
func PlaceOf(s session.Session) RunPlace { return RunPlace{s.LastUpdateTime(), s.ID()} }

// Compare returns a negative number if p comes before q.
func (p RunPlace) Compare(q RunPlace) int {
	return cmp.Or(q.Updated.Compare(p.Updated), strings.Compare(p.SessionID, q.SessionID))
}

// ListRuns lists the runs of a user page by page. With a service that is not a [RunLister], it lists all
// sessions and drops those that do not match.
func ListRuns(ctx context.Context, svc session.Service, req *RunsRequest) (*RunsResponse, error) {
	if lister, ok := svc.(RunLister); ok {
		return lister.ListRuns(ctx, req)
	}
	got, err := svc.List(ctx, &session.ListRequest{AppName: req.AppName, UserID: req.UserID, Brief: true})
	if err != nil {
		return nil, err
	}
	return req.Page(slices.DeleteFunc(got.Sessions, func(s session.Session) bool { return !req.has(s) })), nil
}

// Page sorts all, which holds all sessions that match the request, and returns the requested page.
func (r *RunsRequest) Page(all []session.Session) *RunsResponse {
	resp := &RunsResponse{Sessions: all, Total: len(all)}
	slices.SortFunc(all, func(a, b session.Session) int { return PlaceOf(a).Compare(PlaceOf(b)) })
	if r.After != (RunPlace{}) {
		n := slices.IndexFunc(all, func(s session.Session) bool { return PlaceOf(s).Compare(r.After) > 0 })
		if n < 0 {
			n = len(all)
		}
		resp.Sessions = all[n:]
	}
	if r.Limit > 0 {
		resp.Sessions = resp.Sessions[:min(r.Limit, len(resp.Sessions))]
	}
	return resp
}

func (r *RunsRequest) has(s session.Session) bool {
	run, id := session.RunOf(s), s.ID()
	switch {
	case run == nil, r.Name != "" && run.Name != r.Name, r.Status != "" && run.Status != r.Status:
		return false
	case !r.Since.IsZero() && !s.LastUpdateTime().After(r.Since):
		return false
	}
	return r.SessionID == "" && r.Prefix == "" || id == r.SessionID || r.Prefix != "" && strings.HasPrefix(id, r.Prefix)
}
