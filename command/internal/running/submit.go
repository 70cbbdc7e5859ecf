// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"

	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// submit starts a run on the workers of a cluster, and shows the run.
func (f *runFlags) submit(ctx context.Context, e *term.Env, req supervisor.Request) error {
	if err := clusters.SharedStore(e, f.store); err != nil {
		return err
	}
	c, err := f.Dial(ctx, e)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := runstore.MakeStock(ctx, e, f.store, "")
	if err != nil {
		return err
	}
	defer s.Close()
	sup, err := s.Supervise(e, nil)
	if err != nil {
		return err
	}
	defer sup.Close(ctx)
	if req.SessionID == "" {
		req.SessionID = supervisor.NewID()
	}
	req.Driver = f.Driver()
	id, err := c.Start(ctx, sup, req)
	switch {
	case err != nil && id == "":
		return term.Failure(err)
	case err != nil:
		term.PrintError(e.Stderr, fmt.Errorf("%w; run %s is stored, and a worker starts it", err, id))
	}
	if f.watch || f.open {
		if page := sayPage(ctx, e, s, id); f.open && page != "" {
			term.OpenOrSay(e, page)
		}
	}
	if f.detach {
		fmt.Fprintf(e.Stderr, "run %s was given to the workers of %s, task queue %s: follow it with refrain watch %s; "+
			"end it with refrain pause %s or refrain cancel %s\n", id, c.Where(), f.Queue, id, id, id)
		_, err = fmt.Fprintln(e.Stdout, id)
		return term.Failure(err)
	}
	return watch(ctx, e, s, live.WatchOptions{Shown: f.shown}, id)
}

// watch shows a run that another process drives.
func watch(ctx context.Context, e *term.Env, s *runstore.Stock, f live.WatchOptions, id string) (err error) {
	if f.Store, err = s.Elsewhere(e); err != nil {
		return term.Failure(err)
	}
	return live.Watch(ctx, e, f, id)
}

// inCluster lets the workers of a cluster continue a run, and shows the run.
func (f *resumeFlags) inCluster(ctx context.Context, e *term.Env, s *runstore.Stock, id string, run *mark.Run,
	opts supervisor.ResumeOptions) error {
	sup, err := s.Supervise(e, nil)
	if err != nil {
		return err
	}
	defer sup.Close(ctx)
	shown := live.WatchOptions{Shown: f.shown}
	if f.On {
		if shown.After, err = s.LastSeq(ctx, id); err != nil {
			return term.Failure(err)
		}
		err = f.byCluster(ctx, e, sup, id, run, opts)
	} else {
		err = byStore(ctx, e, sup, id, run, opts)
	}
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		err = term.Failure(fmt.Errorf("run %s is driven by %s; follow it with refrain watch %s, or pause it with refrain "+
			"pause %s", id, runstore.OwnerText(held.Owner), id, id))
	}
	if err != nil {
		return err
	}
	return watch(ctx, e, s, shown, id)
}

// byStore records in the store that workers are to continue the run; the workers poll the store for such runs.
func byStore(ctx context.Context, e *term.Env, sup *supervisor.Supervisor, id string, run *mark.Run,
	opts supervisor.ResumeOptions) error {
	switch {
	case opts.Program != nil || opts.Continue:
		return term.UsageError(fmt.Errorf("a cluster drives run %s (%s); to change the run, give the address of the "+
			"Temporal server with --temporal", id, runstore.DriverText(run.Driver)))
	case run.Status == mark.RunCanceled:
		return term.UsageError(fmt.Errorf("run %s was canceled in a cluster (%s); to continue the run, give the address of "+
			"the Temporal server with --temporal", id, runstore.DriverText(run.Driver)))
	}
	if err := sup.HandTo(ctx, id, run.Driver); err != nil {
		return term.Failure(err)
	}
	fmt.Fprintf(e.Stderr, "the workers of run %s (%s) will continue it within a few seconds\n", id,
		runstore.DriverText(run.Driver))
	return nil
}

// byCluster lets the workers continue a run. A run that no cluster has driven so far is moved to the cluster.
func (f *resumeFlags) byCluster(ctx context.Context, e *term.Env, sup *supervisor.Supervisor, id string, run *mark.Run,
	opts supervisor.ResumeOptions) error {
	if err := clusters.SharedStore(e, f.store); err != nil {
		return err
	}
	queue, theirs := runstore.QueueOf(run.Driver)
	switch {
	case theirs && queue != f.Queue && f.QueueGiven:
		return term.UsageError(fmt.Errorf("run %s belongs to the task queue %s; leave out --task-queue", id, queue))
	case !theirs && (opts.Program != nil || opts.Continue || run.Status.IsFinal()):
		return term.UsageError(fmt.Errorf("no cluster drives run %s; a cluster takes over only an unchanged run that is paused or "+
			"interrupted, so leave out the changes, or --temporal", id))
	}
	c, err := f.Dial(ctx, e)
	if err != nil {
		return err
	}
	defer c.Close()
	driver := run.Driver
	if !theirs {
		driver = f.Driver()
		if err := sup.HandTo(ctx, id, driver); err != nil {
			return term.Failure(err)
		}
		fmt.Fprintf(e.Stderr, "run %s was given to the workers of %s, task queue %s\n", id, c.Where(), f.Queue)
	}
	if !theirs || run.Status == mark.RunRunning { // the run may have lost its workflow
		err = c.Wake(ctx, id, driver)
	} else {
		err = clusters.AskFor(ctx, e, c, id, driver, cluster.Request{Do: cluster.AskResume, Program: opts.Program, Continue: opts.Continue})
	}
	return term.Failure(err)
}
