// SPDX-License-Identifier: Apache-2.0

// Package running has the verbs that run something, those that change how a run goes on, and doctor, which tells whether
// something can run here. NewVERB makes the verb.
package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/supervisor"
)

// runFlags are the flags of refrain run.
type runFlags struct {
	clusters.Flags
	set         map[string]string
	limits      deffile.Limits
	shown       term.Shown
	session     string
	store       string
	detach      bool
	grace       time.Duration
	root        string
	copies      string // folder of the copies of a workspace; empty for the default
	model       string
	record      string
	watch, open bool
	notify      []string // --notify
	notifier    string   // --notify-command of refrain loop
	streams     bool     // show what coding agents do while they do it
	paused      bool     // the run is stored and paused before its first step, because Ctrl-C was pressed before it began
	fresh       bool     // the session may not exist
}

func NewRun(e *term.Env) *cobra.Command {
	var f runFlags
	var sets []string
	cmd := &cobra.Command{
		Use:   "run FILE [INPUT]",
		Short: "Run a definition",
		Long: `Run a definition. INPUT is the user's request, {{user_input}} in the definition; "-"
reads it from stdin. The answer goes to stdout, progress to stderr.

The run is kept in .refrain/refrain.db, or where --store says, together with the
definition as it is now. The first Ctrl-C pauses the run after the step that is running,
the second cuts that step off, and the third leaves at once. In each case refrain resume
continues the run. In a terminal, the key d moves the run to the background; --detach
starts the run in the background.

With --temporal the workers of a Temporal cluster drive the run; see refrain worker. The
command shows the run as refrain watch does. Ctrl-C and d end the command, but not the
run; to pause the run, use refrain pause.

At a terminal, run asks the questions of the run there and continues; a text to edit
opens in VISUAL or EDITOR. Ctrl-D leaves the question for refrain answer.

Exit codes: 0 completed, 1 failed, 2 wrong usage or an invalid definition, 3 stopped by
a limit or by no_progress before the loop's own criterion, 4 paused or waiting for a
person, 130 interrupted.

Models are named provider/name, such as openai/gpt-5-mini. doc/models.md lists the
providers and the keys that they need.`,
		Example: `  refrain run loop.yaml "Write a document about a cat"
  refrain run examples/compress/loop.yaml --set file=README.md
  refrain run loop.yaml --max-iterations 3 --timeout 10m --progress json
  refrain run loop.yaml --detach
  refrain run loop.yaml --budget-tokens 50000 --record run.jsonl
  refrain run examples/document/loop.yaml --model ollama/qwen3 "Write a document about a cat"
  cat brief.txt | refrain run loop.yaml -`,
		Args: func(cmd *cobra.Command, args []string) error { return term.Args(cmd, deffile.WithOnly(e, args)) },
		RunE: func(cmd *cobra.Command, args []string) error {
			args = deffile.WithOnly(e, args)
			e, err := f.withCopies(e)
			if err != nil {
				return term.UsageError(err)
			}
			if err := f.check(cmd.Flags(), args); err != nil {
				return err
			}
			if err := f.Here(cmd.Context(), e, cmd.Flags()); err != nil {
				return err
			}
			if err := f.shown.Choose(e); err != nil {
				return err
			}
			if f.set, err = deffile.ParseSets(sets); err != nil {
				return err
			}
			input, err := deffile.ReadInput(args[1:], e.Stdin)
			if err != nil {
				return err
			}
			return runFile(cmd.Context(), e, f, args[0], input)
		},
	}
	fl := cmd.Flags()
	addSets(fl, &sets)
	f.limits.Add(fl)
	f.shown.Add(fl, "")
	fl.StringVar(&f.model, "model", "", "`provider/name` of the model for all agents, in place of the definition's; "+
		"env REFRAIN_MODEL applies only to agents without a model")
	fl.StringVar(&f.session, "session", "", "`ID` of the run; the ID of an earlier run continues the conversation of that run "+
		"(default: a new ID)")
	runstore.Flag(fl, &f.store)
	copiesFlag(fl, &f.copies)
	f.Add(fl, clusters.AddressUsage)
	f.AddQueue(fl)
	f.AddHeartbeat(fl)
	fl.BoolVar(&f.detach, "detach", false, "run in the background, and print the run's ID to stdout")
	graceFlag(fl, &f.grace)
	fl.StringVar(&f.record, "record", "", "write every event to a new `FILE`, one line of JSON per event, for refrain "+
		"verify and refrain backtest")
	fl.BoolVar(&f.watch, "watch", false, "print the address of the run's page, if refrain serve serves the same store")
	fl.BoolVar(&f.open, "open", false, "open the run in a browser, if refrain serve serves the same store")
	notifyFlag(fl, &f.notify, "the run")
	fl.StringVar(&f.root, "root", ".", "`directory` that commands may not leave")
	return cmd
}

