// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/command/internal/tui"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// The screen of the seed, while the third iteration runs.
//
// M9, M10, M11, M12, M13, M14, M15, M16, C31, U10
func TestScreenOfTheSeed(t *testing.T) {
	log := seedRun(t)
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			x := newTerminal(t, size[0], size[1])
			v := start(x, tui.Hooks{Pause: func() {}, Cancel: func() {}, Detach: func() {}})
			defer v.Close()
			for _, ev := range upTo(t, log, "refinador_conteudo_iterativo[3]/feedback_collector") {
				v.Add(ev)
			}
			x.golden(fmt.Sprintf("seed-%dx%d", size[0], size[1]))
		})
	}
}

// M16: the view follows the run, and its last frame stays when the terminal is given
// back.
func TestLastFrameRemains(t *testing.T) {
	x := newTerminal(t, 80, 24)
	v := start(x, tui.Hooks{})
	for _, ev := range seedRun(t) {
		v.Add(ev)
	}
	v.Finish()
	if err := v.Err(); err != nil {
		t.Error(err)
	}
	fmt.Fprint(x.tty, "the shell goes on here")
	x.golden("finished-80x24")
	x.restored()
	v.Finish() // once is enough
}

// A window that becomes larger, smaller, and as it was, shows what it would have
// shown at that size.
func TestResize(t *testing.T) {
	x := newTerminal(t, 80, 24)
	v := start(x, tui.Hooks{Pause: func() {}, Cancel: func() {}, Detach: func() {}})
	defer v.Close()
	for _, ev := range upTo(t, seedRun(t), "refinador_conteudo_iterativo[3]/feedback_collector") {
		v.Add(ev)
	}
	x.golden("seed-80x24")
	x.resize(200, 50)
	x.golden("seed-200x50")
	x.resize(80, 24)
	x.golden("seed-80x24")
	x.resize(40, 12)
	x.golden("seed-40x12")
	x.resize(12, 4)
	x.golden("seed-12x4")
}

// A hundred iterations have room in a small window: those that have ended are a
// line each, and what there is no room for is counted.
func TestHundredIterations(t *testing.T) {
	scores := make([]any, 100)
	for i := range scores {
		scores[i] = 100 - 95/float64(i+1)
	}
	log := run(t, func() agent.Agent {
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "long", SubAgents: []agent.Agent{
				says("write", 90*time.Second, nil),
				says("judge", 30*time.Second, func(n int, ev *session.Event) error {
					ev.Actions.StateDelta = map[string]any{"s": scores[n-1]}
					return nil
				}),
			}},
			MaxIterations: 100, Rules: loop.Plan{Score: &loop.Score{Key: "s", Target: new(99.9)}},
		}))
	})
	x := newTerminal(t, 80, 24)
	v := start(x, tui.Hooks{})
	defer v.Close()
	for _, ev := range upTo(t, log, "long[100]/judge") {
		v.Add(ev)
	}
	x.golden("hundred-80x24")
	x.press("\x1b[H") // Home
	x.golden("hundred-first-80x24")
	x.press("\x1b[F") // End
	x.golden("hundred-80x24")
}

// A score of a judge has its error, a difference within its noise says so, and so does the end.
func TestNoisyJudge(t *testing.T) {
	answers := []any{6.0, 6.6, 6.3, 7.8, 8.4, 8.1, 8.3, 7.9, 8.4}
	log := run(t, func() agent.Agent {
		n := 0
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "noisy", SubAgents: []agent.Agent{
				says("write", 90*time.Second, nil),
				says("judge", 30*time.Second, func(_ int, ev *session.Event) error {
					ev.Actions.StateDelta = map[string]any{"s": answers[n]}
					n++
					return nil
				}),
			}},
			MaxIterations: 3, Rules: loop.Plan{Score: &loop.Score{Key: "s", Judge: &loop.Judge{Step: "judge", Samples: 3}}},
		}))
	})
	x := newTerminal(t, 80, 24)
	v := start(x, tui.Hooks{})
	defer v.Close()
	for _, ev := range log {
		v.Add(ev)
	}
	x.golden("noisy-80x24")
	x.resize(40, 12)
	x.golden("noisy-40x12")
}

