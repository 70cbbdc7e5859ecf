// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// BuildConfig holds the settings of the program that runs a definition.
type BuildConfig struct {
	// Root is the directory in which commands run; the field dir of a command cannot leave it. The
	// default is the current directory.
	Root string
	// Permissions are those of all coding agents in place of the definition's; empty changes nothing.
	Permissions string
	// Sandbox limits the commands and coding agents that have none of their own, but not those with a task queue. Nil limits no others.
	Sandbox *taskagent.Sandbox
	// Store names the store that has the log of the run, as runfiles.Owner reads it, so that the files of a workspace belong to
	// this run and not to one of the same ID in another store. Empty means that the store is unknown.
	Store string
	// Copies is the folder in which workspaces make their trees; see workspace.Config. Empty means the folder .refrain in Root.
	Copies string
	// Refrain is the file of the program that a command starts whose program is called refrain, such as the steps that
	// refrain loop writes. Empty means that the command looks for refrain in PATH, as a command on another machine does.
	Refrain string
	// Limits replace those of the file. Build uses MaxIterations and Timeout.
	Limits
	// Model opens a model by its name. Build calls it once for each name, with its own context. Nil
	// uses provider.Open with Getenv. The path of a script that the file names is relative to the
	// current directory.
	Model func(ctx context.Context, name string) (model.LLM, error)
	// DefaultModel is the name of the model of agents that have none.
	DefaultModel string
	// Tools and Toolsets are the Go functions that a definition can name as tools. Each name is
	// used once, and none is exit_loop.
	Tools    []tool.Tool
	Toolsets []tool.Toolset
	// Agents has the functions that make agents of type func, and Callbacks those that callbacks can name. The keys
	// are the names in the file.
	Agents    map[string]NewAgent
	Callbacks map[string]hook.Func
	// CallbackFailed is called when a callback fails and the failure has no other effect. Several
	// goroutines may call it. Nil writes a warning to slog.Default.
	CallbackFailed func(error)
	// InitTimeout limits the time to open one model or one tool server; after it, the error is an
	// [*InitError]. 0 uses the value of the definition, or else [DefaultInitTimeout].
	InitTimeout time.Duration
	// Getenv reads an environment variable: for models, and for the variables that the file passes
	// to tool servers. Nil uses os.Getenv.
	Getenv func(string) string
	// Transport sends the requests of agents of the types http and a2a, of webhooks and of clients of tool servers;
	// nil means http.DefaultTransport. Models have connections of their own.
	Transport http.RoundTripper
	// Elsewhere sends the steps with a task queue to their workers; package temporal has one. With nil, Build reports
	// each of these steps, because no worker would run the step.
	Elsewhere elsewhere.Dispatcher
	// Cleanup receives functions that stop the tool servers; call them when the agents are no
	// longer used. With nil the servers run until the process ends.
	Cleanup func(func() error)
	// TextAnswers stores an answer that follows an output_schema as its JSON text under the output_key, as runs of
	// older versions do. False stores the value, such as an object. A run that is resumed needs the value with which it
	// began; package program records it.
	TextAnswers bool
	// StandIns replace everything that leaves the process, for rehearsals.
	StandIns StandIns
	// Replace has outcomes by the names of steps and of agents that are tools, also in other agents. Such a step does not do
	// its work, which may have effects outside, and hands back its outcome: a text, or a value that is handed back as JSON.
	// Names that the definition does not have are ignored.
	Replace map[string]any

	workspace func(ctx agent.InvocationContext, run func(taskagent.Folder) error) (map[string]any, error)
	withhold  []string // variables that no command inherits: the secrets of webhooks
}

// client returns the client that sends requests of agents; nil means that each agent uses its own.
func (cfg *BuildConfig) client() *http.Client {
	if cfg.Transport == nil {
		return nil
	}
	return &http.Client{Transport: cfg.Transport}
}

