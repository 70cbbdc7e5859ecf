// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/humanagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// paused runs the tree, or resumes the run of that ID, and asks for a pause when
// so many events have come.
func (p *process) paused(id string, after int) error {
	p.Helper()
	cfg := agent.RunConfig{Pause: new(agent.Pause)}
	seq := p.Run(p.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg)
	if id != "" {
		seq = p.Resume(p.Context(), "ana", "s1", id, cfg)
	}
	for ev, e := range seq {
		if e != nil {
			return e
		}
		p.id = ev.InvocationID
		if after--; after == 0 {
			cfg.Pause.Ask(agent.ErrPaused)
		}
	}
	return nil
}

// LOOP 30: a run that was paused, however often, comes to what it comes to without
// that, and no step of it is made twice.
func TestPauseAndResume(t *testing.T) {
	pauses := 0
	for seed := range seeds(t) {
		initial := map[string]any{"k0": "before", "text": "first"}
		p := startProcess(t, seed, crashed(t, initial, nil, 0))
		want := p.outcome(p.first())
		if len(p.log()) > 90 {
			continue
		}
		wantRan, wantAsked := p.ran, p.asked
		for round := range 2 {
			dice := rand.New(rand.NewPCG(seed, uint64(round)))
			store := crashed(t, initial, nil, 0)
			id, err := "", agent.ErrPaused
			ran, asked := make(map[session.Address]int), 0
			for range 30 {
				p := startProcess(t, seed, store)
				p.id = id
				err = p.paused(id, 1+dice.IntN(12))
				id = p.id
				for at, n := range p.ran {
					ran[at] += n
				}
				if asked += p.asked; !errors.Is(err, agent.ErrPaused) {
					break
				}
				pauses++
			}
			p := startProcess(t, seed, store)
			if errors.Is(err, agent.ErrPaused) {
				_, err = p.again(id)
				for at, n := range p.ran {
					ran[at] += n
				}
				asked += p.asked
			}
			got := p.outcome(err)
			if errors.Is(err, runner.ErrFinished) { // the pause came after its last step
				got.Err = want.Err
			}
			// A callback that a pause cancels is made again, and counts twice where sessions share a key.
			if diff := cmp.Diff(want, got, times, loggedEvents); diff != "" {
				t.Fatalf("seed %d (-whole +paused):\n%s\n%s", seed, diff, lines(brief(p.log())))
			}
			if diff := cmp.Diff(wantRan, ran); diff != "" && len(wantRan)+len(ran) > 0 {
				t.Fatalf("seed %d: how often steps were made (-whole +paused):\n%s\n%s", seed, diff, lines(brief(p.log())))
			}
			if asked != wantAsked {
				t.Fatalf("seed %d: the model was asked %d times, want %d\n%s", seed, asked, wantAsked, lines(brief(p.log())))
			}
			p.checkFold(initial)
		}
	}
	t.Logf("%d pauses", pauses)
}

