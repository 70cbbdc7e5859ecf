// SPDX-License-Identifier: Apache-2.0

// Package progress computes from a run's events what people want to know: how far the run is, what
// it says, and why it stopped.
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
// It learns about steps and loops from marks, so the runner has to be durable.
package progress

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/history/stops"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Fold computes the answer and the stop records of a run from its events. The zero
// value is ready to use.
type Fold struct {
	// Owned says that a supervisor records the status of the run as a whole. Then a loop that was cut off counts as
	// stopped when the run has ended, not when it is paused. A [mark.KindRunStarted] has the same effect.
	Owned bool
	// Whole reads an event of an outline in full; nil means that events are complete.
	Whole Whole

	answer *session.Event // that says it; nil: nothing was said
	stops  stops.Fold
	steps  []runningStep
	clock  clock
	began  map[session.Address]time.Duration // the iteration that each loop is in, on the clock
	warned string                            // what a step was warned of last
	task   *Task                             // of the running iteration; nil without a plan
	tasks  *Tasks

	cut []cutOff

	said map[session.Address]*words // by outermost loop
}

type runningStep struct {
	address   session.Address
	iteration int
}

// Add takes the next event of the run and returns the lines that report it.
func (f *Fold) Add(ev *session.Event) []string {
	now := f.clock.tick(ev)
	if ev.Author != "user" && !ev.Partial && ev.Speaks() && wordsFor(ev) != "" {
		f.answer = session.Answer(f.answer, ev)
		f.hear(ev)
	}
	if ev.Mark == nil {
		return slices.Concat(f.plan(ev), f.warning(ev), exitLines(ev))
	}
	switch ev.Mark.Kind {
	case mark.KindStepStarted:
		f.begin(ev, now)
	case mark.KindStepFinished:
		return f.finish(ev)
	case mark.KindLimited:
		var w mark.Limited
		if ev.Mark.Decode(&w) == nil {
			return []string{indent(ev) + ev.Address.Agent() + " " + Waits(w.Until, ev.Timestamp)}
		}
	case mark.KindIterationFinished:
		return f.iteration(ev, now)
	case mark.KindHinted:
		var m mark.Hinted
		if ev.Mark.Decode(&m) == nil {
			return []string{indent(ev) + prefix(ev) + fmt.Sprintf("Iteration %d is told: ", m.Iteration) + HintsText(m.Hints)}
		}
	case mark.KindRolledBack:
		return f.rolledBack(ev)
	case mark.KindLegStarted:
		return f.legStarted(ev)
	case mark.KindRaceDecided:
		var d mark.RaceDecided
		if err := ev.Mark.Decode(&d); err != nil {
			return []string{err.Error()}
		}
		f.stops.Race(ev, &d)
		return []string{indent(ev) + prefix(ev) + RaceText(&d)}
	case mark.KindLoopStopped:
		return f.stopped(ev)
	case mark.KindRunStarted:
		f.Owned = true
	case mark.KindRunPaused:
		f.paused()
	case mark.KindRunResumed:
		f.cut = nil
	case mark.KindRunEnded:
		return f.ended()
	}
	return nil
}

// Answer returns the run's result: that of its last outermost loop, or the text of an agent after it. Before the run
// ends, it returns the latest text outside branches; see [session.Answer].
func (f *Fold) Answer() string {
	if f.answer == nil {
		return ""
	}
	return wordsFor(f.Whole.Of(f.answer))
}

// Stop returns the stop record of the run's last outermost loop; nil if none has stopped. A loop
// that is paused, or waits for a person, has not stopped. A loop that has lost a race does not count.
func (f *Fold) Stop() *loop.StopRecord { return f.stops.Last() }

// Stops returns the stop records of the outermost loops, in the order in which they stopped, without the loops that have
// lost a race.
func (f *Fold) Stops() []*loop.StopRecord { return f.stops.All() }

// Tasks returns how far the run is with the tasks of its plan; nil without a plan, and before something is known about a task.
func (f *Fold) Tasks() *Tasks { return f.tasks }

