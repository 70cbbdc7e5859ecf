// SPDX-License-Identifier: Apache-2.0

// Package progress folds a run's events into what people want to know of it:
// how far it is, what it says, and why it stopped.
//
//	var f progress.Fold
//	for ev, err := range r.Run(ctx, userID, sessionID, msg, agent.RunConfig{}) {
//		if err != nil {
//			return err
//		}
//		for _, line := range f.Add(ev) {
//			fmt.Fprintln(os.Stderr, line)
//		}
//	}
//	fmt.Println(f.Answer())
//
// What it knows of steps and loops it reads off marks, so the runner has to be
// durable.
package progress

import (
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Fold is what the events added so far come to. The zero value is ready.
type Fold struct {
	answer string
	stops  []*loop.StopRecord
	steps  []runningStep
	began  map[session.Address]time.Time // the pass that each loop is in
	scored []loop.IterationRecord

	// What the iterations of the outermost loop said, for a loop that is cut
	// off before it can say its result again.
	cur, last, best string
}

type runningStep struct {
	address   session.Address
	iteration int
}

// Add takes the next event of the run and returns what there is to say about
// it, a line each.
func (f *Fold) Add(ev *session.Event) []string {
	if text := ev.Text(); text != "" && ev.Author != "user" && !ev.Partial {
		f.answer, f.cur = text, text
	}
	if ev.Mark == nil {
		return exitLines(ev)
	}
	switch ev.Mark.Kind {
	case session.MarkStepStarted:
		f.begin(ev)
	case session.MarkStepFinished:
		return f.finish(ev)
	case session.MarkIterationFinished:
		return f.iteration(ev)
	case session.MarkLoopStopped:
		return f.stopped(ev)
	}
	return nil
}

// Answer is what the run has said last: its result, once it is over.
func (f *Fold) Answer() string { return f.answer }

// Stop is why the last of the run's outermost loops stopped; nil if none has.
func (f *Fold) Stop() *loop.StopRecord {
	if len(f.stops) == 0 {
		return nil
	}
	return f.stops[len(f.stops)-1]
}

// Stops are the records of the loops that are in no other loop, in the order
// in which they stopped.
func (f *Fold) Stops() []*loop.StopRecord { return f.stops }

// Iterations are the records of the iterations of the outermost loops.
func (f *Fold) Iterations() []loop.IterationRecord { return f.scored }

// Running is the innermost step under way, with the iteration of its nearest
// loop, 0 if it is in none; the address is empty if no step is.
func (f *Fold) Running() (at session.Address, iteration int) {
	if len(f.steps) == 0 {
		return "", 0
	}
	s := f.steps[len(f.steps)-1]
	return s.address, s.iteration
}

func (f *Fold) begin(ev *session.Event) {
	f.steps = append(f.steps, runningStep{ev.Address, ev.Iteration})
	if ev.Iteration == 0 {
		return
	}
	if f.began == nil {
		f.began = make(map[session.Address]time.Time)
	}
	loop := ev.Address.Parent()
	if _, ok := f.began[loop]; !ok {
		f.began[loop] = ev.Timestamp
	}
}

func (f *Fold) finish(ev *session.Event) []string {
	for i := len(f.steps) - 1; i >= 0; i-- {
		if f.steps[i].address == ev.Address {
			f.steps = append(f.steps[:i], f.steps[i+1:]...)
			break
		}
	}
	var fin session.StepFinished
	if ev.Mark.Decode(&fin) != nil || fin.Error == "" || fin.At != ev.Address {
		return nil
	}
	return []string{indent(ev) + "Failed: " + oneLine(fin.Error)}
}

func (f *Fold) iteration(ev *session.Event) []string {
	var it loop.IterationRecord
	if err := ev.Mark.Decode(&it); err != nil {
		return []string{err.Error()}
	}
	if ev.Iteration == 0 {
		f.scored = append(f.scored, it)
		if it.Complete {
			f.last = f.cur
		}
		if it.Best {
			f.best = f.cur
		}
	}
	line := indent(ev) + prefix(ev) + it.String()
	if !it.Complete {
		line += " (cut short)"
	}
	if began, ok := f.began[ev.Address]; ok {
		if d := ev.Timestamp.Sub(began); d >= time.Millisecond {
			line += "  " + short(d)
		}
		delete(f.began, ev.Address)
	}
	return []string{line}
}

func (f *Fold) stopped(ev *session.Event) []string {
	rec := new(loop.StopRecord)
	if err := ev.Mark.Decode(rec); err != nil {
		return []string{err.Error()}
	}
	delete(f.began, ev.Address)
	var lines []string
	if rec.Reason == loop.ReasonConverged {
		lines = append(lines, indent(ev)+prefix(ev)+rec.Detail)
	}
	if ev.Iteration == 0 {
		f.stops = append(f.stops, rec)
		f.conclude(rec)
	}
	said := *rec
	if rec.Reason == loop.ReasonError {
		said.Detail = "" // the failed step has said it
	}
	return append(lines, indent(ev)+prefix(ev)+said.String())
}

// conclude takes the result of a loop that could not say it: one that was
// canceled or failed.
func (f *Fold) conclude(rec *loop.StopRecord) {
	if rec.Reason == loop.ReasonCanceled || rec.Reason == loop.ReasonError {
		switch rec.Result.Source {
		case loop.FromBest:
			f.answer = f.best
		case loop.FromLast:
			f.answer = f.last
		}
	}
	f.cur, f.last, f.best = "", "", ""
}
