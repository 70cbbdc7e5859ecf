// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/loop"
)

// onward is a way to end that no stand-in causes, for a loop that only its score should end.
var onward = study.Way{Name: "onward", Reason: loop.ReasonMaxIterations}

// scoresRegress: it gets better, and from the third iteration on worse and worse.
func (s *bench) scoresRegress(ctx context.Context) ([]Finding, error) {
	return s.inEachLoop(s.scoredIn(3), func(l *definition.Agent, f *Finding) error {
		r := s.ScaleOf(l)
		var heard stage.Hearing
		t, err := s.Run(ctx, &stage.Scene{Target: l, Way: onward, Iterations: maxIterations, Hearing: &heard,
			Words: spokenBy, Score: func(at study.Place) float64 { return r.At(upAndDown(at.Loops[l.Name])) }})
		if err == nil {
			s.judgeRegress(f, l, t, &heard)
		}
		return err
	})
}

// upAndDown returns the part of the way to the goal in iteration n of a loop that gets better, and from the third
// iteration on worse and worse.
func upAndDown(n int) float64 {
	if n <= 2 {
		return 0.3 * float64(n)
	}
	return 0.6 - 0.15*float64(min(n, 8)-2)
}

// scoredIn says why a fault of scores cannot happen in a loop with that many iterations.
func (s *bench) scoredIn(iterations uint) func(*definition.Agent) string {
	return func(l *definition.Agent) string {
		switch most := l.Loop.MaxIterations; {
		case l.Loop.Score == nil:
			return "nothing is scored"
		case len(s.Goals[l.Name].Scorers) == 0:
			return "its score does not depend on a stand-in"
		case most > 0 && most < iterations:
			return "it has too few iterations for that"
		}
		return ""
	}
}

// spokenBy makes agents answer with the number of the iteration, instead of the script.
func spokenBy(a *definition.Agent, at study.Place) (string, bool) { return study.Speech(a, at), true }

func (s *bench) judgeRegress(f *Finding, l *definition.Agent, t *stage.Take, heard *stage.Hearing) {
	got := s.Walk(l, s.Plans[l.Name], t).Run()
	if f.Stop = got.Stop; got.Stop == nil || got.Stop.BestScore == nil {
		f.Status, f.Detail = Unknown, "no iteration gets a score with stand-ins"
		return
	}
	best := got.Stop.BestIteration
	f.Guard = "the best is handed back (on_regression: keep_best)"
	if l.Loop.OnRegression == loop.RollbackOnWorse {
		f.Guard = "on_regression: rollback"
	}
	f.Status = Caught
	f.Detail = fmt.Sprintf("iteration %d is the best; %s", best, got.Ending())
	if got.Stop.Result.Source != loop.FromFinalizer {
		return
	}
	fin := l.SubAgents[slices.IndexFunc(l.SubAgents, func(sub *definition.Agent) bool { return sub.OutputKey == definition.LoopOutput })]
	of := s.HeardOf(heard, l, fin, t.Answer)
	last := 0
	for _, n := range of {
		last = max(last, n)
	}
	switch {
	case len(of) == 0:
		f.Status, f.Guard = Spared, ""
		f.Detail = fmt.Sprintf("%s, the finalizer, repeats nothing that stand-ins say, so whether it uses the best "+
			"is not visible", fin.Name)
	case slices.Contains(of, best):
		if l.Loop.OnRegression != loop.RollbackOnWorse {
			f.Guard = "the finalizer reads best.*"
		}
	default:
		f.Status, f.Guard = Uncaught, ""
		f.Detail = fmt.Sprintf("iteration %d is the best, but %s, the finalizer, writes the result from iteration %d",
			best, fin.Name, last)
		f.fix(l.Name, "on_regression", "rollback", fmt.Sprintf(", or let %s read {{best.KEY}} in place of {{KEY}}",
			fin.Name))
	}
}

// oscillation: two results in turns.
func (s *bench) oscillation(ctx context.Context) ([]Finding, error) {
	plays := func(l *definition.Agent) string {
		if slices.ContainsFunc(s.Steps(l), study.Reaches) {
			return ""
		}
		return "no step can oscillate: all are computed"
	}
	return s.inEachLoop(plays, func(l *definition.Agent, f *Finding) error {
		sc := &stage.Scene{
			Words: func(a *definition.Agent, at study.Place) (string, bool) {
				n, in := at.Loops[l.Name]
				if !in {
					return "", false
				}
				return fmt.Sprintf("Words of %s, %s.", a.Name, []string{"one way", "the other way"}[n%2]), true
			}}
		if l.Loop.Score != nil {
			r := s.ScaleOf(l)
			sc.Score = func(at study.Place) float64 { return r.At(0.3 + 0.2*float64(at.Loops[l.Name]%2)) }
		}
		_, got, err := s.endless(ctx, l, f, sc)
		if err != nil {
			return err
		}
		f.Detail = got.Ending()
		if f.Guard == "" {
			f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s the loop still goes in circles",
				brief.Count(got.Iterations, "iteration"))
		}
		// Agents that only ask programs and servers poll, so that a repeated answer is no fault.
		if l.Loop.NoProgress == nil && len(s.asking(l)) > 0 && (f.Status == Uncaught || got.Iterations > 4) {
			if err := s.stopCircles(ctx, f, l, sc, got.Iterations); err != nil {
				return err
			}
		}
		if f.Status == Uncaught && f.Advice == "" {
			f.fix(l.Name, "max_iterations", "10", "")
		}
		return nil
	})
}

