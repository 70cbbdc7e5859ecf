// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
)

var errEnough = errors.New("enough")

// LOOP 30: canceling the run cancels the remote task.
func TestCanceledRunCancelsTheTask(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var r *remote
			r = serve(t, kind, func(ctx context.Context, x *a2asrv.ExecutorContext, yield yield) {
				if begins(x, yield) {
					r.wait(ctx)
				}
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			tk := newTalk(t, made(t, r), nil)
			var err error
			for ev, e := range tk.runner.Run(ctx, "ana", "s", user("Hi"), agent.RunConfig{}) {
				if err = e; ev != nil && ev.CustomMetadata != nil {
					time.AfterFunc(50*time.Millisecond, func() { cancel(errEnough) }) // while it waits
				}
			}
			if !errors.Is(err, errEnough) || r.cancels() != 1 {
				t.Errorf("got %v, %d cancels", err, r.cancels())
			}
		})
	}
}

// T18: so does a consumer who leaves.
func TestConsumerWhoLeavesCancelsTheTask(t *testing.T) {
	var r *remote
	r = serve(t, kinds[0], func(ctx context.Context, x *a2asrv.ExecutorContext, yield yield) {
		if begins(x, yield) {
			r.wait(ctx)
		}
	})
	tk := newTalk(t, made(t, r), nil)
	for ev := range tk.runner.Run(t.Context(), "ana", "s", user("Hi"), agent.RunConfig{}) {
		if ev.CustomMetadata != nil {
			break
		}
	}
	if r.cancels() != 1 {
		t.Errorf("%d cancels", r.cancels())
	}
}

// F4, F5: a step that takes too long is left, its task is canceled, and the next
// step goes on.
func TestStepTimeoutFailsOver(t *testing.T) {
	var r *remote
	r = serve(t, kinds[0], func(ctx context.Context, x *a2asrv.ExecutorContext, yield yield) {
		if begins(x, yield) {
			r.wait(ctx)
		}
	})
	next, err := agent.New(agent.Config{Name: "next", AfterAgentCallbacks: []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) {
		return genai.NewContentFromText("went on", genai.RoleModel), nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	// Where the machine is so slow that the task has not begun by then, a longer time is tried.
	for timeout := time.Second; r.cancels() == 0; timeout *= 4 {
		l := newLoop(t, loopagent.Config{
			AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{made(t, r), next}}, MaxIterations: 1,
			Rules: loop.Plan{Steps: []loop.Step{{Name: "far", Timeout: loop.Duration(timeout)}}},
		})
		begun := false
		got := newTalk(t, l, nil).whenNoted(func() { begun = true }).say(t.Context(), "Hi")
		if got.err != nil {
			t.Fatal(got.err)
		}
		equal(t, "words", []string{"went on"}, got.words())
		if n := r.cancels(); begun && n != 1 || n > 1 {
			t.Fatalf("%d cancels", n)
		}
	}
}

// A server that does not answer at all is left too.
func TestSilentServer(t *testing.T) {
	r := serve(t, kinds[0], writes("never"))
	r.intercept(func(_ http.ResponseWriter, req *http.Request) bool {
		r.wait(req.Context())
		return true
	})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errEnough)
	defer cancel()
	if got := newTalk(t, made(t, r), nil).say(ctx, "Hi"); !errors.Is(got.err, errEnough) {
		t.Errorf("got %v", got.err)
	}
}

// cut breaks the connection of a request, after what was sent.
func cut(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}

// cutFirst cuts the first stream of a server when now is closed. It closes gone when
// the server has noticed, and back when somebody listens to the task again.
func (r *remote) cutFirst(now <-chan struct{}) (gone, back <-chan struct{}) {
	var calls atomic.Int64
	left, came := make(chan struct{}), make(chan struct{})
	r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
		switch again := strings.Contains(req.URL.Path, ":subscribe") || contains(req, `"SubscribeToTask"`) || contains(req, `"tasks/resubscribe"`); {
		case again:
			r.serve.ServeHTTP(&firstWrite{ResponseWriter: w, done: sync.OnceFunc(func() { close(came) })}, req)
		case req.Method == http.MethodPost && calls.Add(1) == 1:
			go func() {
				<-now
				r.Server.CloseClientConnections()
			}()
			r.serve.ServeHTTP(w, req)
			close(left)
		default:
			return false
		}
		return true
	})
	return left, came
}

