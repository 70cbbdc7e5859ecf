// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"net/http"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// clusterTime is how long a cluster may take for a request. Workers find a run in the store without the request, too.
const clusterTime = 15 * time.Second

// byWorkers reports whether the workers of the cluster drive a run. The definition of a client stays here, because the limits of this
// server do not hold for workers, and one with a workspace, because its files are here.
func (r *Runs) byWorkers(p *program.Program, def *definition.Definition) bool {
	return r.Cluster != nil && !p.Untrusted && def.Workspace == nil
}

// give stores a run and starts it in the cluster. A run that the cluster did not take is stored: workers find it there.
func (r *Runs) give(ctx context.Context, req supervisor.Request) (id string, err error) {
	req.Driver = r.Driver
	ctx, cancel := context.WithTimeout(ctx, clusterTime)
	defer cancel()
	id, err = r.Cluster.Start(ctx, r.Supervisor, req)
	if id == "" {
		return "", err
	}
	r.untaken(id, err)
	return id, nil
}

// untaken logs the error of a cluster that was told of a run.
func (r *Runs) untaken(id string, err error) {
	if err != nil {
		r.Log.Warn("the cluster did not answer; its workers find a run that goes on in the store", "run", id, "error", credential.Masked(err.Error()))
	}
}

// mine reports whether the cluster of this server drives a run.
func (r *Runs) mine(run *mark.Run) bool {
	return r.Cluster != nil && run != nil && run.Driver == r.Driver
}

// wakeWorkers makes the cluster look at a run that it drives and that was changed in the store.
func (r *Runs) wakeWorkers(ctx context.Context, id string) {
	if r.Cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clusterTime)
	defer cancel()
	st, err := r.Supervisor.Status(ctx, id)
	if err == nil && r.mine(&st.Run) {
		err = r.Cluster.Wake(ctx, id, r.Driver)
	}
	r.untaken(id, err)
}

// hand gives a run that no process drives, and that continues without a change, to a driver.
func (r *Runs) hand(ctx context.Context, id, driver string) error {
	err := r.Supervisor.HandTo(ctx, id, driver)
	if err == nil {
		r.wakeWorkers(ctx, id)
	}
	return err
}

// askWorkers makes the workers of a run continue it with a change, or after its end.
func (r *Runs) askWorkers(ctx context.Context, id string, opts *supervisor.ResumeOptions) error {
	by := r.Owner
	if c := CallerOf(ctx); c != nil && !c.Anonymous {
		by = c.Name
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTime)
	defer cancel()
	err := r.Cluster.Ask(ctx, id, r.Driver, cluster.Request{Do: cluster.AskResume, By: by, Program: opts.Program, Continue: opts.Continue})
	if err != nil && ctx.Err() != nil {
		return problem.New(http.StatusServiceUnavailable, "no_worker", "No worker has answered", "%s, task queue %s: start a worker with refrain worker; "+
			"if one comes soon, it carries the request out", r.Cluster.Where(), r.Driver)
	}
	return err
}
