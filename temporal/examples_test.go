// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

// elsewhere are the definitions that refrain run cannot run alone.
var elsewhere = map[string]string{
	"examples/bananas/loop.yaml": "its tools are Go functions of the program beside it",
}

// byTheClock are the examples whose number of iterations is not the same in any two runs.
var byTheClock = map[string]string{
	"examples/poll/loop.yaml": "it asks five times a second, until a job that runs at the same time is done",
}

// E4, E5, G7, G8, G9: every example comes to the same iterations, state and result, whatever drives it:
// one process, several processes that follow each other, the workflow in the SDK's test environment, and
// a Temporal server whose workers have their store in PostgreSQL. An example is what its README says can
// be typed.
func TestExamples(t *testing.T) {
	all := examples(t)
	bin := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "refrain"), "./cmd/refrain") // one of them runs it
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := make([]*outcome, len(all))
	each := func(t *testing.T, driven func(*testing.T, *example) *outcome) {
		for i, ex := range all {
			t.Run(ex.name, func(t *testing.T) {
				t.Parallel()
				got := driven(t, ex)
				if want[i] == nil {
					want[i] = got
				}
				if diff := cmp.Diff(want[i], got); diff != "" {
					t.Errorf("(-in one process +so):\n%s", diff)
				}
			})
		}
	}
	t.Run("in one process", func(t *testing.T) { each(t, inOneProcess) })
	if t.Failed() {
		return
	}
	t.Run("resumed from SQLite", func(t *testing.T) {
		t.Run("all", func(t *testing.T) { each(t, resumed) })
		if !slices.ContainsFunc(all, func(ex *example) bool { return ex.pauses > 1 }) {
			t.Error("no example was paused twice")
		}
	})
	t.Run("in the test environment", func(t *testing.T) { each(t, inTestEnvironment) })
	t.Run("on Temporal with PostgreSQL", func(t *testing.T) {
		c := newCluster(t)
		db := newDatabase(t)
		c.store = db.open()
		c.sup = c.supervisor("somebody")
		for _, name := range []string{"one", "two"} {
			c.worker(name, func(cfg *temporal.Config) { cfg.Supervisor.Service = db.open() })
		}
		t.Run("all", func(t *testing.T) {
			each(t, func(t *testing.T, ex *example) *outcome { return onTemporal(t, c, ex) })
		})
	})
}

// example is one way to run a definition.
type example struct {
	name, file string // the command, and the definition by its path in the repository
	input      string
	set        map[string]string

	events int // in its log; 0 before it has run
	pauses int // of its run in several processes
}

// examples are those of the READMEs, and one with a race and legs.
func examples(t *testing.T) (all []*example) {
	t.Helper()
	found := make(map[string]bool)
	for _, readme := range glob(t, "../examples/*/README.md") {
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line, code := strings.CutPrefix(line, "    ")
			line, _, _ = strings.Cut(line, "  #")
			line = strings.TrimPrefix(strings.TrimSpace(line), "go run ./examples/analyst ")
			if line, ok := strings.CutPrefix(line, "refrain run "); ok && code && !strings.Contains(line, "--model ") {
				ex := newExample(t, line)
				found[ex.file] = true
				if !slices.ContainsFunc(all, func(known *example) bool { return known.name == ex.name }) {
					all = append(all, ex)
				}
			}
		}
	}
	for _, file := range glob(t, "../examples/*/*.yaml") {
		name := filepath.ToSlash(strings.TrimPrefix(file, "../"))
		if !strings.HasPrefix(filepath.Base(name), "script") && found[name] == (elsewhere[name] != "") {
			t.Errorf("%s: one README has to say how refrain run runs it, or elsewhere why that cannot be", name)
		}
	}
	return append(all, newExample(t, "temporal/testdata/race.yaml"))
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(all), err)
	}
	return all
}

// word is one of a command line.
var word = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)

func newExample(t *testing.T, line string) *example {
	t.Helper()
	line = strings.TrimSuffix(line, " --record run.jsonl")
	ex := &example{name: strings.TrimPrefix(line, "examples/"), set: make(map[string]string)}
	words := word.FindAllString(line, -1)
	for i := 0; i < len(words); i++ {
		switch w := strings.Trim(words[i], `"'`); {
		case i == 0:
			ex.file = w
		case w == "--set" && i+1 < len(words):
			i++
			key, value, _ := strings.Cut(strings.Trim(words[i], `'`), "=")
			ex.set[key] = strings.Trim(value, `"`)
		case strings.HasPrefix(w, "-") || ex.input != "":
			t.Fatalf("refrain run %s: what is %s?", line, w)
		default:
			ex.input = w
		}
	}
	return ex
}

