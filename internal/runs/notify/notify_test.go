// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/notify"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/record"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

const scored = `
name: story
notify: {HOOK: [ended, stopped_by_limit, failed, asks, new_best, paused]}
max_iterations: 3
state: {n: 0}
score: {key: n, target: 100}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: say, text: "Draft {{n}}.\nMore.", output_key: loop_output}
`

const asking = `
name: review
notify: {HOOK: [asks, ended]}
sub_agents:
  - {name: permit, question: "May it go out?", ask: approve, output_key: ok}
max_iterations: 1
`

// inbox is a receiver of webhooks.
type inbox struct {
	*httptest.Server
	arrived chan string

	mu     sync.Mutex
	status int
	times  map[string]int // by ID
	all    []notify.Notice
	paths  map[string][]string // by ID, where it has arrived
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{arrived: make(chan string, 10_000), status: http.StatusOK, times: make(map[string]int), paths: make(map[string][]string)}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n notify.Notice
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &n); err != nil || n.ID != r.Header.Get("webhook-id") {
			t.Errorf("got %s: %v", text, err)
		}
		in.mu.Lock()
		w.WriteHeader(in.status)
		if in.status == http.StatusOK {
			in.times[n.ID]++
			in.all = append(in.all, n)
			in.paths[n.ID] = append(in.paths[n.ID], r.URL.Path)
		}
		in.mu.Unlock()
		in.arrived <- n.ID
	}))
	t.Cleanup(in.Close)
	return in
}

// answer sets the status of further answers, and forgets what has arrived.
func (in *inbox) answer(status int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.status = status
	for len(in.arrived) > 0 {
		<-in.arrived
	}
}

// place drives runs of a store with notifications.
type place struct {
	sup      *supervisor.Supervisor
	service  session.Service
	notifier *notify.Notifier

	mu      sync.Mutex
	reports []string
}

