// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// seller is a model's server that counts what it sells. Each request costs 100 tokens and each answer 50, also if nobody
// waits for it any more.
type seller struct {
	slow  time.Duration
	tools bool // it calls the tool look or the agent helper, if the request has one
	busy  bool // it refuses each fourth request

	mu       sync.Mutex
	requests int
	tokens   int64
	doing    int           // answers under way
	came     chan struct{} // gets one for each request
}

func (s *seller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests++
	n := s.requests
	refused := s.busy && n%4 == 0
	if !refused {
		s.doing++
		s.tokens += 150
	}
	s.mu.Unlock()
	select {
	case s.came <- struct{}{}:
	default:
	}
	if refused {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	time.Sleep(s.slow)
	message := map[string]any{"role": "assistant", "content": fmt.Sprint("answer ", n)}
	for _, name := range []string{"look", "helper"} {
		if s.tools && strings.Contains(string(body), `"name":"`+name+`"`) && n%5 != 0 {
			message = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "call_0", "type": "function",
				"function": map[string]any{"name": name, "arguments": `{"request":"look"}`}}}}
		}
	}
	s.mu.Lock()
	s.doing--
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message, "finish_reason": "stop"}},
		"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}})
}

const spentLoop = `
name: spend
model: openai/m
budget: {%s}
max_iterations: 100
sub_agents:
`

var spenders = map[string]struct {
	steps       string
	tools, busy bool
	most        int // requests at one time
}{
	"steps": {`
  - {name: write, instructions: "Write.", can_exit_loop: false}
  - {name: judge, instructions: "Judge.", can_exit_loop: false}
`, false, false, 1},
	"branches": {`
  - name: all
    type: parallel
    sub_agents:
      - {name: a, instructions: "Write.", can_exit_loop: false}
      - {name: b, instructions: "Write.", can_exit_loop: false}
      - {name: c, instructions: "Write.", can_exit_loop: false}
`, false, false, 3},
	"tools": {`
  - name: asks
    instructions: "Use the tool."
    can_exit_loop: false
    tools: [{command: ["true"], name: look, description: "Looks.", parameters: {type: object, properties: {request: {type: string}}}}]
`, true, false, 1},
	"helper": {`
  - name: asks
    instructions: "Use the tool."
    can_exit_loop: false
    tools:
      - agent: {name: helper, instructions: "Use the tool.", tools: [{command: ["true"], name: look, description: "Looks."}]}
`, true, false, 1},
	"busy": {`
  - {name: write, instructions: "Write.", can_exit_loop: false}
`, false, true, 1},
}

// LOOP 23: wherever the process of a run is killed, the requests that reach the model's server do not exceed the budget of
// calls, and all of them are in the usage of the run, which is said to be estimated. Of a budget of tokens no more is
// exceeded than what was under way at the kills, and at the end.
func TestKilledRunsKeepTheirBudgets(t *testing.T) {
	draw := *seed
	if draw == 0 {
		draw = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", draw)
	for name, spender := range spenders {
		for _, limit := range []string{"calls: 3", "calls: 12", "tokens: 2400"} {
			t.Run(name+"/"+limit, func(t *testing.T) {
				t.Parallel()
				dice := rand.New(rand.NewPCG(draw, uint64(len(name)+100*len(limit))))
				killed, runs := 0, 0
				for most := max(3, *kills/5); killed < most; runs++ {
					s := &seller{slow: 60 * time.Millisecond, tools: spender.tools, busy: spender.busy, came: make(chan struct{}, 100)}
					killed += killedSpender(t, dice, s, fmt.Sprintf(spentLoop, limit)+spender.steps, limit, spender.most)
				}
				t.Logf("%d kills in %d runs", killed, runs)
			})
		}
	}
}

// killedSpender runs a definition until its budget is spent, and kills its process now and then while a request is under
// way. It returns how often it did.
func killedSpender(t *testing.T, dice *rand.Rand, s *seller, definition, limit string, most int) (kills int) {
	t.Helper()
	srv := httptest.NewServer(s)
	defer srv.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "loop.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &refrains{TB: t, dir: dir, binary: "refrain", store: "sqlite:runs.db",
		env: []string{"OPENAI_BASE_URL=" + srv.URL + "/v1", "OPENAI_API_KEY=k"}}
	args, unanswered := []string{"run", "loop.yaml", "--session", "r", "--exit-zero-on-limit"}, int64(0)
	for lives := 0; ; lives++ {
		p := r.start(args...)
		if lives < 8 && dice.IntN(4) > 0 { // else it comes to its end
			select {
			case <-s.came:
				time.Sleep(time.Duration(dice.Int64N(int64(2 * s.slow))))
				_ = p.Process.Signal(syscall.SIGKILL)
			case <-p.ended:
			}
		}
		r.end(p)
		if p.code() >= 0 {
			if p.code() != 0 && !strings.Contains(p.stderr.String(), "the run has ended: it completed: budget") { // killed behind its end
				t.Fatalf("%v: exit code %d\n%s", args, p.code(), &p.stderr)
			}
			break
		}
		kills++
		s.mu.Lock()
		unanswered += int64(max(s.doing, most)) // some may be answered, and not in the log
		s.mu.Unlock()
		for drained := false; !drained; {
			select {
			case <-s.came:
			default:
				drained = true
			}
		}
		if args = []string{"resume", "r", "--exit-zero-on-limit"}; r.stand("r") == nil {
			t.Fatalf("a request has left, and the store has no run\n%s", &p.stderr)
		}
	}
	used := r.used("r")
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls, tokens int
	_, _ = fmt.Sscanf(limit, "calls: %d", &calls)
	_, _ = fmt.Sscanf(limit, "tokens: %d", &tokens)
	asked := int64(s.requests)
	switch {
	case calls > 0 && s.requests > calls:
		t.Errorf("%d requests reached the server, and the budget has %d; %d kills", asked, calls, kills)
	case used.Calls < asked || used.Calls > asked+int64(kills*most): // a mark may be in the log of a request that had not left
		t.Errorf("%d requests reached the server, and the run says %+v; %d kills", asked, used, kills)
	case tokens > 0 && s.tokens > int64(tokens)+150*(unanswered+int64(most)):
		t.Errorf("the server has sold %d tokens, and the budget has %d; %d kills", s.tokens, tokens, kills)
	case used.Tokens() < s.tokens-150*unanswered:
		t.Errorf("the server has sold %d tokens, and the run says %+v; %d kills", s.tokens, used, kills)
	case !used.Estimated && used.Tokens() != s.tokens: // all requests had an answer in the log before each kill
		t.Errorf("the server has sold %d tokens, and the run, which has no estimates, says %+v; %d kills", s.tokens, used, kills)
	}
	return kills
}

// used returns what the log says that a run has used, at the end of its root.
func (r *refrains) used(id string) (u budget.Usage) {
	r.Helper()
	store, closeStore := r.open()
	defer closeStore()
	got, err := store.Get(context.Background(), &session.GetRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id})
	if err != nil {
		r.Fatal(err)
	}
	for ev := range session.ViewOf(got.Session).Events().All() {
		if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && ev.Address.Parent() == "" {
			u = budget.Usage{}
			if fin := decodeMark[mark.StepFinished](r, ev); fin.Usage != nil {
				if err := json.Unmarshal(fin.Usage, &u); err != nil {
					r.Fatal(err)
				}
			}
		}
	}
	return u
}