// request asks for a run of the example.
func (ex *example) request(t *testing.T) supervisor.Request {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, ex.file))
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.ReplaceAll(string(text), "127.0.0.1:8701", "127.0.0.1:1")) // the analyst is away
	p := &program.Program{Dir: root, Root: root}
	def, err := p.ReadIn(os.DirFS(root), filepath.Join(root, ex.file), ex.file, text)
	if err != nil {
		t.Fatal(err)
	}
	started, err := p.Started(def)
	if err != nil {
		t.Fatal(err)
	}
	state, err := def.InitialState(ex.set)
	if err != nil {
		t.Fatal(err)
	}
	return supervisor.Request{Message: genai.NewContentFromText(ex.input, genai.RoleUser), State: state, Started: started}
}

// person answers the questions of a run: the first request is refused, the next is approved.
type person struct {
	*testing.T
	asked int
}

func (p *person) answer(q mark.Question) mark.Answer {
	a := mark.Answer{ID: q.ID, By: "ana"}
	p.asked++
	switch {
	case q.Kind == mark.AskApproval && p.asked == 1:
		a.Value, a.Reason = json.RawMessage("false"), "say when it comes"
	case q.Kind == mark.AskApproval:
		a.Value = json.RawMessage("true")
	default:
		p.Errorf("the test does not know how to answer (%s) %s", q.Kind, q.Text)
	}
	return a
}

// open are the questions that a run asks.
func (p *person) open(sup *supervisor.Supervisor, id string) []mark.Question {
	p.Helper()
	open, err := sup.Questions(p.Context(), id)
	if err != nil {
		p.Error(err)
	}
	return open
}

func inOneProcess(t *testing.T, ex *example) *outcome {
	store := session.InMemoryService()
	return inProcesses(t, ex, func() session.Service { return store }, func() int { return 0 })
}

// resumed is a run that is paused three times, after steps drawn at random, and goes on in another
// process, as far as the run can tell.
func resumed(t *testing.T, ex *example) *outcome {
	dir, last := t.TempDir(), (*sqlite.Service)(nil)
	drawn := fnv.New64()
	_, _ = drawn.Write([]byte(ex.name))
	dice := rand.New(rand.NewPCG(drawn.Sum64(), *seed))
	return inProcesses(t, ex, func() session.Service {
		if last != nil {
			if err := last.Close(); err != nil {
				t.Error(err)
			}
		}
		var err error
		if last, err = sqlite.Open(t.Context(), filepath.Join(dir, "refrain.db"), sqlite.Config{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = last.Close() })
		return last
	}, func() int { return 1 + dice.IntN(max(1, ex.events/3)) })
}

