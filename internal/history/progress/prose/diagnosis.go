// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Finding is an observation about a loop that its author may want to act on.
type Finding struct {
	// Code is the kind of finding, for programs: see the constants.
	Code FindingCode `json:"code"`
	// Loop is the loop's address.
	Loop session.Address `json:"loop"`
	// Title names the problem in a few words, Evidence gives the iterations and numbers that show
	// it, and Suggestion says what to change.
	Title      string `json:"title"`
	Evidence   string `json:"evidence"`
	Suggestion string `json:"suggestion"`
	// Add is the suggestion as changes of the definition, for programs; nil if a person has to decide what to write.
	Add []Fix `json:"add,omitzero"`
}

// FindingCode is a kind of [Finding].
type FindingCode string

// The kinds of findings.
const (
	FindingNeverDone  FindingCode = "never_done"       // a limit ended it, no criterion ever held
	FindingSlow       FindingCode = "slow_convergence" // many iterations, little improvement
	FindingRegression FindingCode = "regression"       // the score fell
	FindingTimeouts   FindingCode = "timeouts"         // steps or iterations often ran out of time
	FindingRefused    FindingCode = "exit_refused"     // somebody without permission wanted to leave
	FindingNoise      FindingCode = "noisy_judge"      // the judge varies more than the scores do
	FindingCircles    FindingCode = "going_in_circles" // the same results again
	FindingContext    FindingCode = "context_growth"   // every iteration sends more than the one before
	FindingFailures   FindingCode = "failures"         // most steps failed
	FindingExitWords  FindingCode = "exit_in_words"    // somebody wrote exit_loop() and did not call it
	FindingDoubtful   FindingCode = "doubtful_score"   // facts speak against the score: see loop.Finding
)

// String returns the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s. %s.", f.Title, f.Evidence, f.Suggestion)
}

// Diagnosis looks for problems in a run's events, loop by loop. The zero value is ready to use. The
// run has to be durable.
type Diagnosis struct {
	loops []*history
}

// history has the facts about one loop.
type history struct {
	at      session.Address
	plan    loop.Plan // the last one; without fields if the log does not have it
	records []iterationFacts
	stop    *loop.StopRecord
	input   []int64 // input tokens, by iteration from 1
	late    []string
	longest map[string]float64 // seconds of a step's longest run
	runs    int                // finished steps; one that was tried again is one
	fell    int                // of them, failed at last
	failed  session.Address    // the step that has failed just now, "" if it did not
	wrote   []string           // who has written exit_loop() in words, once for each time
	models  []string           // the agents that ask models, in the order of their first answers
}

// iterationFacts has what the findings need of an iteration's record. A log may have very many.
type iterationFacts struct {
	score, delta, noise, off             float64 // off is the standard error of the score
	number, samples                      int32
	scored, compared, unscored, rejected bool // compared: it has a delta
	doubts                               []loop.Finding
}

func factsOf(it *loop.IterationRecord) iterationFacts {
	f := iterationFacts{noise: it.Noise, off: it.Error, number: int32(it.Number), samples: int32(it.Samples), unscored: it.Unscored != "",
		rejected: it.Rejected != "", doubts: it.Findings}
	if it.Score != nil {
		f.score, f.scored = *it.Score, true
	}
	if it.Delta != nil {
		f.delta, f.compared = *it.Delta, true
	}
	return f
}

// Add takes the next event of the run.
func (d *Diagnosis) Add(ev *session.Event) {
	if ev.UsageMetadata != nil && !ev.Partial {
		if h := d.around(ev.Address); h != nil && ev.Iteration > 0 {
			for len(h.input) <= ev.Iteration {
				h.input = append(h.input, 0)
			}
			in, _, _ := model.Tokens(ev.UsageMetadata)
			h.input[ev.Iteration] += in
			if name := ev.Address.Agent(); !slices.Contains(h.models, name) {
				h.models = append(h.models, name)
			}
		}
	}
	if ev.Mark == nil {
		return
	}
	switch ev.Mark.Kind {
	case mark.KindLoopStarted:
		var plan loop.Plan
		if ev.Mark.Decode(&plan) == nil {
			d.loop(ev.Address).plan = plan
		}
	case mark.KindStepFinished:
		d.finished(ev)
	case mark.KindIterationFinished:
		h := d.loop(ev.Address)
		var it loop.IterationRecord
		if ev.Mark.Decode(&it) == nil {
			h.records = append(h.records, factsOf(&it))
		}
	case mark.KindLoopStopped:
		h := d.loop(ev.Address)
		if rec := new(loop.StopRecord); ev.Mark.Decode(rec) == nil {
			h.stop = rec
		}
	}
}

