// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// calls makes a check of the calls of tools. Its value is the share of the turns whose calls fit.
func (s Spec) calls() (func(context.Context, *Subject) finding, *Error) {
	order := cmp.Or(s.Order, Exact)
	if !slices.Contains(Orders, order) {
		return nil, unknown("calls", "order of calls", string(order), names(Orders))
	}
	return func(_ context.Context, subject *Subject) finding {
		m := mean{turns: make([]*float64, len(subject.Case.Turns))}
		for i, t := range subject.Case.Turns {
			switch {
			case t.Calls == nil:
			case i >= len(subject.Turns):
				m.add(i, 0, "is missing")
			default:
				v, reason := 1.0, s.misfit(order, s.counted(subject.Turns[i].Calls), s.counted(t.Calls))
				if reason != "" {
					v = 0
				}
				m.add(i, v, reason)
			}
		}
		if m.n == 0 {
			return finding{none: true, reason: "the case has no expected calls"}
		}
		return m.finding("the calls are as expected")
	}, nil
}

// counted returns the calls that are not ignored.
func (s Spec) counted(calls []Call) []Call {
	return slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return slices.Contains(s.Ignore, c.Name) })
}

// misfit says how the calls differ from the expected ones; "" if they fit.
func (s Spec) misfit(order Order, got, want []Call) string {
	switch order {
	case InOrder:
		next := 0
		for _, c := range got {
			if next < len(want) && s.same(c, want[next]) {
				next++
			}
		}
		if next < len(want) {
			return fmt.Sprintf("no call %s%s", s.show(want[next]), after(next, want, s))
		}
		return ""
	case AnyOrder:
		rest := slices.Clone(got)
		for _, w := range want {
			i := slices.IndexFunc(rest, func(c Call) bool { return s.same(c, w) })
			if i < 0 {
				return "no call " + s.show(w)
			}
			rest = slices.Delete(rest, i, i+1)
		}
		return ""
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return "no call " + s.show(want[i])
		case i >= len(want):
			return "unexpected call " + s.show(got[i])
		case !s.same(got[i], want[i]):
			return fmt.Sprintf("call %d is %s, not %s", i+1, s.show(got[i]), s.show(want[i]))
		}
	}
	return ""
}

func after(i int, want []Call, s Spec) string {
	if i == 0 {
		return ""
	}
	return " after " + s.show(want[i-1])
}

func (s Spec) same(a, b Call) bool {
	return a.Name == b.Name && (s.IgnoreArgs || len(a.Args)+len(b.Args) == 0 || equal(exact(a.Args), exact(b.Args)))
}

// show writes a call for people.
func (s Spec) show(c Call) string {
	if s.IgnoreArgs {
		return brief.Line(c.Name, 60)
	}
	args, err := json.Marshal(c.Args)
	if err != nil || len(c.Args) == 0 {
		return brief.Line(c.Name, 60) + "()"
	}
	return brief.Line(c.Name, 60) + "(" + brief.Line(string(args), 80) + ")"
}

// exact returns a copy of a value as JSON has it, with numbers as json.Number.
func exact(v any) (out any) {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	_ = d.Decode(&out) // of what was just written
	return out
}

// equal compares two values of exact. Numbers are equal if their values are, whether they are written as 1, 1.0 or 10e-1.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, ok := y[k]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || decimal(x) == decimal(y))
	}
	return a == b
}

// decimal returns the one form of a number in JSON: its digits without zeros at both ends, and the exponent of ten. A float would
// take 99999999999999999999 for 1e20.
func decimal(n json.Number) string {
	digits, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	e, err := strconv.Atoi(cmp.Or(exponent, "0"))
	if err != nil {
		return string(n)
	}
	digits, negative := strings.CutPrefix(digits, "-")
	whole, part, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+part, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	if negative {
		short = "-" + short
	}
	return fmt.Sprintf("%se%d", short, e-len(part)+len(digits)-len(strings.TrimPrefix(short, "-")))
}