// firstWrite calls done when something has been written.
type firstWrite struct {
	http.ResponseWriter
	done func()
}

func (w *firstWrite) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.done()
	return n, err
}

func (w *firstWrite) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// A stream that was cut is taken up where it is.
func TestCutStreamIsTakenUp(t *testing.T) {
	for _, kind := range kinds {
		if !kind.streams {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			now := make(chan struct{})
			var gone, back <-chan struct{}
			r := serve(t, kind, func(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
				ev := a2a.NewArtifactEvent(x, text("Once "))
				if !begins(x, yield) || !yield(ev, nil) {
					return
				}
				<-gone
				if !yield(a2a.NewArtifactUpdateEvent(x, ev.Artifact.ID, text("upon ")), nil) {
					return
				}
				<-back
				if yield(a2a.NewArtifactUpdateEvent(x, ev.Artifact.ID, text("a time")), nil) {
					ends(x, yield, a2a.TaskStateCompleted, nil)
				}
			})
			gone, back = r.cutFirst(now)
			got := newTalk(t, made(t, r), nil).whenNoted(func() { close(now) }).say(t.Context(), "Hi")
			if got.err != nil {
				t.Fatal(got.err)
			}
			equal(t, "words", []string{"Once upon a time"}, got.words())
			if n := len(r.said()); n != 1 || r.cancels() != 0 {
				t.Errorf("%d messages, %d cancels; want one message", n, r.cancels())
			}
		})
	}
}

func user(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleUser) }

// retried is a loop that tries an agent three times.
func retried(t testing.TB, a agent.Agent) agent.Agent {
	return newLoop(t, loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{a}}, MaxIterations: 1,
		Rules: loop.Plan{Steps: []loop.Step{{Name: a.Name(), Retry: &loop.Retry{Attempts: 3, Backoff: loop.Duration(time.Second)}}}},
	})
}

func newLoop(t testing.TB, cfg loopagent.Config) agent.Agent {
	t.Helper()
	l, err := loopagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// G10: a server that dies in the middle of a task is an error; the loop tries
// again, and the next try takes up the task that is still under way.
func TestServerThatDiesAndComesBack(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			now, finish := make(chan struct{}), make(chan struct{})
			r := serve(t, kind, func(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
				if !begins(x, yield) || !yield(a2a.NewArtifactEvent(x, text("Once")), nil) {
					return
				}
				<-finish
				ends(x, yield, a2a.TaskStateCompleted, nil)
			})
			var once sync.Once
			end := func() { once.Do(func() { close(finish) }) }
			defer end()
			dead := false
			r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				if dead && req.URL.Path == a2asrv.WellKnownAgentCardPath {
					dead = false // the second try has begun
					end()
				}
				if dead {
					cut(w)
				}
				return dead
			})
			go func() {
				<-now
				r.mu.Lock()
				dead = true
				r.mu.Unlock()
				r.Server.CloseClientConnections()
			}()
			l := retried(t, made(t, r))
			got := newTalk(t, l, nil).whenNoted(func() { close(now) }).say(t.Context(), "Hi")
			if got.err != nil {
				t.Fatal(got.err)
			}
			equal(t, "output", any("Once"), got.state["out"])
			if n := len(r.said()); n != 1 || r.cancels() != 0 {
				t.Errorf("%d messages, %d cancels; want one message", n, r.cancels())
			}
			attempts := 0
			for _, ev := range got.events {
				attempts = max(attempts, ev.Attempt)
			}
			if attempts < 2 {
				t.Error("the first try did not fail")
			}
		})
	}
}
