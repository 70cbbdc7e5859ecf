// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// backtestMost is the most runs that one request can replay.
const backtestMost = 200

// backtest replays the recorded scores of runs with another stop policy, or with many values of one field of their plans. It
// runs no agent and calls no model.
func (s *Server) backtest(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		// Runs are the IDs of the runs. Loop is the address of the loop; "" means the last outermost loop.
		Runs []string `json:"runs"`
		Loop string   `json:"loop"`
		// Set has fields of the plan, such as score.target, with their new values; null removes a field.
		Set map[string]json.RawMessage `json:"set"`
		// Sweep is a field of the plan that gets many values in turn: see backtest.SweepFields.
		Sweep string `json:"sweep"`
		// Rules are the rules by which a judge's scores decide: "recorded", those of each run, or "today", the present ones.
		Rules string `json:"rules"`
	}
	if err := s.Read(w, r, &req); err != nil {
		return err
	}
	switch {
	case len(req.Runs) == 0 || len(req.Runs) > backtestMost:
		return problem.Bad("give 1 to %d runs", backtestMost)
	case len(req.Set) > 0 && req.Sweep != "" || len(req.Set) == 0 && req.Sweep == "" && req.Rules != rulesToday:
		return problem.Bad("give either set or sweep, or rules: today; sweep is one of %s", strings.Join(backtest.SweepFields(), ", "))
	}
	if err := checkRules(req.Rules); err != nil {
		return err
	}
	var recs []*backtest.Recording
	for _, id := range req.Runs {
		_, rec, err := s.readRecording(r.Context(), id, req.Loop)
		if err != nil {
			return err
		}
		if rec == nil {
			return problem.New(http.StatusNotFound, "loop_not_found", "The run has no such loop", "run %s, loop %q", id, req.Loop)
		}
		recs = append(recs, rec)
	}
	older := backtest.Older(recs)
	if req.Rules == rulesToday {
		recs = backtest.ByToday(recs)
	}
	if req.Sweep != "" {
		sweep, err := backtest.NewSweep(recs, req.Sweep)
		if err != nil {
			return problem.Bad("sweep: %v", err)
		}
		return s.Send(w, http.StatusOK, map[string]any{"runs": req.Runs, "sweep": sweep, "older": older})
	}
	change := func(p *loop.Plan) (*loop.Plan, error) {
		for _, path := range slices.Sorted(maps.Keys(req.Set)) {
			text := string(req.Set[path])
			var word string
			if json.Unmarshal(req.Set[path], &word) == nil && text != "null" {
				text = word
			}
			var err error
			if p, err = p.With(strings.TrimPrefix(path, "plan."), text); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	if _, err := change(recs[0].Plan); err != nil {
		return problem.Bad("set: %v", err)
	}
	balance, trials := backtest.Run(recs, change)
	return s.Send(w, http.StatusOK, map[string]any{"runs": req.Runs, "balance": balance, "trials": trials, "older": older})
}

// The rules by which a back-test decides about a judge's scores.
const (
	rulesRecorded = "recorded" // the rules that each run was made with; the default
	rulesToday    = "today"    // the rules of this version
)

// checkRules returns an error if a text does not name one of the rules. "" means the default.
func checkRules(rules string) error {
	if rules != "" && rules != rulesRecorded && rules != rulesToday {
		return problem.Bad("rules=%s: give recorded, the rules that each run was made by, or today", rules)
	}
	return nil
}

// readRecording reads the log of a run, and returns it with the recording of the loop at an address; nil if there is no such loop.
func (s *Server) readRecording(ctx context.Context, id, loop string) (*runlog.Run, *backtest.Recording, error) {
	run, err := runlog.Read(ctx, s.runs.Service, s.runs.Key(id))
	if err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", id, err)
	}
	all, err := backtest.Recordings(slices.Collect(run.Events()))
	if err == nil {
		err = run.Wholes.Err
	}
	return run, findRecording(all, loop), err
}

