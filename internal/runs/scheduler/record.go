// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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

// row is the stored form of a Record or a Progress: a session with one key.
type row[T any] struct {
	*Records
	id string
	// mostEvents is how many events the session may have before it is made anew; 0 means no limit. Only a row that may be lost has a limit.
	mostEvents int64
}

func (r *Records) record(name string) row[Record] { return row[Record]{r, name, 0} }

// A lost progress does no harm, because the ID of a run says its time.
func (r *Records) progress(name string) row[Progress] {
	return row[Progress]{r, name + ".progress", 500}
}

const rowKey = "schedule" // the state key of a row

func (r row[T]) app() string { return r.AppName + "-schedules" }

// read returns the value of a row and its session. If there is none, the value is empty and the session nil.
func (r row[T]) read(ctx context.Context) (session.Session, *T, error) {
	v := new(T)
	got, err := r.Service.Get(ctx, &session.GetRequest{AppName: r.app(), UserID: r.UserID, SessionID: r.id, NumRecentEvents: 1})
	if errors.Is(err, session.ErrNotFound) {
		return nil, v, nil
	}
	if err == nil {
		if text, _ := got.Session.State().Get(rowKey); text != nil {
			err = json.Unmarshal(fmt.Append(nil, text), v)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read what is stored about schedule %q: %w", r.id, err)
	}
	return got.Session, v, nil
}

// change reads a row, calls edit on its value, and stores the value if edit returns true. If another process has stored the row
// meanwhile, change begins again.
func (r row[T]) change(ctx context.Context, edit func(*T) bool) error {
	for {
		stored, v, err := r.read(ctx)
		if err != nil || !edit(v) {
			return err
		}
		err = r.write(ctx, stored, v)
		if !errors.Is(err, session.ErrConflict) && !errors.Is(err, session.ErrExists) && !errors.Is(err, session.ErrNotFound) {
			return err
		}
	}
}

func (r row[T]) write(ctx context.Context, stored session.Session, v *T) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	state := map[string]any{rowKey: string(text)}
	if stored != nil && (r.mostEvents == 0 || session.ViewOf(stored).LastSeq() < r.mostEvents) {
		return r.Service.AppendEvent(ctx, stored, &session.Event{InvocationID: "schedule", Author: "user",
			Actions: session.EventActions{StateDelta: state}})
	}
	if stored != nil {
		if err := r.Service.Delete(ctx, &session.DeleteRequest{AppName: r.app(), UserID: r.UserID, SessionID: r.id}); err != nil {
			return err
		}
	}
	_, err = r.Service.Create(ctx, &session.CreateRequest{AppName: r.app(), UserID: r.UserID, SessionID: r.id, State: state})
	return err
}

// Read returns the record and the progress of a schedule; they are empty if nothing is stored.
func (r *Records) Read(ctx context.Context, name string) (*Record, *Progress, error) {
	_, rec, err := r.record(name).read(ctx)
	if err != nil {
		return nil, nil, err
	}
	_, p, err := r.progress(name).read(ctx)
	return rec, p, err
}

// Pause pauses a schedule for all servers of the store. Runs that it has started go on. changed is false if it was paused already.
func (r *Records) Pause(ctx context.Context, name, by string, now time.Time) (changed bool, err error) {
	err = r.record(name).change(ctx, func(rec *Record) bool {
		if changed = rec.Paused.IsZero(); changed {
			rec.Paused, rec.By = now, by
		}
		return changed
	})
	return changed, err
}

// Continue continues a paused schedule with its next time. changed is false if it was not paused.
func (r *Records) Continue(ctx context.Context, name string, now time.Time) (changed bool, err error) {
	err = r.record(name).change(ctx, func(rec *Record) bool {
		if changed = !rec.Paused.IsZero(); changed {
			rec.Paused, rec.By, rec.Since = time.Time{}, "", now
		}
		return changed
	})
	return changed, err
}

// find records that a server has found a schedule. A schedule that is new, or whose rule has changed, begins now.
func (r *Records) find(ctx context.Context, name, rule string, now time.Time) error {
	return r.record(name).change(ctx, func(rec *Record) bool {
		if rec.Rule == rule && !rec.Since.After(now) {
			return false
		}
		rec.Rule, rec.Since = rule, now
		return true
	})
}
