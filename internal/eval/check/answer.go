// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/refrain-dev/refrain/internal/eval/rouge"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// ended is the reason of a check whose turn is missing.
const ended = "the conversation ended before its last turn"

// short reports whether turns of the case are missing.
func (s *Subject) short() bool { return len(s.Turns) < max(len(s.Case.Turns), 1) }

// value returns the last answer, or the value of the state that takes its place.
func (s Spec) value(subject *Subject) (any, *finding) {
	if subject.short() {
		return nil, new(broken("%s", ended))
	}
	if s.Of == "" {
		return subject.Turns[len(subject.Turns)-1].Answer, nil
	}
	v, ok := subject.State[s.Of]
	if !ok {
		return nil, new(broken("the state has no key %q", s.Of))
	}
	return v, nil
}

// text returns the same as a text: a value that is no text as JSON.
func (s Spec) text(subject *Subject) (string, *finding) {
	v, f := s.value(subject)
	if f != nil {
		return "", f
	}
	if text, ok := v.(string); ok {
		return text, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "", new(broken("the value of %q has no JSON: %v", s.Of, err))
	}
	return string(data), nil
}

// trim is the form in which texts are compared.
func trim(text string) string { return strings.TrimSpace(norm.NFC.String(text)) }

// quote shows a text in a reason.
func quote(text string) string { return `"` + brief.Line(text, 80) + `"` }

func (s Spec) texts() func(context.Context, *Subject) finding {
	equal := func(answer, text string) bool { return answer == text }
	if s.Kind == Contains {
		equal = strings.Contains
	}
	if len(s.Texts) == 0 {
		return s.byTurn(func(answer, expected string) (float64, string) {
			if equal(trim(answer), trim(expected)) {
				return 1, ""
			}
			verb := "is not"
			if s.Kind == Contains {
				verb = "does not contain"
			}
			return 0, fmt.Sprintf("%s %s %s", quote(answer), verb, quote(expected))
		}, s.Kind, "the expected text")
	}
	want := make([]string, len(s.Texts))
	for i, t := range s.Texts {
		want[i] = trim(t)
	}
	if s.Kind == Contains {
		return s.share("contains", func(i int, answer string) bool { return strings.Contains(answer, want[i]) })
	}
	return func(_ context.Context, subject *Subject) finding {
		answer, f := s.text(subject)
		if f != nil {
			return *f
		}
		for _, w := range want {
			if trim(answer) == w {
				return finding{value: 1, reason: "equals " + quote(w)}
			}
		}
		return finding{reason: fmt.Sprintf("%s is not %s", quote(answer), quotes(s.Texts))}
	}
}

func quotes(texts []string) string {
	var all []string
	for i, t := range texts {
		if i == 3 && len(texts) > 4 {
			all = append(all, fmt.Sprintf("%d more", len(texts)-i))
			break
		}
		all = append(all, quote(t))
	}
	return strings.Join(all, " or ")
}

// share makes a check whose value is the share of the texts that hold for the answer.
func (s Spec) share(verb string, holds func(i int, answer string) bool) func(context.Context, *Subject) finding {
	return func(_ context.Context, subject *Subject) finding {
		answer, f := s.text(subject)
		if f != nil {
			return *f
		}
		answer = trim(answer)
		var missing []string
		for i, t := range s.Texts {
			if !holds(i, answer) {
				missing = append(missing, t)
			}
		}
		if missing == nil {
			return finding{value: 1, reason: verb + " " + strings.ReplaceAll(quotes(s.Texts), " or ", " and ")}
		}
		n := len(s.Texts)
		out := finding{value: float64(n-len(missing)) / float64(n), reason: fmt.Sprintf("%s has no %s", quote(answer), quotes(missing))}
		if verb == "matches" {
			out.reason = fmt.Sprintf("%s does not match %s", quote(answer), quotes(missing))
		}
		return out
	}
}

func (s Spec) rouge() func(context.Context, *Subject) finding {
	return s.byTurn(func(answer, expected string) (float64, string) {
		f := rouge.F1(answer, expected)
		return f, fmt.Sprintf("ROUGE-1 is %s with %s", brief.Score(f), quote(expected))
	}, s.Kind, "ROUGE-1 with the expected text")
}

// byTurn makes a check of a kind that compares the answer of each turn with its reference. Its value is the mean over the turns
// that have one, and a missing turn has 0. A value of the state is compared with the reference of the last turn.
func (s Spec) byTurn(compare func(answer, expected string) (float64, string), kind Kind, what string) func(context.Context, *Subject) finding {
	return func(_ context.Context, subject *Subject) finding {
		m := mean{turns: make([]*float64, len(subject.Case.Turns))}
		for i, t := range subject.Case.Turns {
			last := i == len(subject.Case.Turns)-1
			switch {
			case t.Expected == nil || s.Of != "" && !last:
			case i >= len(subject.Turns):
				m.add(i, 0, "is missing")
			case s.Of != "":
				answer, f := s.text(subject)
				if f != nil {
					return *f
				}
				v, reason := compare(answer, *t.Expected)
				m.add(i, v, reason)
			default:
				v, reason := compare(subject.Turns[i].Answer, *t.Expected)
				m.add(i, v, reason)
			}
		}
		if m.n == 0 {
			return finding{none: true, reason: "the case has no expected text"}
		}
		return m.finding(fmt.Sprintf("%s: %s", kind, what))
	}
}

// mean collects the values of turns.
type mean struct {
	turns  []*float64
	n      int
	sum    float64
	least  float64
	reason string // of the worst turn
}

func (m *mean) add(turn int, v float64, reason string) {
	m.turns[turn] = &v
	if m.n == 0 || v < m.least {
		m.least, m.reason = v, reason
		if len(m.turns) > 1 && reason != "" {
			m.reason = fmt.Sprintf("turn %d: %s", turn+1, reason)
		}
	}
	m.n++
	m.sum += v
}

// finding returns the mean. Its reason is that of the worst turn, or else the given one.
func (m *mean) finding(fine string) finding {
	f := finding{value: m.sum / float64(m.n), reason: m.reason, turns: m.turns}
	if f.reason == "" {
		f.reason = fine
	}
	return f
}
