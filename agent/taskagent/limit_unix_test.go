// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/testkit/standin"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// limits is a session in which a coding agent, whose answers are scripts, runs in one process after the other.
type limits struct {
	*testing.T
	dir   string
	root  func() agent.Agent
	svc   session.Service
	id    string
	start time.Time
	pause *agent.Pause
}

// newLimits is for a claude that gives some answers, and the last one again and again: see answer.
func newLimits(t *testing.T, answers []string, cli taskagent.OnLimit, around func(agent.Agent) agent.Agent) *limits {
	l := &limits{T: t, svc: session.InMemoryService(), start: time.Now()}
	l.dir = fake(t, "claude", fmt.Sprintf(`echo x >>calls; n=$(($(wc -l <calls))); test $n -le %d || n=%d; . ./answer$n`, len(answers), len(answers)))
	for i, a := range answers {
		if err := os.WriteFile(filepath.Join(l.dir, fmt.Sprint("answer", i+1)), []byte(answer(t, a)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.root = func() agent.Agent {
		cfg := taskagent.CommandConfig{Stdin: "Mend it.", CLI: &taskagent.CLI{Program: "claude", OnLimit: cli}, Timeout: time.Minute}
		cfg.Config = taskagent.Config{Name: "c", OutputKey: "out", ResultKey: "all"}
		a := must(taskagent.NewCommand(cfg))
		if around != nil {
			a = around(a)
		}
		return a
	}
	return l
}

// answer is what claude does: "ok", "limited", or "limited for" a time that it reports.
func answer(t *testing.T, what string) string {
	if what == "ok" {
		return recording(t, "claude-2.1.197/ok", 0)
	}
	if span, ok := strings.CutPrefix(what, "limited for "); ok {
		d, err := time.ParseDuration(span)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%d}}'; `, time.Now().Add(d).Unix()) +
			recording(t, "claude-2.1.197/limited", 1)
	}
	return recording(t, "claude-2.1.197/limited", 1)
}

// run runs, or goes on, until an event at which stop says so: then nothing more is written, as after kill -9.
func (l *limits) run(stop func(*session.Event) bool) (err error) {
	l.Helper()
	r := must(runner.New(runner.Config{AppName: "app", Agent: l.root(), SessionService: l.svc, AutoCreateSession: true, Durable: true}))
	l.pause = new(agent.Pause)
	cfg := agent.RunConfig{Pause: l.pause, Budget: &budget.Limits{Calls: 100}}
	seq := r.Resume(l.Context(), "ana", "s", l.id, cfg)
	if l.id == "" {
		seq = r.Run(l.Context(), "ana", "s", genai.NewContentFromText("go", genai.RoleUser), cfg)
	}
	for ev, e := range seq {
		if e != nil {
			err = e
			continue
		}
		if l.id = ev.InvocationID; stop != nil && stop(ev) {
			return nil
		}
	}
	return err
}

func (l *limits) calls() int { return strings.Count(text(l.T, l.dir, "calls"), "x") }

// took is how long all has taken, by the clock of the test.
func (l *limits) took() time.Duration { return time.Since(l.start).Round(time.Second) }

func (l *limits) view() session.Session {
	got := must(l.svc.Get(context.Background(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s"}))
	return got.Session
}

// finished is the end of the step c, and of its outcome for a loop.
func (l *limits) finished() (fin mark.StepFinished, o loop.Outcome) {
	for ev := range l.view().Events().All() {
		if ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished || ev.Address.Agent() != "c" {
			continue
		}
		fin, o = mark.StepFinished{}, loop.Outcome{}
		if err := ev.Mark.Decode(&fin); err != nil {
			l.Fatal(err)
		}
		if ev.Attempt != 1 {
			l.Errorf("a wait is an attempt: %d", ev.Attempt)
		}
		if fin.Outcome != nil {
			_ = json.Unmarshal(fin.Outcome, &o)
		}
	}
	return fin, o
}

func (l *limits) used() (u budget.Usage) {
	fin, _ := l.finished()
	if err := json.Unmarshal(fin.Usage, &u); err != nil {
		l.Fatal(err)
	}
	return u
}

func at(kind mark.Kind) func(*session.Event) bool {
	return func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == kind }
}

// A step whose provider is limited waits until the limit ends, or else in steps, and fails when that takes too long.
func TestWaitsForALimit(t *testing.T) {
	reset := func(most time.Duration) taskagent.OnLimit {
		return taskagent.OnLimit{Wait: taskagent.LimitReset, AtMost: most}
	}
	for name, tt := range map[string]struct {
		answers []string
		on      taskagent.OnLimit
		took    time.Duration
		calls   int
		err     string
		again   bool // another attempt may help
	}{
		"stop":                    {[]string{"limited", "ok"}, taskagent.OnLimit{}, 0, 1, "takes no more requests for now. It says", true},
		"in steps":                {[]string{"limited", "limited", "limited", "ok"}, reset(0), 8 * time.Minute, 4, "", false},
		"the last step again":     {[]string{"limited", "limited", "limited", "limited", "limited", "limited", "ok"}, reset(0), 48 * time.Minute, 7, "", false},
		"at most":                 {[]string{"limited"}, reset(10 * time.Minute), 10 * time.Minute, 5, "which is longer than at_most of on_limit", false},
		"until the limit ends":    {[]string{"limited for 40m", "ok"}, reset(0), 40 * time.Minute, 2, "", false},
		"it has ended":            {[]string{"limited for -40m", "ok"}, reset(0), time.Minute, 2, "", false},
		"it ends, and not at all": {[]string{"limited for 40m", "limited", "ok"}, reset(0), 42 * time.Minute, 3, "", false},
		"a second more each time": {[]string{"limited for 2400s", "limited for 2401s", "limited for 2402s", "ok"}, reset(0), 47 * time.Minute, 4, "", false},
		"it ends too late":        {[]string{"limited for 7h", "ok"}, reset(0), 0, 1, "until 2000-01-01 07:00 UTC, which is longer than at_most", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimits(t, tt.answers, tt.on, nil)
				err := l.run(nil)
				equal(t, "took", tt.took, l.took())
				equal(t, "calls", tt.calls, l.calls())
				equal(t, "calls that are booked", int64(tt.calls), l.used().Calls-int64(strings.Count(strings.Join(tt.answers, " "), "ok"))*b2i(tt.err == ""))
				if tt.err == "" {
					equal(t, "error", nil, err)
					return
				}
				has(t, err, tt.err)
				failed, ok := errors.AsType[*taskagent.CLIError](err)
				if !ok || failed.Outcome != taskagent.CLILimited || failed.Permanent() == tt.again {
					t.Errorf("got %#v", err)
				}
				result, _ := must(l.view().State().Get("all")).(map[string]any)
				equal(t, "outcome", any("limited"), result["outcome"])
			})
		})
	}
}

