// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/humanagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/show"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// storedRuns are the files of testdata/v1, which stay as they are for ever; its
// README says how each was made. They are read, and those that are not over
// resume, with every later version.
func storedRuns(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/v1/*.jsonl")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %q, %v", files, err)
	}
	runs := make(map[string]string)
	for _, f := range files {
		runs[strings.TrimSuffix(filepath.Base(f), ".jsonl")] = f
	}
	return runs
}

// cli runs the program, and returns what it wrote.
func cli(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(t.Context(), nil, args, stateOnly, strings.NewReader(""), &out, &errs); got != code {
		t.Fatalf("refrain %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// G9, K9: what this version wrote is shown, listed, checked and imported, whole.
func TestStoredRunsStayReadable(t *testing.T) {
	for name, file := range storedRuns(t) {
		t.Run(name, func(t *testing.T) {
			golden := strings.TrimSuffix(file, ".jsonl") + ".show"
			text, _ := cli(t, 0, "show", file, "--json")
			if _, err := os.Stat(golden); err != nil && *update { // one that is there stays
				if err := os.WriteFile(golden, []byte(essence(t, text)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := readText(t, golden)
			if got := essence(t, text); got != want {
				t.Fatalf("show says\n%s\nwant\n%s", got, want)
			}
			store := "sqlite:" + filepath.Join(t.TempDir(), "runs.db")
			id, _ := cli(t, 0, "import", file, "--store", store)
			id = strings.TrimSpace(id)
			imported, _ := cli(t, 0, "show", id, "--json", "--store", store)
			status, _, _ := strings.Cut(want, "\n")
			if !mark.RunStatus(status).IsFinal() { // a person has to resume it
				want = strings.NewReplacer(status+"\n", "paused\n", "[INTERRUPTED]", "[PAUSED]").Replace(want)
				status = "paused"
			}
			if got := essence(t, imported); got != want {
				t.Errorf("the imported run shows\n%s\nwant\n%s", got, want)
			}
			first, _ := cli(t, 0, "events", file, "--json", "--all")
			again, _ := cli(t, 0, "events", id, "--json", "--all", "--store", store)
			pauses := 0
			if status == "paused" {
				pauses = 1
			}
			if added, ok := strings.CutPrefix(again, first); !ok || strings.Count(added, "\n") != pauses ||
				strings.Count(added, `"by":"refrain import"`) != pauses {
				t.Errorf("the events of the imported run are not those of the file; added %q", added)
			}
			cli(t, 0, "verify", file)
			cli(t, 0, "verify", id, "--store", store)
			list, _ := cli(t, 0, "runs", "--json", "--store", store)
			if !strings.Contains(list, `"status":"`+status+`"`) {
				t.Errorf("the list says %s, want %s", list, status)
			}
		})
	}
}

// essence is what must never change of how a run is shown.
func essence(t *testing.T, text string) string {
	t.Helper()
	var s show.Shown
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(s.Status + "\n" + s.Name + "\n")
	for _, rec := range s.Stops {
		b.WriteString("stop " + rec.String() + "\n")
	}
	for _, q := range s.Waits {
		b.WriteString("waits " + q.Text + "\n")
	}
	s.PrintTree(&untimed{&b})
	b.WriteString("answer " + s.Answer + "\n")
	return b.String()
}

// untimed leaves out of a tree how long steps took.
type untimed struct{ *strings.Builder }

func (u *untimed) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if head, rest, ok := strings.Cut(line, "] "); ok {
			_, rest, _ = strings.Cut(rest, "  ")
			line = head + "] " + strings.TrimRight(rest, "\n") + "\n"
		}
		u.WriteString(line)
	}
	return len(p), nil
}

// What was cut off or paused goes on, and comes to what a whole run comes to.
func TestStoredRunsResume(t *testing.T) {
	whole := strings.Split(strings.TrimSpace(readText(t, "testdata/v1/completed.show")), "\n")
	for _, name := range []string{"interrupted", "paused"} {
		t.Run(name, func(t *testing.T) {
			def, err := definition.Load("testdata/v1/story.yaml")
			if err != nil {
				t.Fatal(err)
			}
			root, err := def.Build(t.Context(), definition.BuildConfig{Root: t.TempDir(), Getenv: os.Getenv})
			if err != nil {
				t.Fatal(err)
			}
			log := resumed(t, name, root)
			if got := "answer " + log.Text(); got != whole[len(whole)-1] {
				t.Errorf("%s\nwant %s", got, whole[len(whole)-1])
			}
		})
	}
}

// A run that began when the key of an answer with an output_schema held its text goes on with texts.
func TestStoredRunsKeepTheirTexts(t *testing.T) {
	for _, name := range []string{"interrupted", "paused"} {
		log, err := runstore.OpenLog(&term.Env{Stderr: os.Stderr}, "testdata/v1/"+name+".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		var started mark.RunStarted
		if err := log.Run().First().Mark.Decode(&started); err != nil {
			t.Fatal(err)
		}
		p, err := program.Decode(started)
		if err != nil {
			t.Fatal(err)
		}
		def, err := p.Definition()
		if err != nil {
			t.Fatal(err)
		}
		if started, err = p.Started(def); err != nil { // as a change of the run's limits writes it
			t.Fatal(err)
		}
		if p, err = program.Decode(started); err != nil {
			t.Fatal(err)
		}
		cfg := p.BuildConfig()
		cfg.Root, cfg.Getenv = t.TempDir(), os.Getenv
		script, err := filepath.Abs("testdata/v1/script.yaml")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Model = func(ctx context.Context, _ string) (model.LLM, error) {
			return provider.Open(ctx, "scripted/"+script, os.Getenv)
		}
		root, err := def.Build(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		reviews := 0
		for _, ev := range resumedEvents(t, name, root) {
			if review, wrote := ev.Actions.StateDelta["review"]; wrote && ev.Author == "critic" {
				reviews++
				if _, text := review.(string); !text {
					t.Errorf("%s: the review is %v", name, review)
				}
			}
		}
		if reviews == 0 {
			t.Errorf("%s: no review", name)
		}
	}
}

// resumed imports a run, resumes it, and returns the last thing that was said.
func resumed(t *testing.T, name string, root agent.Agent) (last *session.Event) {
	t.Helper()
	events := resumedEvents(t, name, root)
	for _, ev := range events {
		if ev.Text() != "" && ev.Mark == nil {
			last = ev
		}
	}
	if last == nil {
		t.Fatalf("nothing was said in %d events", len(events))
	}
	return last
}

// resumedEvents imports a run, resumes it, and returns the new events.
func resumedEvents(t *testing.T, name string, root agent.Agent) (all []*session.Event) {
	t.Helper()
	log, err := runstore.OpenLog(&term.Env{Stderr: os.Stderr}, "testdata/v1/"+name+".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	store := session.InMemoryService()
	if err := (&runlog.Run{ID: "r", File: log, Initial: log.Head.State}).Save(t.Context(), store, runstore.KeyOf("r")); err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: runstore.AppName, Agent: root, SessionService: store, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range r.Resume(t.Context(), runstore.UserName, "r", log.Run().First().InvocationID, agent.RunConfig{Pause: new(agent.Pause)}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ev)
	}
	return all
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A run that waits for a person goes on with the answer.
func TestStoredRunThatWaitsGoesOnWithTheAnswer(t *testing.T) {
	file := "testdata/v1/waiting.jsonl"
	if _, err := os.Stat(file); err != nil && *update {
		makeWaiting(t, file)
	}
	log, err := runstore.OpenLog(&term.Env{Stderr: os.Stderr}, file)
	if err != nil {
		t.Fatal(err)
	}
	store := session.InMemoryService()
	if err := (&runlog.Run{ID: "r_e0000001", File: log}).Save(t.Context(), store, runstore.KeyOf("r_e0000001")); err != nil {
		t.Fatal(err)
	}
	sup := reviewing(t, store)
	asked, err := sup.Questions(t.Context(), "r_e0000001")
	if err != nil || len(asked) != 1 {
		t.Fatalf("asked %v, %v", asked, err)
	}
	if _, err := sup.Answer(t.Context(), "r_e0000001", mark.Answer{ID: asked[0].ID, Value: json.RawMessage("true"), Reason: "fine"}); err != nil {
		t.Fatal(err)
	}
	run, err := sup.Resume(t.Context(), "r_e0000001", supervisor.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := run.Wait(t.Context())
	if err != nil || end.Err != nil || end.Run.Status != mark.RunCompleted {
		t.Errorf("ended as %+v, %v", end, err)
	}
}

// reviewing drives runs of a loop in which a person approves what was written.
func reviewing(t *testing.T, store session.Service) *supervisor.Supervisor {
	t.Helper()
	writer, err := agent.New(agent.Config{Name: "writer", Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText("A cat sleeps.", genai.RoleModel)
			ev.Actions.StateDelta = map[string]any{"draft": "A cat sleeps."}
			yield(ev, nil)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	review, err := humanagent.New(humanagent.Config{Name: "review", Text: "Publish? {{draft}}", OutputKey: "review", ExitIfApproved: true})
	if err != nil {
		t.Fatal(err)
	}
	root, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "reviewing", SubAgents: []agent.Agent{writer, review}}, MaxIterations: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	sup, err := supervisor.New(supervisor.Config{
		Service: store, AppName: runstore.AppName, UserID: runstore.UserName, Leases: supervisor.Leases{Owner: "refrain 1 on example"},
		Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: root}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sup.Close(context.Background()) })
	return sup
}

// makeWaiting writes the file of a run that waits, where there is none yet.
func makeWaiting(t *testing.T, file string) {
	store := session.InMemoryService()
	run, err := reviewing(t, store).Start(t.Context(), supervisor.Request{
		SessionID: "r_e0000001", Message: genai.NewContentFromText("cats", genai.RoleUser), Started: mark.RunStarted{Name: "reviewing"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	one, err := runlog.Read(t.Context(), store, runstore.KeyOf("r_e0000001"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := one.Export(&out, runlog.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
