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

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/operations"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/webui"
)

func NewView(e *term.Env) *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "view FILE",
		Short: "Show an exported run in a browser",
		Long: `Show a run from a file in a browser, as refrain serve shows it, but only to look at. The
file is one that refrain export or refrain run --record has written; "-" reads stdin. It
is read once, and kept in memory.

The page's address goes to stdout. Only this machine reaches it. Ctrl-C ends it.

A file that is damaged or was changed is refused. refrain verify says more about it.`,
		Example: `  refrain view run.jsonl --open
  ssh host refrain export last | refrain view -`,
		Args: term.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return view(cmd.Context(), e, args[0], open) },
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return cmd
}

// view is refrain view.
func view(ctx context.Context, e *term.Env, name string, open bool) error {
	runs := session.InMemoryService()
	id, err := take(ctx, e, runs, name)
	if err != nil {
		return err
	}
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
	if err = errors.Join(err, srv.Shutdown(context.WithoutCancel(ctx)), <-served); err != nil {
		return term.Failure(err)
	}
	return nil
}

// take puts the run of a file into a store, and returns its ID. Nothing else keeps it.
func take(ctx context.Context, e *term.Env, runs session.Service, name string) (id string, err error) {
	log, err := runstore.OpenLog(e, name)
	if err != nil {
		return "", err
	}
	run := log.Run()
	_, flaw, err := run.Chained()
	switch {
	case err != nil:
		return "", term.Failure(fmt.Errorf("%s: %w", name, err))
	case flaw != nil:
		return "", term.Failure(fmt.Errorf("%s: the file was changed, or is incomplete: %s", name, flaw))
	case run.Events[0].Seq != 1:
		return "", term.Failure(fmt.Errorf("%s: it begins with event %d, so it is not the whole run", name, run.Events[0].Seq))
	}
	id = cmp.Or(run.ID, supervisor.NewID()) // a record has none
	if err := runstore.CheckID(id); err != nil {
		return "", term.Failure(fmt.Errorf("%s: %w", name, err))
	}
	if err := run.Save(ctx, runs, runstore.KeyOf(id)); err != nil {
		return "", term.Failure(fmt.Errorf("%s: %w", name, err))
	}
	if n := log.Masked(); n > 0 {
		fmt.Fprintf(e.Stderr, "%s: secrets were struck out of %d lines when it was written\n", name, n)
	}
	return id, nil
}
