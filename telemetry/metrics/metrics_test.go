// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/telemetry/metrics"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// refine asks a model and a person in each of two iterations, and has a loop in the first step.
const refine = `name: refine
model: scripted/script.yaml
max_iterations: 2
budget: {calls: 8}
prices: {scripted: {input: 100000, output: 1000000}}
score: {key: grade}
sub_agents:
  - name: polish
    max_iterations: 3
    sub_agents:
      - {name: writer, instructions: "Write it", output_key: draft}
  - {name: grader, set: {grade: "7.5"}}
  - {name: editor, question: "Send it?", output_key: review}
`

const script = `answers:
  - {agent: writer, text: A draft., repeat: true, usage: {prompt: 10, output: 2}}
`

// world is a store, a folder, and the processes that serve them, one after another.
type world struct {
	testing.TB
	dir   string
	store session.Service

	counts *metrics.Collector
	srv    *server.Server
	url    string
}

func newWorld(t testing.TB, definitions map[string]string) *world {
	w := &world{TB: t, dir: t.TempDir(), store: session.InMemoryService()}
	for name, text := range definitions {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.process()
	return w
}

// process serves the store as a process that has just been started does.
func (w *world) process(change ...func(*server.Config)) {
	w.Helper()
	w.counts = metrics.New(metrics.Config{Version: "1.2.3", MaxValues: 5, Every: time.Nanosecond})
	cfg := server.Config{Metrics: w.counts.Handler(), Config: operations.Config{
		Service: w.store, AppName: "app", UserID: "ana", Dir: w.dir,
		Leases:  supervisor.Leases{Owner: "the test", Dead: func(string) bool { return true }},
		Observe: w.counts.Observe,
		Getenv:  func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
	}}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if w.srv, err = server.New(cfg); err != nil {
		w.Fatal(err)
	}
	w.counts.Watch(w.srv.Supervisor())
	web, srv := httptest.NewServer(w.srv.Handler()), w.srv
	w.url = web.URL
	w.Cleanup(func() {
		web.Close()
		if err := srv.Shutdown(context.Background()); err != nil && !strings.Contains(err.Error(), "closed") {
			w.Error(err)
		}
	})
}

// scrape returns the series of the project, by name and labels, and the text that they are from.
func (w *world) scrape(headers ...string) (map[string]string, []byte) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), "GET", w.url+"/metrics", nil)
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.Fatalf("%s: %v\n%s", resp.Status, err, text)
	}
	got := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := cutLast(strings.TrimSpace(line)); ok && strings.HasPrefix(name, "refrain_") {
			got[name] = value
		}
	}
	return got, text
}

func cutLast(line string) (name, value string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 || strings.HasPrefix(line, "#") {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// expect compares series with what they have to be; "" is one that must not be there.
func (w *world) expect(want map[string]string) {
	w.Helper()
	got, text := w.scrape()
	bad := false
	for name, value := range want {
		if got[name] != value {
			w.Errorf("%s is %q, want %q", name, got[name], value)
			bad = true
		}
	}
	if bad {
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "refrain_") && !strings.Contains(line, "_bucket") {
				w.Log(strings.TrimSpace(line))
			}
		}
	}
}

// until waits for a metric to have a value, 30 s at most.
func (w *world) until(name, value string) {
	w.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		got, _ := w.scrape()
		switch {
		case got[name] == value:
			return
		case time.Now().After(end):
			w.Fatalf("%s is %q, want %q", name, got[name], value)
		}
	}
}

func (w *world) start(definition string) (id string) {
	w.Helper()
	resp, err := http.Post(w.url+"/api/v1/runs", "application/json", strings.NewReader(fmt.Sprintf(`{"definition": %q}`, definition)))
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	_, rest, ok := strings.Cut(string(text), `"run":"`)
	if id, _, _ = strings.Cut(rest, `"`); !ok {
		w.Fatalf("%s: %s", resp.Status, text)
	}
	return id
}

func (w *world) wait(id string, status mark.RunStatus) {
	w.Helper()
	run, err := w.srv.Supervisor().Wait(w.Context(), id)
	if err != nil || run.Status != status {
		w.Fatalf("run %s is %s, %v; want %s", id, run.Status, err, status)
	}
}

