// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// Checkpoint is a place in a run. Set Iteration, First or Seq; the zero value is the place after the
// last iteration that an outermost loop finished.
//
// A place in a loop that has lost a race, after its last iteration before the decision, is the place of the decision.
// There the fork decides the race for that loop, which hands on its state and files, and continues if the winner did
// or could. After a fork at an earlier place the loops race again.
type Checkpoint struct {
	// Iteration is the place after that iteration, counted from 1, of the last outermost loop, or
	// of the loop at the address Loop. First is the place before the first iteration.
	Iteration int
	First     bool
	Loop      session.Address
	// Seq is the place after the event with that sequence number.
	Seq int64
}

// Fork copies a run up to a checkpoint into a new run, and returns the new ID. The new run is
// paused until Resume. It has the same events, with the same numbers and times, and the artifacts
// that they name; its log ends with a mark, and its Parent names the run and the checkpoint. A call
// to the outside that began before the checkpoint keeps its ID; later calls get IDs that differ
// from those of the old run. The old run does not change. The new session is stored with all of its
// events or not at all: see [store.Start].
//
// Keys that sessions share (app:, user:) keep their present values. Errors to expect are
// [ErrNotFound] and [ErrNoCheckpoint], and a [*lease.HeldError] of a run that has ended and is being removed.
func (s *Supervisor) Fork(ctx context.Context, id string, at Checkpoint) (string, error) {
	return s.ForkIf(ctx, id, at, nil)
}

// ForkIf forks a run as [Supervisor.Fork] does, but first calls fits with the events up to the checkpoint. If fits
// returns an error, ForkIf stores nothing and returns an error that wraps it. A nil fits accepts all events.
func (s *Supervisor) ForkIf(ctx context.Context, id string, at Checkpoint, fits func([]*session.Event) error) (string, error) {
	view, run, err := s.get(ctx, id, false)
	if err != nil {
		return "", fmt.Errorf("fork run: %w", err)
	}
	seq, err := at.find(view, run.ID)
	if err != nil {
		return "", fmt.Errorf("fork run %q: %w", id, err)
	}
	decided, err := lostRace(view, run.ID, seq)
	if err != nil {
		return "", fmt.Errorf("fork run %q: %w", id, err)
	}
	if decided != nil {
		seq = decided.Seq - 1
	}
	for {
		fork := NewID()
		switch err := s.copy(ctx, view, run, fork, seq, decided, fits); {
		case err == nil:
			return fork, nil
		case !errors.Is(err, session.ErrExists):
			return "", fmt.Errorf("fork run %q: %w", id, err)
		}
	}
}

// find returns the sequence number of the last event before the checkpoint.
func (at Checkpoint) find(view *session.View, id string) (int64, error) {
	if at.Seq != 0 {
		began := int64(0)
		for ev := range view.Log().Outline() {
			if ev.InvocationID == id {
				began = ev.Seq
				break
			}
		}
		if began == 0 || at.Seq < began || at.Seq > view.LastSeq() {
			return 0, fmt.Errorf("%w: event %d; the run's are from %d to %d", ErrNoCheckpoint, at.Seq, began,
				view.LastSeq())
		}
		return at.Seq, view.Err()
	}
	var found, last, began int64
	n := 0
	for ev := range currentMarks(view, id, mark.KindLoopStarted, mark.KindIterationFinished) {
		if at.Loop == "" && ev.Iteration != 0 || at.Loop != "" && ev.Address != at.Loop {
			continue
		}
		if ev.Mark.Kind == mark.KindLoopStarted {
			began = ev.Seq
			continue
		}
		var it loop.IterationRecord
		if err := ev.Mark.Decode(&it); err != nil {
			return 0, err
		}
		n, last = it.Number, ev.Seq
		if it.Number == at.Iteration {
			found = ev.Seq
		}
	}
	switch {
	case view.Err() != nil:
		return 0, view.Err()
	case at.First && began == 0:
		return 0, fmt.Errorf("%w: no loop has begun; name an event instead", ErrNoCheckpoint)
	case at.First:
		return began, nil
	case last == 0:
		return 0, fmt.Errorf("%w: no loop has finished an iteration; name an event instead", ErrNoCheckpoint)
	case at.Iteration == 0:
		return last, nil
	case found == 0:
		return 0, fmt.Errorf("%w: iteration %d; the last one that was finished is %d", ErrNoCheckpoint, at.Iteration, n)
	}
	return found, nil
}