// findRecording returns the recording of the loop at an address; "" means the last outermost loop. It returns nil if there is none.
func findRecording(all []*backtest.Recording, address string) (found *backtest.Recording) {
	for _, rec := range all {
		if string(rec.Loop) == address || address == "" && !strings.Contains(string(rec.Loop), "[") {
			found = rec
		}
	}
	return found
}

// study is the content of the page of back-tests: where the last runs of a definition would have stopped with each value of
// one field of their plan.
type study struct {
	// Definitions lists the definitions that have completed runs with a score, by the names of their runs.
	Definitions []runStudy `json:"definitions"`
	// The other fields are set if the query names a definition. File is its name in the folder; File is "" if the folder no
	// longer has it. Agent is the name of the loop.
	Definition string `json:"definition,omitzero"`
	File       string `json:"file,omitzero"`
	Agent      string `json:"agent,omitzero"`
	// Fields lists the fields that can be varied, with the value that all runs have. Field is the one that is varied. Unit
	// is the unit of its numbers in the file, such as "s".
	Fields []studyField `json:"fields,omitzero"`
	Field  string       `json:"field,omitzero"`
	Unit   string       `json:"unit,omitzero"`
	Now    *float64     `json:"now,omitzero"`
	Levels []studyLevel `json:"levels,omitzero"`
	// Rules are the rules by which a judge's scores decide, recorded or today. Older counts the runs with earlier rules.
	Rules string `json:"rules"`
	Older int    `json:"older,omitzero"`
	// At is the index of the level that the runs had, or 0. Safe is the index of the level that saves most without losing a
	// known result; -1 means that there is none.
	At   int        `json:"at"`
	Safe int        `json:"safe"`
	Runs []studyRun `json:"runs,omitzero"`
}

