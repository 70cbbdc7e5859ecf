// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/values/canonical"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
)

// Recording is a run of the past that can be played again.
type Recording struct {
	ID string
	// Definition is the definition of the run.
	Definition *definition.Definition

	program *program.Program
	file    string // empty for a run of a store
	verify  func() (*runlog.Verified, error)
	before  []*session.Event // those of earlier runs of the session
	events  []*session.Event // those of the run that count
	message *genai.Content
	initial map[string]any  // the state of the session that no event has written
	given   map[string]any  // the state that the run was started with
	asks    map[string]bool // the agents whose answers and outcomes come from the log, and whether they ask a model
	items   []*item         // in the order of the log
	end     *ending
}

// item is an answer of a model, with the answers of the tools that it calls, or the outcome of a step that asks no model.
type item struct {
	seq     int64 // that of its last event
	at      session.Address
	answers []*session.Event
	tools   []*session.Event // their answers
	fails   int              // requests that failed before the answer
	causes  []cause          // why they failed
	err     error            // in place of an answer, or after an outcome
	outcome bool             // the answers are events of a step that asks no model
	cut     bool             // the step was cut off, because a step around it has ended
}

// acts reports whether the outcome of an agent comes from the log: it asks no model, and does more than to compute.
func acts(a *definition.Agent) bool {
	return a.LLM == nil && !a.Type.Workflow() && a.Type != definition.TypeExpression && a.Type != definition.TypeTemplate
}

