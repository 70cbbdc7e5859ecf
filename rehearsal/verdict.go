// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// judgeInWords: whoever gives the score says what it thinks of the work, and no number.
func (s *bench) judgeInWords(ctx context.Context) ([]Finding, error) {
	judged := func(l *definition.Agent) string {
		switch {
		case l.Loop.Score == nil:
			return "nothing is scored"
		case len(s.judges(l)) == 0:
			return "no model gives its score"
		}
		return ""
	}
	return s.inEachLoop(judged, func(l *definition.Agent, f *Finding) error {
		judges := s.judges(l)
		t, err := s.run(ctx, &scene{target: l, way: onward, iterations: maxIterations, said: func(a *definition.Agent, at place, out line) line {
			if !slices.Contains(judges, a) {
				return out
			}
			return line{words: verdict(at), value: verdict(at)}
		}})
		if err == nil {
			s.judgeWords(f, l, judges, t)
		}
		return err
	})
}

// verdict is what a judge says in words, each time something else. There is no number
// in it.
func verdict(at place) string {
	n := at.iteration() + 3*at.sample
	better := []string{"clearer", "shorter", "warmer", "calmer", "bolder", "plainer", "livelier"}
	worse := []string{"thin", "long", "loud", "dull", "vague"}
	return fmt.Sprintf("It is %s than before, and still too %s.", better[n%len(better)], worse[n%len(worse)])
}

func (s *bench) judgeWords(f *Finding, l *definition.Agent, judges []*definition.Agent, t *take) {
	got := s.walk(l, s.plans[l.Name], t).run()
	f.Stop, f.Status, f.Guard = got.stop, Caught, got.by(l)
	f.Detail = "no iteration is scored; " + got.ending()
	unpinned := ""
	for _, a := range judges {
		f.Steps = append(f.Steps, a.Name)
		if a.LLM == nil || a.LLM.OutputSchema == nil {
			unpinned = a.Name
		}
	}
	switch {
	case got.stop != nil && got.stop.BestScore != nil:
		f.Detail = "the score does without its answer; " + got.ending()
	case unpinned == "" && got.stop != nil && got.stop.Reason == loop.ReasonError:
		f.Guard = "output_schema of " + strings.Join(f.Steps, ", ")
		f.Detail = "words are no answer; " + got.ending()
	case f.Guard == "":
		f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s without a score it still goes on", plural(got.iterations, "iteration"))
		f.fix(l.Name, "max_iterations", "10", "")
		if unpinned != "" {
			f.Advice += "; an output_schema for " + unpinned + " has it answer with a number"
		}
	}
}

// judges are the agents that ask a model and give a loop its score.
func (s *bench) judges(l *definition.Agent) []*definition.Agent {
	var all []*definition.Agent
	for _, a := range s.goals[l.Name].scorers {
		if a.Type == definition.TypeLLM || a.Type == definition.TypeA2A {
			all = append(all, a)
		}
	}
	return all
}

// notANumber: from the second iteration on the score is not a number.
func (s *bench) notANumber(ctx context.Context) ([]Finding, error) {
	return s.inEachLoop(s.scoredIn(2), func(l *definition.Agent, f *Finding) error {
		scorers, r := s.goals[l.Name].scorers, s.scaleOf(l)
		var heard hearing
		t, err := s.run(ctx, &scene{
			target: l, way: onward, iterations: maxIterations, hearing: &heard, words: spokenBy,
			score: func(place) float64 { return r.at(0.3) },
			said: func(a *definition.Agent, at place, out line) line {
				if at.loops[l.Name] < 2 || !slices.Contains(scorers, a) {
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

func (s *bench) judgeNotANumber(f *Finding, l *definition.Agent, t *take, heard *hearing) {
	got := s.walk(l, s.plans[l.Name], t).run()
	f.Stop = got.stop
	guard := got.by(l)
	switch {
	case guard == "":
		f.Status, f.Detail = Uncaught, fmt.Sprintf("after %s it still goes on", plural(got.iterations, "iteration"))
		f.fix(l.Name, "max_iterations", "10", "")
	case got.stop == nil || got.stop.Reason == loop.ReasonError:
		f.Status, f.Guard, f.Detail = Caught, guard, got.ending()
	default:
		s.judgeRegress(f, l, t, heard)
	}
}

// withoutNumbers is a line in which each number is none, as programs write that.
func withoutNumbers(l line) line {
	var v any
	if json.Unmarshal([]byte(l.words), &v) == nil {
		l.words = strings.ReplaceAll(encode(eachNumber(v, notNumber)), `"`+notNumber+`"`, "NaN")
	} else if !strings.HasPrefix(l.words, "Words of ") {
		if at := numeral.FindStringIndex(l.words); at != nil {
			l.words = l.words[:at[0]] + "NaN" + l.words[at[1]:]
		}
	}
	if _, text := l.value.(string); text {
		l.value = l.words
	} else {
		l.value = eachNumber(l.value, math.NaN())
	}
	return l
}

const notNumber = "not a number"

var numeral = regexp.MustCompile(`[-+]?[0-9]+(?:\.[0-9]+)?`)

// eachNumber is a value with something else in place of each number.
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