// answer says yes to the question of a run, and takes the run up.
func (w *world) answer(id string) {
	w.Helper()
	sup := w.srv.Supervisor()
	open, err := sup.Questions(w.Context(), id)
	if err != nil || len(open) != 1 {
		w.Fatalf("questions: %v, %v", open, err)
	}
	if _, err := sup.Answer(w.Context(), id, mark.Answer{ID: open[0].ID, Value: []byte("true")}); err != nil {
		w.Fatal(err)
	}
	if _, err := sup.Resume(w.Context(), id, supervisor.ResumeOptions{}); err != nil {
		w.Fatal(err)
	}
}

// Each thing that happens in a process is counted once; what a process does that takes a run up is
// counted there, and nothing of what was done before.
func TestCountsOnce(t *testing.T) {
	w := newWorld(t, map[string]string{"refine.yaml": refine, "script.yaml": script})
	w.expect(map[string]string{
		`refrain_build_info{goversion="` + runtime.Version() + `",version="1.2.3"}`: "1",
		`refrain_runs_active`: "0", `refrain_runs_queued`: "0", `refrain_store_up`: "1",
		`refrain_store_runs{status="waiting"}`: "0", `refrain_store_oldest_question_timestamp_seconds`: "",
	})
	id := w.start("refine")
	w.wait(id, mark.RunWaiting)
	first := map[string]string{
		`refrain_runs_started_total{definition="refine"}`:                             "1",
		`refrain_runs_resumed_total{definition="refine"}`:                             "",
		`refrain_questions_total{definition="refine"}`:                                "1",
		`refrain_runs_total{definition="refine",status="failed",stop_reason="error"}`: "0",
		`refrain_iterations_total{definition="refine",loop="polish"}`:                 "3",
		`refrain_iterations_total{definition="refine",loop="refine"}`:                 "",
		`refrain_iteration_duration_seconds_count{definition="refine",loop="polish"}`: "3",
		`refrain_tokens_total{model="scripted",type="input"}`:                         "30",
		`refrain_tokens_total{model="scripted",type="output"}`:                        "6",
		`refrain_cost_total`:                 "9",
		`refrain_unpriced_model_calls_total`: "0",
		`refrain_sub_agent_duration_seconds_count{agent="writer",status="ok"}`:                    "3",
		`refrain_sub_agent_duration_seconds_count{agent="polish",status="ok"}`:                    "1",
		`refrain_store_runs{status="waiting"}`:                                                    "1",
		`refrain_runs_active`:                                                                     "0",
		`refrain_runs_dropped_total{reason="error"}`:                                              "0",
		`refrain_runs_total{definition="refine",status="completed",stop_reason="max_iterations"}`: "",
	}
	w.expect(first)
	if got, _ := w.scrape(); got["refrain_store_oldest_question_timestamp_seconds"] == "" {
		t.Error("nothing tells since when a person is waited for")
	}

	w.process() // another one takes the run up
	w.answer(id)
	w.wait(id, mark.RunWaiting)
	w.expect(map[string]string{
		`refrain_runs_started_total{definition="refine"}`:                             "",
		`refrain_runs_resumed_total{definition="refine"}`:                             "1",
		`refrain_questions_total{definition="refine"}`:                                "1",
		`refrain_iterations_total{definition="refine",loop="polish"}`:                 "3",
		`refrain_iterations_total{definition="refine",loop="refine"}`:                 "1",
		`refrain_iteration_duration_seconds_count{definition="refine",loop="refine"}`: "",
		`refrain_last_score{definition="refine",loop="refine"}`:                       "7.5",
		`refrain_tokens_total{model="scripted",type="input"}`:                         "30",
		`refrain_cost_total`: "9",
	})
	w.answer(id)
	w.wait(id, mark.RunCompleted)
	w.expect(map[string]string{
		`refrain_runs_resumed_total{definition="refine"}`:                                         "2",
		`refrain_iterations_total{definition="refine",loop="polish"}`:                             "3",
		`refrain_iterations_total{definition="refine",loop="refine"}`:                             "2",
		`refrain_runs_total{definition="refine",status="completed",stop_reason="max_iterations"}`: "1",
		`refrain_cost_total`:                              "9",
		`refrain_store_runs{status="completed"}`:          "1",
		`refrain_store_oldest_question_timestamp_seconds`: "",
		`refrain_oldest_iteration_timestamp_seconds`:      "",
		`refrain_budget_used_ratio{definition="refine"}`:  "",
	})
}

// gate holds up the requests of a step.
type gate struct {
	came, let chan struct{}
	url       string
}