// b2i is 1 for true: the answer ok is of two calls.
func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// A run that is killed or paused while a step waits waits the rest when it goes on, and not from the beginning.
func TestWaitGoesOn(t *testing.T) {
	answers := []string{"limited", "limited for 40m", "ok"}
	wait := taskagent.OnLimit{Wait: taskagent.LimitReset}
	for name, tt := range map[string]struct {
		cut   func(*limits) error
		away  time.Duration
		took  time.Duration
		calls int
		used  budget.Usage
	}{
		"killed": {func(l *limits) error {
			n := 0
			return l.run(func(ev *session.Event) bool {
				n += int(b2i(at(mark.KindLimited)(ev)))
				return n == 2
			})
		}, 10 * time.Minute, 40 * time.Minute, 3, budget.Usage{}},
		"killed for long": {func(l *limits) error { return l.run(at(mark.KindLimited)) }, time.Hour, time.Hour + 2*time.Minute, 3, budget.Usage{}},
		"killed at work":  {func(l *limits) error { return l.run(at(mark.KindLimitOver)) }, 10 * time.Minute, 40 * time.Minute, 3, budget.Usage{Calls: 1, Estimated: true}},
		"killed at work again and again": {func(l *limits) error {
			return errors.Join(l.run(at(mark.KindLimitOver)), l.run(at(mark.KindRunResumed)), l.run(at(mark.KindRunResumed)))
		}, 10 * time.Minute, 40 * time.Minute, 3, budget.Usage{Calls: 3, Estimated: true}},
		// What rests does not work.
		"killed in a wait again and again": {func(l *limits) error {
			return errors.Join(l.run(at(mark.KindLimited)), l.run(at(mark.KindRunResumed)), l.run(at(mark.KindRunResumed)))
		}, 10 * time.Minute, 40 * time.Minute, 3, budget.Usage{}},
		"killed afterward": {func(l *limits) error {
			return l.run(func(ev *session.Event) bool { return ev.Content != nil && ev.Author == "c" })
		}, time.Hour, 100 * time.Minute, 3, budget.Usage{}},
		"paused": {func(l *limits) error {
			time.AfterFunc(10*time.Minute, func() { l.pause.Ask(agent.ErrPaused) })
			if err := l.run(nil); !errors.Is(err, agent.ErrPaused) {
				return fmt.Errorf("it is not paused: %w", err)
			}
			equal(l.T, "paused after", 10*time.Minute, l.took())
			return nil
		}, 10 * time.Minute, 40 * time.Minute, 3, budget.Usage{}},
	} {
		for _, inLoop := range []bool{false, true} {
			t.Run(fmt.Sprint(name, inLoop), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLimits(t, answers, wait, func(a agent.Agent) agent.Agent {
						if !inLoop {
							return a
						}
						return must(loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{a}}, MaxIterations: 1}))
					})
					equal(t, "error", nil, tt.cut(l))
					time.Sleep(tt.away)
					equal(t, "error", nil, l.run(nil))
					equal(t, "took", tt.took, l.took())
					equal(t, "calls", tt.calls, l.calls())
					u := l.used()
					equal(t, "calls that are booked", int64(4)+tt.used.Calls, u.Calls)
					equal(t, "unknown", tt.used.Estimated, u.Estimated)
				})
			})
		}
	}
}