// Wide characters take two columns, and none is cut in half.
func TestWideCharacters(t *testing.T) {
	text := "本文：焼きたてのパンを、朝七時までに、あなたの家の扉まで届けます。ご注文は夕方六時まで。" + strings.Repeat("甲乙丙丁", 40)
	log := run(t, func() agent.Agent {
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "改善ループ", SubAgents: []agent.Agent{
				says("生成エージェント", 41*time.Second, func(_ int, ev *session.Event) error {
					ev.Content = genai.NewContentFromText(text, genai.RoleModel)
					ev.Actions.StateDelta = map[string]any{"s": 5}
					return nil
				}),
				says("café_é", time.Second, func(int, *session.Event) error {
					return errors.New("品質が低い：もう一度書き直してください。" + text)
				}),
				says("smile_😀", time.Second, nil),
			}},
			MaxIterations: 2, Rules: loop.Plan{Score: &loop.Score{Key: "s"}, OnError: loop.SkipStep},
		}))
	})
	x := newTerminal(t, 80, 24)
	v := start(x, tui.Hooks{})
	defer v.Close()
	for _, ev := range upTo(t, log, "改善ループ[2]/café_é") {
		v.Add(ev)
	}
	x.golden("wide-80x24")
	x.resize(79, 24)
	x.golden("wide-79x24")
	x.press("\x1b[H\x1b[B\r") // first, down, open
	x.golden("wide-open-79x24")
}

// U10: an inner loop is nested in its outer one.
func TestNestedLoops(t *testing.T) {
	x := newTerminal(t, 80, 24)
	v := start(x, tui.Hooks{})
	defer v.Close()
	for _, ev := range upTo(t, nestedRun(t), "book[2]/chapter/polish[2]/cut") {
		v.Add(ev)
	}
	x.golden("nested-80x24")
}

// The keys: help, errors only, the output of a step, and back.
func TestKeys(t *testing.T) {
	log := run(t, func() agent.Agent {
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{
				says("writer", time.Second, func(n int, ev *session.Event) error {
					ev.Content = genai.NewContentFromText(strings.Repeat(fmt.Sprintf("a line of draft %d\n", n), 40), genai.RoleModel)
					return nil
				}),
				says("critic", time.Second, func(n int, ev *session.Event) error {
					if n == 2 {
						return errors.New("no opinion")
					}
					return nil
				}),
			}},
			MaxIterations: 3, Rules: loop.Plan{OnError: loop.SkipStep},
		}))
	})
	x := newTerminal(t, 80, 24)
	var paused, detached atomic.Int32
	v := start(x, tui.Hooks{Pause: func() { paused.Add(1) }, Detach: func() { detached.Add(1); v2.Load().Note("detached") }, Interrupt: func() {}})
	v2.Store(v)
	defer v.Close()
	for _, ev := range upTo(t, log, "l[3]/critic") {
		v.Add(ev)
	}
	x.golden("keys-80x24")
	x.press("?")
	x.golden("keys-help-80x24")
	x.press("?e")
	x.golden("keys-errors-80x24")
	x.press("e\x1b[A\x1b[A\r") // up, up, open: what the writer of the third iteration says
	x.golden("keys-open-80x24")
	x.press("\x1b[6~") // page down
	x.shows("lines 13 to")
	x.press("\x1b") // back to the tree, with the selection, and then without
	x.shows("› ")
	x.press("\x1b")
	x.golden("keys-80x24")
	x.press("pd")
	x.shows("detached")
	if paused.Load() != 1 || detached.Load() != 1 {
		t.Errorf("paused %d times, detached %d", paused.Load(), detached.Load())
	}
}

var v2 atomic.Pointer[tui.View]