// copiesFlag adds --copies.
func copiesFlag(fl *pflag.FlagSet, dir *string) {
	fl.StringVar(dir, "copies", "", "`directory` outside of the repository for the copies of workspaces (default: refrain/trees in "+
		"XDG_STATE_HOME or ~/.local/state; env "+trust.CopiesVariable+")")
}

// withCopies returns the environment in which new copies are made in the folder of --copies.
func (f *runFlags) withCopies(e *term.Env) (*term.Env, error) {
	if f.copies == "" {
		return e, nil
	}
	dir, err := filepath.Abs(f.copies)
	if err != nil {
		return nil, fmt.Errorf("--copies: %w", err)
	}
	here := *e
	here.Getenv = func(name string) string {
		if name == trust.CopiesVariable {
			return dir
		}
		return e.Getenv(name)
	}
	return &here, nil
}

// check returns an error for flags that have no effect or that contradict each other, before anything of the run exists.
func (f *runFlags) check(fl *pflag.FlagSet, args []string) error {
	if args[0] == "" {
		return errors.New("no definition is given; write: refrain run FILE [INPUT]")
	}
	if fl.Changed("session") {
		if err := runstore.CheckID(f.session); err != nil {
			return fmt.Errorf("--session: %w", err)
		}
	}
	if fl.Changed("record") && f.record == "" {
		return errors.New("--record: name a file")
	}
	if f.detach {
		for _, name := range []string{"record", "json", "progress"} {
			if fl.Changed(name) {
				return fmt.Errorf("--%s and --detach: a run in the background shows nothing; use refrain watch or "+
					"refrain export", name)
			}
		}
	}
	if fl.Changed("temporal") {
		for _, name := range []string{"record", "grace", "notify"} {
			if fl.Changed(name) {
				return fmt.Errorf("--%s and --temporal: a worker drives the run, and not this process%s", name,
					map[string]string{"record": "; write its log later with refrain export", "notify": "; write notify into the definition, and set its variables for the workers"}[name])
			}
		}
	}
	if err := f.CheckHeartbeat(); err != nil {
		return err
	}
	return checkGrace(f.grace)
}

// defaultGrace is the default of --grace.
const defaultGrace = 10 * time.Second

// graceFlag adds --grace.
func graceFlag(fl *pflag.FlagSet, grace *time.Duration) {
	term.DurationFlag(fl, grace, "grace", defaultGrace, "time that running steps have to end after a signal other "+
		"than Ctrl-C")
}

func checkGrace(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("--grace %s: give a time such as 10s, or 0 for none", d)
	}
	return nil
}

// addSets adds --set.
func addSets(fl *pflag.FlagSet, sets *[]string) {
	fl.StringArrayVar(sets, "set", nil, "set an input of the definition, as `key=value`; repeat the flag for more inputs")
}

