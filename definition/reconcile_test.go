// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
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
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

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
				if !strings.Contains(q.Text, "It could not be found out: request "+server.URL) || !strings.Contains(q.Text, "the books are closed") || !strings.Contains(q.Text, shop.posted[0]) {
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
		"it was done":     {`printf 'found %s' "$1"`, "ordered found bread"},
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
    effect: {at_most_once: true, reconcile: {command: [sh, -c, `+quote(tt.script)+`, "{{call_id}}", "{{item}}"]}}
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
	inv := agent.NewInvocation(t.Context(), agent.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{SessionID: "s1"})})
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
		`{at_most_once: true, reconcile: {command: ["{{call_id}}"]}}`:               "a value cannot choose what runs",
		`{at_most_once: true, reconcile: {url: "ftp://localhost/"}}`:                "url: ",
		`{at_most_once: true, reconcile: {command: [a], timeout: never}}`:           "effect.reconcile.timeout must be a duration",
	} {
		_, err := definition.Parse("x.yaml", []byte("name: x\ntype: sequential\nsub_agents:\n  - {name: pay, command: [pay], effect: "+effect+"}\n"), definition.Options{})
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