// stopCircles suggests no_progress if it ends a repeating loop sooner: over all results of an iteration, or over the
// keys that its stand-ins write.
func (s *bench) stopCircles(ctx context.Context, f *Finding, l *definition.Agent, sc *stage.Scene, before int) error {
	var keys []string
	for _, a := range s.Steps(l) {
		if study.Reaches(a) && a.OutputKey != "" && !slices.Contains(keys, a.OutputKey) {
			keys = append(keys, a.OutputKey)
		}
	}
	tries := []loop.NoProgress{{}}
	if keys != nil {
		tries = append(tries, loop.NoProgress{Keys: keys})
	}
	for _, guard := range tries {
		again := &stage.Scene{Target: sc.Target, Never: true, Iterations: sc.Iterations, Words: sc.Words,
			Score: sc.Score, Circles: &guard}
		t, err := s.Run(ctx, again)
		if err != nil {
			return err
		}
		plan := *s.Quiet[l.Name]
		plan.NoProgress = &guard
		got := s.Walk(l, &plan, t).Run()
		if got.Stop == nil || got.Stop.Reason != loop.ReasonNoProgress ||
			f.Status == Caught && got.Iterations >= before {
			continue
		}
		field, value := "no_progress", "true"
		if guard.Keys != nil {
			field, value = "no_progress.keys", "["+strings.Join(guard.Keys, ", ")+"]"
		}
		f.fix(l.Name, field, value, fmt.Sprintf(" ends that after %s", brief.Count(got.Iterations, "iteration")))
		return nil
	}
	return nil
}

// notANumber: from the second iteration on the score is not a number.
func (s *bench) notANumber(ctx context.Context) ([]Finding, error) {
	return s.inEachLoop(s.scoredIn(2), func(l *definition.Agent, f *Finding) error {
		scorers, r := s.Goals[l.Name].Scorers, s.ScaleOf(l)
		var heard stage.Hearing
		t, err := s.Run(ctx, &stage.Scene{
			Target: l, Way: onward, Iterations: maxIterations, Hearing: &heard, Words: spokenBy,
			Score: func(study.Place) float64 { return r.At(0.3) },
			Said: func(a *definition.Agent, at study.Place, out study.Line) study.Line {
				if at.Loops[l.Name] < 2 || !slices.Contains(scorers, a) {
					return out
				}
				return withoutNumbers(out)
			},
		})
		if err != nil {
			return err
		}
		for _, a := range scorers {
			f.Steps = append(f.Steps, a.Name)
		}
		s.judgeNotANumber(f, l, t, &heard)
		return nil
	})
}

func (s *bench) judgeNotANumber(f *Finding, l *definition.Agent, t *stage.Take, heard *stage.Hearing) {
	got := s.Walk(l, s.Plans[l.Name], t).Run()
	f.Stop = got.Stop
	guard := got.By(l)
	switch {
	case guard == "":
		f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s the loop is still running",
			brief.Count(got.Iterations, "iteration"))
		f.fix(l.Name, "max_iterations", "10", "")
	case got.Stop == nil || got.Stop.Reason == loop.ReasonError:
		f.Status, f.Guard, f.Detail = Caught, guard, got.Ending()
	default:
		s.judgeRegress(f, l, t, heard)
	}
}

// withoutNumbers replaces each number of a line by a value that is not a number, as programs write it.
func withoutNumbers(l study.Line) study.Line {
	var v any
	if json.Unmarshal([]byte(l.Words), &v) == nil {
		l.Words = strings.ReplaceAll(study.Encode(eachNumber(v, notNumber)), `"`+notNumber+`"`, "NaN")
	} else if !strings.HasPrefix(l.Words, "Words of ") {
		if at := numeral().FindStringIndex(l.Words); at != nil {
			l.Words = l.Words[:at[0]] + "NaN" + l.Words[at[1]:]
		}
	}
	if _, text := l.Value.(string); text {
		l.Value = l.Words
	} else {
		l.Value = eachNumber(l.Value, math.NaN())
	}
	return l
}

const notNumber = "not a number"

var numeral = lazyregexp.New(`[-+]?[0-9]+(?:\.[0-9]+)?`)

// eachNumber replaces each number in a value.
func eachNumber(v any, other any) any {
	switch v := v.(type) {
	case float64, int, int64:
		return other
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, part := range v {
			out[k] = eachNumber(part, other)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, part := range v {
			out[i] = eachNumber(part, other)
		}
		return out
	}
	return v
}
