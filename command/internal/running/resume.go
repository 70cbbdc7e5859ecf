// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/firstgc"
	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// resumeFlags are the flags of refrain resume.
type resumeFlags struct {
	clusters.Flags
	store, definition, model, dir string
	permissions                   string
	shown                         term.Shown
	grace                         time.Duration
	limits                        deffile.Limits
	add                           uint
	retry                         bool
	stranger                      bool // the store is not trusted
	keys                          *keyboard
	notify                        []string // --notify
	notifier                      string   // --notify-command of refrain loop
}

func NewResume(e *term.Env) *cobra.Command {
	var f resumeFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that was paused, interrupted or stopped by a limit",
		Long: `Continue a run that is paused, waits for a person, was canceled, or was interrupted by a
crash, a restart or Ctrl-C. Completed steps are not repeated. A step that was cut off
runs again. If the step must not run twice (effect: at_most_once), the run asks first
whether its call took place. Exit codes and keys are those of refrain run.

A run that was imported, or that is in a store which your Refrain did not create on this
machine (refrain trust), continues only with this command. The command names the programs
that the run starts.

The run keeps the definition that it was started with, even if the file has changed.
--definition replaces the definition from here on. If the new definition does not fit
the steps that the run has completed, resume fails and does not change the run.

A run that a limit stopped continues with a higher limit: give --add-iterations, or the
limits that refrain run takes. A run that failed continues with --retry, which tries the
failed step again.

A run that belongs to a Temporal cluster is continued by the cluster's workers, and the
command shows the run as refrain watch does. Give --temporal to continue such a run with
another definition or limit, or after its end. With --temporal, resume also gives the
workers a run that was started without --temporal.`,
		Example: `  refrain resume last
  refrain resume r_1f0c3a2b
  refrain resume last --add-iterations 3
  refrain resume last --definition loop.yaml
  refrain resume r_1f0c3a2b --dir ~/work`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.shown.Choose(e); err != nil {
				return err
			}
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			s, id, stranger, err := runstore.OpenNamed(cmd.Context(), e, f.store, args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			f.stranger = stranger
			return resumeIn(cmd.Context(), e, s, f, id)
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	f.AddTo(cmd, e, clusters.AddressUsage)
	f.AddQueue(fl)
	fl.StringVar(&f.definition, "definition", "", "use the definition in this `FILE` from here on")
	fl.StringVar(&f.dir, "dir", "", "run in this `FOLDER`, for example on another machine (default: where the run "+
		"was started)")
	f.addLimits(fl)
	f.shown.Add(fl, "")
	graceFlag(fl, &f.grace)
	notifyFlag(fl, &f.notify, "the run")
	return cmd
}

// check returns an error for flags that have no effect, or that contradict each other.
func (f *resumeFlags) check(fl *pflag.FlagSet) error {
	if fl.Changed("definition") && f.definition == "" {
		return errors.New("--definition is empty; give the file of a definition")
	}
	if fl.Changed("add-iterations") && f.add < 1 {
		return errors.New("--add-iterations 0: give at least 1")
	}
	if fl.Changed("temporal") && fl.Changed("notify") {
		return errors.New("--notify and --temporal: a worker drives the run, and not this process; only notify of the definition counts")
	}
	if !slices.Contains([]string{"", "read", "edit", "all"}, f.permissions) {
		return fmt.Errorf("--permissions %s: give read, edit or all", f.permissions)
	}
	return checkGrace(f.grace)
}

// A resume holds about 100 bytes of each event of the log. For a log of more than longLog events, garbage is collected at
// longLogGC percent of that. The resume of 490,000 events then takes 129 MiB in place of 166, and 20 % more time of the processor.
const longLog, longLogGC = 100_000, 40

// resumeIn resumes a run of a store, and follows the run.
func resumeIn(ctx context.Context, e *term.Env, s *runstore.Stock, f resumeFlags, id string) error {
	to, err := notifyOf(e, f.notify)
	if err != nil {
		return err
	}
	view, run, err := s.View(ctx, id)
	if err != nil {
		return term.Failure(err)
	}
	view.Log().CacheOutline()
	if view.LastSeq() > longLog {
		defer firstgc.SetPercent(firstgc.SetPercent(longLogGC))
	}
	p, def, opts, err := f.change(e, view, id)
	if err != nil {
		return term.UsageError(err)
	}
	if f.stranger || runlog.IsImported(view) {
		fmt.Fprintf(e.Stderr, "run %s comes from elsewhere. It works in %s, and starts:\n%s", id, brief.Clean(p.Root), startsOf(def))
	}
	if run != nil && (f.On || clusters.InCluster(run)) {
		if len(to) > 0 {
			return term.UsageError(fmt.Errorf("--notify: workers of a cluster drive run %s, and not this process, which notifies nobody", id))
		}
		return f.inCluster(ctx, e, s, id, run, opts)
	}
	if err := p.Here(id); err != nil { // the agents use paths relative to this folder
		return term.Failure(err)
	}
	req := live.Request{File: p.File, Session: id, ZeroOnLimit: f.shown.ZeroOnLimit, Resumed: true,
		Changed: opts.Program != nil, Most: p.Most(def), Stands: run,
		View: view, Notify: to, NotifyCommand: f.notifier}
	asks := f.asking(e)
	req.Asks = asks.keys != nil
	fo, err := live.NewFollower(e, s, f.shown.Mode, def, req, f.grace)
	if err != nil {
		return err
	}
	end := fo.Follow(ctx, func(ctx context.Context) (*supervisor.Run, error) {
		if p.Others(&e.Code, def) == nil {
			opts.Agents, _ = p.Build(ctx, deffile.EnvOf(e, s.Name(e)), def) // an error comes again, and is recorded, when the supervisor builds
		}
		return fo.Supervisor.Resume(ctx, id, opts)
	})
	err = asks.settle(ctx, e, s, id, end)
	takeStopped(ctx, e, s, id, def)
	return err
}

// asking returns the flags with which a run continues after its questions. Its keyboard asks them; without a person at the terminal
// there is no keyboard.
func (f *resumeFlags) asking(e *term.Env) resumeFlags {
	after := resumeFlags{shown: f.shown, grace: f.grace, keys: f.keys, notifier: f.notifier}
	if after.keys == nil && term.Asks(e, f.shown.Mode) {
		after.keys = newKeyboard(e)
	}
	return after
}

// settle asks the questions of a run that waits, and continues the run. end is the end of the run so far.
func (f resumeFlags) settle(ctx context.Context, e *term.Env, s *runstore.Stock, id string, end error) error {
	if exit, ok := errors.AsType[*term.Exit](end); !ok || f.keys == nil || exit.Code != term.ExitWaits {
		return end
	}
	asked, err := f.keys.answerAll(ctx, s, id)
	_, left := errors.AsType[*term.Exit](err)
	switch {
	case errors.Is(err, errNoMore) || left && asked:
		f.keys.leave(s, id)
		if left {
			return err
		}
		return end
	case err != nil:
		return err
	case !asked: // the run is paused
		return end
	}
	if f.keys.wants { // the deadline has passed, and the keyboard still reads a line: keys of a view would end there
		f.shown.Mode = term.Plain
	}
	return resumeIn(ctx, e, s, f, id)
}

// change applies the flags to the program of a run.
func (f *resumeFlags) change(e *term.Env, view *session.View, id string) (*program.Program, *definition.Definition,
	supervisor.ResumeOptions, error) {
	var opts supervisor.ResumeOptions
	p, err := program.Of(view)
	if err != nil {
		return nil, nil, opts, fmt.Errorf("run %s: %w", id, err)
	}
	change := &program.Change{AddIterations: f.add, Retry: f.retry, Permissions: f.permissions, Model: f.model, Dir: f.dir}
	if f.definition != "" {
		change.Definition = func(p *program.Program) (*definition.Definition, error) { return deffile.Read(e, p, f.definition) }
	}
	if f.limits.Flags != nil {
		if change.Limits, err = f.limits.Given(); err != nil {
			return nil, nil, opts, err
		}
	}
	if f.add > 0 && change.Limits.MaxIterations != nil {
		return nil, nil, opts, errors.New("--add-iterations: give either this or --max-iterations")
	}
	def, opts, err := p.Apply(change, view)
	err = p.Otherwise(&e.Code, err)
	if refused, ok := errors.AsType[*program.ChangeError](err); ok {
		switch refused.Refusal {
		case program.CannotAdd:
			err = fmt.Errorf("--add-iterations: %w", err)
		case program.NotFailed:
			err = fmt.Errorf("--retry: run %s has completed, so no step has failed; leave out --retry", id)
		case program.HasFailed:
			err = fmt.Errorf("run %s failed, and a higher limit does not change that; add --retry to try the failed step "+
				"again, with the new limits", id)
		case program.Passed:
			err = fmt.Errorf("run %s: %w", id, err)
		}
	}
	return p, def, opts, err
}

// addLimits adds the flags that change the limits of a run.
func (f *resumeFlags) addLimits(fl *pflag.FlagSet) {
	f.limits.Add(fl)
	fl.UintVar(&f.add, "add-iterations", 0, "raise the limit by this many `iterations`")
	fl.StringVar(&f.model, "model", "", "`provider/name` of the model for all agents from here on, in place of the definition's")
	fl.StringVar(&f.permissions, "permissions", "", "what the coding agents may do from here on, in place of the definition's: read, edit "+
		"or all; a failed step is tried again")
	fl.BoolVar(&f.retry, "retry", false, "try the failed step of a failed run again")
}