// plan takes what a step of a plan has chosen or decided.
func (f *Fold) plan(ev *session.Event) (lines []string) {
	if t := taskIn(ev); t != nil {
		f.task = t
		lines = []string{indent(ev) + fmt.Sprintf("Iteration %d works on %s", ev.Iteration, brief.Line(t.Text(), lineText))}
	}
	if f.task != nil {
		f.task.decide(ev)
	}
	if t := tasksIn(ev); t != nil {
		f.tasks = t
	}
	return lines
}

// Running returns the address of the innermost running step and the iteration of its nearest loop,
// or 0 outside loops; the address is empty if no step is running.
func (f *Fold) Running() (at session.Address, iteration int) {
	if len(f.steps) == 0 {
		return "", 0
	}
	s := f.steps[len(f.steps)-1]
	return s.address, s.iteration
}

func (f *Fold) begin(ev *session.Event, now time.Duration) {
	f.steps = append(f.steps, runningStep{ev.Address, ev.Iteration})
	if ev.Iteration == 0 {
		return
	}
	if f.began == nil {
		f.began = make(map[session.Address]time.Duration)
	}
	loop := ev.Address.Parent()
	if _, ok := f.began[loop]; !ok {
		f.began[loop] = now
	}
}

func (f *Fold) finish(ev *session.Event) []string {
	for i := len(f.steps) - 1; i >= 0; i-- {
		if f.steps[i].address == ev.Address {
			f.steps = append(f.steps[:i], f.steps[i+1:]...)
			break
		}
	}
	// A timeout is not the failure of a deeper step, so At is empty. A step that was cut off has not failed; the
	// enclosing agent reports the cause.
	var fin mark.StepFinished
	if err := ev.Mark.Decode(&fin); err != nil || fin.Error == "" || fin.Canceled {
		return nil
	}
	own := fin.At == "" || session.Address(fin.At) == ev.Address
	switch {
	case fin.Again:
		line := fmt.Sprintf("%s%s: attempt %d failed and is followed by another", indent(ev), ev.Address.Agent(),
			max(1, ev.Attempt))
		if own {
			line += ": " + brief.Line(fin.Error, lineText)
		}
		return []string{line}
	case own:
		return []string{indent(ev) + "Failed: " + brief.Line(PlainError(fin.Error), lineText)}
	}
	return nil
}

func (f *Fold) iteration(ev *session.Event, now time.Duration) []string {
	var it loop.IterationRecord
	if err := ev.Mark.Decode(&it); err != nil {
		return []string{err.Error()}
	}
	if ev.Iteration == 0 {
		f.wordsOf(ev.Address).end(it)
	}
	before := indent(ev) + prefix(ev)
	line := before + it.String()
	if !it.Complete {
		line += " (cut short)"
	}
	if began, ok := f.began[ev.Address]; ok {
		if d := now - began; d >= time.Millisecond {
			line += "  " + brief.Clock(d)
		}
		delete(f.began, ev.Address)
	}
	if f.task != nil {
		line += "  " + brief.Line(f.task.Text(), lineText)
		f.task = nil
	}
	lines := []string{line}
	if it.Baseline != nil {
		lines = []string{before + "Before the first iteration: Score " + brief.Score(*it.Baseline), line}
	}
	if j := it.Rejudged; j != nil {
		about := "the start"
		if j.Iteration > 0 {
			about = fmt.Sprintf("iteration %d", j.Iteration)
		}
		line := before + fmt.Sprintf("The judge again about %s: %s; now %s of %s", about, brief.Score(j.Score), brief.Score(j.Mean),
			brief.Count(j.Answers, "answer"))
		lines = append([]string{line}, lines...)
	}
	if it.Unscored != "" {
		lines = append(lines, before+"No score: "+brief.Line(it.Unscored, lineText))
	}
	if it.Rejected != "" {
		lines = append(lines, before+"Not accepted: "+brief.Line(it.Rejected, lineText))
	}
	for _, found := range it.Findings {
		lines = append(lines, before+"Doubtful: "+brief.Line(found.Text, lineText))
	}
	if it.Warning != "" && it.Warning != f.warned {
		lines = append(lines, before+"Warning: "+brief.Line(it.Warning, lineText))
	}
	return lines
}

