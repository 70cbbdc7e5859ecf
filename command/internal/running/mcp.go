// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/child"
	"github.com/refrain-dev/refrain/server"
)

func NewMCP(e *term.Env) *cobra.Command {
	var f servedFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Run definitions as tools of a coding agent (MCP)",
		Long: `Serve the definitions of a folder and the runs of a store to one client of the Model
Context Protocol, over standard input and output. Clients such as coding agents start this
command themselves. doc/server.md lists the tools. refrain serve offers the same at /mcp.

Definitions in the folder may do anything, as with refrain run. Definitions that the
client sends start no programs unless you give --allow-commands, and agents reach no
loopback, link-local or private addresses unless you give --allow-private.

When the client disconnects, running steps end and their runs are paused. The runs go on
when refrain mcp or refrain serve is started again with the same store.`,
		Example: `  claude mcp add refrain -- refrain mcp --dir loops
  {"mcpServers": {"refrain": {"command": "refrain", "args": ["mcp", "--dir", "loops"]}}}`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return serveMCP(cmd.Context(), e, f)
		},
	}
	f.add(cmd.Flags(), "the client sends", "the client disconnects")
	return cmd
}

func serveMCP(ctx context.Context, e *term.Env, f servedFlags) error {
	child.Shield()
	s, err := runstore.MakeStock(ctx, e, f.store, "")
	if err != nil {
		return err
	}
	defer s.Close()
	cfg, err := f.config(e, s)
	if err != nil {
		return err
	}
	srv, err := server.New(cfg)
	if err != nil {
		return term.Failure(err)
	}
	if err := srv.Recover(ctx); err != nil {
		term.PrintError(e.Stderr, err) // the other runs go on
	}
	if in, ok := e.Stdin.(*os.File); ok && term.IsTerminal(in) {
		fmt.Fprintln(e.Stderr,
			"refrain mcp reads requests of the Model Context Protocol from stdin; a coding agent starts it by itself. Ctrl-D ends it.")
	}
	served := make(chan error, 1)
	go func() { served <- srv.ServeMCP(e.Stdin, term.Exactly(e.Stdout)) }()
	return untilStopped(ctx, e, srv, served, f.grace)
}