func newGate(t testing.TB) *gate {
	g := &gate{came: make(chan struct{}, 100), let: make(chan struct{}, 100)}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.came <- struct{}{}
		select {
		case <-g.let:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(web.Close)
	g.url = web.URL
	return g
}

// While a run goes on, a scrape tells how far it is, who waits behind it, and what it has spent.
func TestWhileRunsGoOn(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, map[string]string{"script.yaml": script, "gated.yaml": `name: gated
model: scripted/script.yaml
max_iterations: 2
budget: {calls: 4}
sub_agents:
  - {name: writer, instructions: "Write it", output_key: draft}
  - {name: pass, url: ` + g.url + `}
`})
	w.process(func(cfg *server.Config) { cfg.MaxRuns, cfg.AllowPrivate = 1, true })
	before := time.Now().Add(-time.Second)
	id := w.start("gated")
	<-g.came
	second := w.start("gated")
	w.until(`refrain_runs_started_total{definition="gated"}`, "2") // it is counted once it waits for its turn
	w.expect(map[string]string{
		`refrain_runs_active`: "1", `refrain_runs_queued`: "1", `refrain_store_runs{status="running"}`: "2",
		`refrain_budget_used_ratio{definition="gated"}`: "0.25",
		`refrain_unpriced_model_calls_total`:            "1",
	})
	got, text := w.scrape()
	for _, name := range []string{"refrain_oldest_iteration_timestamp_seconds", "refrain_store_oldest_running_timestamp_seconds"} {
		var at float64
		if _, err := fmt.Sscan(got[name], &at); err != nil || at < float64(before.Unix()) || at > float64(time.Now().Unix()+1) {
			t.Errorf("%s is %q", name, got[name])
		}
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "refrain_") {
			t.Errorf("promlint: %s: %s", p.Metric, p.Text)
		}
	}
	if bytes.Contains(text, []byte(id)) {
		t.Error("the ID of a run is in a label")
	}
	if err := w.srv.Supervisor().Cancel(t.Context(), second, "enough"); err != nil {
		t.Fatal(err)
	}
	w.wait(second, mark.RunCanceled)
	w.expect(map[string]string{`refrain_runs_total{definition="gated",status="canceled",stop_reason="canceled"}`: "1",
		`refrain_runs_queued`: "0"})
	g.let <- struct{}{}
	<-g.came
	w.expect(map[string]string{`refrain_iterations_total{definition="gated",loop="gated"}`: "1",
		`refrain_budget_used_ratio{definition="gated"}`: "0.5"})
	g.let <- struct{}{}
	w.wait(id, mark.RunCompleted)
}

// Failures are counted at the agent where they happen, each attempt.
func TestFailures(t *testing.T) {
	w := newWorld(t, map[string]string{"fails.yaml": `name: fails
max_iterations: 2
sub_agents:
  - name: inner
    type: sequential
    retry: {attempts: 2, backoff: 1ms}
    sub_agents:
      - {name: calls, url: "http://127.0.0.1:1/"}
`})
	id := w.start("fails")
	w.wait(id, mark.RunFailed)
	w.expect(map[string]string{
		`refrain_runs_total{definition="fails",status="failed",stop_reason="error"}`: "1",
		`refrain_sub_agent_errors_total{agent="inner",kind="error"}`:                 "",
		`refrain_sub_agent_errors_total{agent="calls",kind="error"}`:                 "2",
		`refrain_runs_dropped_total{reason="error"}`:                                 "0",
	})
}

// losing is a store whose leases get lost.
type losing struct {
	session.Service
	lease.Leaser
	store.Watcher
	lost chan struct{} // closed: from now on
}

func TestLostLease(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, map[string]string{"gated.yaml": "name: gated\nmax_iterations: 2\nsub_agents:\n  - {name: pass, url: " + g.url + "}\n"})
	l := &losing{Service: w.store, Leaser: w.store.(lease.Leaser), Watcher: w.store.(store.Watcher), lost: make(chan struct{})}
	w.store = l
	w.process(func(cfg *server.Config) { cfg.AllowPrivate, cfg.LeaseTTL = true, 30*time.Millisecond })
	w.start("gated")
	<-g.came
	run := w.srv.Supervisor().Driving()[0]
	close(l.lost)
	<-run.Done()
	w.expect(map[string]string{`refrain_runs_dropped_total{reason="lease_lost"}`: "1", `refrain_runs_active`: "0",
		`refrain_oldest_iteration_timestamp_seconds`: ""})
}

