// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/caserun"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Row is a run in a list of runs.
type Row struct {
	ID     string `json:"run" jsonschema:"the ID"`
	Name   string `json:"name,omitempty" jsonschema:"of its definition"`
	Input  string `json:"input,omitempty" jsonschema:"the beginning of its request"`
	Status string `json:"status" jsonschema:"running, waiting (for a person), paused, completed, failed, canceled or interrupted"`
	// DrivenBy is the process that drives the run. Driver is the system that decides which process drives it: see
	// [mark.Run].
	DrivenBy  string    `json:"driven_by,omitempty"`
	Driver    string    `json:"driver,omitempty"`
	Iteration int       `json:"iteration,omitempty" jsonschema:"the last one of its loop"`
	Score     *float64  `json:"score,omitempty" jsonschema:"the last accepted score, or the best one after the loop has stopped"`
	Started   time.Time `json:"started,omitzero"`
	Updated   time.Time `json:"updated,omitzero"`
	// Seconds is the time in which the run was active: see [progress.Tree.Active].
	Seconds    float64         `json:"seconds" jsonschema:"the time in which the run was active"`
	StopReason string          `json:"stop_reason,omitempty"`
	Error      string          `json:"error,omitempty"`
	Paused     string          `json:"paused,omitempty" jsonschema:"why and by whom"`
	Waits      []mark.Question `json:"waits,omitempty" jsonschema:"the questions that it asks"`
	Deadline   time.Time       `json:"deadline,omitzero"`
	Parent     *mark.RunParent `json:"parent,omitempty"`
}

// List returns the sessions of a user's runs, the newest run first, without their logs and without the case-runs of evals.
func List(ctx context.Context, store session.Service, app, user string) ([]session.Session, error) {
	all, err := ListAll(ctx, store, app, user)
	return WithoutCases(all), err
}

// WithoutCases removes the case-runs of evals from a list.
func WithoutCases(all []session.Session) []session.Session {
	return slices.DeleteFunc(all, func(s session.Session) bool { return caserun.Is(s.ID()) })
}

// ListAll returns what List returns, with the case-runs of evals.
func ListAll(ctx context.Context, store session.Service, app, user string) ([]session.Session, error) {
	got, err := store.List(ctx, &session.ListRequest{AppName: app, UserID: user, Brief: true})
	if err != nil {
		return nil, err
	}
	began := make(map[string]time.Time, len(got.Sessions))
	for _, s := range got.Sessions {
		began[s.ID()] = s.LastUpdateTime()
		if r := session.RunOf(s); r != nil && !r.Started.IsZero() {
			began[s.ID()] = r.Started
		}
	}
	slices.SortFunc(got.Sessions, func(a, b session.Session) int {
		return cmp.Or(began[b.ID()].Compare(began[a.ID()]), cmp.Compare(a.ID(), b.ID()))
	})
	return got.Sessions, nil
}

// recent is how many of a run's last events RowOf reads.
const recent = 32

// RowOf returns the row of the last run in the session s, from the last events of the session. dead reports whether the
// owner of a lease is known to have died; it may be nil. RowOf returns [session.ErrNotFound] if the session was
// deleted.
func RowOf(ctx context.Context, store session.Service, s session.Session, dead func(string) bool) (*Row, error) {
	key := lease.KeyOf(s)
	got, err := store.Get(ctx, &session.GetRequest{AppName: key.AppName, UserID: key.UserID,
		SessionID: key.SessionID, NumRecentEvents: recent, Brief: true})
	if err != nil {
		return nil, err
	}
	view := session.ViewOf(got.Session)
	gone := view.Log().Superseded()
	var last []*session.Event
	for ev := range view.Log().Outline() {
		if !gone.Has(ev.Seq) {
			last = append(last, ev.Outlined())
		}
	}
	if err := view.Err(); err != nil {
		return nil, err
	}
	sum := progress.Summarize(last)
	if len(last) > 0 && last[0].Seq > 1 && last[0].InvocationID == sum.ID {
		sum.Began = time.Time{} // the run began before these events
	}
	row := &Row{
		ID: s.ID(), Name: sum.Name, Iteration: sum.Iteration, Score: sum.Score,
		Started: sum.Began, Updated: sum.Updated, Error: sum.Error, Paused: sum.Paused, Waits: sum.Waits,
	}
	if sum.Stop != nil {
		row.StopReason = string(sum.Stop.Reason)
	}
	by := sum.Status
	if r := session.RunOf(got.Session); r != nil {
		row.Name, row.Started, row.Input = cmp.Or(r.Name, row.Name), r.Started, r.Input
		row.StopReason, row.Error = cmp.Or(r.Stop, row.StopReason), cmp.Or(r.Error, row.Error)
		row.Deadline, row.Parent, row.Driver, by = r.Deadline, r.Parent, r.Driver, r.Status
	}
	if by != mark.RunCanceled && row.StopReason == string(loop.ReasonCanceled) {
		row.StopReason = "" // the loop was interrupted and can continue, so it has not stopped
	}
	var held *lease.HeldError
	if row.Status, held, err = PresentStatus(ctx, store, key, by, dead); err != nil {
		return nil, err
	}
	if by == mark.RunRunning && row.Status != string(by) && row.Status != StatusInterrupted {
		return RowOf(ctx, store, s, dead) // the run has stopped since the events were read: read them again
	}
	if row.Status == StatusInterrupted && len(last) == 0 {
		row.Status = StatusNotBegun
	}
	until := row.Updated
	if held != nil {
		row.DrivenBy, until = held.Owner, time.Now()
	}
	if r := session.RunOf(got.Session); r != nil && (r.Active > 0 || r.Status == mark.RunRunning || r.Parent != nil) {
		row.Seconds = r.ActiveAt(until).Seconds()
	} else if !row.Started.IsZero() { // the log has no record of the active time
		row.Seconds = max(0, until.Sub(row.Started).Seconds())
	}
	return row, nil
}

// MayHave reports whether a run whose log has the status by can have the status want. A running run can be interrupted.
func MayHave(by mark.RunStatus, want string) bool {
	return string(by) == want || by == mark.RunRunning && want == StatusInterrupted
}
