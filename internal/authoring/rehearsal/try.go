// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/history/progress"
)

// Course is the course of the scores that stand-ins give in a [Try].
type Course string

// The courses. In a loop without a score, all courses but the first mean that stand-ins neither ask to stop nor meet
// the condition of the loop.
const (
	GetsBetter  Course = "gets_better"  // up to the target, in four iterations
	NeverEnough Course = "never_enough" // up, by less and less, and never to the target
	GetsWorse   Course = "gets_worse"   // up once, and from the third iteration on down
	Wavers      Course = "wavers"       // up and down
)

// Courses lists all courses.
func Courses() []Course { return []Course{GetsBetter, NeverEnough, GetsWorse, Wavers} }

// TryConfig describes a try.
type TryConfig struct {
	// Course is the course of the scores; the default is [GetsBetter].
	Course Course
	// StepTime is the assumed duration of a step outside the process; 0 means [DefaultStepTime].
	StepTime time.Duration
	// Input is the user's message, and Values are the inputs of the definition. Missing required
	// inputs are made up.
	Input  string
	Values map[string]string
}

// Tried is the result of a try.
type Tried struct {
	Course Course `json:"course"`
	// Loops are the outermost loops, in the order of the file.
	Loops []TriedLoop `json:"loops"`
	// Answer is the result of the definition; empty if the run was cut off.
	Answer string `json:"answer,omitzero"`
	// StandIns lists the agents and tools that a script has replaced.
	StandIns []StandIn `json:"stand_ins"`
	// StepTime is the assumed duration of a step, in nanoseconds.
	StepTime time.Duration `json:"step_time_ns"`
	Notes    []string      `json:"notes,omitzero"`
	// Error is why the run failed; empty if it did not.
	Error string `json:"error,omitzero"`
}

// TriedLoop is a loop of a try, with its time limits from the file.
type TriedLoop struct {
	Name string `json:"name"`
	// Loop has the iterations, and the stop record: its Stop is nil if nothing ends it. It has no steps.
	Loop *progress.Loop `json:"-"`
	// Elapsed is the time of the loop by the assumed durations, in nanoseconds.
	Elapsed time.Duration `json:"elapsed_ns"`
	// Guard is the limit outside of the loop's own rules that ended it, such as max_model_calls; empty if none did.
	Guard string `json:"guard,omitzero"`
	// Scripted says that the course decides its scores. If it is false, they are computed, or there
	// are none.
	Scripted bool `json:"scripted"`
}

// A try is cut off when its log or its state reaches this size, in bytes.
const (
	tryLog   = 8 << 20
	tryState = 1 << 20
)

// tryIterations is the number of iterations after which a loop counts as endless.
const tryIterations = 10_000

// Try runs a definition once for each of its outermost loops, without faults, and reports how each ends. It uses the
// stand-ins of a rehearsal, without a model, cost or effects. It fails if the agents cannot be built, if the config
// does not fit the definition, or with context.Cause soon after ctx ends.
func Try(ctx context.Context, def *definition.Definition, cfg TryConfig) (*Tried, error) {
	cfg.Course = cmp.Or(cfg.Course, GetsBetter)
	if !slices.Contains(Courses(), cfg.Course) {
		return nil, fmt.Errorf("try %q: there is no course %q", def.Name, cfg.Course)
	}
	s := &bench{Stage: &stage.Stage{Cast: study.NewCast(def), Input: cfg.Input,
		StepTime: cmp.Or(cfg.StepTime, DefaultStepTime)}, cfg: Config{Values: cfg.Values}}
	s.Over = func() bool { return ctx.Err() != nil }
	out := &Tried{Course: cfg.Course, Loops: []TriedLoop{}, StandIns: standIns(s.Cast), StepTime: s.StepTime}
	var err error
	if s.State, out.Notes, err = s.initial(); err != nil {
		return nil, err
	}
	s.Learn(s.State, nil)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var outermost []*definition.Agent
	for _, l := range s.Loops {
		if s.LoopAround(l) == nil {
			outermost = append(outermost, l)
		}
	}
	if outermost == nil {
		t, err := s.Run(ctx, &stage.Scene{LogSize: tryLog})
		if err != nil {
			return nil, fmt.Errorf("try %q: %w", def.Name, err)
		}
		out.end(t)
		return out, nil
	}
	for _, l := range outermost {
		t, err := s.Run(ctx, s.course(l, cfg.Course))
		if err != nil {
			return nil, fmt.Errorf("try %q: %w", def.Name, err)
		}
		out.end(t)
		out.Loops = append(out.Loops, s.tried(l, t))
	}
	return out, nil
}

func (out *Tried) end(t *stage.Take) {
	if out.Answer = t.Answer; t.Err != nil {
		out.Error = t.Err.Error()
	}
}

// course returns the scene in which the scores of a loop follow the course.
func (s *bench) course(l *definition.Agent, c Course) *stage.Scene {
	sc := &stage.Scene{Target: l, Iterations: maxIterations, StateSize: tryState, LogSize: tryLog}
	scored := s.scripted(l)
	if scored || c != GetsBetter {
		sc.Way = onward
	}
	if !scored {
		return sc
	}
	r := s.ScaleOf(l)
	most := 4
	if limit := int(l.Loop.MaxIterations); limit > 1 {
		most = min(most, limit)
	}
	sc.Score = func(at study.Place) float64 {
		switch n := at.Loops[l.Name]; c {
		case NeverEnough:
			return r.At(0.9 - 0.9/math.Exp2(float64(min(n, 50))))
		case GetsWorse:
			return r.At(upAndDown(n))
		case Wavers:
			return r.At(0.5 - 0.2*float64(n%2))
		default:
			return r.At(min(1, float64(n)/float64(most)))
		}
	}
	return sc
}

// scripted reports whether stand-ins give a loop its scores.
func (s *bench) scripted(l *definition.Agent) bool {
	return l.Loop.Score != nil && len(s.Goals[l.Name].Scorers) > 0
}

// tried applies the loop's own rules and time limits to the simulated run.
func (s *bench) tried(l *definition.Agent, t *stage.Take) TriedLoop {
	w := s.Walk(l, s.Plans[l.Name], t)
	w.Most = tryIterations
	got := w.Run()
	one := TriedLoop{Name: l.Name, Elapsed: got.Elapsed, Guard: got.Guard, Scripted: s.scripted(l),
		Loop: &progress.Loop{Plan: s.Plans[l.Name], Stop: got.Stop}}
	from, began := 0, time.Duration(0)
	for i := range got.Records {
		rec := &got.Records[i]
		it := &progress.Iteration{Number: rec.Number, Status: progress.StatusCompleted, Record: rec, From: from, Began: began,
			Ended: got.Ended[i]}
		from, began = rec.Number, it.Ended
		if to, undone := got.Undone[rec.Number]; undone {
			it.RolledBack, it.BackTo, from = true, to, to
		}
		one.Loop.Iterations = append(one.Loop.Iterations, it)
	}
	return one
}