// Build makes the agents. Each call makes new ones, for one tree. ctx limits the time to open models; the agents
// outlive it. The error is about cfg (a limit without a loop that it could apply to, a limit that removes the only
// bound of a loop, two functions of one name), or an [*InitError] about a model that did not open in time, or
// [Problems] with their positions: models that cannot be opened, agents without a model, steps with a task queue
// without Elsewhere, Go functions and Go agents that cfg does not have, and environment variables that are not set.
func (d *Definition) Build(ctx context.Context, cfg BuildConfig) (agent.Agent, error) {
	cfg.InitTimeout = cmp.Or(cfg.InitTimeout, d.InitTimeout, DefaultInitTimeout)
	cfg.withhold = d.secretVariables()
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.CallbackFailed == nil {
		cfg.CallbackFailed = func(err error) { slog.Warn("a callback failed", "error", err) }
	}
	b := builder{cfg: cfg, kept: d.kept, subjects: d.subjects, models: make(map[string]model.LLM), hooks: make(map[*Agent]hooks),
		fixed: fixedKeys(d)}
	var err error
	if b.limiting, err = d.limited(cfg.Limits); err != nil {
		return nil, fmt.Errorf("build %q: %w", d.Name, err)
	}
	if err := b.resolve(ctx, d.Root); err != nil {
		return nil, err
	}
	return b.build(d.Root)
}

// Lacks reports the Go code that the definition names and cfg does not have: agents, functions and callbacks. It opens nothing.
// The error is about cfg, such as two functions of one name.
func (d *Definition) Lacks(cfg BuildConfig) (Problems, error) {
	b, l := builder{cfg: cfg}, newLoader()
	var err error
	if b.functions, err = cfg.functions(); err != nil {
		return nil, err
	}
	for a := range d.Root.All {
		for _, callbacks := range a.Callbacks {
			for _, cb := range callbacks {
				if cb.Func != "" && cfg.Callbacks[cb.Func] == nil {
					_, err := b.hook(&cb)
					l.report(a.at(cb.field), CodeCallback, "%s", err).suggest(b.hookHint(&cb))
				}
			}
		}
		if a.Type == TypeFunc {
			b.resolveAgent(l, a)
		}
		if a.LLM != nil {
			b.resolveFunctions(l, a)
		}
	}
	return l.problems.sort(), nil
}

// secretVariables returns the environment variables that the file names for secrets.
func (d *Definition) secretVariables() (names []string) {
	for a := range d.Root.All {
		for _, callbacks := range a.Callbacks {
			for _, cb := range callbacks {
				if cb.SecretEnv != "" {
					names = append(names, cb.SecretEnv)
				}
			}
		}
	}
	return names
}

type builder struct {
	limiting
	cfg      BuildConfig
	kept     map[*Agent]bool
	subjects map[*Agent]string
	models   map[string]model.LLM // by name
	hooks    map[*Agent]hooks
	fixed    []string // keys of the state that stay in a run

	functions map[string]function
	files     *runfiles.Runs // nil without a workspace
}

func (b *builder) build(a *Agent) (agent.Agent, error) {
	if standIn := b.cfg.StandIns.Agent; standIn != nil {
		if made, err := standIn(a); made != nil || err != nil {
			return made, err
		}
	}
	if value, ok := b.cfg.Replace[a.Name]; ok {
		return b.replaced(a, value)
	}
	cb := b.around(a)
	if a.Parallel != nil && a.Parallel.copies != nil {
		cb = b.aroundCopies(a, cb)
	}
	if a.races() {
		cb = b.aroundRace(a, cb)
	}
	if b.files != nil {
		cb = b.withFiles(a, cb)
	}
	return a.Type.kind().build(b, a, cb)
}

// workflow returns the configuration of a workflow agent, with its sub-agents.
func (b *builder) workflow(a *Agent, cb around) (agent.Config, error) {
	base := agent.Config{Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before,
		AfterAgentCallbacks: cb.after}
	for _, sub := range a.SubAgents {
		built, err := b.build(sub)
		if err != nil {
			return base, err
		}
		base.SubAgents = append(base.SubAgents, built)
	}
	return base, nil
}

