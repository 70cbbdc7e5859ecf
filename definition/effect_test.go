// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// E5: what a task and a tool do to the world outside is what the file says.
func TestEffectsReachTheAgents(t *testing.T) {
	d := parse(t, `name: x
type: sequential
sub_agents:
  - {name: pay, command: [pay], effect: at_most_once}
  - {name: look, url: "http://localhost/", effect: pure}
  - {name: count, set: {n: "1"}, effect: transactional}
  - {name: say, text: a, effect: pure}
  - {name: plain, command: [a]}
  - name: ask
    instructions: a
    tools:
      - {command: [refund], name: refund, description: Pays back., effect: at_most_once, parameters: {type: object, properties: {n: {type: integer}}}}
      - {command: [seek], name: find, description: Finds.}
`)
	root, err := d.Build(t.Context(), definition.BuildConfig{DefaultModel: "scripted/x", Model: noModel})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]agent.Effect{
		"pay": agent.AtMostOnce, "look": agent.Pure, "count": agent.Transactional, "say": agent.Pure, "plain": "",
	} {
		if got := agent.Find(root, name).(interface{ Effect() agent.Effect }).Effect(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	tools := agent.Find(root, "ask").(*llmagent.Agent).Config().Tools
	for i, want := range []agent.Effect{agent.AtMostOnce, agent.Idempotent} {
		if got := tool.EffectOf(tools[i]); got != want {
			t.Errorf("%s: %q, want %q", tools[i].Name(), got, want)
		}
	}
}

// E5: a step that must not be done twice and was cut off waits for a
// person, who says what became of it.
func TestStepInDoubtAsks(t *testing.T) {
	calls := new(requests)
	server := httptest.NewServer(calls)
	defer server.Close()
	text := `name: line
type: sequential
sub_agents:
  - {name: order, url: "` + server.URL + `", method: POST, body: one, effect: at_most_once, output_key: order}
  - {name: say, text: "ordered {{order}}", output_key: said}
`
	for answer, want := range map[string]string{
		`{"action": "result", "result": "no 7"}`: "ordered no 7 1", `{"action": "retry"}`: "ordered done 2", `{"action": "skip"}`: "ordered  1",
	} {
		calls.keys = nil
		h := newHouse(t, text, definition.BuildConfig{})
		sound := h.svc
		h.svc = &losing{sound}
		if err := h.run(); !errors.Is(err, errDied) {
			t.Fatalf("it did not die: %v", err)
		}
		h.svc = sound
		q := h.asked()
		if q.Kind != session.AskResolution || !strings.Contains(q.Text, "order was cut off") || len(calls.keys) != 1 || !strings.Contains(q.Text, calls.keys[0]) {
			t.Errorf("asked %+v after %q", q, calls.keys)
		}
		h.answer(q, answer)
		if err := h.run(); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%v %d", h.state("said"), len(calls.keys)); got != want {
			t.Errorf("%s: %q, sent %d times; want %q", answer, got, len(calls.keys), want)
		}
		if len(slices.Compact(calls.keys)) != 1 {
			t.Errorf("the keys are %q", calls.keys)
		}
	}
}

// losing dies when an answer is to be stored: the order is sent, and nobody knows.
type losing struct{ session.Service }

func (l *losing) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if ev.Author == "order" && ev.Mark == nil {
		return errDied
	}
	return l.Service.AppendEvent(ctx, s, ev)
}

// requests is a server that takes down the keys of what it is sent.
type requests struct {
	mu   sync.Mutex
	keys []string
}

func (r *requests) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = append(r.keys, req.Header.Get("Idempotency-Key"))
	w.Write([]byte("done"))
}