// runStudy is a definition and the number of its runs.
type runStudy struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`
}

type studyField struct {
	Field string   `json:"field"`
	Now   *float64 `json:"now,omitzero"`
}

// studyLevel is one value of the field. Ends has, for each run, the index of its end in [studyRun].Ends.
type studyLevel struct {
	backtest.Level
	Ends []int `json:"ends"`
}

// studyRun is a run with all ends that it has at any level.
type studyRun struct {
	ID      string           `json:"id"`
	Message string           `json:"message,omitzero"`
	Target  *float64         `json:"target,omitzero"`
	Scores  []studyScore     `json:"scores"`
	Ends    []backtest.Trial `json:"ends"`
}

type studyScore struct {
	Score  *float64 `json:"score,omitzero"`
	Best   bool     `json:"best,omitzero"`
	Undone bool     `json:"undone,omitzero"`
}

// Limits of a study.
const (
	studyMost   = 50   // the most runs of the definition that are replayed
	studyWindow = 1000 // how many of the last runs of all definitions are searched for them
)

// study answers with a study of the last runs of the definition in the query.
func (s *Server) study(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	out := &study{Definitions: []runStudy{}, Definition: q.Get("definition"), Field: q.Get("field"),
		Rules: cmp.Or(q.Get("rules"), rulesRecorded), Safe: -1}
	if out.Field != "" && !slices.Contains(backtest.SweepFields(), out.Field) {
		return problem.Bad("field=%s: it cannot be moved", out.Field)
	}
	if err := checkRules(out.Rules); err != nil {
		return err
	}
	ids, err := s.scoredRuns(r, out)
	if err != nil {
		return err
	}
	var recs []*backtest.Recording
	for _, id := range ids {
		run, rec, err := s.readRecording(r.Context(), id, "")
		switch {
		case errors.Is(err, session.ErrNotFound):
			continue // the run was deleted meanwhile
		case err != nil:
			return err
		case rec == nil || rec.Stop == nil || rec.Plan.Score == nil:
			continue
		}
		if len(recs) == 0 {
			out.Agent = rec.Loop.Agent()
			if started, err := supervisor.StartedWith(run.View()); err == nil {
				out.File = s.definitionOf(&started)
			}
		}
		recs = append(recs, rec)
		out.Runs = append(out.Runs, newStudyRun(id, run, rec))
	}
	out.Older = backtest.Older(recs)
	if out.Rules == rulesToday {
		recs = backtest.ByToday(recs)
	}
	if len(recs) > 0 {
		if err := out.sweepField(recs); err != nil {
			return err
		}
	}
	return s.Send(w, http.StatusOK, out)
}

// scoredRuns counts the runs that have ended with a score, by name, and returns the last ones of the
// study's definition.
func (s *Server) scoredRuns(r *http.Request, out *study) (ids []string, err error) {
	all, err := s.runs.Sessions(r.Context())
	if err != nil {
		return nil, err
	}
	for _, one := range all[:min(len(all), studyWindow)] {
		run := session.RunOf(one)
		if run == nil || run.Status != mark.RunCompleted {
			continue
		}
		row, err := s.list.rowOf(r.Context(), one)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if row.Score == nil {
			continue
		}
		i := slices.IndexFunc(out.Definitions, func(d runStudy) bool { return d.Name == row.Name })
		if i < 0 {
			i = len(out.Definitions)
			out.Definitions = append(out.Definitions, runStudy{Name: row.Name})
		}
		out.Definitions[i].Runs++
		if row.Name == out.Definition && len(ids) < studyMost {
			ids = append(ids, row.ID)
		}
	}
	return ids, nil
}

// newStudyRun returns a run for the page: its input, its target and its scores.
func newStudyRun(id string, run *runlog.Run, rec *backtest.Recording) studyRun {
	one := studyRun{ID: id, Target: rec.Plan.Score.Target, Scores: []studyScore{}}
	if i := slices.IndexFunc(run.Log(), func(ev *session.Event) bool { return ev.Author == "user" }); i >= 0 {
		one.Message = credential.Masked(brief.Clip(run.Wholes.Of(run.Log()[i]).Text(), 160))
	}
	undone := make(map[int]bool)
	for i := range rec.Outcomes {
		if o := &rec.Outcomes[i]; o.RolledBack && o.Leg == 0 {
			undone[o.Iteration] = true
		}
	}
	for _, it := range rec.Plan.BacktestOf(rec.Plan, rec.Outcomes).Records {
		one.Scores = append(one.Scores, studyScore{it.Score, it.Number == rec.Stop.BestIteration, undone[it.Number]})
	}
	return one
}

// sweepField computes the levels of the chosen field. If no field was chosen, it takes the first one for which the runs have a
// value.
func (out *study) sweepField(recs []*backtest.Recording) error {
	for _, field := range backtest.SweepFields() {
		now := backtest.FieldValue(recs, field)
		out.Fields = append(out.Fields, studyField{field, now})
		if out.Field == "" && now != nil {
			out.Field = field
		}
	}
	if out.Field == "" {
		out.Field = out.Fields[0].Field
	}
	if out.Field == "timeout" {
		out.Unit = "s"
	}
	sweep, err := backtest.NewSweep(recs, out.Field)
	if err != nil {
		return err
	}
	out.Now, out.Safe = sweep.Now, sweep.Safe
	for i, level := range sweep.Levels {
		l := studyLevel{Level: level}
		for j, trial := range sweep.Trials(i) {
			l.Ends = append(l.Ends, out.Runs[j].endIndex(trial))
		}
		if out.Levels = append(out.Levels, l); sweep.Now != nil && level.Value == *sweep.Now {
			out.At = i
		}
	}
	return nil
}

// endIndex returns the index in r.Ends of an end of the run, and adds the end if it is new.
func (r *studyRun) endIndex(t backtest.Trial) int {
	same := func(o backtest.Trial) bool {
		return o.Verdict == t.Verdict && o.Stops == t.Stops && o.Reason == t.Reason && o.Saved == t.Saved
	}
	i := slices.IndexFunc(r.Ends, same)
	if i < 0 {
		i = len(r.Ends)
		r.Ends = append(r.Ends, t)
	}
	return i
}