// cause is why a request failed.
type cause struct {
	Status int    `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
}

// Read reads the last run in a log, which must be over. code has the Go code that its definition names. Read does not verify
// the log; [Recording.Replay] does, and reads it again for that.
func Read(run *runlog.Run, code *program.Code) (*Recording, error) {
	rec := &Recording{ID: run.ID, verify: run.Verified, asks: make(map[string]bool)}
	last, sum := run.Last(), run.Summary()
	for ev := range run.Current() {
		rec.events = append(rec.events, run.Wholes.Of(ev))
	}
	for ev := range run.Events() {
		if last != nil && ev.InvocationID != last.InvocationID {
			rec.before = append(rec.before, ev)
		}
	}
	if err := run.Err(); err != nil {
		return nil, err
	}
	if sum.Status != mark.RunCompleted && sum.Status != mark.RunFailed {
		return nil, fmt.Errorf("the run has not come to its end: it is %s", sum.Status)
	}
	if run.File != nil && run.File.Name != "-" {
		rec.file = run.File.Name
	}
	started, err := rec.begin(run.Initial)
	if err != nil {
		return nil, err
	}
	if rec.program, err = program.Decode(started); err != nil {
		return nil, err
	}
	if rec.Definition, err = rec.program.DefinitionFor(code); err != nil {
		return nil, err
	}
	for a := range rec.Definition.Root.All {
		if a.LLM != nil || acts(a) {
			rec.asks[a.Name] = a.LLM != nil
		}
	}
	if err := rec.read(); err != nil {
		return nil, err
	}
	state := run.StateAfter(last.Seq)
	maps.DeleteFunc(state, func(key string, _ any) bool { return !statekey.Own(key) })
	_, began := rec.Start(rec.Definition)
	rec.end, err = endingOf(rec.events, began, state, rec.asks)
	if err == nil {
		err = run.Err()
	}
	if rec.end != nil && sum.Status == mark.RunFailed {
		rec.end.failed, rec.end.err = true, sum.Error
	}
	return rec, err
}

// begin reads with what the run was started.
func (rec *Recording) begin(initial map[string]any) (started mark.RunStarted, err error) {
	rec.initial, rec.given = own(initial), make(map[string]any)
	for _, ev := range rec.events {
		switch {
		case ev.Mark == nil:
		case ev.Mark.Kind == mark.KindRunStarted:
			rec.message = ev.Content
			rec.given = own(ev.Actions.StateDelta)
			err = ev.Mark.Decode(&started)
		case ev.Mark.Kind == mark.KindRunTaken:
			var t mark.RunTaken
			if err = ev.Mark.Decode(&t); err == nil && t.Program != nil {
				started.Program = t.Program
			}
		}
		if err != nil {
			return started, err
		}
	}
	return started, nil
}

// own returns the values of a state that belong to the session alone.
func own(state map[string]any) map[string]any {
	all := make(map[string]any, len(state))
	for key, v := range state {
		if statekey.Own(key) {
			all[key] = v
		}
	}
	return all
}

// read finds the answers and the outcomes.
func (rec *Recording) read() error {
	steps := make(map[session.Address]*step)
	for _, ev := range rec.events {
		if ev.Address == "" || ev.Partial {
			continue
		}
		if ev.Mark == nil {
			if s := rec.stepOf(steps, ev.Address); s != nil {
				s.add(ev)
			}
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindStepStarted:
			if asks, known := rec.asks[ev.Address.Agent()]; known && rec.stepOf(steps, ev.Address) == nil {
				steps[ev.Address] = &step{at: ev.Address, asks: asks}
			}
		case mark.KindStepFinished:
			s := steps[ev.Address]
			if s == nil {
				continue
			}
			var fin mark.StepFinished
			if err := ev.Mark.Decode(&fin); err != nil {
				return err
			}
			if s.end(ev.Seq, &fin); !isRefused(&fin) {
				rec.items = append(rec.items, s.items...)
			}
			delete(steps, ev.Address)
		}
	}
	slices.SortStableFunc(rec.items, func(a, b *item) int { return int(a.seq - b.seq) })
	return nil
}

// stepOf returns the step to which an event at an address belongs: that of the address, or a Go agent around it.
func (rec *Recording) stepOf(steps map[session.Address]*step, at session.Address) *step {
	if s := steps[at]; s != nil {
		return s
	}
	for under := string(at); ; {
		i := strings.LastIndexByte(under, '/')
		if i < 0 {
			return nil
		}
		under = under[:i]
		if s := steps[session.Address(under)]; s != nil && rec.is(s.at.Agent(), definition.TypeFunc) {
			return s
		}
	}
}

func (rec *Recording) is(name string, t definition.Type) bool {
	for a := range rec.Definition.Root.All {
		if a.Name == name {
			return a.Type == t
		}
	}
	return false
}

// step collects the items of a step.
type step struct {
	at    session.Address
	asks  bool
	items []*item
}

// add adds an event without a mark.
func (s *step) add(ev *session.Event) {
	if !s.asks {
		if len(s.items) == 0 {
			s.items = append(s.items, &item{at: s.at, outcome: true})
		}
		s.items[0].answers = append(s.items[0].answers, ev)
		return
	}
	last := len(s.items) - 1
	switch {
	case ev.Content != nil && ev.Content.Role == genai.RoleUser || !drive.Answers(ev) && last >= 0 && len(s.items[last].tools) > 0:
		if last >= 0 { // the second is an answer that a tool has taken down
			s.items[last].tools = append(s.items[last].tools, ev)
		}
	case last >= 0 && ev.CustomMetadata["refrain:further"] == true:
		s.items[last].answers, s.items[last].seq = append(s.items[last].answers, ev), ev.Seq
	case ev.Content != nil || ev.UsageMetadata != nil || ev.ErrorCode != "":
		x := &item{at: s.at, seq: ev.Seq, answers: []*session.Event{ev}}
		x.fails, x.causes = failuresIn(ev)
		s.items = append(s.items, x)
	}
}

// end adds how the step ended.
func (s *step) end(seq int64, fin *mark.StepFinished) {
	if !s.asks {
		if len(s.items) == 0 {
			s.items = append(s.items, &item{at: s.at, outcome: true})
		}
		x := s.items[0]
		if n := len(x.answers); n > 0 { // histories have its events: the order of these counts
			seq = x.answers[n-1].Seq
		}
		x.seq, x.err, x.cut = seq, causeOf(fin), fin.Canceled
		return
	}
	switch fin.Kind {
	case mark.FailureBudget, mark.FailurePrice, mark.FailureModelCalls, mark.FailureState, mark.FailureLog:
		return // no model was asked
	}
	last := len(s.items) - 1
	if open := last < 0 || len(s.items[last].tools) > 0; fin.Error == "" || !open && !strings.Contains(fin.Error, asking) {
		return
	}
	var used budget.Usage
	if fin.Usage != nil && json.Unmarshal(fin.Usage, &used) != nil {
		return
	}
	for _, x := range s.items {
		used.Calls -= int64(1 + x.fails)
	}
	s.items = append(s.items, &item{at: s.at, seq: seq, fails: int(max(0, used.Calls-1)), err: causeOf(fin), cut: fin.Canceled})
}

// isRefused reports whether the loop has not run the step, because its circuit was open.
func isRefused(fin *mark.StepFinished) bool {
	rec, ok := errors.AsType[*drive.RecordedError](drive.ErrorOf(fin))
	return ok && rec.LoopKind() == loop.CircuitOpen
}

// asking begins the error of a request.
const asking = "ask model "

// causeOf returns the error of a step as the step itself has given it.
func causeOf(fin *mark.StepFinished) error {
	if fin.Error == "" {
		return nil
	}
	own := *fin
	if at := session.Address(fin.At); at != "" {
		if _, text, ok := strings.Cut(own.Error, " ("+string(at)+"): "); ok {
			own.Error, own.At = text, ""
		}
	}
	if rest, ok := strings.CutPrefix(own.Error, asking); ok {
		if _, text, ok := strings.Cut(rest, ": "); ok { // the agent adds it again
			own.Error = text
		}
	}
	return drive.ErrorOf(&own)
}

// failuresIn returns how many requests failed before an answer, and why, as far as the log has that.
func failuresIn(ev *session.Event) (n int, causes []cause) {
	data, err := json.Marshal(ev.CustomMetadata[llmagent.MetadataRetry])
	var meta struct {
		Attempts float64
		Errors   []cause
	}
	if err != nil || json.Unmarshal(data, &meta) != nil {
		return 0, nil
	}
	return max(0, int(meta.Attempts)-1), meta.Errors
}

// calls returns the calls of an answer.
func (x *item) calls() (all []*genai.FunctionCall) {
	for _, ev := range x.answers {
		if ev.Content == nil || x.outcome {
			continue
		}
		for _, p := range ev.Content.Parts {
			if p != nil && p.FunctionCall != nil {
				all = append(all, p.FunctionCall)
			}
		}
	}
	return all
}

// ends reports whether the agent itself carries out a call.
func ends(name string) bool {
	switch name {
	case exitlooptool.Name, exitlooptool.Alias, "transfer_to_agent", "set_model_response":
		return true
	}
	return false
}

// File returns the name of the definition's file.
func (rec *Recording) File() string { return rec.program.File }

// Start returns what a run of a definition is asked, and the state that it gets, if a person or a client gives what the recorded
// run was given. What the recorded definition gave by itself comes from def: the query, the state and the defaults of inputs.
func (rec *Recording) Start(def *definition.Definition) (*genai.Content, map[string]any) {
	message := rec.message
	if message == nil || len(message.Parts) == 1 && reflect.DeepEqual(message.Parts[0], &genai.Part{Text: rec.Definition.Query}) {
		message = genai.NewContentFromText(def.Query, genai.RoleUser)
	}
	was, _ := rec.Definition.InitialState(nil) // without the required inputs, which the error names
	is, _ := def.InitialState(nil)
	for _, in := range def.Inputs {
		// The path of a file beside the definition has the folder of the definition, which may be another one.
		same := func(o definition.Input) bool { return o.Name == in.Name && canonical.Same(o.Default, in.Default) }
		if in.Type == definition.InputPath && slices.ContainsFunc(rec.Definition.Inputs, same) {
			delete(was, in.Name)
			delete(is, in.Name)
		}
	}
	for key := range was {
		if _, ok := rec.given[key]; !ok { // the session had it before
			delete(is, key)
		}
	}
	maps.Copy(is, rec.initial)
	for key, v := range rec.given {
		if own, ok := was[key]; !ok || !canonical.Same(v, own) {
			is[key] = v
		}
	}
	return message, is
}
