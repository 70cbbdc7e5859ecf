// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/firstgc"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/web/page"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

func NewView(e *term.Env) *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "view FILE",
		Short: "Show an exported run in a browser",
		Long: `Show a run from a file in a browser. The page is the page of refrain serve, but it cannot
change the run. refrain export or refrain run --record writes such files; "-" reads stdin.
The command reads the file once, and keeps the run in memory, or, if the file has more
than 32 MiB, in a temporary folder.

The address of the page goes to stdout. Only this machine can open the page. Ctrl-C ends
the command.

A damaged or changed file is refused. refrain verify shows what was changed.`,
		Example: `  refrain view run.jsonl --open
  ssh host refrain export last | refrain view -`,
		RunE: func(cmd *cobra.Command, args []string) error { return view(cmd.Context(), e, args[0], open) },
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return cmd
}

// view runs refrain view.
func view(ctx context.Context, e *term.Env, name string, open bool) (err error) {
	runs, closeRuns, id, err := take(ctx, e, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, term.Failure(closeRuns())) }()
	srv, err := server.New(server.Config{
		Config: operations.Config{Service: runs, AppName: runstore.AppName, UserID: runstore.UserName, ReadOnly: true,
			Getenv: e.Getenv, Log: slog.New(slog.NewTextHandler(e.Stderr, nil))},
		Page: webui.Handler(webui.Files()), Version: term.Version(),
	})
	if err != nil {
		return term.Failure(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(term.Failure(err), srv.Shutdown(ctx))
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	where := "http://" + l.Addr().String() + "/runs/" + url.PathEscape(id)
	if _, err = fmt.Fprintln(e.Stdout, where); err == nil {
		if open {
			term.OpenOrSay(e, where)
		}
		select {
		case err = <-served:
			served <- nil
		case <-ctx.Done():
		}
	}
	return term.Failure(errors.Join(err, srv.Shutdown(context.WithoutCancel(ctx)), <-served))
}

// largestInMemory is the size, in bytes, of the largest file whose run is kept in memory.
var largestInMemory int64 = 32 << 20

// longLogGC is the percent of garbage at which Go collects while a large file is shown. The page of 490,000 events then takes half the
// memory, and a third more time of the processor.
const longLogGC = 20

// emptyStore returns a store for a log of the given size in bytes, and the function that removes it.
func emptyStore(ctx context.Context, size int64) (session.Service, func() error, error) {
	if size <= largestInMemory {
		return session.InMemoryService(), func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "refrain-view-")
	if err != nil {
		return nil, nil, err
	}
	s, err := sqlite.Open(ctx, filepath.Join(dir, "runs.db"), sqlite.Config{})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }, nil
}

// take puts the run of a file into a store of its own, and returns the store, the function that removes it, and the run's ID.
func take(ctx context.Context, e *term.Env, name string) (runs session.Service, remove func() error, id string, err error) {
	log, err := runstore.OpenLog(e, name)
	if err != nil {
		return nil, nil, "", err
	}
	defer log.Close()
	run := log.Run()
	_, flaw, err := run.Chained()
	switch {
	case err != nil:
	case flaw != nil:
		err = fmt.Errorf("the file was changed, or is incomplete: %s; refrain verify shows more", flaw)
	case run.First().Seq != 1:
		err = fmt.Errorf("the file begins with event %d, so it has not the whole run; export the run again", run.First().Seq)
	default:
		id = cmp.Or(run.ID, supervisor.NewID()) // a record has no ID
		if err = runstore.CheckID(id); err == nil {
			runs, remove, err = emptyStore(ctx, log.Size())
		}
	}
	if err != nil {
		return nil, nil, "", term.Failure(fmt.Errorf("%s: %w", name, err))
	}
	if err := run.Save(ctx, runs, runstore.KeyOf(id)); err != nil {
		return nil, nil, "", term.Failure(fmt.Errorf("%s: %w", name, errors.Join(err, remove())))
	}
	if log.Size() > largestInMemory { // what the page is made of is folded from the whole log
		firstgc.SetPercent(longLogGC)
	}
	if n := log.Masked(); n > 0 {
		fmt.Fprintf(e.Stderr, "%s: secrets were removed from %d lines when the file was written\n", name, n)
	}
	return runs, remove, id, nil
}
