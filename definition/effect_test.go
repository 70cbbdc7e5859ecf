// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
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
		if got := drive.TraitsOf(agent.Find(root, name), true).Effect; got != want {
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
		if q.Kind != mark.AskResolution || !strings.Contains(q.Text, "order was cut off") || len(calls.keys) != 1 || !strings.Contains(q.Text, calls.keys[0]) {
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

// shop takes orders by POST, and says by GET what became of one: some that come in are
// lost, and some days it does not know.
type shop struct {
	mu      sync.Mutex
	loses   int // so many orders
	unsure  bool
	orders  map[string]string
	posted  []string
	lookups int
}

func (s *shop) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Method == http.MethodGet {
		s.lookups++
		order, ok := s.orders[strings.TrimPrefix(req.URL.Path, "/orders/")]
		switch {
		case s.unsure:
			http.Error(w, "the books are closed", http.StatusServiceUnavailable)
		case !ok || req.Header.Get("Idempotency-Key") != "":
			http.NotFound(w, req)
		default:
			_, _ = fmt.Fprint(w, order)
		}
		return
	}
	key := req.Header.Get("Idempotency-Key")
	s.posted = append(s.posted, key)
	if s.loses--; s.loses < 0 {
		s.orders[key] = fmt.Sprintf("no %d", len(s.posted))
	}
	_, _ = fmt.Fprint(w, s.orders[key])
}

// E5: a step that must not be done twice and was cut off finds out by itself what
// became of it, where the file says how; where it cannot, a person is asked.
func TestStepInDoubtFindsOut(t *testing.T) {
	for _, tt := range []struct {
		name   string
		loses  int
		unsure bool
		posts  int
		want   string
	}{
		{"it was done", 0, false, 1, "ordered no 1"},
		{"it was not done", 1, false, 2, "ordered no 2"},
		{"nobody knows", 0, true, 1, "ordered by phone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shop := &shop{loses: tt.loses, orders: make(map[string]string)}
			server := httptest.NewServer(shop)
			defer server.Close()
			h := newHouse(t, `name: line
type: sequential
state: {item: bread}
sub_agents:
  - name: order
    url: "`+server.URL+`/orders"
    method: POST
    body: one {{item}}
    effect: {at_most_once: true, reconcile: {url: "`+server.URL+`/orders/{{call_id}}?item={{item}}", timeout: 5s}}
    output_key: order
  - {name: say, text: "ordered {{order}}", output_key: said}
`, definition.BuildConfig{})
			sound := h.svc
			h.svc = &losing{sound}
			if err := h.run(); !errors.Is(err, errDied) {
				t.Fatalf("it did not die: %v", err)
			}
			h.svc, shop.unsure = sound, tt.unsure
			if tt.unsure {
				q := h.asked()
				if !strings.Contains(q.Text, "It could not be found out: request "+server.URL) || !strings.Contains(q.Text, "the books are closed") ||
					!strings.Contains(q.Text, shop.posted[0]) {
					t.Errorf("asked %s", q.Text)
				}
				h.answer(q, `{"action": "result", "result": "by phone"}`)
			}
			if err := h.run(); err != nil {
				t.Fatal(err)
			}
			if got := h.state("said"); got != tt.want || len(shop.posted) != tt.posts || shop.lookups != 1 {
				t.Errorf("%v, ordered %d times, looked up %d times; want %s, %d times", got, len(shop.posted), shop.lookups, tt.want, tt.posts)
			}
			if len(slices.Compact(shop.posted)) != 1 {
				t.Errorf("the keys are %q", shop.posted)
			}
		})
	}
}

