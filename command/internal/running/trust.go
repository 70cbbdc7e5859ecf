// SPDX-License-Identifier: Apache-2.0

package running

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
)

// NewTrust returns refrain trust.
func NewTrust(e *term.Env) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "trust [FILE...]",
		Short: "Accept the store of this folder, or definitions, after a look",
		Long: `Show what the unfinished runs in the store of the current folder would start, and accept
the store. Refrain trusts a store that it has created for you on this machine. Any other
store in a folder, such as one that came with a cloned repository, is read only, and no
command continues its runs. A store that you name with --store or REFRAIN_STORE needs no
such step.

With FILE, show what these definitions start, and accept them as they are now, with the
files that their commands name. Clients of refrain mcp, and those of refrain serve that
speak MCP, A2A or ADK's API, cannot run a definition that starts programs and is new or
has changed since the server started, unless it was accepted. A FILE .refrain/loop.yaml has
flags of refrain loop, which uses them after they were accepted.

What you accept is kept in $XDG_STATE_HOME/refrain or ~/.local/state/refrain
(REFRAIN_STATE_DIR names another folder). The command asks before it accepts; without a
terminal it needs --yes.`,
		Example: `  refrain trust
  refrain trust loops/fix.yaml --yes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return trustFiles(e, args, yes)
			}
			return trustStore(cmd.Context(), e, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "accept without a question")
	return cmd
}

func trustStore(ctx context.Context, e *term.Env, yes bool) error {
	path, found := runstore.Found(e, "")
	if !found {
		return term.UsageError(errors.New("REFRAIN_STORE or the program names the store, so it is trusted already"))
	}
	var strange *trust.StrangerError
	switch err := trust.Found(ctx, e.Getenv, path); {
	case err == nil:
		fmt.Fprintf(e.Stderr, "%s is trusted already\n", path)
		return nil
	case errors.As(err, &strange):
		fmt.Fprintf(e.Stdout, "%s: %s\n", path, strange.Why)
	case !errors.Is(err, fs.ErrNotExist):
		return term.Failure(err)
	}
	quiet := *e
	quiet.Stderr = io.Discard
	store, closeStore, err := runstore.OpenService(ctx, &quiet, "")
	if err != nil {
		return err
	}
	err = showUnfinished(ctx, e, store)
	if err = errors.Join(err, closeStore()); err != nil {
		return term.Failure(err)
	}
	if err := agree(e, "Accept this store?", yes); err != nil {
		return err
	}
	if err := trust.Accept(ctx, e.Getenv, path); err != nil {
		return term.Failure(err)
	}
	fmt.Fprintf(e.Stderr, "%s is trusted\n", path)
	return nil
}

// showUnfinished lists the runs that have not ended, each with the programs that it would start.
func showUnfinished(ctx context.Context, e *term.Env, store session.Service) error {
	all, err := runstore.ListAll(ctx, store)
	if err != nil {
		return err
	}
	open := 0
	for _, s := range all {
		run := session.RunOf(s)
		if run == nil || run.Status.IsFinal() {
			continue
		}
		open++
		fmt.Fprintf(e.Stdout, "%s  %s  %s\n", term.Cell(s.ID(), 64), term.Cell(run.Name, 30), run.Status)
		one, err := runstore.Read(ctx, store, s.ID())
		if err != nil {
			return err
		}
		p, err := program.Of(one.View())
		if err != nil {
			fmt.Fprintf(e.Stdout, "  %s\n", brief.Clean(err.Error()))
			continue
		}
		def, err := p.DefinitionFor(&e.Code)
		if err != nil {
			fmt.Fprintf(e.Stdout, "  its definition cannot be read here: %s\n", brief.Clean(err.Error()))
			continue
		}
		fmt.Fprintf(e.Stdout, "  in %s\n%s", brief.Clean(p.Root), startsOf(def))
	}
	fmt.Fprintf(e.Stdout, "%d runs, of which %d have not ended\n", len(all), open)
	return nil
}

// startsOf lists the programs that a definition starts, a line each.
func startsOf(def *definition.Definition) string {
	lines := program.Commands(def)
	if len(lines) == 0 {
		return "  no programs\n"
	}
	return "  " + strings.Join(lines, "\n  ") + "\n"
}

func trustFiles(e *term.Env, files []string, yes bool) error {
	k, err := trust.Open(e.Getenv)
	if err != nil {
		return term.Failure(err)
	}
	var hashes []string
	for _, file := range files {
		if isDefaults(e.Getenv, file) {
			hash, err := showDefaults(e, file)
			if err != nil {
				return term.UsageError(err)
			}
			hashes = append(hashes, hash)
			continue
		}
		p := new(program.Program)
		def, err := p.Read(file)
		if err != nil {
			return term.UsageError(err)
		}
		fmt.Fprintf(e.Stdout, "%s starts:\n%s", brief.Clean(file), startsOf(def))
		for _, root := range rootsOf(file) {
			showScripts(e, root, program.Scripts(def, root))
			hashes = append(hashes, p.Hash(def, root))
		}
	}
	if err := agree(e, "Accept this?", yes); err != nil {
		return err
	}
	for _, hash := range hashes {
		if err := k.Accept(hash); err != nil {
			return term.Failure(err)
		}
	}
	return nil
}

// showScripts names the files that are part of what a person accepts.
func showScripts(e *term.Env, root string, scripts []string) {
	if len(scripts) > 0 {
		fmt.Fprintf(e.Stdout, "  with these files of %s, as they are now: %s\n", brief.Clean(root), brief.Clean(strings.Join(scripts, ", ")))
	}
}

// rootsOf returns the folders in which a server can run the commands of a definition: the file's own and, for a definition with a
// folder of its own, the one around it.
func rootsOf(file string) []string {
	dir := filepath.Dir(file)
	if base := filepath.Base(file); base == "loop.yaml" || base == "root_agent.yaml" {
		return []string{dir, filepath.Dir(dir)}
	}
	return []string{dir}
}

// agree asks a person for consent, and returns an error without it.
func agree(e *term.Env, question string, yes bool) error {
	if yes {
		return nil
	}
	if in, ok := e.Stdin.(*os.File); !ok || !term.IsTerminal(in) {
		return term.UsageError(errors.New("nothing was accepted, because no terminal can ask you; look at the list, and add --yes"))
	}
	fmt.Fprint(e.Stderr, question+" [y/N] ")
	answer, _ := bufio.NewReader(e.Stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a == "y" || a == "yes" {
		return nil
	}
	return term.UsageError(errors.New("nothing was accepted"))
}
