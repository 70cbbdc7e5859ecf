// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// measure is one number that a check limits.
type measure struct {
	name  string
	most  func(*Limits) (float64, bool)
	used  func(*Subject) (float64, bool)
	shown func(float64) string
}

// limit returns the value of a limit that may be missing.
func limit[T int64 | float64](p *T) (float64, bool) {
	if p == nil {
		return 0, false
	}
	return float64(*p), true
}

func count(f float64) string { return brief.Whole(int64(f)) }

var measures = []measure{
	{"cost", func(l *Limits) (float64, bool) { return limit(l.Cost) },
		func(s *Subject) (float64, bool) { return limit(s.Usage.Cost) }, brief.Money},
	{"seconds", func(l *Limits) (float64, bool) { return limit(l.Seconds) },
		func(s *Subject) (float64, bool) { return s.Time.Seconds(), true }, brief.Score},
	{"tokens", func(l *Limits) (float64, bool) { return limit(l.Tokens) },
		func(s *Subject) (float64, bool) { return float64(s.Usage.InputTokens + s.Usage.OutputTokens), true }, count},
	{"calls", func(l *Limits) (float64, bool) { return limit(l.Calls) },
		func(s *Subject) (float64, bool) { return float64(s.Usage.Calls), true }, count},
	{"iterations", func(l *Limits) (float64, bool) { return limit(l.Iterations) },
		func(s *Subject) (float64, bool) { return float64(s.Iterations), true }, count},
}

// max makes a check of what a case-run used.
func (s Spec) max() (func(context.Context, *Subject) finding, *Error) {
	if s.Max == nil || *s.Max == (Limits{}) {
		var all []string
		for _, m := range measures {
			all = append(all, m.name)
		}
		return nil, &Error{Field: "max", Message: "max sets no limit", Hint: "there are " + strings.Join(all, ", ")}
	}
	for _, m := range measures {
		if most, ok := m.most(s.Max); ok && !(most >= 0 && !math.IsInf(most, 0)) {
			return nil, &Error{Field: "max." + m.name, Message: fmt.Sprintf("%s must not be negative, got %v", m.name, most)}
		}
	}
	return func(_ context.Context, subject *Subject) finding {
		var over, unknown, within []string
		for _, m := range measures {
			most, limited := m.most(s.Max)
			if !limited {
				continue
			}
			used, known := m.used(subject)
			switch {
			case !known && subject.Usage.Calls == 0 && subject.Usage.InputTokens+subject.Usage.OutputTokens == 0:
				within = append(within, m.name+" of no model call")
			case !known:
				unknown = append(unknown, m.name+" is unknown: a model has no price")
			case used > most:
				over = append(over, fmt.Sprintf("%s %s is more than %s", m.name, m.shown(used), m.shown(most)))
			default:
				within = append(within, fmt.Sprintf("%s %s of at most %s", m.name, m.shown(used), m.shown(most)))
			}
		}
		switch {
		case over != nil:
			return finding{reason: strings.Join(over, "; ")}
		case unknown != nil:
			return broken("%s", strings.Join(unknown, "; ")) // who sets a limit wants to know that it was kept
		}
		return finding{value: 1, reason: strings.Join(within, "; ")}
	}, nil
}
