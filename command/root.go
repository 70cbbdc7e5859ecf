// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/expr"
)

func newRoot(e *term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "refrain",
		Short: "Run loops of agents that know when to stop",
		Long: `Refrain repeats an ordered list of agents until it should stop, and hands back
the best result it has, with the reason.

refrain help definition lists every field of a definition.`,
		Example: `  refrain run loop.yaml "Write a document about a cat"
  refrain init
  refrain run examples/compress/loop.yaml --set file=README.md
  refrain resume last`,
		Version:       strings.TrimPrefix(term.Version(), "refrain "),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(e.Stdin)
	cmd.SetOut(e.Stdout)
	cmd.SetErr(e.Stderr)
	cmd.SetFlagErrorFunc(term.ValueError)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Write a definition:", []*cobra.Command{newInit(e), newValidate(e), newCheck(e), newGraph(e), newRehearse(e), newSchema(e)}},
		{"Run it:", []*cobra.Command{newRun(e), newLoop(e), newConsole(e), newServe(e), newWorker(e), newMCP(e),
			newResume(e), newPause(e), newCancel(e), newFork(e), newAnswer(e), newResolve(e)}},
		{"Look at runs:", []*cobra.Command{newRuns(e), newShow(e), newEvents(e), newWatch(e), newView(e), newVerify(e), newBacktest(e)}},
		{"Move, remove, check:", []*cobra.Command{newExport(e), newImport(e), newADK(e), newRm(e), newDoctor(e)}},
	} {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			cmd.AddCommand(c)
		}
	}
	cmd.AddCommand(newVersion(e), newHelpDefinition())
	strictTopics(cmd)
	if e.Code.Name != "" {
		rename(e, cmd)
	}
	return cmd
}

// rename gives the help texts and the messages the name of the program. Both name a command with its verb, as in refrain
// resume or refrain serves, or begin a line with "refrain:".
func rename(e *term.Env, cmd *cobra.Command) {
	verbs := []string{"help"}
	for _, c := range cmd.Commands() {
		verbs = append(verbs, c.Name())
	}
	mention := regexp.MustCompile(`\brefrain((?:\s(?:` + strings.Join(verbs, "|") + `)s?\b))|(?m:^refrain(:))`)
	name := strings.ReplaceAll(e.Code.Name, "$", "$$") + "$1$2"
	called := func(text string) string { return mention.ReplaceAllString(text, name) }
	for _, c := range append(cmd.Commands(), cmd) {
		c.Long, c.Short, c.Example = called(c.Long), called(c.Short), called(c.Example)
		c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = called(f.Usage) })
	}
	cmd.Use, e.Stderr = e.Code.Name, term.Renamed(e.Stderr, called)
	cmd.SetErr(e.Stderr)
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

func newVersion(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.Stdout, term.Version())
			return err
		},
	}
}