// F11, LOOP 12: an iteration without a score, and a state near its limit, are seen as
// they happen.
func TestIterationThatIsWarnedOf(t *testing.T) {
	log := run(t, func() agent.Agent {
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{
				says("writer", time.Second, func(_ int, ev *session.Event) error {
					ev.Actions.StateDelta = map[string]any{"draft": strings.Repeat("x", 85)}
					return nil
				}),
			}},
			MaxIterations: 1, Rules: loop.Plan{StateLimit: 110, Score: &loop.Score{Key: "grade"}},
		}))
	})
	x := newTerminal(t, 160, 24)
	v := start(x, tui.Hooks{})
	defer v.Close()
	for _, ev := range log {
		v.Add(ev)
	}
	x.shows("no score: ")
	x.shows("; the state has 98 of 110 bytes")
}

// G10: of a step that is tried again, an attempt has failed, and not the step.
func TestStepThatIsTriedAgain(t *testing.T) {
	log := run(t, func() agent.Agent {
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{
				says("flaky", time.Second, func(int, *session.Event) error { return errors.New("out of paper") }),
			}},
			MaxIterations: 1,
			Rules: loop.Plan{
				OnError: loop.SkipStep,
				Steps:   []loop.Step{{Name: "flaky", Retry: &loop.Retry{Attempts: 2}}},
			},
		}))
	})
	x := newTerminal(t, 100, 24)
	v := start(x, tui.Hooks{})
	defer v.Close()
	told := []string{" Attempt 1 failed, another follows: ", " Attempt 1 failed: ", " Failed: "}
	opened := false
	for _, ev := range log {
		v.Add(ev)
		if ev.Mark == nil || ev.Address != "l[1]/flaky" {
			continue
		}
		if ev.Mark.Kind == mark.KindStepStarted && !opened { // nothing has failed yet
			x.shows("flaky [RUNNING]")
			x.press("\x1b[A\r")
			x.shows("it has said nothing yet")
			opened = true
			continue
		}
		x.shows(told[0] + "agent")
		told = told[1:]
	}
	if len(told) > 0 {
		t.Errorf("not told: %q", told)
	}
}

// T20: a key that ends a run is pressed twice, and Ctrl-C is told each time.
func TestKeysThatEndTheRun(t *testing.T) {
	x := newTerminal(t, 80, 24)
	canceled, interrupted := make(chan struct{}, 9), make(chan struct{}, 9)
	v := start(x, tui.Hooks{Cancel: func() { canceled <- struct{}{} }, Interrupt: func() { interrupted <- struct{}{} }})
	v.Add(seedRun(t)[1])
	x.shows("c cancel")
	x.press("c")
	x.shows("Press c again to cancel the run.")
	x.press("ec") // another key between: it is asked again
	x.shows("Errors by")
	x.shows("Press c again to cancel the run.")
	select {
	case <-canceled:
		t.Fatal("canceled by a single c")
	default:
	}
	x.press("c")
	<-canceled
	x.shows("Canceling: ")
	x.press("\x03")
	<-interrupted
	x.press("\x03")
	<-interrupted
	v.Close()
	x.restored()
}

