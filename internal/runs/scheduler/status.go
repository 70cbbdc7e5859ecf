// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Status describes a schedule to people and programs.
type Status struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
	// Times is the rule of the schedule, such as 0 2 * * * Europe/Berlin. MostADay is the largest number of starts in 24 hours.
	Times    string `json:"times"`
	MostADay int    `json:"most_a_day"`
	// Next is when the next run starts, or would start if the schedule were not paused; zero if there is no time within five years.
	Next time.Time `json:"next,omitzero"`
	// Delayed is a time that has passed and whose run waits for its jitter, until Next. Queued is a time whose run waits for the end of an
	// earlier run.
	Delayed time.Time `json:"delayed,omitzero"`
	Queued  time.Time `json:"queued,omitzero"`
	// Paused is when the schedule was paused, and PausedBy who did it.
	Paused   time.Time `json:"paused,omitzero"`
	PausedBy string    `json:"paused_by,omitempty"`
	// Last is the last time that has passed.
	Last *Last `json:"last,omitempty"`
	// RunStatus is the status of the run of Last, such as completed, or removed; RunWhy is why it ended, a stop reason or an error. Both
	// are empty if no run was started.
	RunStatus string `json:"run_status,omitempty"`
	RunWhy    string `json:"run_why,omitempty"`
}

// Status returns the status of a schedule at a time.
func (r *Records) Status(ctx context.Context, s *schedule.Schedule, now time.Time) (*Status, error) {
	rec, p, err := r.Read(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	st := &Status{Name: s.Name, Definition: s.Definition, Times: s.Rule(), MostADay: s.MostADay(now), Queued: p.Queued,
		Paused: rec.Paused, PausedBy: rec.By, Last: p.Last}
	t := s.NextDue(now)
	if !t.IsZero() {
		st.Next = s.Due(t)
	}
	if !t.After(now) && rec.Paused.IsZero() && t.After(rec.Since) {
		st.Delayed = t
	}
	if st.Last != nil && st.Last.Outcome == Started {
		st.RunStatus, st.RunWhy, err = r.ending(ctx, st.Last.Run)
	}
	return st, err
}

// ending returns the status of a run and why it has ended.
func (r *Records) ending(ctx context.Context, id string) (status, why string, err error) {
	got, err := r.Service.Get(ctx, &session.GetRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id, NumRecentEvents: 1, Brief: true})
	if err == nil {
		var row *runlog.Row
		if row, err = runlog.RowOf(ctx, r.Service, got.Session, lease.Dead); err == nil {
			return row.Status, cmp.Or(row.Error, row.StopReason), nil
		}
	}
	if errors.Is(err, session.ErrNotFound) {
		return "removed", "", nil
	}
	return "", "", err
}
