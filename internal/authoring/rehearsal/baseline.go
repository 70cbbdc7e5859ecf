// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/loop"
)

// baseline plays the definition with nothing wrong: once for each way in which one
// of its loops is meant to end.
func (s *bench) baseline(ctx context.Context, rep *Report) error {
	s.base, s.met = make(map[string]*stage.Take), make(map[string]bool)
	if len(s.Loops) == 0 {
		rep.Notes = append(rep.Notes, "the definition has no loop")
	}
	for _, l := range s.Loops {
		ways := s.Goals[l.Name].Ways
		if len(ways) == 0 {
			ways = []study.Way{{}}
		}
		for _, w := range ways {
			t, err := s.Run(ctx, &stage.Scene{Target: l, Way: w, Iterations: maxIterations})
			if err != nil {
				return err
			}
			e, reached := s.ending(l, w, t)
			rep.Endings = append(rep.Endings, e)
			if s.base[l.Name] == nil || reached && !s.met[l.Name] {
				s.base[l.Name] = t
				s.met[l.Name] = reached
			}
		}
	}
	return nil
}

// ending reports whether a loop ended in the intended way.
func (s *bench) ending(l *definition.Agent, w study.Way, t *stage.Take) (Ending, bool) {
	e := Ending{Loop: l.Name, Way: w.Name, Known: true}
	rec := t.Of(l)
	if rec == nil {
		e.Known = false
		e.Detail = "it does not begin"
		if t.Err != nil {
			e.Detail += ": " + t.Err.Error()
		}
		return e, false
	}
	walk := s.Walk(l, s.Plans[l.Name], t)
	if rec.Stop != nil && rec.Stop.Reason == loop.ReasonError {
		e.Known, e.Reason, e.Iterations = false, rec.Stop.Reason, rec.Stop.Iteration
		e.Detail = "with stand-ins it fails: " + rec.Stop.Detail
		return e, false
	}
	got := walk.Run()
	if e.Iterations = got.Iterations; got.Stop == nil {
		e.Detail = got.Ending()
		if got.Guard == "" {
			e.Detail = "nothing ends it"
		}
		e.Known = !s.steered(l)
		return e, false
	}
	e.Reason, e.Detail = got.Stop.Reason, got.Stop.Detail
	e.Reached = w.Name == "" || got.Stop.Reason == w.Reason && (w.By == nil || w.By.Name == got.Stop.By)
	if !e.Reached {
		e.Known = !s.steered(l)
		e.Detail = fmt.Sprintf("it ends for another reason: %s", got.Stop.Detail)
	}
	return e, e.Reached
}

// unfit says why stand-ins cannot test a loop: it fails without any fault, such as when an expression reads data of a
// program that stand-ins do not know. ok is false if the loop can be tested.
func (s *bench) unfit(l *definition.Agent) (f Finding, ok bool) {
	t := s.base[l.Name]
	f = Finding{Loop: l.Name, Status: Unknown, Advice: "write answers for these agents and pass them with --script: " +
		strings.Join(s.played(l), ", ")}
	rec := t.Of(l)
	switch {
	case rec == nil:
		f.Detail = "the loop does not begin with stand-ins"
		if t.Err != nil {
			f.Detail += ": " + t.Err.Error()
		}
		return f, true
	case rec.Stop != nil && rec.Stop.Reason == loop.ReasonError:
		f.Detail = "the loop fails with stand-ins: " + rec.Stop.Detail
		return f, true
	}
	return f, false
}

// inEachLoop plays a fault to each loop in which it can happen, and in which stand-ins
// come to anything. Spared says why it cannot happen in a loop; "" if it can.
func (s *bench) inEachLoop(spared func(*definition.Agent) string,
	play func(l *definition.Agent, f *Finding) error) ([]Finding, error) {
	var all []Finding
	for _, l := range s.Loops {
		f := Finding{Loop: l.Name, Status: Spared, Detail: spared(l)}
		if f.Detail == "" {
			if bad, is := s.unfit(l); is {
				f = bad
			} else if err := play(l, &f); err != nil {
				return nil, err
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// endless plays a scene of a loop that does not end by itself, and applies the rules of the loop to what the run recorded. f gets why the
// loop stopped, and which guard has caught it.
func (s *bench) endless(ctx context.Context, l *definition.Agent, f *Finding, sc *stage.Scene) (*stage.Take, *stage.Walked, error) {
	sc.Target, sc.Never, sc.Iterations = l, true, maxIterations
	t, err := s.Run(ctx, sc)
	if err != nil {
		return nil, nil, err
	}
	got := s.Walk(l, s.Quiet[l.Name], t).Run()
	f.Status, f.Stop, f.Guard = Caught, got.Stop, got.By(l)
	return t, &got, nil
}

// asksModels says why a fault of models cannot happen in a loop.
func (s *bench) asksModels(l *definition.Agent) string {
	if len(s.asking(l)) > 0 {
		return ""
	}
	return "no agent in it asks a model"
}

// played returns the agents inside another one that have stand-ins.
func (s *bench) played(in *definition.Agent) []string {
	var names []string
	for _, a := range s.Leaves(in) {
		if study.Reaches(a) {
			names = append(names, a.Name)
		}
	}
	return names
}

// steered reports whether the result of a loop depends on the answers of stand-ins.
func (s *bench) steered(l *definition.Agent) bool {
	return len(s.played(l)) > 0
}
