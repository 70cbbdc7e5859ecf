// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// waitIdle waits until a run has ended, is paused or asks a person, or until no process drives it. It calls report after
// an iteration, at most ten times a second. report may be nil.
func (s *Server) waitIdle(ctx context.Context, id string, report func(*loopProgress) error) error {
	leave, err := s.place(ctx)
	if err != nil {
		return err
	}
	defer leave()
	f, err := s.follow(ctx, id)
	if err != nil {
		return err
	}
	defer f.leave()
	return s.waitIdleOn(ctx, f, 0, report)
}

// waitIdleOn does what waitIdle does, for a caller that already has a place among the streams and the run's feed. known is the
// number of finished iterations that the caller knows of; waitIdleOn calls report only when there are more.
func (s *Server) waitIdleOn(ctx context.Context, f *feed, known int, report func(*loopProgress) error) error {
	ctx, cancel := context.WithCancel(ctx)
	idle := make(chan error, 1)
	go func() {
		_, err := s.runs.Supervisor.Wait(ctx, f.id)
		idle <- err
	}()
	defer func() { cancel(); <-idle }()
	last := loopProgress{iterations: known}
	for {
		_, _, changed, _, err := f.take(math.MaxInt64)
		if err != nil {
			return err
		}
		var soon <-chan time.Time
		if report == nil {
			changed = nil
		} else if now := f.loopProgress(); now.iterations > last.iterations {
			if last = now; report(&now) != nil {
				report = nil // the client has left; its ctx ends too
			}
			changed, soon = nil, time.After(snapshotEvery)
		}
		select {
		case <-changed:
		case <-soon:
		case err := <-idle:
			idle <- nil // for the receive in the deferred function
			if err != nil && !errors.Is(err, supervisor.ErrInterrupted) {
				return err
			}
			if err := s.catchUp(ctx, f); err != nil {
				return err
			}
			if now := f.loopProgress(); report != nil && now.iterations > last.iterations {
				_ = report(&now)
			}
			return nil
		case <-s.closing:
			return supervisor.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// catchUp waits until the feed has read the event that is the last one in the store at the call.
func (s *Server) catchUp(ctx context.Context, f *feed) error {
	one, err := s.runs.Brief(ctx, f.id, 1)
	if err != nil {
		return err
	}
	for last := session.LastSeen(one); ; {
		f.mu.Lock()
		folded, changed, err := f.folded, f.changed, f.err
		f.mu.Unlock()
		if folded >= last || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-s.closing:
			return supervisor.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// loopProgress is the progress of the outermost loops of a run.
type loopProgress struct {
	iterations int      // how many iterations have ended, in all of these loops
	most       int      // the loop's limit of iterations if the run's root agent is a loop with a limit; otherwise 0
	iteration  int      // the number of the last iteration that ended, in the last of these loops
	score      *float64 // the score of that iteration; nil if it has none
	message    string   // the progress of that loop as a text
}

// loopProgress returns the progress of the outermost loops.
func (f *feed) loopProgress() (p loopProgress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tree := f.live.Tree()
	for step := range tree.Loops() {
		if strings.Contains(string(step.Address), "[") || step.Loop.Plan == nil {
			continue
		}
		ended := 0
		for _, it := range step.Loop.Iterations {
			if it.Record != nil {
				ended = it.Number
				p.iterations++
				p.iteration, p.score = it.Number, it.Record.Score
			}
		}
		if step == tree.Root {
			p.most = int(min(step.Loop.Plan.MaxIterations, 1<<30))
		}
		if ended > 0 {
			p.message = progressText(prose.SentenceOf(step.Loop, tree.Now), ended)
		}
	}
	return p
}

// progressText returns the progress of a loop as a text, such as "iteration 3 of 10, best 7.2".
func progressText(s prose.Sentence, ended int) string {
	text := "iteration " + strconv.Itoa(ended)
	if s.Limit > 0 {
		text += " of " + strconv.Itoa(s.Limit)
	}
	if s.Best != nil {
		text += ", best " + brief.Score(*s.Best)
	}
	return text
}
