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
	"github.com/refrain-dev/refrain/session/mark"
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
		Short: "Continue a run that was paused, interrupted or stopped by a limit",
		Long: `Continue a run that is paused, waits for a person, was canceled, or was interrupted by a
crash, a restart or Ctrl-C. Steps that have ended are not repeated. A step that was cut
off is made again, unless it must not be made twice (effect: at_most_once): then the run
asks whether it took place. Exit codes and keys are those of refrain run.

The run keeps the definition that it was started with, even if the file has changed.
--definition gives it another one from here on. If that does not fit what the run has
done, resume fails and the run stays as it is.

A run that a limit stopped continues with a higher limit: give --add-iterations, or the
limits that refrain run takes. A run that failed continues with --retry, which tries the
failed step again.`,
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
	fl.StringVar(&f.definition, "definition", "", "use the definition in this `FILE` from here on")
	fl.StringVar(&f.dir, "dir", "", "run in this `FOLDER`, for example on another machine (default: where the run was started)")
	f.addLimits(fl)
	fl.StringVar(&f.progress, "progress", progressAuto, progressUsage)
	fl.BoolVar(&f.json, "json", false, "same as --progress json: one line of JSON on stdout for each event")
	graceFlag(fl, &f.grace)
	fl.BoolVar(&f.zeroOnLimit, "exit-zero-on-limit", false, "exit with 0 instead of 3 when a limit stopped the run")
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
	if run := session.RunOf(view); f.retry && run != nil && run.Status == mark.RunCompleted {
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