// StandIns replace the work of agents outside the process, so that a definition can be rehearsed. Each function may
// be nil.
type StandIns struct {
	// Agent makes the agent in place of a. If it returns nil and no error, Build makes the agent of
	// the file.
	Agent func(a *Agent) (agent.Agent, error)
	// Loop and LLM may change the configuration of a loop, or of an agent that asks a model. The
	// rules of the loop are in cfg.Plan.
	Loop func(a *Agent, cfg *loopagent.Config)
	LLM  func(a *Agent, cfg *llmagent.Config)
	// AllBranches runs all branches of parallel agents at once, whatever their MaxConcurrency.
	AllBranches bool
	// NoCallbacks builds the agents without their callbacks, and without the delays that are in no loop's
	// plan.
	NoCallbacks bool
	// NoToolServers builds the agents without the tools of servers, which are then not started.
	NoToolServers bool
}

var funcKind = kind{is: TypeFunc, tells: []string{"func"}, check: (*checker).goAgent, build: (*builder).goAgent,
	resolve: func(_ context.Context, b *builder, l *loader, a *Agent) error { b.resolveAgent(l, a); return nil },
	most:    func(*worst, *Agent) AtMost { return noLimit }, // it may ask a model
	notes: func(w *WorstCase, l *loader, u *AgentWorst) {
		l.note(u.Agent.at("func"), CodeNoBound, "%q is a Go agent and may ask models; how often is unknown", u.Agent.Name)
		w.timeNote(l, u)
	},
	expect: (*expecter).uncounted, waits: true,
	exits: func(a *Agent) string { return wordsIf(a.mayExit(), "when its Go code asks for it") },
}

var funcRows = []row[Agent]{field("func", "name of a Go agent that the embedding program registers",
	aWord, func(a *Agent) *string { return &a.Func }).helped("name one of BuildConfig.Agents").must()}

// NewAgent makes an agent of a Go program. The config has the name, the description and the
// callbacks of the definition, and no sub-agents. For example, the function sets Run and calls
// agent.New.
type NewAgent func(cfg agent.Config) (agent.Agent, error)

// goAgent notes that a Go agent may read every key.
func (c *checker) goAgent(a *Agent) {
	if !c.unset(a) {
		c.reads = append(c.reads, read{agent: a, field: "func", code: true, any: true})
	}
}

// hasCode reports whether Go code takes part in runs. It may write any key of the state.
func (d *Definition) hasCode() bool {
	for a := range d.Root.All {
		if a.Func != "" || a.LLM != nil && slices.ContainsFunc(a.LLM.Tools, func(t Tool) bool { return t.Func != "" }) {
			return true
		}
		for _, callbacks := range a.Callbacks {
			if slices.ContainsFunc(callbacks, func(cb Callback) bool { return cb.Func != "" }) {
				return true
			}
		}
	}
	return false
}

// resolveAgent reports a Go agent that the program does not have.
func (b *builder) resolveAgent(l *loader, a *Agent) {
	if b.cfg.Agents[a.Func] != nil {
		return
	}
	l.report(a.at("func"), CodeTask, "there is no Go agent %q", a.Func).suggest(notHere(a.Func, b.cfg.Agents, "agents",
		"a program in Go gives agents, with command.Agent or in BuildConfig.Agents; this program has none"))
}

// goAgent makes an agent of a Go program.
func (b *builder) goAgent(a *Agent, cb around) (agent.Agent, error) {
	if key := outputKey(a); key != "" {
		cb.after = append([]agent.AfterAgentCallback{keepWords(key)}, cb.after...)
	}
	built, err := makeAgent(b.cfg.Agents[a.Func], agent.Config{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after,
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("build Go agent %q: %w", a.Name, err)
	case built == nil:
		return nil, fmt.Errorf("build Go agent %q: BuildConfig.Agents[%q] made none", a.Name, a.Func)
	case built.Name() != a.Name:
		return nil, fmt.Errorf("build Go agent %q: BuildConfig.Agents[%q] made one that is called %q", a.Name, a.Func,
			built.Name())
	}
	return built, nil
}

// makeAgent calls the function that makes an agent. It returns a panic of the function as an error.
func makeAgent(a NewAgent, cfg agent.Config) (built agent.Agent, err error) {
	defer agent.Recover(&err)
	return a(cfg)
}
