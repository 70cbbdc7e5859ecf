// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
)

// F10: the limit of model calls is the one given, else the definition's; a larger budget of calls raises the latter.
func TestRunHasTheLimitOfModelCalls(t *testing.T) {
	calls := func(n int64) *budget.Limits { return &budget.Limits{Calls: n} }
	for _, tt := range []struct {
		text  string
		given definition.Limits
		want  int
	}{
		{"", definition.Limits{}, 0},
		{"max_model_calls: 20\n", definition.Limits{}, 20},
		{"max_model_calls: 20\n", definition.Limits{MaxModelCalls: 30}, 30},
		{"max_model_calls: 20\n", definition.Limits{MaxModelCalls: -1}, -1},
		{"max_model_calls: 20\n", definition.Limits{Budget: calls(30)}, 20},
		{"max_model_calls: 20\n", definition.Limits{Budget: calls(2000)}, 2000},
		{"max_model_calls: none\n", definition.Limits{Budget: calls(2000)}, -1},
		{"", definition.Limits{MaxModelCalls: 10, Budget: calls(2000)}, 10},
	} {
		got := parse(t, "name: l\n"+tt.text+asks).RunConfig(tt.given)
		if got.MaxLLMCalls != tt.want || got.Budget != tt.given.Budget {
			t.Errorf("%q with %+v: %d calls, budget %v; want %d", tt.text, tt.given, got.MaxLLMCalls, got.Budget, tt.want)
		}
	}
}

// A run that resumes keeps the limits that nobody changes.
func TestLimitsReplaceOnlyWhatIsGiven(t *testing.T) {
	had := definition.Limits{MaxIterations: new(uint(3)), MaxModelCalls: 9, Budget: &budget.Limits{Calls: 5, Tokens: 100}}
	got := had.With(definition.Limits{Timeout: new(time.Hour), Budget: &budget.Limits{Calls: 7, Cost: new(1.5)}})
	want := definition.Limits{MaxIterations: new(uint(3)), Timeout: new(time.Hour), MaxModelCalls: 9,
		Budget: &budget.Limits{Calls: 7, Tokens: 100, Cost: new(1.5)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if had.Budget.Calls != 5 {
		t.Error("the budget that the run had was changed")
	}
	all := definition.Limits{MaxIterations: new(uint(0)), Timeout: new(time.Duration(0)), MaxModelCalls: -1, Budget: &budget.Limits{Tokens: 1}}
	if diff := cmp.Diff(all, definition.Limits{}.With(all)); diff != "" {
		t.Error(diff)
	}
}
