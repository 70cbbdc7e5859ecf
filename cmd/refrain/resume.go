// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// resumeFlags are the flags of refrain resume.
type resumeFlags struct {
	store, progress, definition, dir string
	json, zeroOnLimit                bool
	grace                            time.Duration
	limits                           limitFlags
	add                              uint
	retry                            bool
}

func newResume(e *env) *cobra.Command {
	var f resumeFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that is paused or was interrupted",
		Long: `Go on with a run that is paused, waits, was canceled, or was interrupted: by a
crash, a restart, or Ctrl-C. Steps that have ended are not made again; a step that was
cut off is, unless it must not be made twice (effect: at_most_once): then the run asks
what became of it. Exit codes and keys are those of refrain run.

The definition is the one that the run was started with, whatever its file says now.
--definition gives the run another one, from then on. It has to fit what the run has
done; if it does not, the run stays as it is.

A run that a limit has stopped goes on with a higher one: with --add-iterations, or with
the limits that refrain run takes. They are the run's from then on. One that has failed
goes on with --retry, which tries the failed step again.`,
		Example: `  refrain resume last
  refrain resume r_1f0c3a2b
  refrain resume last --add-iterations 3
  refrain resume last --definition loop.yaml
  refrain resume r_1f0c3a2b --dir ~/work`,
		Args:              between(1, 1),
		ValidArgsFunction: completeRuns(e, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.progress, err = chosenProgress(e, f.progress, cmd.Flags().Changed("progress"), f.json); err != nil {
				return err
			}
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			return resumeRun(cmd.Context(), e, f, args[0])
		},
	}
	cmd.SetFlagErrorFunc(valueError)
	fl := cmd.Flags()
	storeFlag(fl, &f.store)
	fl.StringVar(&f.definition, "definition", "", "go on with the definition in this `FILE`")
	fl.StringVar(&f.dir, "dir", "", "go on in this `FOLDER`, in place of the one in which the run was started, as on another machine")
	f.addLimits(fl)
	fl.StringVar(&f.progress, "progress", progressAuto, progressUsage)
	fl.BoolVar(&f.json, "json", false, "the same as --progress json: a line of JSON for each event, on standard output")
	graceFlag(fl, &f.grace)
	fl.BoolVar(&f.zeroOnLimit, "exit-zero-on-limit", false, "exit with 0 instead of 3 if a limit stopped the run")
	return cmd
}

// check refuses what would mean nothing.
func (f *resumeFlags) check(fl *pflag.FlagSet) error {
	if fl.Changed("definition") && f.definition == "" {
		return errors.New("--definition: name a file")
	}
	if fl.Changed("add-iterations") && f.add < 1 {
		return errors.New("--add-iterations 0: give at least 1")
	}
	return checkGrace(f.grace)
}

func resumeRun(ctx context.Context, e *env, f resumeFlags, word string) error {
	s, id, err := openStockOf(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer s.close()
	return s.resume(ctx, e, f, id)
}

// resume goes on with a run and follows it.
func (s *stock) resume(ctx context.Context, e *env, f resumeFlags, id string) error {
	got, err := s.service.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: id})
	if err != nil {
		return &exitError{exitFailed, err}
	}
	view := session.ViewOf(got.Session)
	p, opts, err := f.program(view, id)
	if err != nil {
		return err
	}
	def, err := p.definition()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	req := request{file: p.File, session: id, zeroOnLimit: f.zeroOnLimit, resumed: true, changed: opts.Program != nil, most: p.most(def), stands: session.RunOf(view)}
	fo, err := newFollower(e, s, f.progress, def, req, f.grace)
	if err != nil {
		return err
	}
	return fo.follow(ctx, func(ctx context.Context) (*supervisor.Run, error) { return fo.sup.Resume(ctx, id, opts) })
}

// program is what the run goes on with. The process goes to where the run was
// started: what its agents name is relative to that.
func (f *resumeFlags) program(view *session.View, id string) (*program, supervisor.ResumeOptions, error) {
	var opts supervisor.ResumeOptions
	started, err := supervisor.StartedWith(view)
	if err != nil {
		return nil, opts, &exitError{exitUsage, fmt.Errorf("run %s: %w", id, err)}
	}
	p, err := decodeProgram(started)
	if err != nil {
		return nil, opts, &exitError{exitUsage, fmt.Errorf("run %s: %w", id, err)}
	}
	def, err := f.definitionOf(p)
	if err != nil {
		return nil, opts, &exitError{exitUsage, err}
	}
	if opts.Continue, err = f.raise(p, def); err != nil {
		return nil, opts, &exitError{exitUsage, err}
	}
	raised := opts.Continue
	if run := session.RunOf(view); f.retry && run != nil && run.Status == session.RunCompleted {
		return nil, opts, &exitError{exitUsage, fmt.Errorf("--retry: run %s has not failed, it has completed", id)}
	}
	if raised || f.definition != "" {
		if err := def.Allows(definition.Assumed{MaxIterations: p.MaxIterations, Timeout: p.Timeout}); err != nil {
			return nil, opts, &exitError{exitUsage, err}
		}
		if err := p.follows(view, def); err != nil {
			return nil, opts, &exitError{exitUsage, fmt.Errorf("run %s: %w", id, err)}
		}
	}
	opts.Continue = raised || f.retry
	if f.dir != "" {
		if err := p.moveTo(f.dir); err != nil {
			return nil, opts, &exitError{exitUsage, err}
		}
	}
	if f.definition != "" || f.dir != "" || raised {
		changed, err := p.started(def)
		if err != nil {
			return nil, opts, err
		}
		opts.Program = changed.Program
	}
	if err := p.here(id); err != nil {
		return nil, opts, &exitError{exitFailed, err}
	}
	return p, opts, nil
}

func (f *resumeFlags) definitionOf(p *program) (*definition.Definition, error) {
	if f.definition != "" {
		return p.read(f.definition)
	}
	return p.definition()
}