func newPlace(t testing.TB, service session.Service, address string, cfg notify.Config) *place {
	t.Helper()
	p := &place{service: service}
	cfg.Service, cfg.AppName, cfg.UserID, cfg.Definitions = service, "refrain", "user", true
	cfg.Getenv = func(name string) string { return map[string]string{"HOOK": address}[name] }
	cfg.Page = func(_ context.Context, id string) string { return "http://page/runs/" + id }
	cfg.Report = func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reports = append(p.reports, err.Error())
	}
	p.notifier = notify.New(cfg)
	sup := supervisor.Config{Service: service, AppName: "refrain", UserID: "user", Build: program.Rebuild(program.Env{})}
	p.notifier.Observe(&sup)
	var err error
	if p.sup, err = supervisor.New(sup); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) start(t testing.TB, text, id string) *supervisor.Run {
	t.Helper()
	made := new(program.Program)
	def, err := made.ReadIn(fstest.MapFS{}, "loop.yaml", "loop.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	started, err := made.Started(def)
	if err != nil {
		t.Fatal(err)
	}
	state, err := def.InitialState(nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := p.sup.Start(t.Context(), supervisor.Request{SessionID: id, State: state, Started: started,
		Message: genai.NewContentFromText("go", genai.RoleUser)})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (p *place) do(t testing.TB, text, id string) supervisor.Ending {
	t.Helper()
	end, err := p.start(t, text, id).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// close waits for the deliveries, and returns what was reported.
func (p *place) close(t testing.TB) string {
	t.Helper()
	p.notifier.Close(t.Context())
	if err := p.sup.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return strings.Join(p.reports, "\n")
}

// left returns the number of outboxes.
func (p *place) left(t testing.TB) int {
	t.Helper()
	all, err := p.service.List(t.Context(), &session.ListRequest{AppName: "refrain-notify", UserID: "user"})
	if err != nil {
		t.Fatal(err)
	}
	return len(all.Sessions)
}

// People are notified of what the definition names, with what they want to know.
func TestNoticesOfARun(t *testing.T) {
	in := newInbox(t)
	p := newPlace(t, session.InMemoryService(), in.URL, notify.Config{})
	p.do(t, scored, "r_1")
	p.do(t, strings.ReplaceAll(scored, "notify:", "# notify:"), "r_2")
	if reports := p.close(t); reports != "" || p.left(t) != 0 {
		t.Errorf("%d outboxes are left; reports: %s", p.left(t), reports)
	}
	var events []definition.NotifyEvent
	for _, n := range in.all {
		events = append(events, n.Event)
	}
	want := []definition.NotifyEvent{definition.NotifyBest, definition.NotifyBest, definition.NotifyLimit}
	if !slices.Equal(events, want) {
		t.Fatalf("got %s, want %s", events, want)
	}
	last := in.all[2]
	if last.Run != "r_1" || last.Name != "story" || last.Reason != "max_iterations" || last.Iterations != 3 || last.Score == nil || *last.Score != 3 ||
		last.Result != "Draft 3." || last.Link != "http://page/runs/r_1" || !strings.Contains(last.Why, "3 iterations") {
		t.Errorf("got %+v", last)
	}
}

// A question has the address of its form. An answered one is not told again.
func TestNoticeOfAQuestion(t *testing.T) {
	in := newInbox(t)
	store := session.InMemoryService()
	p := newPlace(t, store, in.URL, notify.Config{})
	p.do(t, asking, "r_1")
	p.close(t)
	if len(in.all) != 1 || in.all[0].Question != "May it go out?" || in.all[0].Link != "http://page/runs/r_1#ask" || p.left(t) != 1 {
		t.Errorf("got %+v, %d outboxes", in.all, p.left(t))
	}
	again := newPlace(t, store, in.URL, notify.Config{})
	again.notifier.Later()
	if run := again.start(t, scored, "r_2"); run == nil {
		t.Fatal("no run")
	}
	again.close(t)
	if in.times[in.all[0].ID] != 1 {
		t.Errorf("%s was sent %d times", in.all[0].ID, in.times[in.all[0].ID])
	}
}

// What was not delivered is kept, and the next process sends it with the same ID. No report has the address.
func TestNoticeIsKept(t *testing.T) {
	in := newInbox(t)
	in.answer(http.StatusForbidden)
	store := session.InMemoryService()
	p := newPlace(t, store, in.URL+"/SECRETSECRET", notify.Config{})
	if end := p.do(t, strings.ReplaceAll(scored, "new_best, ", ""), "r_1"); end.Err != nil {
		t.Errorf("the run ends with %v", end.Err)
	}
	reports := p.close(t)
	if !strings.Contains(reports, "is kept") || !strings.Contains(reports, "403 Forbidden") || strings.Contains(reports, "SECRET") || p.left(t) != 1 {
		t.Errorf("%d outboxes; reports: %s", p.left(t), reports)
	}
	id := <-in.arrived
	in.answer(http.StatusOK)
	next := newPlace(t, store, in.URL, notify.Config{})
	next.notifier.Later()
	if got := <-in.arrived; got != id {
		t.Errorf("%s was sent after %s", got, id)
	}
	if reports := next.close(t); reports != "" || next.left(t) != 0 || in.times[id] != 1 {
		t.Errorf("%d outboxes, sent %d times; reports: %s", next.left(t), in.times[id], reports)
	}
	unset := newPlace(t, store, "", notify.Config{To: definition.Notify{"OTHER": {definition.NotifyEnded}}})
	unset.do(t, strings.ReplaceAll(scored, "notify:", "# notify:"), "r_3")
	unset.do(t, strings.ReplaceAll(asking, "notify:", "# notify:"), "r_4")
	if reports := unset.close(t); strings.Contains(reports, "OTHER is not set") {
		t.Errorf("the run was stopped by a limit, which nobody wants to know: %s", reports)
	}
}

// Two processes with one store send each notice once.
func TestNoticeIsSentByOneProcess(t *testing.T) {
	in := newInbox(t)
	in.answer(http.StatusForbidden)
	store := session.InMemoryService()
	p := newPlace(t, store, in.URL, notify.Config{})
	for i := range 10 {
		p.do(t, strings.ReplaceAll(scored, "new_best, ", ""), fmt.Sprint("r_", i))
	}
	p.close(t)
	in.answer(http.StatusOK)
	var all []*place
	for i := range 4 {
		all = append(all, newPlace(t, store, in.URL, notify.Config{Owner: fmt.Sprint("process ", i), Dead: func(string) bool { return false }}))
		all[i].notifier.Later()
	}
	for range 10 {
		<-in.arrived
	}
	for _, one := range all {
		one.close(t)
	}
	if len(in.times) != 10 || slices.Max(slices.Collect(maps.Values(in.times))) != 1 {
		t.Errorf("sent: %v", in.times)
	}
}

// A service that does not answer delays neither the run nor, for longer than its limit, the end of the process.
func TestNoticeDelaysNothing(t *testing.T) {
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	p := newPlace(t, session.InMemoryService(), hangs.URL, notify.Config{})
	if end := p.do(t, scored, "r_1"); end.Err != nil {
		t.Errorf("the run ends with %v", end.Err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	p.notifier.Close(ctx)
	if took := time.Since(began); took > 5*time.Second || len(p.reports) == 0 {
		t.Errorf("it took %s; reports: %s", took, p.reports)
	}
}

// A notice that could not be claimed was not sent, and stays.
func TestNoticeWithoutClaimIsKept(t *testing.T) {
	in := newInbox(t)
	in.answer(http.StatusForbidden)
	store := session.InMemoryService()
	p := newPlace(t, store, in.URL, notify.Config{})
	p.do(t, strings.ReplaceAll(scored, "new_best, ", ""), "r_1")
	p.close(t)
	in.answer(http.StatusOK)
	reported := make(chan error, 1)
	refused := notify.New(notify.Config{Service: noClaims{store}, AppName: "refrain", UserID: "user", Getenv: func(string) string { return in.URL },
		Report: func(err error) { reported <- err }})
	refused.Later()
	err := <-reported
	refused.Close(t.Context())
	if !strings.Contains(err.Error(), "is kept") || p.left(t) != 1 || len(in.times) != 0 {
		t.Errorf("%d outboxes, sent: %v; reported: %v", p.left(t), in.times, err)
	}
	next := newPlace(t, store, in.URL, notify.Config{})
	next.notifier.Later()
	<-in.arrived
	if reports := next.close(t); reports != "" || next.left(t) != 0 || len(in.times) != 1 {
		t.Errorf("%d outboxes, sent: %v; reports: %s", next.left(t), in.times, reports)
	}
}

// noClaims is a store that takes no claim.
type noClaims struct{ session.Service }

func (s noClaims) AppendEvent(ctx context.Context, to session.Session, ev *session.Event) error {
	if text, _ := ev.Actions.StateDelta["notify"].(string); strings.Contains(text, `"claim"`) {
		return errors.New("the disk is full")
	}
	return s.Service.AppendEvent(ctx, to, ev)
}

// The end of a delivery that took too long leaves the claim of the process that has taken over.
func TestClaimOfAnotherProcessStays(t *testing.T) {
	store := session.InMemoryService()
	in := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		err := outboxes(store).Change(t.Context(), "r_1", func(o *outbox) error {
			o.Receivers["HOOK"]["claim"] = "process 2"
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}))
	defer in.Close()
	p := newPlace(t, store, in.URL, notify.Config{})
	p.do(t, asking, "r_1")
	p.close(t)
	o, _, err := outboxes(store).Read(t.Context(), "r_1")
	if err != nil || o.Receivers["HOOK"]["claim"] != "process 2" || o.Receivers["HOOK"]["done"] == 0.0 {
		t.Errorf("got %v, %v", o, err)
	}
}

// outbox is an outbox as it is stored.
type outbox struct {
	Receivers map[string]map[string]any `json:"receivers"`
}

func outboxes(store session.Service) record.Records[outbox] {
	return record.Records[outbox]{Service: store, AppName: "refrain-notify", UserID: "user", Key: "notify"}
}

// claimed returns the runs of which a process has left a notice in delivery.
func claimed(t *testing.T, path string, pid int) map[string]bool {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all, err := outboxes(store).All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs := make(map[string]bool)
	for id, o := range all {
		for _, r := range o.Receivers {
			if by, _ := r["claim"].(string); strings.HasPrefix(by, fmt.Sprintf("refrain %d on ", pid)) {
				runs[id] = true
			}
		}
	}
	return runs
}

// childStore names the store of a process that TestKilledNoticesArrive kills.
const childStore, childHook = "REFRAIN_TEST_NOTIFY_STORE", "REFRAIN_TEST_NOTIFY_HOOK"

// Processes that are killed again and again lose no notice. A process sends a notice once, and a later process sends it again only if
// an earlier one was killed during its delivery. Each process has an address of its own, so the test knows who has sent what.
func TestKilledNoticesArrive(t *testing.T) {
	if path := os.Getenv(childStore); path != "" {
		startRuns(t, path)
		return
	}
	longtest.WithoutRace(t)
	in, kills := newInbox(t), longtest.N(4, 100)
	hit := make(map[string]map[string]bool) // by the path of a process that was killed, the runs of the notices in delivery
	path := filepath.Join(t.TempDir(), "runs.db")
	for i := range kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledNoticesArrive$")
		cmd.Env = append(os.Environ(), childStore+"="+path, childHook+"="+in.URL+"/"+strconv.Itoa(i))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 1+i%3 && lines.Scan(); { // the child has begun some runs
			if strings.HasPrefix(lines.Text(), "begun ") {
				n++
			}
		}
		time.Sleep(time.Duration(i*7%40) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		hit["/"+strconv.Itoa(i)] = claimed(t, path, cmd.Process.Pid)
	}
	store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	p := newPlace(t, store, in.URL+"/last", notify.Config{})
	runs, err := p.sup.Recover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if _, err := run.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	p.notifier.Later()
	late := time.After(time.Minute)
	for p.left(t) > 0 {
		select {
		case <-in.arrived:
		case <-time.After(20 * time.Millisecond): // the outbox goes after the notice
		case <-late:
			t.Fatalf("%d outboxes are left; reports: %s", p.left(t), p.reports)
		}
	}
	p.close(t)
	all, err := store.List(t.Context(), &session.ListRequest{AppName: "refrain", UserID: "user"})
	if err != nil {
		t.Fatal(err)
	}
	ended, repeats := make(map[string]int), 0
	for _, n := range in.all {
		if n.Event == definition.NotifyLimit {
			ended[n.Run] = in.times[n.ID]
		}
		paths := in.paths[n.ID]
		delete(in.paths, n.ID) // it is checked once
		kills := 0
		for i, path := range paths {
			if slices.Contains(paths[:i], path) {
				t.Errorf("%s was sent twice by %s", n.ID, path)
			}
			if hit[path][n.Run] {
				kills++
			}
		}
		if repeats += max(len(paths)-1, 0); len(paths) > 1+kills {
			t.Errorf("%s was sent %d times, by %s, and %d of them were killed during its delivery", n.ID, len(paths), paths, kills)
		}
	}
	for _, one := range all.Sessions {
		if ended[one.ID()] == 0 {
			t.Errorf("no notice says that %s has ended", one.ID())
		}
	}
	t.Logf("%d kills, %d runs, %d notices, %d repeats", kills, len(all.Sessions), len(in.times), repeats)
	if len(all.Sessions) < kills {
		t.Errorf("%d runs began, want at least %d", len(all.Sessions), kills)
	}
}

// startRuns continues the runs of a store, and starts further ones until the process is killed.
func startRuns(t *testing.T, path string) {
	store, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, store, os.Getenv(childHook), notify.Config{})
	if _, err := p.sup.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.notifier.Later()
	for range 200 {
		id := supervisor.NewID()
		run := p.start(t, scored, id)
		fmt.Println("begun", id)
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Test sends one message, and says whether the service has taken it and whether the variable has an address.
func TestTestMessage(t *testing.T) {
	var got atomic.Value
	status := http.StatusOK
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Store(string(body))
		w.WriteHeader(status)
	}))
	defer service.Close()
	getenv := func(name string) string {
		return map[string]string{"OPS": service.URL + "/secret", "BAD": "nowhere"}[name]
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	name, err := notify.Test(t.Context(), getenv, "OPS")
	if text, _ := got.Load().(string); err != nil || name != "webhook" || !strings.Contains(text, `"event":"test"`) {
		t.Errorf("%s, %v: %v", name, err, got.Load())
	}
	status = http.StatusNotFound
	if _, err = notify.Test(t.Context(), getenv, "OPS"); err == nil || !strings.Contains(err.Error(), "404") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err = notify.Test(ctx, func(string) string { return "http://" + silent.Addr().String() + "/secret" }, "OPS"); err == nil ||
		!strings.HasPrefix(err.Error(), "webhook: it has not answered within ") {
		t.Error(err)
	}
	for _, name := range []string{"BAD", "MISSING"} {
		if _, err = notify.Test(t.Context(), getenv, name); !errors.As(err, new(*notify.AddressError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
