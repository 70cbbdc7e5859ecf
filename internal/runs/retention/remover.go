// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/record"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// Remover removes runs with all that is their own.
type Remover struct {
	// Service has the runs, which AppName and UserID own, and is a lease.Leaser. StoreName is its name; see definition.BuildConfig.
	Service         session.Service
	StoreName       string
	AppName, UserID string
	// Files has the saved files of the runs; nil if there are none.
	Files artifact.Service
	// Beside is what is kept about the runs outside of Service and Files.
	Beside Beside
	// Report gets a sentence about files that were not removed because they are not the run's own. Nil ignores it.
	Report func(string)
}

// Beside is what a program keeps about runs outside of their store. Both functions may be nil.
type Beside struct {
	// Sharing returns the name of another store whose run of this ID owns the saved files too; "" if there is none.
	Sharing func(ctx context.Context, id string) (string, error)
	// Remove removes the rest, such as the output of a process in the background.
	Remove func(id string) error
}

// leaseTime is how long a removal may take until others take the run for one that nobody removes.
const leaseTime = 10 * time.Minute

// Remove removes a run with its saved files, the files of its workspace, its messages, its mailbox and its records, and the log last: a
// removal that was interrupted can be repeated. Shared files stay. Remove fails with a [*lease.HeldError] if a process drives the run, and with
// session.ErrNotFound if there is no such run.
func (r *Remover) Remove(ctx context.Context, id string) error {
	held, err := r.take(ctx, id)
	if err != nil {
		return err
	}
	defer r.release(ctx, held)
	return r.remove(ctx, id)
}

func (r *Remover) key(id string) lease.Key {
	return lease.Key{AppName: r.AppName, UserID: r.UserID, SessionID: id}
}

// take takes the lease of a run, so that nobody resumes or removes the run meanwhile. A fork of the run that is made meanwhile fails.
func (r *Remover) take(ctx context.Context, id string) (*lease.Lease, error) {
	return lease.Take(ctx, r.Service.(lease.Leaser), r.key(id), lease.Process(), leaseTime)
}

// release gives back a lease. That of a run that was removed is gone.
func (r *Remover) release(ctx context.Context, l *lease.Lease) {
	_ = r.Service.(lease.Leaser).Release(context.WithoutCancel(ctx), l)
}

// remove removes a run whose lease the caller has.
func (r *Remover) remove(ctx context.Context, id string) error {
	if err := r.removeWorkspace(ctx, id); err != nil {
		return err
	}
	shared := ""
	if r.Beside.Sharing != nil {
		var err error
		if shared, err = r.Beside.Sharing(ctx, id); err != nil {
			return err
		}
	}
	if shared != "" {
		r.report("the saved files of %s also belong to the run of that ID in %s, and were not removed; if that store is gone, remove them by hand",
			brief.Line(id, mostID), brief.Clean(shared))
	} else if err := errors.Join(r.removeFiles(ctx, id), r.removeBeside(id)); err != nil {
		return err
	}
	for _, app := range []string{record.NotifyApp, record.PushApp} {
		err := r.Service.Delete(ctx, &session.DeleteRequest{AppName: r.AppName + app, UserID: r.UserID, SessionID: id})
		if err != nil {
			return err
		}
	}
	return supervisor.Remove(ctx, r.Service, r.key(id))
}

// mostID is the most characters of an ID in a report.
const mostID = 64

func (r *Remover) report(format string, args ...any) {
	if r.Report != nil {
		r.Report(fmt.Sprintf(format, args...))
	}
}

func (r *Remover) removeBeside(id string) error {
	if r.Beside.Remove == nil {
		return nil
	}
	return r.Beside.Remove(id)
}

// removeFiles removes the saved files of a run, but for those that it shares with other runs.
func (r *Remover) removeFiles(ctx context.Context, id string) error {
	if r.Files == nil {
		return nil
	}
	got, err := r.Files.List(ctx, &artifact.ListRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id})
	if err != nil {
		return err
	}
	for _, name := range got.FileNames {
		if strings.HasPrefix(name, artifact.KeyPrefixUser) {
			continue
		}
		err := r.Files.Delete(ctx, &artifact.DeleteRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id, FileName: name})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeWorkspace removes the files of a run with a workspace, if they are on this machine. The log of a run that came from
// elsewhere may name the files of another run, or of the run of that ID in another store; they stay.
func (r *Remover) removeWorkspace(ctx context.Context, id string) error {
	got, err := r.Service.Get(ctx, &session.GetRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id})
	if err != nil {
		return err
	}
	p, err := program.Of(got.Session)
	if err != nil || p.Nearby() != nil {
		return nil // it has no definition, or its folder is not here
	}
	files := runfiles.Store(p.Root)
	if _, err := os.Stat(files); err != nil {
		return nil
	}
	owner, err := workspace.Owner(files, id)
	if err != nil {
		return err
	}
	if owner != "" && owner != runfiles.Owner(p.Root, r.StoreName) && !runfiles.OwnerGone(p.Root, owner) {
		r.report("the files that %s has for %s belong to the run of that ID in the store %s, and were not removed",
			brief.Clean(files), brief.Line(id, mostID), brief.Clean(owner))
		return nil
	}
	var trees []workspace.Hash
	for ev := range got.Session.Events().All() {
		trees = append(trees, runfiles.Trees(ev.Actions.StateDelta)...)
	}
	switch its, err := workspace.Has(ctx, files, id, trees); {
	case err != nil:
		return err
	case !its:
		r.report("the files that %s has for %s belong to another run, and were not removed", brief.Clean(files), brief.Line(id, mostID))
		return nil
	}
	return workspace.Remove(ctx, files, id)
}
