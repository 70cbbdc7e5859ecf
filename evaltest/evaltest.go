// SPDX-License-Identifier: Apache-2.0

// Package evaltest evaluates a definition or an agent over cases in a Go test, as refrain eval does.
//
//	func TestRefunds(t *testing.T) {
//		evaltest.Run(t, evaltest.Config{
//			Definition: "loop.yaml",
//			Cases:      "cases.yaml",
//			Against:    "testdata/released.yaml", // fail if loop.yaml is worse
//		})
//	}
//
// Each case runs several times, because models answer differently each time, and each run costs what its model calls cost.
// doc/eval.md describes files of cases.
package evaltest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/tool"
)

// Config says what to evaluate.
type Config struct {
	// Definition is the file of a definition, and Agent an agent of Go code in its place. One of them is required. The agent runs
	// several cases at a time.
	Definition string
	Agent      agent.Agent
	// Cases is the file of the cases. Required.
	Cases string
	// Against is the file of the definition to compare with, and AgainstAgent an agent in its place. Both are optional.
	Against      string
	AgainstAgent agent.Agent

	// Only are the IDs of the cases to run, or tags written as tag:NAME; empty means all cases.
	Only []string
	// Repeat is how often each case runs, and Parallel how many runs work at a time; 0 means what the file of cases says, or
	// else 3 and 4.
	Repeat, Parallel int
	// Margin is the largest difference that does not matter; 0 means what the file says, or else that every difference does.
	Margin float64

	// Root is the folder in which commands run; empty means that of the test.
	Root string
	// Tools, Agents and Model have the same meaning as in definition.BuildConfig.
	Tools  []tool.Tool
	Agents map[string]definition.NewAgent
	Model  func(ctx context.Context, name string) (model.LLM, error)
	// DefaultModel is the name of the model of agents that have none.
	DefaultModel string
}

// Run evaluates and reports to t: a subtest for each case, and the report in t's log.
//
// Without Against a subtest fails if not every run of its case has passed. With Against the cases alone fail nothing: t fails
// if the definition is worse than that which it is compared with. Where there is no verdict, the log says so. A run that ends
// with an error has neither passed nor failed, but its case has not always passed. With Against t fails if too many runs are
// errors, and if a verdict would change if they had failed.
//
// Mistakes in the config, in a definition or in the cases end t at once.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	plan, code, err := cfg.plan()
	if err != nil {
		t.Fatal(err)
	}
	rep, err := evaluate(t, &cfg, plan, code)
	if err != nil {
		t.Fatal(err)
	}
	sum := rep.Summary()
	for i := range rep.New.Cases {
		c := &rep.New.Cases[i]
		t.Run(c.ID, func(t *testing.T) { show(t, c, rep.Old != nil) })
	}
	var text bytes.Buffer
	if err := sum.WriteText(&text, 0); err != nil {
		t.Error(err)
	}
	t.Log("\n" + text.String())
	switch {
	case sum.Verdict == report.Worse:
		t.Errorf("%s is worse than %s", rep.New.Name, rep.Old.Name)
	case sum.Verdict == report.Undecided && sum.Reason != "":
		t.Errorf("there is no verdict: %s", sum.Reason)
	}
}

// show logs what the runs of a case have come to. Unless versions are compared, the case fails if one of them has not passed.
func show(t *testing.T, c *report.Case, compares bool) {
	for i := range c.Runs {
		r := &c.Runs[i]
		if r.Error != "" {
			t.Logf("run %d: error: %s", i+1, r.Error)
		}
		for _, k := range r.Checks {
			if k.Passed != nil && !*k.Passed {
				t.Logf("run %d: %s: %s", i+1, k.Name, k.Reason)
			}
		}
	}
	if state := c.State(); !compares && state != report.Always {
		t.Errorf("its runs pass %s", map[report.State]string{report.Sometimes: "sometimes", report.Never: "never",
			report.Error: "or end with an error", report.Unknown: "or fail nothing: no check was evaluated"}[state])
	}
}

// plan reads the files.
func (cfg *Config) plan() (*eval.Plan, *program.Code, error) {
	if (cfg.Definition == "") == (cfg.Agent == nil) || cfg.Cases == "" {
		return nil, nil, errors.New("evaltest.Config needs Cases, and Definition or Agent")
	}
	if cfg.Against != "" && cfg.AgainstAgent != nil {
		return nil, nil, errors.New("evaltest.Config has Against and AgainstAgent; set one of them")
	}
	set, err := cases.Open(cfg.Cases)
	if err != nil {
		return nil, nil, err
	}
	if len(cfg.Only) > 0 {
		if err := eval.Only(set, cfg.Only); err != nil {
			return nil, nil, err
		}
	}
	if cfg.Repeat > 0 {
		set.Repeat = cfg.Repeat
		for i := range set.Cases {
			set.Cases[i].Repeat = 0
		}
	}
	if cfg.Parallel > 0 {
		set.Parallel = cfg.Parallel
	}
	if cfg.Margin > 0 {
		set.Margin = cfg.Margin
	}
	p := &eval.Plan{File: cfg.Cases, Set: *set, Hash: set.Hash()}
	code := &program.Code{Tools: cfg.Tools, Agents: make(map[string]definition.NewAgent)}
	maps.Copy(code.Agents, cfg.Agents)
	for _, side := range []struct {
		name, file string
		agent      agent.Agent
	}{{eval.SideA, cfg.Definition, cfg.Agent}, {eval.SideB, cfg.Against, cfg.AgainstAgent}} {
		if side.file == "" && side.agent == nil {
			continue
		}
		v, err := cfg.version(code, side.name, side.file, side.agent)
		if err != nil {
			return nil, nil, err
		}
		p.Versions = append(p.Versions, v)
	}
	return p, code, nil
}

// version reads a version, and adds an agent to the code.
func (cfg *Config) version(code *program.Code, side, file string, a agent.Agent) (v eval.Version, err error) {
	p := &program.Program{DefaultModel: cfg.DefaultModel}
	if p.Dir, err = os.Getwd(); err == nil {
		p.Root, err = filepath.Abs(cfg.Root)
	}
	if err != nil {
		return v, err
	}
	var def *definition.Definition
	if a == nil {
		def, err = p.Read(file)
	} else {
		file = program.DefinitionName(a.Name())
		name := file + "_" + side // of two agents with one name
		code.Agents[name] = program.Shared(a)
		def, err = p.ReadOwn(file, program.Text("name: "+file+"\ntype: func\nfunc: "+name+"\n"))
	}
	if err != nil {
		return v, err
	}
	v, err = eval.NewVersion(file, p, def)
	v.Side = side
	return v, err
}

// evaluate runs the eval in memory.
func evaluate(t *testing.T, cfg *Config, p *eval.Plan, code *program.Code) (*report.Report, error) {
	service := session.InMemoryService()
	env := program.Env{Code: *code, Model: cfg.Model, Report: func(err error) { t.Log(err) }}
	sup, err := supervisor.New(supervisor.Config{Service: service, AppName: "refrain", UserID: "user", Build: program.Rebuild(env)})
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := sup.Close(ctx); err != nil {
			t.Log(err)
		}
	}()
	e, err := eval.Start(t.Context(), eval.Config{Supervisor: sup, Service: service, AppName: "refrain", UserID: "user", Code: *code,
		Owner: lease.Process(), LeaseTTL: time.Minute}, p, nil)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if err := e.Run(t.Context()); err != nil {
		return nil, err
	}
	rep := e.Report()
	rep.Retry = "" // there is no store of which to run them again
	return rep, nil
}