// copy creates the session of a fork with the events up to seq and their files. If decided is not nil, copy appends this
// decision of a race to the copied events. It fails with session.ErrExists if the session exists.
func (s *Supervisor) copy(ctx context.Context, from *session.View, run *mark.Run, fork string, seq int64,
	decided *session.Event, fits func([]*session.Event) error) error {
	files := make(map[string]int64)
	log := logCopier{from: from.ID()}
	for ev := range from.Log().All() {
		if ev.Seq > seq {
			break
		}
		for name, version := range ev.Actions.ArtifactDelta {
			files[name] = max(files[name], version)
		}
		if err := log.add(ev); err != nil {
			return err
		}
	}
	if err := from.Err(); err != nil {
		return err
	}
	reason := fmt.Sprintf("forked from %s after event %d", from.ID(), seq)
	if decided != nil {
		log.copied = append(log.copied, decided)
		reason += ", with another loop as the winner of the race"
	}
	if fits != nil {
		if err := fits(log.copied); err != nil {
			return err
		}
	}
	if err := s.copyFiles(ctx, from.ID(), fork, files); err != nil {
		return err
	}
	parent := mark.RunParent{SessionID: from.ID(), Seq: seq}
	ev, err := session.NewRunEvent(mark.Run{
		ID: run.ID, Name: run.Name, Input: run.Input, Status: mark.RunIsPaused, Started: time.Now(), Parent: &parent,
	}, "refrain", mark.KindRunPaused, mark.RunPaused{
		By: s.asker(ctx), Reason: reason, Session: fork,
	})
	if err != nil {
		return err
	}
	if _, err = store.Start(ctx, s.cfg.Service, &session.StartRequest{
		CreateRequest: session.CreateRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID, SessionID: fork},
		Events:        append(log.copied, ev),
	}); err != nil {
		return err
	}
	if err := s.remains(ctx, from.ID()); err != nil {
		return errors.Join(err, s.undo(context.WithoutCancel(ctx), fork, files))
	}
	return nil
}

// removalWait is how long a fork waits until another process that holds the lease of the run has removed it or has let it be.
const removalWait = 10 * time.Second

// remains returns an error if a run is gone or may be removed by a process that has not seen its new fork. Such a process holds the lease
// of the run, which has ended, and then looks for forks.
func (s *Supervisor) remains(ctx context.Context, id string) error {
	for end := time.Now().Add(removalWait); ; {
		_, run, err := s.get(ctx, id, true)
		if err != nil || !run.Status.IsFinal() {
			return err
		}
		held, err := s.leaser.Holder(ctx, s.key(id))
		switch {
		case errors.Is(err, session.ErrNotFound):
			return fmt.Errorf("%w: %q", ErrNotFound, id)
		case err != nil || held == nil:
			return err
		case time.Now().After(end):
			return held
		}
		if err := sleep.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// undo removes a new fork with the files that were copied for it.
func (s *Supervisor) undo(ctx context.Context, fork string, files map[string]int64) error {
	err := s.cfg.Service.Delete(ctx, &session.DeleteRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID, SessionID: fork})
	for name := range files {
		if s.cfg.ArtifactService != nil && !strings.HasPrefix(name, artifact.KeyPrefixUser) {
			err = errors.Join(err, s.cfg.ArtifactService.Delete(ctx, &artifact.DeleteRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID,
				SessionID: fork, FileName: name}))
		}
	}
	return err
}

// copyFiles copies files of a session to another session. files has for each name the last version to copy. It skips
// files of the user, which sessions share.
func (s *Supervisor) copyFiles(ctx context.Context, from, to string, files map[string]int64) error {
	service := s.cfg.ArtifactService
	if service == nil {
		return nil
	}
	for name, last := range files {
		if strings.HasPrefix(name, artifact.KeyPrefixUser) {
			continue
		}
		got, err := service.Versions(ctx, &artifact.VersionsRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID,
			SessionID: from, FileName: name})
		if errors.Is(err, artifact.ErrNotFound) {
			continue // the file was deleted
		}
		if err != nil {
			return err
		}
		for _, v := range got.Versions {
			if v > last {
				continue
			}
			file, err := service.Load(ctx, &artifact.LoadRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID,
				SessionID: from, FileName: name, Version: v})
			if err != nil {
				return err
			}
			if _, err := service.Save(ctx, &artifact.SaveRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID,
				SessionID: to, FileName: name, Part: file.Part, Version: v}); err != nil {
				return err
			}
		}
	}
	return nil
}
