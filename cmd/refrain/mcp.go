// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/runstore"
	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"
	"github.com/refrain-dev/refrain/server"
)

// mcpFlags are the flags of refrain mcp.
type mcpFlags struct {
	dir, store        string
	grace             time.Duration
	maxRuns           int
	commands, private bool
}

func newMCP(e *term.Env) *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Run definitions as tools of a coding agent (MCP)",
		Long: `Serve the definitions of a folder and the runs of a store to one client of the Model
Context Protocol, over standard input and output. Clients such as coding agents start this
command themselves. doc/server.md lists the tools. refrain serve offers the same at /mcp.

Definitions in the folder may do anything, as with refrain run. Those that the client
sends start no programs unless you give --allow-commands, and agents reach no loopback,
link-local or private addresses unless you give --allow-private.

When the client leaves, running steps end and their runs are paused. They go on when
refrain mcp or refrain serve is started again with the same store.`,
		Example: `  claude mcp add refrain -- refrain mcp --dir loops
  {"mcpServers": {"refrain": {"command": "refrain", "args": ["mcp", "--dir", "loops"]}}}`,
		Args: term.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkGrace(f.grace); err != nil {
				return err
			}
			if err := checkMaxRuns(f.maxRuns); err != nil {
				return err
			}
			return serveMCP(cmd.Context(), e, f)
		},
	}
	cmd.SetFlagErrorFunc(term.ValueError)
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", ".", "`folder` of the definitions, in which their commands run")
	runstore.Flag(fl, &f.store)
	fl.IntVar(&f.maxRuns, "max-runs", 0, "drive at most this many runs at once; others wait; 0 means no limit")
	fl.BoolVar(&f.commands, "allow-commands", false, "let definitions that the client sends start programs")
	fl.BoolVar(&f.private, "allow-private", false, "let agents reach loopback, link-local and private addresses")
	term.DurationFlag(fl, &f.grace, "grace", defaultGrace, "time that running steps have to end when the client leaves")
	return cmd
}

func serveMCP(ctx context.Context, e *term.Env, f mcpFlags) error {
	s, err := runstore.MakeStock(ctx, e, f.store, "")
	if err != nil {
		return err
	}
	defer s.Close()
	if err := os.Chdir(f.dir); err != nil { // what definitions name is relative to their folder
		return term.UsageError(fmt.Errorf("--dir: %w", err))
	}
	cfg := s.Serving(e)
	cfg.Dir, cfg.AllowCommands, cfg.AllowPrivate, cfg.MaxRuns = ".", f.commands, f.private, f.maxRuns
	cfg.Version, cfg.Log = term.Version(), slog.New(slog.NewTextHandler(e.Stderr, nil))
	srv, err := server.New(cfg)
	if err != nil {
		return term.Failure(err)
	}
	if err := srv.Recover(ctx); err != nil {
		term.PrintError(e.Stderr, err) // the others go on
	}
	if in, ok := e.Stdin.(*os.File); ok && term.IsTerminal(in) {
		fmt.Fprintln(e.Stderr, "refrain mcp reads requests of the Model Context Protocol; a coding agent starts it by itself. Ctrl-D ends it.")
	}
	served := make(chan error, 1)
	go func() { served <- srv.ServeMCP(e.Stdin, term.Exactly(e.Stdout)) }()
	return untilStopped(ctx, e, srv, served, f.grace)
}