// warning returns a step's warning, such as that the state is close to its limit.
func (f *Fold) warning(ev *session.Event) []string {
	if ev.CustomMetadata == nil {
		return nil
	}
	text, _ := ev.CustomMetadata[mark.MetadataWarning].(string)
	if text == "" {
		return nil
	}
	f.warned = text
	return []string{indent(ev) + "Warning: " + ev.Address.Agent() + ": " + brief.Line(text, lineText)}
}

// rolledBack reports that an iteration was undone, and which state was restored.
func (f *Fold) rolledBack(ev *session.Event) []string {
	var back mark.RolledBack
	if err := ev.Mark.Decode(&back); err != nil {
		return []string{err.Error()}
	}
	return []string{indent(ev) + prefix(ev) + fmt.Sprintf("Undone: iteration %d; %s", back.Iteration, restoredText(back.To))}
}

// legStarted reports that the loop has converged and goes on in another way.
func (f *Fold) legStarted(ev *session.Event) []string {
	var leg mark.LegStarted
	if err := ev.Mark.Decode(&leg); err != nil {
		return []string{err.Error()}
	}
	return []string{
		indent(ev) + prefix(ev) + brief.Line(leg.Reason, lineText),
		indent(ev) + prefix(ev) + fmt.Sprintf("Leg %d: %s; %s", leg.Leg, brief.Line(leg.Does, lineText), restoredText(leg.To)),
	}
}

func restoredText(to int) string {
	if to > 0 {
		return fmt.Sprintf("the state is that of iteration %d", to)
	}
	return "the state is as before the first iteration"
}

func (f *Fold) stopped(ev *session.Event) []string {
	rec := new(loop.StopRecord)
	if err := ev.Mark.Decode(rec); err != nil {
		return []string{err.Error()}
	}
	delete(f.began, ev.Address)
	var lines []string
	for _, l := range stopLines(rec) {
		lines = append(lines, indent(ev)+prefix(ev)+l)
	}
	if rec.Reason == loop.ReasonCanceled && f.Owned {
		f.cut = append(f.cut, cutOff{ev, rec, lines})
		return nil
	}
	f.stop(ev, rec)
	return lines
}

func (f *Fold) stop(ev *session.Event, rec *loop.StopRecord) {
	if ev.Iteration != 0 {
		return
	}
	f.stops.Stop(ev, rec)
	if (rec.Reason == loop.ReasonCanceled || rec.Answer != "") && !f.stops.Lost(ev.Address) {
		f.hand(ev, rec)
	}
	delete(f.said, ev.Address)
}

// hand takes the result of a loop that does not yield it. Other loops repeat a result that is not the last text after
// their record.
func (f *Fold) hand(ev *session.Event, rec *loop.StopRecord) {
	if rec.Answer != "" {
		f.answer = &session.Event{LLMResponse: model.LLMResponse{Content: genai.NewContentFromText(rec.Answer, genai.RoleModel)}}
		return
	}
	if said := f.wordsOf(ev.Address).result(rec.Result.Source); said != nil {
		f.answer = said
	}
}

// cutOff is a loop that stopped because the run has ended or paused. The run's own mark says which.
type cutOff struct {
	ev    *session.Event
	rec   *loop.StopRecord
	lines []string
}

// ended takes the end of the run, after which loops that were cut off do not continue.
func (f *Fold) ended() (lines []string) {
	for _, c := range f.cut {
		f.stop(c.ev, c.rec)
		lines = append(lines, c.lines...)
	}
	f.cut = nil
	return lines
}

// paused takes the end of the run for now.
func (f *Fold) paused() {
	for _, c := range f.cut {
		if c.ev.Iteration == 0 {
			f.hand(c.ev, c.rec)
		}
	}
	f.cut = nil
}
