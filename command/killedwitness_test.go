// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// witness sees from outside what runs do to the world: it is the models that they ask
// and the services that they call, and it reads the file into which commands write.
type witness struct {
	testing.TB
	dir    string
	url    string
	server *httptest.Server

	mu     sync.Mutex
	asked  map[string]int    // requests to models, by the run's name
	posted []effect          // what came by HTTP
	doing  map[string]int    // HTTP calls under way, by call ID
	change *sync.Cond        // of doing
	odd    map[string]string // answers of tools that are none

	given int // of posted, how many fresh has returned
	read  int // lines of the file, likewise
}

// effect is one thing that was done.
type effect struct{ name, id, job string }

func newWitness(t testing.TB, dir string) *witness {
	w := &witness{TB: t, dir: dir, asked: make(map[string]int), doing: make(map[string]int), odd: make(map[string]string)}
	w.change = sync.NewCond(&w.mu)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", w.model)
	mux.HandleFunc("POST /effects/{name}", w.effect)
	mux.HandleFunc("GET /done/{id}", w.look)
	w.server = httptest.NewServer(mux)
	t.Cleanup(w.server.Close)
	w.url = w.server.URL
	return w
}

var clerkTask = regexp.MustCompile(`Task (\S+?)/(\S+)/(\w+)\.`)

// model is a model that calls the tools of its agent, turn by turn. What it says
// depends on nothing but the request.
func (w *witness) model(rw http.ResponseWriter, req *http.Request) {
	var asked struct {
		Stream   bool
		Messages []struct {
			Role      string
			Content   any
			ToolCalls []json.RawMessage `json:"tool_calls"`
		}
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // whoever asked is gone
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		w.Errorf("a request that is none: %v: %s", err, body)
	}
	task := clerkTask.FindSubmatch(body)
	if task == nil {
		w.Errorf("a request without a task: %s", body)
		return
	}
	run, pass, agent := string(task[1]), string(task[2]), string(task[3])
	w.mu.Lock()
	w.asked[run]++
	turn := 0
	for _, m := range asked.Messages {
		if len(m.ToolCalls) > 0 {
			turn++
		}
		if text := fmt.Sprint(m.Content); m.Role == "tool" && !strings.Contains(text, "done ") {
			w.odd[run] = text
		}
	}
	w.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
	message := map[string]any{"role": "assistant", "content": "done " + agent}
	finish := "stop"
	if turns := clerkTurns[agent]; turn < len(turns) {
		var calls []any
		for i, tool := range turns[turn] {
			args, _ := json.Marshal(map[string]string{"job": fmt.Sprintf("%s/%s/%s-%s%d", run, pass, agent, tool, turn)})
			function := map[string]any{"name": agent + "_" + tool, "arguments": string(args)}
			id := fmt.Sprintf("c%d_%d", turn, i)
			calls = append(calls, map[string]any{"index": i, "id": id, "type": "function", "function": function})
		}
		message, finish = map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}, "tool_calls"
	}
	usage := map[string]int{"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
	said := "message"
	if asked.Stream {
		said = "delta"
	}
	answer, _ := json.Marshal(map[string]any{"id": "x", "object": "chat.completion", "created": 1, "model": "clerk", "usage": usage,
		"choices": []any{map[string]any{"index": 0, said: message, "finish_reason": finish}}})
	if asked.Stream {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, "data: %s\n\ndata: [DONE]\n\n", answer)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(answer)
}

// effect does something under the call's ID. Whoever asked may be gone meanwhile.
func (w *witness) effect(rw http.ResponseWriter, req *http.Request) {
	id := req.Header.Get("Idempotency-Key")
	w.mu.Lock()
	w.doing[id]++
	w.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	time.Sleep(10 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.change.Broadcast()
	if w.doing[id]--; w.doing[id] == 0 {
		delete(w.doing, id)
	}
	if err != nil {
		return // it did not come through
	}
	w.posted = append(w.posted, effect{req.PathValue("name"), id, string(body)})
	fmt.Fprintf(rw, "done %s", body)
}

// look answers whether a call was made.
func (w *witness) look(rw http.ResponseWriter, req *http.Request) {
	if e := w.find(req.PathValue("id")); e != nil {
		fmt.Fprintf(rw, "done %s", e.job)
		return
	}
	rw.WriteHeader(http.StatusNotFound)
}

// find is what was done under an ID; nil if nothing was, and nothing will be: it waits
// for what is under way, which may have outlived the process that began it.
func (w *witness) find(id string) *effect {
	for range 2 { // a command may be just about to begin
		for until := time.Now().Add(time.Minute); hasProcess("REFRAIN_CALL_ID="+id) && time.Now().Before(until); {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.mu.Lock()
	for w.doing[id] > 0 {
		w.change.Wait()
	}
	w.mu.Unlock()
	for _, e := range w.effects() {
		if e.id == id {
			return &e
		}
	}
	return nil
}

// askedBy is how often a run has asked models.
func (w *witness) askedBy(run string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[run]
}

// idle reports whether no request is under way.
func (w *witness) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.doing) == 0
}

// fresh is what was done since it was last asked.
func (w *witness) fresh() []effect {
	w.mu.Lock()
	all := append([]effect(nil), w.posted[w.given:]...)
	w.given = len(w.posted)
	w.mu.Unlock()
	file := w.file()
	all = append(all, file[w.read:]...)
	w.read = len(file)
	return all
}

// effects are all that was done so far.
func (w *witness) effects() []effect {
	w.mu.Lock()
	all := append([]effect(nil), w.posted...)
	w.mu.Unlock()
	return append(all, w.file()...)
}

// file is what commands have done.
func (w *witness) file() (all []effect) {
	text, err := os.ReadFile(filepath.Join(w.dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		w.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			w.Errorf("an effect without a call ID or a job: %q", line)
			continue
		}
		all = append(all, effect{f[0], f[1], f[2]})
	}
	return all
}

// hasProcess reports whether there is a process with a variable in its environment.
func hasProcess(variable string) bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range dirs {
		env, err := os.ReadFile(path)
		if err == nil && bytes.Contains(env, []byte(variable)) {
			return true
		}
	}
	return false
}

// onceOnly are the effects that must not happen twice, whatever their ID.
var onceOnly = map[string]bool{"pay": true, "fee": true, "order": true, "wire": true}

// judge demands of what one run, or one of its forks, has done that nothing was done
// under two IDs, and nothing twice that must not be.
func (w *witness) judge(whose string, done []effect) {
	w.Helper()
	ids, times := make(map[string]string), make(map[string]int)
	for _, e := range done {
		if first := cmp.Or(ids[e.job], e.id); first != e.id {
			w.Errorf("%s: %s was done under two IDs, %s and %s", whose, e.job, first, e.id)
		}
		ids[e.job] = e.id
		if times[e.job]++; times[e.job] == 2 && onceOnly[e.name] {
			w.Errorf("%s: %s must not be done twice, and was (%s)", whose, e.job, e.id)
		}
	}
}
