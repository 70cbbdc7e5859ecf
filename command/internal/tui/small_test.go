// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/humanagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/command/internal/tui"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// In a small window too it is to be seen which iteration it is, how long it takes, how
// each step stands, where the scores go and how much is to come: without words where
// there is no room for them.
//
// M9, M10, M11, M12, M13, M14, M15
func TestSmallWindow(t *testing.T) {
	x := newTerminal(t, 40, 10)
	v := start(x, tui.Hooks{Pause: func() {}, Cancel: func() {}, Detach: func() {}})
	defer v.Close()
	for _, ev := range upTo(t, seedRun(t), "refinador_conteudo_iterativo[3]/feedback_collector") {
		v.Add(ev)
	}
	x.golden("seed-40x10")
	x.press("?")
	x.golden("seed-help-40x10")
	x.press("?")
	v.Note("Pausing after feedback_collector finishes (up to 1m 51s). Ctrl-C again to stop now; nothing already saved is lost.")
	x.golden("seed-note-40x10")
}

// A hundred iterations with wide names, in a small window and in a large one.
func TestManyWideIterations(t *testing.T) {
	log := run(t, func() agent.Agent {
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "改善ループ", SubAgents: []agent.Agent{
				says("生成エージェント", 90*time.Second, func(n int, ev *session.Event) error {
					ev.Content = genai.NewContentFromText(fmt.Sprintf("第%d稿：", n)+strings.Repeat("焼きたてのパン", 30), genai.RoleModel)
					return nil
				}),
				says("judge", 30*time.Second, func(n int, ev *session.Event) error {
					ev.Actions.StateDelta = map[string]any{"s": 100 - 95/float64(n)}
					return nil
				}),
			}},
			MaxIterations: 100, Rules: loop.Plan{Score: &loop.Score{Key: "s", Target: new(99.9)}},
		}))
	})
	for _, size := range [][2]int{{40, 10}, {80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			x := newTerminal(t, size[0], size[1])
			v := start(x, tui.Hooks{Pause: func() {}})
			defer v.Close()
			for _, ev := range upTo(t, log, "改善ループ[100]/judge") {
				v.Add(ev)
			}
			x.golden(fmt.Sprintf("many-%dx%d", size[0], size[1]))
		})
	}
}

// A run that waits for a person, or is paused, is not shown as one that was canceled:
// what it waits for is open. LOOP 30, LOOP 32
func TestRunThatWaits(t *testing.T) {
	editor := func() agent.Agent {
		a, err := humanagent.New(humanagent.Config{Name: "editor", Text: "Shall it go out?"})
		return must(a, err)
	}
	for name, second := range map[string]func() agent.Agent{
		"waiting": editor, "paused": func() agent.Agent { return says("editor", time.Second, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			log := stopped(t, name == "paused", func() agent.Agent {
				return must(loopagent.New(loopagent.Config{
					AgentConfig:   agent.Config{Name: "letter", SubAgents: []agent.Agent{says("write", time.Second, nil), second(), says("send", time.Second, nil)}},
					MaxIterations: 2,
				}))
			})
			x := newTerminal(t, 80, 24)
			v := start(x, tui.Hooks{})
			for _, ev := range log {
				v.Add(ev)
			}
			v.Finish()
			x.golden(name + "-80x24")
		})
	}
}

// stopped is the log of a run that waits for a person, or is paused in its first step.
func stopped(t *testing.T, pause bool, root func() agent.Agent) (log []*session.Event) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sup, err := supervisor.New(supervisor.Config{
			Service: session.InMemoryService(), AppName: "a", UserID: "u", Leases: supervisor.Leases{Owner: "ana"},
			Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
				return &supervisor.Program{Agent: root()}, nil
			},
			OnEvent: func(_ string, ev *session.Event) { log = append(log, ev) },
		})
		if err != nil {
			t.Fatal(err)
		}
		run, err := sup.Start(t.Context(), supervisor.Request{SessionID: "s", Message: genai.NewContentFromText("go", genai.RoleUser)})
		if err != nil {
			t.Fatal(err)
		}
		if pause {
			synctest.Wait() // until the first step is at its work
			if err := sup.Pause(t.Context(), "s", "lunch"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sup.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return log
}