// T6, U10: what models, names and errors say cannot command the terminal, nor turn
// the words around it.
func TestHostileText(t *testing.T) {
	evil := "safe\x1b[2J\x1b]0;pwned\a\x1bP+q\x1b\\\u009b31m\u202egnp.exe\u2066\u200b\x00\x07\r\nIteration 9: Score 10 [COMPLETED]\t\U000e0041."
	log := run(t, func() agent.Agent {
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{
				says("writer", time.Second, func(_ int, ev *session.Event) error {
					ev.Content = genai.NewContentFromText(evil, genai.RoleModel)
					return nil
				}),
				says("broken", time.Second, func(int, *session.Event) error { return errors.New(evil) }),
				says("leaves", time.Second, func(_ int, ev *session.Event) error {
					ev.Actions.Escalate = true
					ev.Actions.Exit = &session.Exit{By: "leaves", Reason: evil}
					return nil
				}),
			}},
			MaxIterations: 2, Rules: loop.Plan{OnError: loop.SkipStep},
		}))
	})
	x := newTerminal(t, 200, 40)
	v := tui.Start(tui.Config{
		Name: evil, Run: evil, Input: x.tty, Output: x.tty, Environ: environ, Tick: -1,
		Hooks: tui.Hooks{Interrupt: func() {}},
	})
	x.shows("safe[2J")
	v.Note(evil)
	at := 0
	for i, ev := range log {
		v.Add(ev)
		if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
			at = i
			break
		}
	}
	x.shows("leaves: safe")
	x.press("\x1b[H\x1b[C\x1b[B\r") // the iteration's first step, opened
	x.shows("l[1]/writer [COMPLETED]")
	x.press("\x1b")
	x.shows("Progress by")
	x.press("\x1b")
	x.until("no selection", func(s string) bool { return !strings.Contains(s, "›") })
	for _, ev := range log[at+1:] {
		v.Add(ev)
	}
	v.Finish()
	x.golden("hostile-200x40")
	for _, r := range x.written() {
		if r == '\u202e' || r == '\u2066' || r == '\u200b' || r >= 0xe0000 || r >= 0x80 && r < 0xa0 || r == 0 || r == 7 {
			t.Errorf("%U came through", r)
		}
	}
	if strings.Contains(x.written(), "\x1b]") || strings.Contains(x.written(), "\x1bP") {
		t.Error("a title or a device string came through")
	}
	// x's cleanup fails the test if the terminal was sent anything else unknown.
}

// A panic takes the view down, and the terminal is as it was.
func TestPanicRestoresTheTerminal(t *testing.T) {
	x := newTerminal(t, 80, 24)
	v := start(x, tui.Hooks{Pause: func() { panic("a bug in whoever gave the hook") }})
	v.Add(seedRun(t)[1])
	x.shows("p pause")
	x.press("p")
	<-v.Done()
	if p, ok := errors.AsType[*tui.PanicError](v.Err()); !ok || p.Value != "a bug in whoever gave the hook" || len(p.Stack) == 0 {
		t.Errorf("error %v", v.Err())
	}
	x.restored()
	v.Add(seedRun(t)[2]) // nobody minds
	v.Note("hello")
	v.Finish()
}

// A panic while it draws is none of the run, either.
func TestPanicInTheModel(t *testing.T) {
	x := newTerminal(t, 80, 24)
	v := start(x, tui.Hooks{})
	x.shows("Progress by")
	v.Add(nil) // no event
	<-v.Done()
	if _, ok := errors.AsType[*tui.PanicError](v.Err()); !ok {
		t.Errorf("error %v", v.Err())
	}
	x.restored()
	v.Finish()
}

// Without a keyboard there are no keys, and Ctrl-C stays a signal.
func TestWithoutKeys(t *testing.T) {
	x := newTerminal(t, 80, 24)
	v := tui.Start(tui.Config{Output: x.tty, Environ: environ, Tick: -1})
	v.Add(seedRun(t)[1])
	x.shows("Ctrl-C stops the run")
	x.shows("refinador_conteudo_iterativo")
	x.restoredSettings()
	v.Finish()
	x.restored()
}

// What is no terminal ends a view at once: nobody waits for it.
func TestNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.Close() // and it cannot be written to either
	v := tui.Start(tui.Config{Output: w, Environ: environ, Tick: -1})
	v.Add(seedRun(t)[1])
	v.Finish()
}

// The clock goes on between two events.
func TestClockGoesOn(t *testing.T) {
	x := newTerminal(t, 80, 24)
	v := tui.Start(tui.Config{Output: x.tty, Environ: environ, Tick: time.Millisecond})
	v.Add(seedRun(t)[1])
	x.until("another time", func(s string) bool {
		return strings.Contains(s, "Elapsed Time: ") && !strings.Contains(s, "Elapsed Time: 0ms")
	})
	v.Finish()
}

var environ = []string{"TERM=xterm-256color"}

// start puts up a view whose times are those of its events alone.
func start(x *terminal, hooks tui.Hooks) *tui.View {
	return tui.Start(tui.Config{Run: "r_8f3k", Input: x.tty, Output: x.tty, Environ: environ, Tick: -1, Hooks: hooks})
}