// inProcesses runs an example in supervisors that follow each other. The first three of them pause
// the run after so many events as cut says.
func inProcesses(t *testing.T, ex *example, open func() session.Service, cut func() int) *outcome {
	p, id := &person{T: t}, ""
	req := ex.request(t)
	for leg := 1; leg <= 10; leg++ {
		store := open()
		cfg := config(store, fmt.Sprint("process ", leg))
		var sup *supervisor.Supervisor
		var asking sync.WaitGroup
		until, seen := cut(), 0
		var mu sync.Mutex
		cfg.OnEvent = func(id string, ev *session.Event) {
			mu.Lock()
			defer mu.Unlock()
			if seen++; seen == until && leg <= 3 {
				asking.Go(func() { _ = sup.Pause(t.Context(), id, "drawn") })
			}
		}
		sup, err := supervisor.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		run := (*supervisor.Run)(nil)
		if id == "" {
			run, err = sup.Start(t.Context(), req)
		} else {
			run, err = sup.Resume(t.Context(), id, supervisor.ResumeOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		id = run.ID()
		end, err := run.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range p.open(sup, id) {
			if _, err := sup.Answer(t.Context(), id, p.answer(q)); err != nil {
				t.Fatal(err)
			}
		}
		asking.Wait() // an answer is an event, too
		if err := sup.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if end.Run.Status.IsFinal() {
			return come(t, ex, store, id)
		}
		if end.Run.Status == mark.RunIsPaused {
			ex.pauses++
		}
	}
	t.Fatal("it does not come to its end")
	return nil
}

// inTestEnvironment runs an example by the workflow and the activities of a worker, without a server.
func inTestEnvironment(t *testing.T, ex *example) *outcome {
	p, store := &person{T: t}, session.InMemoryService()
	lazy, err := client.NewLazyClient(client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lazy.Close)
	w, err := temporal.NewWorker(lazy, temporal.Config{Supervisor: config(store, "worker")})
	if err != nil {
		t.Fatal(err)
	}
	sup, err := supervisor.New(config(store, "somebody"))
	if err != nil {
		t.Fatal(err)
	}
	req := ex.request(t)
	req.Driver = temporal.Driver(temporal.DefaultTaskQueue)
	id, err := sup.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var s testsuite.WorkflowTestSuite
	s.SetLogger(quiet)
	env := s.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.RegisterWorkflow(temporal.Run)
	w.Register(env)
	for hour := range 5 { // of the environment's clock, which runs when nothing else does
		env.RegisterDelayedCallback(func() {
			for _, q := range p.open(sup, id) {
				a := p.answer(q)
				env.UpdateWorkflow(temporal.Update, "", &answered{TB: t}, temporal.Request{Do: temporal.Answer, Answer: &a})
			}
		}, time.Duration(hour+1)*time.Hour)
	}
	env.ExecuteWorkflow(temporal.Run, temporal.Input{RunID: id})
	if err := env.GetWorkflowError(); !env.IsWorkflowCompleted() || err != nil {
		t.Errorf("the workflow ends: %v, %v", env.IsWorkflowCompleted(), err)
	}
	return come(t, ex, store, id)
}

// onTemporal runs an example on a real server.
func onTemporal(t *testing.T, c *cluster, ex *example) *outcome {
	p, opts := &person{T: t}, temporal.Options{Heartbeat: 10 * time.Second}
	id, err := temporal.Start(t.Context(), c.Client, c.sup, ex.request(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	watched := make(map[string]bool)
	for ev, err := range c.sup.Watch(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, says := ev.Actions.StateDelta[mark.KeyRun]; !says {
			continue
		}
		st, err := c.sup.Status(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if st.Run.Status.IsFinal() {
			break
		}
		for _, q := range p.open(c.sup, id) {
			if slices.Contains(st.Open, q.ID) && !watched[q.ID] {
				watched[q.ID] = true
				a := p.answer(q)
				if _, err := temporal.Ask(t.Context(), c.Client, id, temporal.Request{Do: temporal.Answer, Answer: &a}, opts); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if st, err := c.result(id); err != nil || !st.Status.IsFinal() {
		t.Errorf("the workflow ends as %+v, %v", st, err)
	}
	return come(t, ex, c.store, id)
}

// outcome is what a run has come to.
type outcome struct {
	Status, Answer string
	Iterations     []string // of all loops, those that count
	Stops          []string
	State          map[string]any
}

// chance is what differs between any two runs: names of temporary files, times, and whether go test had
// to run a test.
var chance = regexp.MustCompile(`tmp\.[A-Za-z0-9]+|\(cached\)|[0-9]+\.[0-9]+s\b|[0-9-]+ [0-9:]+\.[0-9]+ [+-][0-9]{4}`)

// come reads from the log of a run what it has come to, and verifies the log.
func come(t *testing.T, ex *example, store session.Service, id string) *outcome {
	t.Helper()
	log, err := runlog.Read(t.Context(), store, lease.Key{AppName: "refrain", UserID: "refrain", SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := log.Report(t.Context(), runlog.ReportOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	verified, err := log.Verified()
	if err != nil {
		t.Fatal(err)
	}
	if n, bad := verified.Seals(); n == 0 || bad > 0 || len(verified.State) > 0 {
		t.Errorf("of %d seals %d do not agree; the state: %q", n, bad, verified.State)
	}
	if ex.events == 0 {
		ex.events = len(log.Log())
	}
	o := &outcome{Status: rep.Status, Answer: chance.ReplaceAllString(rep.Answer, "…")}
	for _, ev := range session.Current(progress.LastRun(log.Log())) {
		if ev.Mark == nil {
			continue
		}
		ev = log.Wholes.Of(ev)
		var it loop.IterationRecord
		var stop loop.StopRecord
		switch {
		case ev.Mark.Kind == mark.KindIterationFinished && ev.Mark.Decode(&it) == nil && byTheClock[ex.file] == "":
			it.StateSize = 0 // it is compared itself
			o.Iterations = append(o.Iterations, line(t, ev.Address, it))
		case ev.Mark.Kind == mark.KindLoopStopped && ev.Mark.Decode(&stop) == nil:
			if byTheClock[ex.file] != "" {
				stop.Iterations, stop.Result.Iteration = 0, 0
			}
			o.Stops = append(o.Stops, line(t, ev.Address, []any{stop.Reason, stop.Iterations, stop.BestIteration, stop.BestScore,
				stop.Rejections, stop.Rollbacks, stop.Failures, stop.Result}))
		}
	}
	slices.Sort(o.Iterations) // those of branches come in any order
	slices.Sort(o.Stops)
	text, err := json.Marshal(statekey.OwnState(log.View().State()))
	if err == nil {
		err = json.Unmarshal(chance.ReplaceAll(text, []byte("…")), &o.State)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func line(t *testing.T, at session.Address, record any) string {
	t.Helper()
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return string(at) + " " + string(text)
}
