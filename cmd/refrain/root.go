// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/expr"
)

// env is what a command has of the outside world.
type env struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	ctx            context.Context // of the process; nil has no signals
}

func newRoot(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "refrain",
		Short: "Run loops of agents that know when to stop",
		Long: `Refrain repeats an ordered list of agents until it should stop, and hands back
the best result it has, with the reason.`,
		Example: `  refrain run loop.yaml "Write a document about a cat"
  refrain init
  refrain run examples/compress/loop.yaml --set file=README.md
  refrain resume last`,
		Version:       strings.TrimPrefix(version(), "refrain "),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(e.stdin)
	cmd.SetOut(e.stdout)
	cmd.SetErr(e.stderr)
	cmd.SetFlagErrorFunc(valueError)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Write a definition:", []*cobra.Command{newInit(e), newValidate(e), newCheck(e), newGraph(e), newRehearse(e), newSchema(e)}},
		{"Run it:", []*cobra.Command{newRun(e), newResume(e), newPause(e), newCancel(e), newFork(e), newAnswer(e), newResolve(e)}},
		{"Look at runs:", []*cobra.Command{newRuns(e), newShow(e), newEvents(e), newWatch(e), newVerify(e), newBacktest(e)}},
		{"Move, remove, check:", []*cobra.Command{newExportRun(e), newImportRun(e), newRm(e), newDoctor(e)}},
	} {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			cmd.AddCommand(c)
		}
	}
	cmd.AddCommand(newVersion(e), newHelpDefinition())
	strictTopics(cmd)
	return cmd
}

// unknownCommand refuses arguments that name no command.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near := expr.Nearest(args[0], names); near != "" {
		return fmt.Errorf("unknown command %q (did you mean %s?)", args[0], near)
	}
	return fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())
}

// between takes from least to most arguments, and else says how to write it.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%d arguments given; write: %s", len(args), cmd.UseLine())
		}
		return nil
	}
}

// flagError adds to a wrong flag which one may be meant.
func flagError(cmd *cobra.Command, err error) error {
	name, isUnknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !isUnknown {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	name, _, _ = strings.Cut(name, "=")
	if near := nearestFlag(cmd, name); near != "" {
		return fmt.Errorf("%w (did you mean --%s?)", err, near)
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.stdout, version())
			return err
		},
	}
}

// version is the module's version, the commit it was built from if it is known,
// and the version of Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "refrain (unknown version)"
	}
	words := []string{"refrain", info.Main.Version}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			words = append(words, s.Value[:12])
		}
	}
	return strings.Join(append(words, info.GoVersion), " ")
}