// A clock that is set back while the run is away does not make a wait longer than at_most.
func TestWaitAfterTheClockWasSetBack(t *testing.T) {
	svc, id := session.InMemoryService(), ""
	on := taskagent.OnLimit{Wait: taskagent.LimitReset, AtMost: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10000 * time.Hour)
		l := newLimits(t, []string{"limited for 40m"}, on, nil)
		l.svc = svc
		equal(t, "error", nil, l.run(at(mark.KindLimited)))
		id = l.id
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLimits(t, []string{"ok"}, on, nil)
		l.svc, l.id = svc, id
		equal(t, "error", nil, l.run(nil))
		equal(t, "took", time.Hour, l.took())
	})
}

// Of the limits of time only the loop's counts a wait, and a wait is no attempt.
func TestWaitCountsForTheLoopOnly(t *testing.T) {
	for _, tt := range []struct {
		timeout time.Duration
		reason  loop.StopReason
		took    time.Duration
	}{
		{0, loop.ReasonMaxIterations, 41 * time.Minute},
		{time.Hour, loop.ReasonMaxIterations, 41 * time.Minute},
		{20 * time.Minute, loop.ReasonTimeout, 20 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			var rec *loop.StopRecord
			l := newLimits(t, []string{"limited", "limited for 41m", "ok"}, taskagent.OnLimit{Wait: taskagent.LimitReset}, func(a agent.Agent) agent.Agent {
				inner := must(loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "inner", SubAgents: []agent.Agent{a}}, MaxIterations: 1}))
				return must(loopagent.New(loopagent.Config{
					AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{inner}}, MaxIterations: 2,
					Rules: loop.Plan{
						Timeout: loop.Duration(tt.timeout), IterationTimeout: loop.Duration(time.Minute),
						Steps: []loop.Step{{Name: "inner", Timeout: loop.Duration(30 * time.Second), Retry: &loop.Retry{Attempts: 2}}},
					},
					OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) { rec = r },
				}))
			})
			err := l.run(nil)
			if rec == nil || rec.Reason != tt.reason || rec.Retries != 0 || l.took() != tt.took {
				t.Errorf("after %s: %v, %+v", l.took(), err, rec)
			}
			if _, o := l.finished(); tt.reason != loop.ReasonTimeout && o.Limited != 0 {
				t.Errorf("the second iteration has waited for %s", o.Limited)
			}
			var first loop.Outcome
			for ev := range l.view().Events().All() {
				if at(mark.KindStepFinished)(ev) && ev.Address == "l[1]/inner" {
					var fin mark.StepFinished
					_ = ev.Mark.Decode(&fin)
					_ = json.Unmarshal(fin.Outcome, &first)
				}
			}
			equal(t, "waited", tt.took, first.Limited.Round(time.Second))
		})
	}
}

