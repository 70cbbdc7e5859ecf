// SPDX-License-Identifier: Apache-2.0

// Package replaytest makes a test of a recorded run: it plays the run through a definition, with the recorded answers of models,
// commands, other agents and people. The test asks no model and starts no process.
//
//	func TestLoop(t *testing.T) {
//		replaytest.Run(t, "testdata/run.jsonl", "loop.yaml")
//	}
//
// refrain export writes the file. To record a run anew with real models, run the test with REFRAIN_UPDATE=1 or, if the test has a
// flag of that name, with -update.
package replaytest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/replay"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/tool"
)

// Config says how to replay. The zero value is what [Run] uses.
type Config struct {
	// Exact fails the test if a request to a model has changed. Otherwise the test's log shows the change.
	Exact bool
	// Tools are the Go functions that the definition names. They are called only to record a run anew; in a replay their
	// descriptions are used.
	Tools []tool.Tool
	// Agents makes the Go agents that the definition names, to record a run anew.
	Agents map[string]definition.NewAgent
	// Root is the folder in which commands run when a run is recorded anew; empty means that of the test.
	Root string
}

// Run plays the run in a file through the definition in another file; an empty def means the definition of the run. t fails if
// the run comes to another end: another stop reason, other iterations, calls, result or state. It also fails if an agent asks its
// model more or less often, or is offered other tools. Requests that have changed are in the log of t.
func Run(t *testing.T, file, def string) {
	t.Helper()
	Config{}.Run(t, file, def)
}

// Run is [Run] with a configuration.
func (c Config) Run(t *testing.T, file, def string) {
	t.Helper()
	if err := c.run(t, file, def); err != nil {
		t.Fatal(err)
	}
}

func (c Config) run(t *testing.T, file, def string) error {
	t.Helper()
	code := &program.Code{Tools: c.Tools, Agents: c.Agents}
	log, err := runlog.ReadFile(file, nil)
	if err != nil {
		return err
	}
	rec, err := replay.Read(log.Run(), code)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	cfg := replay.Config{Code: *code, Exact: c.Exact}
	p := &program.Program{}
	if def != "" {
		if cfg.Definition, err = p.Read(def); err != nil {
			return err
		}
	}
	if updates() {
		if def == "" {
			return fmt.Errorf("%s: name a definition with which to record it anew", file)
		}
		return c.record(t.Context(), file, code, rec, p, cfg.Definition)
	}
	rep, err := rec.Replay(t.Context(), cfg)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var text bytes.Buffer
	if err := rep.WriteText(&text); err != nil {
		return err
	}
	switch {
	case !rep.Same():
		t.Errorf("\n%s", text.String())
	case len(rep.Changed)+len(rep.Notes) > 0:
		t.Logf("\n%s", text.String())
	}
	return nil
}

// updates reports whether runs are recorded anew.
func updates() bool {
	f := flag.Lookup("update")
	return os.Getenv("REFRAIN_UPDATE") == "1" || f != nil && f.Value.String() == "true"
}

// record runs the definition with the input and the state of a recorded run, and writes its export in place of the file.
func (c Config) record(ctx context.Context, file string, code *program.Code, rec *replay.Recording, p *program.Program,
	def *definition.Definition) (err error) {
	if p.Dir, err = os.Getwd(); err == nil {
		p.Root, err = filepath.Abs(c.Root)
	}
	if err != nil {
		return err
	}
	started, err := p.Started(def)
	if err != nil {
		return err
	}
	svc := session.InMemoryService()
	sup, err := supervisor.New(supervisor.Config{Service: svc, AppName: "refrain", UserID: "user",
		Build: program.Rebuild(program.Env{Code: *code, Report: func(error) {}})})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err = errors.Join(err, sup.Close(ctx))
	}()
	message, state := rec.Start(def)
	run, err := sup.Start(ctx, supervisor.Request{Message: message, State: state, Started: started})
	if err != nil {
		return err
	}
	end, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains([]mark.RunStatus{mark.RunCompleted, mark.RunFailed}, end.Run.Status) {
		return fmt.Errorf("%s: the new run has not come to its end: it is %s", file, end.Run.Status)
	}
	log, err := runlog.Read(ctx, svc, lease.Key{AppName: "refrain", UserID: "user", SessionID: run.ID()})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if _, err := log.Export(&text, runlog.ExportOptions{}); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}