func (d *Diagnosis) finished(ev *session.Event) {
	h := d.around(ev.Address)
	if h == nil || ev.Address.Parent() != h.at {
		return
	}
	var fin mark.StepFinished
	if ev.Mark.Decode(&fin) != nil {
		return
	}
	name := ev.Address.Agent()
	if h.failed == ev.Address { // that was not its last attempt
		h.fell--
	} else {
		h.runs++
	}
	h.failed = ""
	if fin.Error != "" {
		h.fell++
		h.failed = ev.Address
	}
	var o struct {
		ExitWords bool `json:"exit_words"`
	}
	// Few marks have the field, so most are not decoded.
	if bytes.Contains(fin.Outcome, []byte("exit_words")) && json.Unmarshal(fin.Outcome, &o) == nil && o.ExitWords {
		h.wrote = append(h.wrote, name)
	}
	if fin.Timeout {
		h.late = append(h.late, name)
	}
	if h.longest == nil {
		h.longest = make(map[string]float64)
	}
	h.longest[name] = max(h.longest[name], fin.Seconds)
}

// around returns the nearest loop that contains an address; nil if none does.
func (d *Diagnosis) around(at session.Address) *history {
	i := strings.LastIndexByte(string(at), '[')
	if i < 0 {
		return nil
	}
	return d.loop(at[:i])
}

// loop returns the history of a loop. A loop that runs again starts a new one.
func (d *Diagnosis) loop(at session.Address) *history {
	for _, h := range slices.Backward(d.loops) {
		if h.at == at {
			if h.stop == nil {
				return h
			}
			break
		}
	}
	h := &history{at: at}
	d.loops = append(d.loops, h)
	return h
}

// Findings returns the findings about the loops that have stopped, in English, the most serious of
// each loop first.
func (d *Diagnosis) Findings() []Finding { return d.FindingsIn(English) }

// FindingsIn returns the findings in words of a language. Names, fields and the value of a Fix are those of the
// definition.
func (d *Diagnosis) FindingsIn(lang Language) []Finding {
	var all []Finding
	for _, h := range d.loops {
		if h.stop == nil {
			continue
		}
		for _, rule := range []func(*history, Language) (Finding, bool){
			failures, doubtful, neverDone, timeouts, regression, noise, circles, refusals, exitInWords, slow, contextGrowth,
		} {
			if f, ok := rule(h, lang); ok {
				f.Loop = h.at
				all = append(all, f)
			}
		}
	}
	return all
}

// set returns a fix that sets a field of the loop.
func (h *history) set(field, value string) []Fix {
	return []Fix{{Agent: h.at.Agent(), Field: field, Value: value}}
}

// tell returns a fix that adds a line to the instructions of an agent; nil if the agent asks no model.
func (h *history) tell(agent, line string) []Fix {
	if !slices.Contains(h.models, agent) {
		return nil
	}
	return []Fix{{Agent: agent, Field: "instructions", Value: line, Append: true}}
}

// condition returns a condition of the loop's stop record.
func (h *history) condition(name string) (loop.ConditionRecord, bool) {
	for _, c := range h.stop.Conditions {
		if c.Name == name {
			return c, true
		}
	}
	return loop.ConditionRecord{}, false
}

// loopLimit returns the time limit of the loop that ended a step which has no limit of its own; "" if it has one.
func (h *history) loopLimit(step string) (field string, limit time.Duration) {
	i := slices.IndexFunc(h.plan.Steps, func(s loop.Step) bool { return s.Name == step })
	switch {
	case i < 0 || h.plan.Steps[i].Timeout > 0 || h.plan.Steps[i].AdaptiveTimeout != nil:
		return "", 0
	case h.plan.IterationTimeout > 0:
		return "iteration_timeout", time.Duration(h.plan.IterationTimeout)
	}
	return "timeout", time.Duration(h.plan.Timeout)
}

// criterion reports whether the loop has a criterion besides its limits.
func (h *history) criterion() bool {
	for _, name := range []string{"target", "dimension_target", "converged", "stop_when", "not_worth"} {
		if _, has := h.condition(name); has {
			return true
		}
	}
	return h.plan.CanExit == nil || len(h.plan.CanExit) > 0
}

// scored reports whether the loop has a score, even if no iteration could read it.
func (h *history) scored() bool {
	return slices.ContainsFunc(h.records, func(it iterationFacts) bool { return it.scored || it.unscored })
}

// scores returns the scores of the iterations that have one.
func (h *history) scores() []float64 {
	var scores []float64
	for _, it := range h.records {
		if it.scored {
			scores = append(scores, it.score)
		}
	}
	return scores
}

// target returns the score that the loop should reach.
func (h *history) target() (target float64, lower, ok bool) {
	s := h.plan.Score
	if s == nil || s.Target == nil {
		return 0, s != nil && s.LowerIsBetter, false
	}
	return *s.Target, s.LowerIsBetter, true
}

var errNoScores = errors.New("no scores")

// forecast predicts the scores from the last one up to the target.
func (h *history) forecast() (loop.Forecast, error) {
	target, lower, ok := h.target()
	scores := h.scores()
	if !ok || len(scores) == 0 {
		return loop.Forecast{}, errNoScores
	}
	p := loop.Plan{Score: &loop.Score{Key: "score", Target: &target, LowerIsBetter: lower}}
	return p.Forecast(&loop.Tally{Scores: scores, Complete: len(h.records), Iteration: len(h.records)}), nil
}
