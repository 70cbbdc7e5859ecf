// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// sharing is a loop whose steps a and c ask the same server.
func sharing(failures uint, cooldown float64) loop.Plan {
	c := func() *loop.Circuit {
		return &loop.Circuit{Failures: failures, Cooldown: secs(cooldown), Endpoint: "search"}
	}
	return loop.Plan{
		Steps: []loop.Step{{Name: "a", Circuit: c()}, {Name: "b"}, {Name: "c", Circuit: c()}}, MaxIterations: 5, OnError: loop.SkipStep,
	}
}

// breaking fails the named steps up to an iteration.
func breaking(p loop.Plan, names string, until int) script {
	return func(d loop.Decision) loop.Outcome {
		if d.Iteration <= until && strings.Contains(names, p.Steps[d.Step].Name) {
			return failure("")
		}
		return loop.Outcome{}
	}
}

// G6: steps that depend on the same endpoint share a circuit.
func TestStepsShareACircuit(t *testing.T) {
	p := sharing(2, 3)
	for name, c := range map[string]struct {
		script script
		want   string
	}{
		// Seconds 1 a, 2 b, 3 c: open. At 6 it is tried, and works for both.
		"failures count together": {breaking(p, "ac", 1), "a@1 b@1 c@1 a@2 refused b@2 c@2 refused a@3 refused b@3 c@3 refused a@4 refused b@4 c@4 a@5 b@5 c@5"},
		// Fails again then, and for both.
		"one try is enough":                   {breaking(p, "ac", 4), "a@1 b@1 c@1 a@2 refused b@2 c@2 refused a@3 refused b@3 c@3 refused a@4 refused b@4 c@4 a@5 refused b@5 c@5 refused"},
		"success of one counts for the other": {breaking(p, "a", 5), "a@1 b@1 c@1 a@2 b@2 c@2 a@3 b@3 c@3 a@4 b@4 c@4 a@5 b@5 c@5"},
	} {
		if tr := run(t, p, c.script); strings.Join(tr.ran, " ") != c.want {
			t.Errorf("%s:\nran  %s\nwant %s", name, strings.Join(tr.ran, " "), c.want)
		}
	}
	tr := run(t, p, breaking(p, "ac", 1))
	if f := tr.decided[3].Refuse; f == nil || f.Message != `not run: endpoint "search" failed 2 times running and is tried again after 3s` {
		t.Errorf("refused with %+v", f)
	}
	// Another endpoint is another circuit, and so is none.
	for _, endpoint := range []string{"store", ""} {
		p.Steps[2].Circuit.Endpoint = endpoint
		if tr := run(t, p, breaking(p, "ac", 1)); strings.Contains(strings.Join(tr.ran, " "), "refused") {
			t.Errorf("%q: ran %v", endpoint, tr.ran)
		}
	}
}

// G6: it is counted at the first step, wherever the order puts it.
func TestSharedCircuitIsCountedOnce(t *testing.T) {
	p := sharing(2, 1000)
	p.Order = []string{"c", "b", "a"}
	p.MaxIterations = 2
	tr := run(t, p, breaking(p, "ac", 9))
	if got := strings.Join(tr.ran, " "); got != "c@1 b@1 a@1 c@2 refused b@2 a@2 refused" {
		t.Errorf("ran %s", got)
	}
	if got := tr.tally.PerStep; len(got) != 3 || got[0].Failures != 2 || *got[0].OpenedAt != 3*time.Second || got[2].Failures != 0 {
		t.Errorf("%+v", got)
	}
}

// An answer from the cache says nothing about whether the endpoint works.
func TestCacheDoesNotCloseACircuit(t *testing.T) {
	p := sharing(2, 1000)
	tr := run(t, p, func(d loop.Decision) loop.Outcome {
		switch d.Step {
		case 0:
			return failure("")
		case 2:
			return loop.Outcome{Cached: true}
		}
		return loop.Outcome{}
	})
	if got := strings.Join(tr.ran[:9], " "); got != "a@1 b@1 c@1 a@2 b@2 c@2 refused a@3 refused b@3 c@3 refused" {
		t.Errorf("ran %s", got)
	}
}

// Where all that is left shares one open circuit, the loop waits for it.
func TestSharedCircuitDoesNotSpin(t *testing.T) {
	p := sharing(1, 60)
	p.Steps[1].Circuit = p.Steps[0].Circuit
	p.MaxIterations = 2
	tr := run(t, p, breaking(p, "a", 1))
	if got := strings.Join(tr.ran, " "); got != "a@1 b@1 refused c@1 refused a@2 b@2 c@2" || tr.decided[3].Wait != time.Minute {
		t.Errorf("ran %s, waited %s", got, tr.decided[3].Wait)
	}
}

func TestSharedCircuitHasOneRule(t *testing.T) {
	p := sharing(2, 3)
	p.Steps[2].Circuit.Failures = 3
	got := problems(t, p)
	const want = `steps[2].circuit.endpoint: steps[2].circuit shares endpoint "search" with step "a", but has other failures or another cooldown (give both the same)`
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
}
