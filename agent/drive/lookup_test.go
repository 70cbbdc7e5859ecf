// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
)

// F10, LOOP 26: a prompt can say what is left of the budget.
func TestLookupOfTheBudget(t *testing.T) {
	for _, tt := range []struct {
		limits *budget.Limits
		want   any // nil: no value
	}{
		{nil, nil},
		{new(budget.Limits{}), nil},
		{new(budget.Limits{Calls: 2}), "1 call"},
		{new(budget.Limits{Calls: 13, Tokens: 3500, Cost: new(0.5201999)}), "12 calls, 3400 tokens, 0.5198 cost"},
		{new(budget.Limits{Cost: new(0.2903)}), "0.29 cost"},
		{new(budget.Limits{Tokens: 50}), "0 tokens"},
	} {
		ctx := drive.NewInvocation(t.Context(), drive.Invocation{
			Session:   session.NewView(session.ViewConfig{}),
			RunConfig: &agent.RunConfig{Budget: tt.limits, Prices: budget.Prices{"m": {Input: 3, Output: 3}}},
		})
		drive.At(ctx).Budget().Book(budget.Usage{Calls: 1, InputTokens: 90, OutputTokens: 10, Cost: new(0.0003)})
		got, ok := drive.At(ctx).Lookup("budget.remaining")
		if ok != (tt.want != nil) || ok && got != tt.want {
			t.Errorf("with %+v: got %q (%t), want %q", tt.limits, got, ok, tt.want)
		}
	}
}