// answer appends what a person says.
func answer(t *testing.T, svc session.Service, id string, a mark.Answer) {
	t.Helper()
	m, err := mark.New(mark.KindAnswered, a)
	if err == nil {
		err = svc.AppendEvent(t.Context(), get(t, svc), &session.Event{InvocationID: id, Author: "user", Mark: m})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// LOOP 32, needs 13: of a step that must not be done twice nobody knows, after a
// crash, whether it was done. The run waits for a person to say so.
func TestStepInDoubt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		actions []mark.Resolution
		want    string // state.out
		runs    int    // how often the step was made, of all processes
	}{
		{"done", []mark.Resolution{{Action: mark.ResolveResult, Result: "5"}}, "5", 0},
		{"retried", []mark.Resolution{{Action: mark.ResolveRetry}}, "done", 1},
		{"skipped", []mark.Resolution{{Action: mark.ResolveSkip}}, "", 0},
		{"retried, cut off, done", []mark.Resolution{{Action: mark.ResolveRetry}, {Action: mark.ResolveResult, Result: "6"}}, "6", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			marker := t.TempDir() + "/ran"
			work := func() agent.Agent {
				a, err := taskagent.NewCommand(taskagent.CommandConfig{
					Config: taskagent.Config{Name: "pay", OutputKey: "out", Effect: agent.AtMostOnce},
					Args:   []string{"sh", "-c", `printf x >>"$1"; printf done`, "sh", marker},
				})
				if err != nil {
					t.Fatal(err)
				}
				return sequence(t, "root", speaker(t, "a", "one"), a, speaker(t, "b", "two"))
			}
			svc := session.InMemoryService()
			r := newRunner(t, durable(work(), svc))
			id := ""
			for ev, err := range ask(t.Context(), r, "go") {
				if err != nil {
					t.Fatal(err)
				}
				id = ev.InvocationID
				if ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted && ev.Address == "root/pay" {
					break // and that is the crash
				}
			}
			for i, action := range tt.actions {
				err := resumed(t, work(), svc, id, nil)
				waiting, ok := errors.AsType[*agent.WaitingError](err)
				if !ok || !errors.Is(err, agent.ErrWaiting) || waiting.Address != "root/pay" || waiting.Question.Kind != mark.AskResolution {
					t.Fatalf("resume: %v, want a question by root/pay", err)
				}
				value, _ := json.Marshal(action)
				answer(t, svc, id, mark.Answer{ID: waiting.Question.ID, Value: value})
				if i < len(tt.actions)-1 { // cut off again, after the retry was written down
					_ = resumed(t, work(), svc, id, func(ev *session.Event) bool {
						return ev.Mark == nil || ev.Mark.Kind != mark.KindDispatched
					})
				}
			}
			if err := resumed(t, work(), svc, id, nil); err != nil {
				t.Fatal(err)
			}
			out, _ := get(t, svc).State().Get("out")
			if got, _ := out.(string); got != tt.want {
				t.Errorf("the step came to %q, want %q", got, tt.want)
			}
			if n := sizeOf(t, marker); n != tt.runs {
				t.Errorf("the step was made %d times, want %d", n, tt.runs)
			}
		})
	}
}

// resumed resumes a run in a new process, as long as more says so.
func resumed(t *testing.T, root agent.Agent, svc session.Service, id string, more func(*session.Event) bool) error {
	t.Helper()
	r := newRunner(t, durable(root, svc))
	for ev, err := range r.Resume(t.Context(), "ana", "s1", id, agent.RunConfig{Pause: new(agent.Pause)}) {
		if err != nil {
			return err
		}
		if more != nil && !more(ev) {
			return nil
		}
	}
	return nil
}

// LOOP 32: a question that nobody answers in time has its default for the answer.
func TestQuestionWithDeadline(t *testing.T) {
	asks := func(deadline time.Duration) agent.Agent {
		a, err := humanagent.New(humanagent.Config{
			Name: "asks", Kind: mark.AskText, Text: "Which one?", Timeout: deadline, Default: json.RawMessage(`"the first"`),
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, tt := range []struct {
		name     string
		deadline time.Duration
		answered bool
		want     string
	}{
		{"late", time.Minute, false, "the first"},
		{"in time", time.Hour, true, "the second"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := session.InMemoryService()
				r := newRunner(t, durable(asks(tt.deadline), svc))
				id := ""
				var failed error
				for ev, err := range r.Run(t.Context(), "ana", "s1", nil, agent.RunConfig{Pause: new(agent.Pause)}) {
					if failed = err; ev != nil {
						id = ev.InvocationID
					}
				}
				waiting, ok := errors.AsType[*agent.WaitingError](failed)
				if !ok {
					t.Fatalf("got %v, want that it waits", failed)
				}
				if tt.answered {
					answer(t, svc, id, mark.Answer{ID: waiting.Question.ID, Value: json.RawMessage(`"the second"`), By: "Ana"})
				} else {
					time.Sleep(2 * time.Minute)
				}
				if err := resumed(t, asks(tt.deadline), svc, id, nil); err != nil {
					t.Fatal(err)
				}
				last := ""
				for ev := range get(t, svc).Events().All() {
					if ev.Mark == nil && ev.Text() != "" {
						last = ev.Text()
					}
				}
				if last != tt.want {
					t.Errorf("got %q, want %q", last, tt.want)
				}
			})
		})
	}
}

func sizeOf(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return len(text)
}