// E5: a command can find it out too, by its exit code.
func TestCommandFindsOut(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		want   string
	}{
		"it was done":     {`printf 'found %s' "$INPUT_ITEM"`, "ordered found bread"},
		"it was not done": {`exit 1`, "ordered done"},
		"by its ID":       {`test "$REFRAIN_CALL_ID" = "$0" && printf same`, "ordered same"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(new(requests))
			defer server.Close()
			h := newHouse(t, `name: line
type: sequential
state: {item: bread}
sub_agents:
  - name: order
    url: "`+server.URL+`"
    method: POST
    effect: {at_most_once: true, reconcile: {command: [sh, -c, `+quote(tt.script)+`, "{{call_id}}"], env: {INPUT_ITEM: "{{item}}"}}}
    output_key: order
  - {name: say, text: "ordered {{order}}", output_key: said}
`, definition.BuildConfig{Root: filepath.Join(t.TempDir())})
			sound := h.svc
			h.svc = &losing{sound}
			if err := h.run(); !errors.Is(err, errDied) {
				t.Fatalf("it did not die: %v", err)
			}
			h.svc = sound
			if err := h.run(); err != nil {
				t.Fatal(err)
			}
			if got := h.state("said"); got != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// E5: a tool of a model finds it out likewise: it sees what the call was asked.
func TestToolFindsOut(t *testing.T) {
	d := parse(t, `name: ask
instructions: a
tools:
  - command: [refund]
    name: refund
    description: Pays back.
    effect: {at_most_once: true, reconcile: {command: [sh, -c, 'printf "%s of " "$REFRAIN_CALL_ID"; cat', sh], stdin: "{{user_input}}"}}
    parameters: {type: object, properties: {n: {type: integer}}}
`)
	root, err := d.Build(t.Context(), definition.BuildConfig{DefaultModel: "scripted/x", Model: noModel, Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	refund := root.(*llmagent.Agent).Config().Tools[0]
	find := tool.ReconcileOf(refund)
	if find == nil || tool.EffectOf(refund) != agent.AtMostOnce {
		t.Fatal("the tool cannot find it out")
	}
	inv := drive.NewInvocation(t.Context(), drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{SessionID: "s1"})})
	ctx := agent.NewToolContext(inv, "call-1", nil, nil)
	got, err := find(ctx, agent.Doubt{ID: "the-id", Args: map[string]any{"n": 3}})
	if err != nil {
		t.Fatal(err)
	}
	result, ok := got.Happened()
	if want := `map[result:the-id of {"n":3}]`; !ok || fmt.Sprint(result) != want {
		t.Errorf("got %v, want %s", result, want)
	}
}

// What is wrong with it is said where it stands.
func TestReconcileRefuses(t *testing.T) {
	for effect, want := range map[string]string{
		`{at_most_once: true}`:                                                      "effect as a map needs at_most_once: true and reconcile",
		`{at_most_once: false, reconcile: {command: [a]}}`:                          "effect.at_most_once must be true",
		`{reconcile: {command: [a]}}`:                                               "effect as a map needs at_most_once: true and reconcile",
		`{at_most_once: true, reconcil: {command: [a]}}`:                            `unknown field "reconcil" of effect`,
		`{at_most_once: true, reconcile: a}`:                                        "effect.reconcile must be a map",
		`{at_most_once: true, reconcile: {}}`:                                       "effect.reconcile must be one of command and url",
		`{at_most_once: true, reconcile: {command: [a], url: "http://localhost/"}}`: "effect.reconcile must be one of command and url",
		`{at_most_once: true, reconcile: {command: [a], method: GET}}`:              `unknown field "method" of effect.reconcile with command`,
		`{at_most_once: true, reconcile: {command: [a, "{{nobody}}"]}}`:             "{{nobody}} is read here but no agent writes it",
		`{at_most_once: true, reconcile: {command: [a, "{{call_id"]}}`:              "command[1]: ",
		`{at_most_once: true, reconcile: {command: ["{{call_id}}"]}}`:               "only declared choices may choose what runs",
		`{at_most_once: true, reconcile: {url: "ftp://localhost/"}}`:                "url: ",
		`{at_most_once: true, reconcile: {command: [a], timeout: never}}`:           "effect.reconcile.timeout must be a duration",
	} {
		_, err := definition.Parse("x.yaml", []byte("name: x\ntype: sequential\nsub_agents:\n  - {name: pay, command: [pay], effect: "+
			effect+"}\n"), definition.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", effect, err, want)
		}
		if problems, ok := errors.AsType[definition.Problems](err); ok && problems[0].Line != 4 {
			t.Errorf("%s: the problem is in line %d", effect, problems[0].Line)
		}
	}
	_, err := definition.Parse("x.yaml", []byte("name: x\ntype: sequential\nsub_agents:\n  - {name: say, text: a, effect: {at_most_once: true, reconcile: {command: [a]}}}\n"), definition.Options{})
	if err == nil || !strings.Contains(err.Error(), "effect must be") {
		t.Errorf("of an agent that does nothing outside: got %v", err)
	}
}