// runFile loads a definition and follows its run to the end.
func runFile(ctx context.Context, e *term.Env, f runFlags, file, input string) error {
	to, err := notifyOf(e, f.notify)
	if err != nil {
		return err
	}
	p, def, err := deffile.NewProgram(e, file, f.model, f.root, &f.limits)
	if err != nil {
		return err
	}
	def.Warnings().Format(e.Stderr)
	if input = cmp.Or(input, def.Query); strings.TrimSpace(input) == "" {
		if why := def.NeedsRequest(); why != "" {
			return term.UsageError(fmt.Errorf("%s: a run needs a request of its user: %s; write: refrain run %[1]s \"REQUEST\"", file, why))
		}
	}
	if f.session == "" && def.Session != "" {
		if err := runstore.CheckID(def.Session); err != nil {
			return term.UsageError(fmt.Errorf("%s: session: %w", file, err))
		}
		f.session = def.Session
	}
	state, err := deffile.InitialState(def, f.set)
	if err != nil {
		return term.UsageError(err)
	}
	p.Streams = f.streams
	started, err := p.Started(def)
	if err != nil {
		return err
	}
	if f.On {
		if err := def.CheckMovable(); err != nil {
			return term.UsageError(err)
		}
		return f.submit(ctx, e, supervisor.Request{SessionID: f.session, State: state, Started: started,
			Message: genai.NewContentFromText(input, genai.RoleUser)})
	}
	prog, err := deffile.Build(ctx, e, runstore.Name(e, f.store), p, def) // before anything of the run exists
	if err != nil {
		return err
	}
	s, err := runstore.MakeStock(ctx, e, f.store, f.record)
	if err != nil {
		prog.Close()
		return err
	}
	defer s.Close()
	if f.session == "" {
		f.session = supervisor.NewID()
	}
	req := supervisor.Request{
		SessionID: f.session, New: f.fresh, Message: genai.NewContentFromText(input, genai.RoleUser),
		State: state, Started: started, Program: prog,
	}
	if f.paused {
		return storePaused(ctx, e, s, req)
	}
	page := ""
	if f.watch || f.open {
		page = sayPage(ctx, e, s, f.session)
	}
	begun := func() { // called once the run is visible in the store
		if f.open && page != "" {
			term.OpenOrSay(e, page)
		}
	}
	if f.detach {
		err := live.Detach(ctx, e, s, req, live.Launch{Grace: f.grace, Notify: to, Brief: live.AsksFirst(def.Root)})
		if err == nil {
			begun()
		}
		return err
	}
	shown := live.Request{File: file, Session: f.session, Config: prog.RunConfig,
		ZeroOnLimit: f.shown.ZeroOnLimit, Most: p.Most(def), Notify: to, NotifyCommand: f.notifier}
	asks := (&resumeFlags{shown: f.shown, grace: f.grace, notifier: f.notifier}).asking(e)
	shown.Asks = asks.keys != nil
	fo, err := live.NewFollower(e, s, f.shown.Mode, def, shown, f.grace)
	if err != nil {
		prog.Close()
		return err
	}
	end := fo.Follow(ctx, func(ctx context.Context) (*supervisor.Run, error) {
		run, err := fo.Supervisor.Start(ctx, req)
		if err == nil {
			begun()
		}
		return run, err
	})
	err = asks.settle(ctx, e, s, f.session, end)
	takeStopped(ctx, e, s, f.session, def)
	return err
}

// storePaused stores a run that is paused before its first step.
func storePaused(ctx context.Context, e *term.Env, s *runstore.Stock, req supervisor.Request) error {
	if !s.Durable {
		req.Program.Close()
		return &term.Exit{Code: term.ExitInterrupted, Err: errors.New("interrupted before the agent was asked; there is no run, because its store is in memory")}
	}
	sup, err := s.Supervise(e, nil)
	if err != nil {
		req.Program.Close()
		return err
	}
	defer sup.Close(ctx)
	id, err := sup.Submit(ctx, req)
	if err == nil {
		err = sup.Pause(ctx, id, "interrupted before the agent was asked")
	}
	if err != nil {
		return term.Failure(err)
	}
	fmt.Fprintf(e.Stderr, "run %s paused before the agent was asked\n%s\n", id, runstore.HowToResumeIn(ctx, s.Service, id))
	return &term.Exit{Code: term.ExitInterrupted}
}

// sayPage prints the address of the run's page in a browser, and returns the address; empty if no server serves the store.
func sayPage(ctx context.Context, e *term.Env, s *runstore.Stock, id string) string {
	page, say := s.Served(ctx, e, id), "no server serves this store; start a server with: refrain serve"
	if page != "" {
		say = "Watch it at " + page
	}
	fmt.Fprintln(e.Stderr, say)
	return page
}
