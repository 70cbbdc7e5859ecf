// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// All ways in which an agent can make a run go on need the same consent as a start: of a run whose script has changed, and of one
// whose definition the folder does not have, such as an imported one.
func TestAnAgentContinuesOnlyWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ask.yaml", "name: ask\nmax_iterations: 1\nsub_agents:\n  - {name: q, type: human, ask: answer, question: Which?}\n"+
		"  - {name: go, command: [sh, step.sh]}\n")
	write("step.sh", "echo first")
	r, err := New(Config{Service: session.InMemoryService(), AppName: "app", UserID: "ana", Dir: dir, Log: slog.New(slog.DiscardHandler),
		Trust: Trust{Accepts: func(string) bool { return false }}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(r.Close(context.Background()), r.Folder.Close()); err != nil {
			t.Error(err)
		}
	}()
	person, agent := t.Context(), WithCaller(t.Context(), Caller{Person: access.Person{Name: "model", Role: access.Author}, Agent: true})
	waits := func(id string) {
		t.Helper()
		if run, err := r.Supervisor.Wait(person, id); err != nil || run.Status != mark.RunWaiting {
			t.Fatalf("run %s: %s, %v", id, run.Status, err)
		}
	}
	answer := func(by context.Context, id string) error {
		return r.Answer(by, id, &AnswerRequest{Value: []byte(`"this"`)})
	}
	refused := func(err error) {
		t.Helper()
		if e, ok := errors.AsType[*NotAcceptedError](err); !ok || len(e.Starts) == 0 {
			t.Errorf("refused with %v", err)
		}
	}
	req := &StartRequest{StartArgs: StartArgs{Definition: "ask"}}
	if _, err := r.Start(agent, req, "", nil); err != nil {
		t.Fatal(err)
	}
	waits(req.ID)
	started, err := r.Started(person, req.ID)
	if err != nil {
		t.Fatal(err)
	}
	began := started
	p, err := program.Decode(started)
	if err != nil {
		t.Fatal(err)
	}
	def, err := p.ReadIn(os.DirFS(dir), "other.yaml", "other.yaml", []byte("name: other\ncommand: [touch, ran]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if started, err = p.Started(def); err != nil {
		t.Fatal(err)
	}
	other, err := r.Supervisor.Submit(person, supervisor.Request{SessionID: "imported", Started: started,
		Message: genai.NewContentFromText("go", genai.RoleUser)})
	if err != nil {
		t.Fatal(err)
	}
	refused(r.Resume(agent, other, &ResumeRequest{})) // the folder does not have its definition

	// What the log of a run says beside its definition is no more accepted than another definition.
	elsewhere := func(name string, change func(*program.Program)) string {
		t.Helper()
		p, err := program.Decode(began)
		if err != nil {
			t.Fatal(err)
		}
		def, err := p.DefinitionFor(&r.Code)
		if err != nil {
			t.Fatal(err)
		}
		change(p)
		started, err := p.Started(def)
		if err != nil {
			t.Fatal(err)
		}
		id, err := r.Supervisor.Submit(person, supervisor.Request{SessionID: name, Started: started,
			Message: genai.NewContentFromText("go", genai.RoleUser)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	refused(r.Resume(agent, elsewhere("permissions", func(p *program.Program) { p.Permissions = "all" }), &ResumeRequest{}))
	imported := elsewhere("of_elsewhere", func(*program.Program) {})
	log, err := r.Session(person, imported)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := session.NewRunEvent(*session.RunOf(log), "refrain import", mark.KindRunPaused, mark.RunPaused{By: "refrain import"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Service.AppendEvent(person, log, ev); err != nil {
		t.Fatal(err)
	}
	refused(r.Resume(agent, imported, &ResumeRequest{}))

	fork := &ForkRequest{Iteration: new(0), Resume: true}
	id, err := r.Fork(agent, req.ID, fork)
	if err != nil {
		t.Fatal(err)
	}
	waits(id)
	write("step.sh", "touch ran")
	_, err = r.Fork(agent, req.ID, fork)
	refused(err)
	refused(answer(agent, id))
	refused(r.Resume(agent, id, &ResumeRequest{}))
	refused(r.Resume(agent, id, &ResumeRequest{Definition: "ask"}))
	if _, err := os.Stat(filepath.Join(dir, "ran")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a program has run: %v", err)
	}
	if all, err := r.Sessions(person); err != nil || len(all) != 5 { // no fork that was refused
		t.Errorf("%d runs, %v", len(all), err)
	}
	if err := answer(person, id); err != nil {
		t.Error(err)
	}
	if run, err := r.Supervisor.Wait(person, id); err != nil || run.Status != mark.RunCompleted {
		t.Errorf("the answer of a person: %s, %v", run.Status, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err != nil {
		t.Error(err)
	}
}