// The time of a step with branches is that in which any of them works.
func TestWaitOfABranch(t *testing.T) {
	for _, tt := range []struct {
		works   time.Duration // of the branch beside the one that waits
		timeout bool
		took    time.Duration
	}{{10 * time.Second, false, 40 * time.Minute}, {time.Hour, true, 30 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			beside := must(agent.New(agent.Config{Name: "beside", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
				return func(yield func(*session.Event, error) bool) {
					select {
					case <-time.After(tt.works):
					case <-ctx.Done():
						yield(nil, context.Cause(ctx))
					}
				}
			}}))
			l := newLimits(t, []string{"limited for 40m", "ok"}, taskagent.OnLimit{Wait: taskagent.LimitReset}, func(a agent.Agent) agent.Agent {
				both := must(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "both", SubAgents: []agent.Agent{a, beside}}}))
				return must(loopagent.New(loopagent.Config{
					AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{both}}, MaxIterations: 1,
					Rules: loop.Plan{Steps: []loop.Step{{Name: "both", Timeout: loop.Duration(30 * time.Second)}}},
				}))
			})
			err := l.run(nil)
			var late *loopagent.TimeoutError
			if errors.As(err, &late) != tt.timeout || l.took() != tt.took {
				t.Errorf("it took %s: %v", l.took(), err)
			}
		})
	}
}

// Cancel ends a wait at once.
func TestWaitIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits(t, []string{"limited for 5h"}, taskagent.OnLimit{Wait: taskagent.LimitReset}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := run(ctx, t, l.root(), nil)
		if !errors.Is(r.err, context.DeadlineExceeded) || l.took() != time.Hour {
			t.Errorf("after %s: %v", l.took(), r.err)
		}
		kinds := slices.ContainsFunc(r.events, at(mark.KindLimited))
		equal(t, "the wait is in the log", true, kinds)
	})
}

// The real programs go on after a limit. The clock of the test stands still while they work.
func TestRealCodingAgentsWait(t *testing.T) {
	realClaudeAndCodex(t)
	limited := standin.Answer{Status: 429, RetryAfter: 2}
	for program, answers := range map[string][]standin.Answer{
		"claude": {limited, limited, standin.Say("done")}, // it tries again once
		"codex":  {limited, standin.Say("done")},
	} {
		t.Run(program, func(t *testing.T) {
			cli := taskagent.CLI{Program: program, OnLimit: taskagent.OnLimit{Wait: taskagent.LimitReset}}
			server, with := standinFor(t, &cli, t.TempDir(), answers...)
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got := asked(t, cli, with)
				equal(t, "error", nil, got.err)
				equal(t, "said", any("done"), got.state["out"])
				equal(t, "waited", time.Minute, time.Since(start).Truncate(time.Second)) // the end of a program is polled for
				equal(t, "requests", len(answers), len(server.Asked()))
			})
		})
	}
}