func (l *losing) Renew(ctx context.Context, of *lease.Lease, ttl time.Duration) (*lease.Lease, error) {
	select {
	case <-l.lost:
		return nil, lease.ErrLost
	default:
		return l.Leaser.Renew(ctx, of, ttl)
	}
}

// Names that somebody else chooses are bounded in number and length, and the text stays valid.
func TestHostileNames(t *testing.T) {
	w := newWorld(t, nil)
	var cfg supervisor.Config
	w.counts.Observe(&cfg)
	long := strings.Repeat("é", 1000)
	names := []string{"a\"b\n} 1\\", "\xff", long, "", "d", "e", "f", "g", "h"}
	for i, name := range names {
		id := fmt.Sprint("run", i)
		cfg.OnBeginning(id, mark.Run{Name: name}, false)
		cfg.OnEvent(id, event(t, mark.KindIterationFinished, session.Address(name), map[string]any{"score": 1e300}))
		ev := event(t, mark.KindStepFinished, session.Address("x/"+strings.ReplaceAll(name, "/", "")), mark.StepFinished{Error: "no",
			Kind: mark.FailureKind(name), Seconds: -1, Usage: []byte(`{"calls":-1,"cost":-5}`)})
		ev.ModelVersion = name
		cfg.OnEvent(id, ev)
		ended, err := session.NewRunEvent(mark.Run{Name: name, Status: mark.RunFailed, Stop: name}, "x", mark.KindRunEnded, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.OnEvent(id, ended)
		cfg.OnEvent(id, event(t, mark.KindLoopStarted, "x", []int{1})) // no plan
		cfg.OnEnding(id, supervisor.Ending{})
	}
	got, text := w.scrape("Accept-Encoding", "identity")
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	defs := make(map[string]bool)
	for name := range got {
		if strings.HasPrefix(name, "refrain_runs_started_total") {
			defs[name] = true
		}
		if len(name) > 600 {
			t.Errorf("%d bytes: %s", len(name), name)
		}
	}
	if len(defs) != 6 || got[`refrain_runs_started_total{definition="other"}`] != "4" ||
		got[`refrain_runs_started_total{definition="unknown"}`] != "1" || got[`refrain_runs_started_total{definition="\ufffd"}`] != "" {
		t.Errorf("definitions: %v", defs)
	}
}

// The budget of a loop that is cut off, and so has not stopped, is forgotten with its step.
func TestLoopCutOff(t *testing.T) {
	w := newWorld(t, nil)
	var cfg supervisor.Config
	w.counts.Observe(&cfg)
	cfg.OnBeginning("r", mark.Run{Name: "story"}, false)
	cfg.OnEvent("r", event(t, mark.KindLoopStarted, "story[1]/tell", map[string]any{"budget": loop.Budget{Calls: 4}}))
	cfg.OnEvent("r", event(t, mark.KindStepFinished, "story[1]/tell[1]/points", mark.StepFinished{Usage: []byte(`{"calls":3}`)}))
	w.expect(map[string]string{`refrain_budget_used_ratio{definition="story"}`: "0.75"})
	cfg.OnEvent("r", event(t, mark.KindStepFinished, "story[1]/tell", mark.StepFinished{Error: "late", Timeout: true}))
	w.expect(map[string]string{`refrain_budget_used_ratio{definition="story"}`: ""})
}

func event(t testing.TB, kind mark.Kind, at session.Address, data any) *session.Event {
	m, err := mark.New(kind, data)
	if err != nil {
		t.Fatal(err)
	}
	return &session.Event{Address: at, Mark: m, Timestamp: time.Now()}
}

// With a token, the metrics need it; and a client that takes gzip gets it.
func TestTokenAndGzip(t *testing.T) {
	w := newWorld(t, nil)
	w.process(func(cfg *server.Config) { cfg.Token, cfg.Refused = "correct-horse-battery", w.counts.Refused })
	resp, err := http.Get(w.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s", resp.Status)
	}
	_, text := w.scrape("Authorization", "Bearer correct-horse-battery", "Accept-Encoding", "gzip")
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil || !bytes.Contains(plain, []byte("\nrefrain_store_up 1\n")) ||
		!bytes.Contains(plain, []byte("\nrefrain_requests_refused_total{kind=\"no_token\"} 1\n")) || !bytes.Contains(plain, []byte("\ngo_goroutines ")) {
		t.Errorf("%v\n%s", err, plain)
	}
}
