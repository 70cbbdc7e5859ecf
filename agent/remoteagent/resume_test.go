// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

var errGone = errors.New("the disk is gone")

// breaking is a store that stops working: as if the process had died.
type breaking struct {
	session.Service
	at func(*session.Event) bool
	id string // of the run
}

func (b *breaking) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if b.at != nil && b.at(ev) {
		b.at, b.id = func(*session.Event) bool { return true }, ev.InvocationID
		return errGone
	}
	return b.Service.AppendEvent(ctx, s, ev)
}

// LOOP 30: a resumed run takes up the task that it was waiting for. A task that
// was canceled with the earlier part of the run, or that the server has forgotten,
// is begun again.
func TestResumedRunTakesUpTheTask(t *testing.T) {
	for _, kind := range kinds[:2] {
		for _, tt := range []struct {
			name     string
			cancels  bool // the process had the time to cancel the task
			messages int
		}{
			{"after a crash", false, 1},
			{"after an orderly end", true, 2},
		} {
			t.Run(kind.name+" "+tt.name, func(t *testing.T) {
				finish := make(chan struct{})
				r := serve(t, kind, func(ctx context.Context, x *a2asrv.ExecutorContext, yield yield) {
					if !begins(x, yield) {
						return
					}
					select {
					case <-finish:
					case <-ctx.Done():
						return
					}
					if yield(a2a.NewArtifactEvent(x, text("Once")), nil) {
						ends(x, yield, a2a.TaskStateCompleted, nil)
					}
				})
				l := func() agent.Agent {
					return newLoop(t, loopagent.Config{
						AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{made(t, r)}}, MaxIterations: 1,
					})
				}
				tk := newTalk(t, l(), nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				store := &breaking{Service: tk.svc}
				if tt.cancels {
					store.at = func(ev *session.Event) bool {
						if ev.Author == "far" && ev.CustomMetadata != nil && store.id == "" {
							store.id = ev.InvocationID
							time.AfterFunc(50*time.Millisecond, func() { cancel(errEnough) })
						}
						return false
					}
				} else {
					// The process dies while it waits: it cancels nothing, and stores
					// nothing of what it hears later.
					r.refuseCancels()
					noted := sync.OnceFunc(func() { close(finish) })
					store.at = func(ev *session.Event) bool {
						if ev.Author == "far" && ev.CustomMetadata != nil {
							noted()
						}
						return ev.Author == "far" && ev.Content != nil
					}
				}
				for _, err := range newRunner(t, store, l()).Run(ctx, "ana", "s", user("Hi"), agent.RunConfig{}) {
					if err != nil && !errors.Is(err, errGone) && !errors.Is(err, errEnough) {
						t.Fatal(err)
					}
				}
				if tt.cancels {
					close(finish)
				}
				// Another process, with agents of its own.
				tk.runner = newRunner(t, tk.svc, l())
				got := tk.take(tk.runner.Resume(t.Context(), "ana", "s", store.id, agent.RunConfig{}))
				if got.err != nil {
					t.Fatal(got.err)
				}
				equal(t, "output", any("Once"), got.state["out"])
				if n := len(r.said()); n != tt.messages {
					t.Errorf("%d messages, want %d", n, tt.messages)
				}
				if tt.messages == 2 && r.message(0).ID == r.message(1).ID {
					t.Error("what was canceled is begun again with another message")
				}
			})
		}
	}
}

// What was said before the run was cut off is not asked for again.
func TestResumedRunDoesNotAskAgain(t *testing.T) {
	r := serve(t, kinds[0], writes("Once"))
	l := newLoop(t, loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{made(t, r)}}, MaxIterations: 1,
	})
	tk := newTalk(t, l, nil)
	store := &breaking{Service: tk.svc, at: func(ev *session.Event) bool {
		return ev.Address.Agent() == "far" && ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished
	}}
	for range newRunner(t, store, l).Run(t.Context(), "ana", "s", user("Hi"), agent.RunConfig{}) {
	}
	got := tk.take(tk.runner.Resume(t.Context(), "ana", "s", store.id, agent.RunConfig{}))
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "output", any("Once"), got.state["out"])
	equal(t, "the remote agent was asked", []string{"Hi"}, r.said())
}
