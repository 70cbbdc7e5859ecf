// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/evals"
	"github.com/refrain-dev/refrain/command/internal/reading"
	"github.com/refrain-dev/refrain/command/internal/running"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/writing"
)

func newRoot(e *term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "refrain",
		Short: "Run loops of agents that know when to stop",
		Long: `Refrain repeats an ordered list of agents until a stop condition holds, and returns
the best result and the reason why it stopped.

refrain help definition lists every field of a definition.`,
		Example: `  refrain run loop.yaml "Write a document about a cat"
  refrain init
  refrain run examples/compress/loop.yaml --set file=README.md
  refrain resume last`,
		Version:       strings.TrimPrefix(term.Version(), "refrain "),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          term.UnknownCommand,
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
		{"Write a definition:", []*cobra.Command{
			writing.NewInit(e), writing.NewValidate(e), writing.NewCheck(e), writing.NewGraph(e), writing.NewRehearse(e), writing.NewSchema(e)}},
		{"Run it:", []*cobra.Command{
			running.NewRun(e), running.NewLoop(e), evals.New(e), running.NewConsole(e), running.NewServe(e), running.NewToken(e), running.NewSchedules(e), running.NewNotify(e), running.NewWorker(e), running.NewMCP(e),
			running.NewResume(e), running.NewTake(e), running.NewTell(e), running.NewPause(e), running.NewCancel(e), running.NewFork(e), running.NewAnswer(e),
			running.NewResolve(e)}},
		{"Look at runs:", []*cobra.Command{
			reading.NewRuns(e), reading.NewShow(e), reading.NewEvents(e), reading.NewWatch(e), reading.NewView(e), reading.NewVerify(e),
			reading.NewBacktest(e), reading.NewReplay(e)}},
		{"Move, remove, check:", []*cobra.Command{
			writing.NewExport(e), writing.NewImport(e), writing.NewADK(e), reading.NewRm(e), running.NewTrust(e), running.NewDoctor(e)}},
	} {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			if c.Args == nil {
				c.Args = term.Args
			}
			complete(e, c)
			cmd.AddCommand(c)
		}
	}
	cmd.AddCommand(newVersion(e), newHelpDefinition(e), running.NewPlanStep(e), running.NewCountTests(e), running.NewReadPrompt(e), running.NewReadNotes(e),
		running.NewReadFindings(e))
	strictTopics(cmd)
	if e.Code.Name != "" {
		rename(e, cmd)
	}
	cmd.PersistentPreRun = func(verb *cobra.Command, args []string) { nameStore(e, verb, args) }
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
	e.Commands = called
	for _, c := range append(cmd.Commands(), cmd) {
		c.Long, c.Short, c.Example = called(c.Long), called(c.Short), called(c.Example)
		c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = called(f.Usage) })
	}
	cmd.Use, e.Stderr = e.Code.Name, term.Renamed(e.Stderr, called)
	cmd.SetErr(e.Stderr)
}

// nameStore adds the store of --store to the commands in messages that name a run, such as refrain show r_1, because only that
// store has the run. It knows the runs by their names: those of the command line, and those that the program gives.
func nameStore(e *term.Env, verb *cobra.Command, args []string) {
	fl := verb.Flags().Lookup("store")
	if fl == nil || !fl.Changed {
		return
	}
	stored := runstore.InHint(fl.Value.String())
	if stored == "" {
		return
	}
	runs := []string{"last", `r_[0-9a-f]+`, `ev_[0-9a-f]+`}
	if given := verb.Flags().Lookup("session"); given != nil && given.Changed {
		args = append(args, given.Value.String())
	}
	for _, word := range args {
		runs = append(runs, regexp.QuoteMeta(word))
	}
	called := e.Commands
	mention := regexp.MustCompile(`(\b` + regexp.QuoteMeta(cmp.Or(e.Code.Name, "refrain")) +
		` (?:run FILE|(?:eval (?:resume|score|show|compare)|show|resume|answer|resolve|fork|watch|pause|cancel|rm|events|verify|export|backtest|replay) (?:` +
		strings.Join(runs, "|") + `)))($|[\s,;:.)"])`)
	with := "$1" + strings.ReplaceAll(stored, "$", "$$") + "$2"
	e.Commands = func(text string) string {
		if called != nil {
			text = called(text)
		}
		return mention.ReplaceAllString(text, with)
	}
	e.Stderr = term.Renamed(e.Stderr, e.Commands)
	verb.Root().SetErr(e.Stderr)
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
