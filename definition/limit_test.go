// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// built is the loop agent of a name in what a definition makes.
func built(t *testing.T, d *definition.Definition, name string, cfg definition.BuildConfig) *loopagent.Agent {
	t.Helper()
	cfg.Model, cfg.DefaultModel = noModel, "any"
	root, err := d.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return agent.Find(root, name).(*loopagent.Agent)
}

func minutes(n float64) loop.Duration { return loop.Duration(n * float64(time.Minute)) }

// A21, F2, F3, F4, F8, F10, F11, G10, O1, O9, O10, C6, C17: what the file says
// reaches the loop.
func TestLimitsReachTheLoop(t *testing.T) {
	d := parse(t, `name: refine
timeouts: long
timeout: 50m
budget: {calls: 20, tokens: 90000, cost: 0.5}
prices:
  openai/x: {input: 0.25, output: 2, cached_input: 0.025}
  free: {input: 0, output: 0}
finalizer: each_iteration
iteration_delay: 30
state_limit: 10MB
quality_gate: 4
on_regression: rollback
no_progress: {repeats: 4, swings: 3, keys: [draft]}
not_worth: {gain: 0.1, per: ktokens}
score:
  key: review
  judge: {step: critic, samples: 3..12}
  target: 8
  dimensions: [clarity, depth]
  dimension_target: 7
sub_agents:
  - name: writer
    instructions: write
    timeout: 2m
    retry: {attempts: 3, backoff: 2s, max_backoff: 30s}
    circuit: {failures: 4, cooldown: 1m, endpoint: models}
    delay_before: 1.5
    delay_after: 0
    request_retry: {attempts: 5, backoff: 1s, max_backoff: 4s, max_retry_after: 20s}
    output_key: draft
  - name: critic
    instructions: review {{draft}}
    adaptive_timeout: {min: 5s, max: 5m, factor: 2, after: 3}
    on_error: next_iteration
    retry: 2
    request_retry: 1
    output_key: review
  - name: polish
    retry: 2
    timeout: 3m
    sub_agents: [{name: shorten, text: "{{draft}}"}]
  - name: last
    text: "{{draft}}"
    output_key: loop_output
`)
	if w := d.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	got := built(t, d, "refine", definition.BuildConfig{}).Plan()
	want := &loop.Plan{
		Version: 4, Name: "refine", MaxIterations: 5, CanExit: []string{}, Timeout: minutes(50), IterationTimeout: minutes(10),
		Budget:       &loop.Budget{Calls: 20, Tokens: 90_000, Cost: new(0.5)},
		FinalizeEach: true, DelayAfter: minutes(0.5), StateLimit: 10_000_000,
		QualityGate: new(4.0), OnRegression: loop.RollbackOnWorse,
		NoProgress: &loop.NoProgress{Repeats: 4, Swings: 3, Keys: []string{"draft"}},
		NotWorth:   &loop.NotWorth{Gain: 0.1, Per: loop.PerKTokens},
		Score: &loop.Score{
			Key: "review", Target: new(8.0), Judge: &loop.Judge{Step: "critic", Samples: 3, Max: 12}, Dimensions: []string{"clarity", "depth"}, DimensionTarget: new(7.0),
		},
		Steps: []loop.Step{
			{
				Name: "writer", Timeout: minutes(2),
				Retry:       &loop.Retry{Attempts: 3, Backoff: loop.Duration(2 * time.Second), MaxBackoff: loop.Duration(30 * time.Second)},
				Circuit:     &loop.Circuit{Failures: 4, Cooldown: minutes(1), Endpoint: "models"},
				DelayBefore: loop.Duration(1500 * time.Millisecond),
			},
			{
				Name: "critic", OnError: loop.NextIteration,
				AdaptiveTimeout: &loop.AdaptiveTimeout{Min: loop.Duration(5 * time.Second), Max: minutes(5), Factor: 2, After: 3},
				Retry:           &loop.Retry{Attempts: 2},
			},
			{Name: "polish", Retry: &loop.Retry{Attempts: 2}},
			{Name: "last", Finalizer: true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	inner := built(t, d, "polish", definition.BuildConfig{}).Plan()
	if inner.Timeout != minutes(3) || inner.IterationTimeout != 0 {
		t.Errorf("a loop in a loop may take %s, an iteration of it %s", inner.Timeout, inner.IterationTimeout)
	}
	wantPrices := budget.Prices{"openai/x": {Input: 0.25, Output: 2, CachedInput: 0.025}, "free": {}}
	if diff := cmp.Diff(wantPrices, d.Prices); diff != "" {
		t.Errorf("prices: %s", diff)
	}
	root, err := d.Build(t.Context(), definition.BuildConfig{Model: noModel, DefaultModel: "any"})
	if err != nil {
		t.Fatal(err)
	}
	wantRetry := llmagent.RequestRetry{Attempts: 5, Backoff: time.Second, MaxBackoff: 4 * time.Second, MaxRetryAfter: 20 * time.Second}
	if got := agent.Find(root, "writer").(*llmagent.Agent).Config().RequestRetry; got != wantRetry {
		t.Errorf("requests are sent again as %+v", got)
	}
}

// F2, F3, C11, LOOP 21
func TestTimeouts(t *testing.T) {
	for _, tt := range []struct {
		file             string
		iteration, total time.Duration
	}{
		{"", 5 * time.Minute, 30 * time.Minute},
		{"timeouts: standard", 5 * time.Minute, 30 * time.Minute},
		{"timeouts: fast", 2 * time.Minute, 15 * time.Minute},
		{"timeouts: long", 10 * time.Minute, time.Hour},
		{"timeouts: none", 0, 0},
		{"timeout: 10m", 5 * time.Minute, 10 * time.Minute},
		{"timeout: 60", time.Minute, time.Minute}, // an iteration has no more than the loop
		{"iteration_timeout: 1m", time.Minute, 30 * time.Minute},
		{"timeouts: long\niteration_timeout: 1m30s", 90 * time.Second, time.Hour},
		{"timeouts: none\ntimeout: 2h", 0, 2 * time.Hour},
		{"timeouts: none\niteration_timeout: 2h", 2 * time.Hour, 0},
	} {
		d := parse(t, "name: refine\n"+tt.file+"\nsub_agents: [{name: a, text: a}, {name: inner, sub_agents: [{name: b, text: b}]}]")
		got := built(t, d, "refine", definition.BuildConfig{}).Plan()
		if time.Duration(got.IterationTimeout) != tt.iteration || time.Duration(got.Timeout) != tt.total {
			t.Errorf("%q: an iteration may take %s, the loop %s", tt.file, got.IterationTimeout, got.Timeout)
		}
		if got := built(t, d, "inner", definition.BuildConfig{}).Plan(); got.IterationTimeout != 0 || got.Timeout != 0 {
			t.Errorf("%q: the loop inside may take %s, and the outer one bounds it", tt.file, got.Timeout)
		}
	}
	line := parse(t, "name: line\ntype: sequential\nsub_agents: [{name: a, sub_agents: [{name: x, text: x}]}, {name: b, timeouts: fast, sub_agents: [{name: y, text: y}]}]")
	for name, want := range map[string]time.Duration{"a": 30 * time.Minute, "b": 15 * time.Minute} {
		if got := built(t, line, name, definition.BuildConfig{}).Plan(); time.Duration(got.Timeout) != want {
			t.Errorf("in a sequence, %s may take %s", name, got.Timeout)
		}
	}
}

// F1, F2: a limit from outside wins.
func TestTimeoutFromOutside(t *testing.T) {
	d := parse(t, "name: refine\nsub_agents: [{name: a, text: a}]")
	for given, want := range map[time.Duration][2]time.Duration{
		time.Hour: {5 * time.Minute, time.Hour}, time.Minute: {time.Minute, time.Minute}, 0: {5 * time.Minute, 0},
	} {
		got := built(t, d, "refine", definition.BuildConfig{Limits: definition.Limits{Timeout: &given}}).Plan()
		if time.Duration(got.IterationTimeout) != want[0] || time.Duration(got.Timeout) != want[1] {
			t.Errorf("%s: an iteration may take %s, the loop %s", given, got.IterationTimeout, got.Timeout)
		}
	}
	none, hour, tooShort := uint(0), time.Hour, -time.Second
	if got := built(t, d, "refine", definition.BuildConfig{Limits: definition.Limits{MaxIterations: &none, Timeout: &hour}}).Plan(); got.MaxIterations != 0 {
		t.Errorf("%d iterations", got.MaxIterations)
	}
	for _, tt := range []struct {
		file string
		cfg  definition.BuildConfig
		want string
	}{
		{"name: refine\nsub_agents: [{name: a, text: a}]", definition.BuildConfig{Limits: definition.Limits{MaxIterations: &none}}, "can never stop"}, // the preset is no bound that somebody has chosen
		{"name: refine\nsub_agents: [{name: a, text: a}]", definition.BuildConfig{Limits: definition.Limits{Timeout: &tooShort}}, "negative"},
		{"name: a\ntext: a", definition.BuildConfig{Limits: definition.Limits{Timeout: &hour}}, `build "a": a timeout is given, but there is no loop`},
	} {
		_, err := parse(t, tt.file).Build(t.Context(), tt.cfg)
		if err == nil || !contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.file, err, tt.want)
		}
	}
}

// LOOP 10: what bounds a loop without a limit of iterations.
func TestBoundsOfALoopWithoutALimit(t *testing.T) {
	for file, want := range map[string]bool{
		"timeout: 10m":                               true,
		"timeouts: fast":                             true,
		"timeouts: none":                             false,
		"iteration_timeout: 10m":                     false,
		"budget: {tokens: 100}":                      true,
		"no_progress: true":                          false, // it may always find something new
		"score: {expr: '1.0'}":                       false,
		"score: {expr: '1.0'}\nnot_worth: {gain: 1}": false,
		"score: {key: s, dimension_target: 7}\nstate: {s: 0}":        true,
		"score: {expr: '1.0'}\nquality_gate: 3\nstate_limit: 1000KB": false,
	} {
		_, err := definition.Parse("x.yaml", []byte("name: l\nmax_iterations: 0\n"+
			file+"\nsub_agents: [{name: a, instructions: a, can_exit_loop: false}]"), definition.Options{})
		if (err == nil) != want {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// F4, C13: it is the loop's bound that ends a request, and not the request's own,
// so that the loop goes on with the next step.
func TestTimeoutOfARequestIsTheLoops(t *testing.T) {
	d := parse(t, `name: refine
sub_agents:
  - {name: short, url: "http://localhost/", timeout: 10s}
  - {name: long, url: "http://localhost/", adaptive_timeout: {max: 2m}}
  - {name: plain, url: "http://localhost/"}
  - name: group
    type: parallel
    timeout: 1m
    sub_agents: [{name: inner, url: "http://localhost/", timeout: 7s}]
  - {name: cmd, command: [a], timeout: 10s}
`)
	root, err := d.Build(t.Context(), definition.BuildConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Duration{"short": 70 * time.Second, "long": 3 * time.Minute, "plain": 30 * time.Second, "inner": 7 * time.Second} {
		if got := agent.Find(root, name).(*taskagent.HTTPAgent).Config().Timeout; got != want {
			t.Errorf("%s may take %s, want %s", name, got, want)
		}
	}
	if got := agent.Find(root, "cmd").(*taskagent.CommandAgent).Config().Timeout; got != 0 {
		t.Errorf("the command has a bound of its own: %s", got)
	}
	got := make(map[string]loop.Duration)
	for _, s := range root.(*loopagent.Agent).Plan().Steps {
		got[s.Name] = s.Timeout
	}
	if got["short"] != minutes(1.0/6) || got["cmd"] != minutes(1.0/6) || got["group"] != minutes(1) {
		t.Errorf("got %+v", got)
	}
}

// F10: the guard against models that are asked without end is the author's to move.
func TestMaxModelCalls(t *testing.T) {
	for text, want := range map[string]int{
		"":                         0,
		"max_model_calls: 0\n":     0,
		"max_model_calls: 2000\n":  2000,
		"max_model_calls: none\n":  -1,
		"budget: {calls: 2000}\n":  2000,
		"budget: {calls: 20}\n":    0,
		"budget: {tokens: 9000}\n": 0,
		"max_model_calls: 30\nbudget: {calls: 2000}\n": 30,
	} {
		if got := parse(t, "name: l\n"+text+asks).MaxModelCalls; got != want {
			t.Errorf("%q: %d calls, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"max_model_calls: -1\n":   "max_model_calls must be between 0 and 2147483647, got -1",
		"max_model_calls: lots\n": `max_model_calls must be a number of calls, or none, got "lots"`,
	} {
		if _, err := definition.Parse("x.yaml", []byte("name: l\n"+text+asks), definition.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestLoopThatNeedsMoreModelCallsThanThereAre(t *testing.T) {
	for text, warned := range map[string]bool{
		"max_iterations: 501\n":                        true,
		"max_iterations: 500\n":                        false,
		"max_iterations: 501\nmax_model_calls: 501\n":  false,
		"max_iterations: 501\nmax_model_calls: none\n": false,
		"max_iterations: 501\nbudget: {calls: 400}\n":  false,
		"max_iterations: 501\nbudget: {calls: 900}\n":  false,
		"max_iterations: 9\nmax_model_calls: 8\n":      true,
	} {
		err := parse(t, "name: l\n"+text+asks).Warnings().Error()
		if got := strings.Contains(err, "[LOOP045]"); got != warned {
			t.Errorf("%q: warned %v, want %v: %s", text, got, warned, err)
		}
	}
}
