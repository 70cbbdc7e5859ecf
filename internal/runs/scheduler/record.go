// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/record"
	"github.com/refrain-dev/refrain/session"
)

// Outcome is what happened at a time of a schedule.
type Outcome string

// The outcomes.
const (
	Started Outcome = "started"
	Skipped Outcome = "skipped" // an earlier run has not ended
	Failed  Outcome = "failed"  // the run could not be started
)

// Last is the last time of a schedule, and its outcome.
type Last struct {
	Time    time.Time `json:"time"`
	Outcome Outcome   `json:"outcome"`
	// Run is the run that was started, or the earlier run that has not ended.
	Run string `json:"run,omitempty"`
	// Why is the error of a start that failed, or the status of the earlier run.
	Why string `json:"why,omitempty"`
}

// Record says whether a schedule starts runs, for all servers of a store.
type Record struct {
	// Rule is the rule of the schedule. Since is when a server first found the schedule with this rule, or when the schedule was
	// continued after a pause: earlier times start no runs.
	Rule  string    `json:"rule,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Paused is when the schedule was paused; zero if it is not paused. By is who paused it.
	Paused time.Time `json:"paused,omitzero"`
	By     string    `json:"by,omitempty"`
}

// Progress is how far the times of a schedule are dealt with, by all servers of a store.
type Progress struct {
	// Last is the last time and its outcome; nil if none has passed. Queued is the time that waits for the end of an earlier run.
	Last   *Last     `json:"last,omitempty"`
	Queued time.Time `json:"queued,omitzero"`
}

// Records are what a store keeps about schedules, in sessions of an application of their own.
type Records struct {
	Service         session.Service
	AppName, UserID string
}

// rowsOf returns the stored values of a kind. A session with a limit of events may be lost.
func rowsOf[T any](r *Records, mostEvents int64) record.Records[T] {
	return record.Records[T]{Service: r.Service, AppName: r.AppName + "-schedules", UserID: r.UserID, Key: "schedule", MostEvents: mostEvents}
}

// change calls edit on what is stored of a kind under an ID, and stores the value if edit returns true.
func change[T any](ctx context.Context, rows record.Records[T], id string, edit func(*T) bool) error {
	err := rows.Change(ctx, id, func(v *T) error {
		if !edit(v) {
			return record.ErrSame
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("change what is stored about schedule %q: %w", id, err)
	}
	return nil
}

func (r *Records) changeRecord(ctx context.Context, name string, edit func(*Record) bool) error {
	return change(ctx, rowsOf[Record](r, 0), name, edit)
}

// A lost progress does no harm, because the ID of a run says its time.
func (r *Records) changeProgress(ctx context.Context, name string, edit func(*Progress) bool) error {
	return change(ctx, rowsOf[Progress](r, 500), progressID(name), edit)
}

func progressID(name string) string { return name + ".progress" }

// Read returns the record and the progress of a schedule; they are empty if nothing is stored.
func (r *Records) Read(ctx context.Context, name string) (*Record, *Progress, error) {
	rec, _, err := rowsOf[Record](r, 0).Read(ctx, name)
	var p *Progress
	if err == nil {
		p, _, err = rowsOf[Progress](r, 0).Read(ctx, progressID(name))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read what is stored about schedule %q: %w", name, err)
	}
	return rec, p, nil
}

// Pause pauses a schedule for all servers of the store. Runs that it has started go on. changed is false if it was paused already.
func (r *Records) Pause(ctx context.Context, name, by string, now time.Time) (changed bool, err error) {
	err = r.changeRecord(ctx, name, func(rec *Record) bool {
		if changed = rec.Paused.IsZero(); changed {
			rec.Paused, rec.By = now, by
		}
		return changed
	})
	return changed, err
}

// Continue continues a paused schedule with its next time. changed is false if it was not paused.
func (r *Records) Continue(ctx context.Context, name string, now time.Time) (changed bool, err error) {
	err = r.changeRecord(ctx, name, func(rec *Record) bool {
		if changed = !rec.Paused.IsZero(); changed {
			rec.Paused, rec.By, rec.Since = time.Time{}, "", now
		}
		return changed
	})
	return changed, err
}

// find records that a server has found a schedule. A schedule that is new, or whose rule has changed, begins now.
func (r *Records) find(ctx context.Context, name, rule string, now time.Time) error {
	return r.changeRecord(ctx, name, func(rec *Record) bool {
		if rec.Rule == rule && !rec.Since.After(now) {
			return false
		}
		rec.Rule, rec.Since = rule, now
		return true
	})
}
