// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/check"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
)

// checkFlags are the flags of refrain check.
type checkFlags struct {
	json    bool
	sets    []string
	limits  deffile.Limits
	assumed definition.Assumed
}

func NewCheck(e *term.Env) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Show how a definition can end and what it can cost",
		Long: `Check definitions as refrain validate does, and show the worst case of a run: how each
loop can end and which agents may end it, how often agents run and call a model at most,
and the largest number of tokens, cost and time. "unbounded" means that no limit
applies; "unknown" means that the figure cannot be computed.

The flags --model, --set and the limits have the same meaning as for refrain run: the
report is about a run with these flags.

The size of a request depends on what agents say. --input-tokens and --output-tokens
set the size of each request and of each answer for the report.

The report also estimates the cost of iterations from the texts of the file, with and
without the providers' caches. If the file has no price for a model, refrain uses its
built-in list price, and prints the date of that price; nothing is fetched.

If a schedules.yaml beside the file starts the definition, the report says what a day of
each schedule costs at most, without the limits of the command line.

check treats files of other products as refrain run does.

Exit code 0 if every definition can be run, 2 otherwise. --json writes one object for
each file.`,
		Example: `  refrain check loop.yaml
  refrain check loop.yaml --max-iterations 20 --timeout 2h --budget-calls 100
  refrain check loop.yaml --input-tokens 3000 --output-tokens 800
  refrain check loop.yaml --json | jq .worst.total.calls`,
		RunE: func(_ *cobra.Command, args []string) error {
			return eachFile(e, args, func(file string) error {
				if file != args[0] && !f.json {
					fmt.Fprintln(e.Stdout) // between two reports
				}
				return checkFile(e, f, file)
			})
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "write the report as JSON to stdout, with the problems")
	fl.StringVar(&f.assumed.EveryModel, "model", "", "`provider/name` of the model for all agents, in place of the "+
		"definition's; env REFRAIN_MODEL applies only to agents without a model")
	fl.StringArrayVar(&f.sets, "set", nil, "set an input of the definition, as `key=value`; repeat the flag for "+
		"more inputs")
	f.limits.Add(fl)
	fl.Int64Var(&f.assumed.InputTokens, "input-tokens", 0, "assume this many tokens in each request")
	fl.Int64Var(&f.assumed.OutputTokens, "output-tokens", 0, "assume this many tokens in each answer of agents without max_tokens")
	return cmd
}

// checkFile runs refrain check for one file.
func checkFile(e *term.Env, f checkFlags, file string) error {
	if f.assumed.InputTokens < 0 || f.assumed.OutputTokens < 0 {
		return errors.New("--input-tokens and --output-tokens: give a number of tokens above 0")
	}
	sets, err := deffile.ParseSets(f.sets)
	if err != nil {
		return err
	}
	f.assumed.Model = e.Getenv("REFRAIN_MODEL")
	def, from, err := deffile.LoadWithOrigin(e, file)
	if err != nil {
		return f.refused(e, file, err)
	}
	if f.assumed.Limits, err = f.limits.Given(); err != nil {
		return err
	}
	if f.assumed.State, err = deffile.InitialState(def, sets); err != nil && len(sets) > 0 {
		return term.UsageError(fmt.Errorf("%s: %w", file, err))
	}
	if err := def.Allows(f.assumed.Limits); err != nil {
		return term.UsageError(fmt.Errorf("%s: %w", file, err))
	}
	if err := deffile.CheckCode(e, def, from); err != nil {
		return f.refused(e, file, err)
	}
	worst, expected := def.Worst(f.assumed), def.Expected(f.assumed)
	days, wrong := check.DaysOf(file, def, f.assumed)
	if wrong != nil {
		term.PrintError(e.Stderr, wrong) // the definition can be run
	}
	problems := from.Problems(worst.Problems())
	if !f.json {
		problems.Format(e.Stderr)
		deffile.NoteFunctions(e, def, from)
		deffile.NoteSchema(e.Stderr, file)
	}
	return term.Report(e, f.json, check.ReportOf(file, def, worst, expected, days, problems), func(w io.Writer) error {
		return check.Print(e, w, file, def, worst, expected, days)
	})
}

// refused reports why a definition cannot be run, as JSON if --json is given and the error is about the definition.
func (f *checkFlags) refused(e *term.Env, file string, err error) error {
	out := check.Report{File: file}
	if !f.json || !errors.As(err, &out.Problems) {
		return term.UsageError(err)
	}
	if err := term.Report(e, true, out, nil); err != nil {
		return err
	}
	return &term.Exit{Code: term.ExitUsage}
}

func NewValidate(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check definitions without running them",
		Long: `Check definitions, and report every problem with its place in the file and how to fix
it. Exit code 0 if no file has an error, 2 otherwise. refrain check also shows how a run
can end and what it can cost.`,
		Example: `  refrain validate loop.yaml
  refrain validate loops/*.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			return eachFile(e, args, func(file string) error { return validateFile(e, file) })
		},
	}
}

// validateFile runs refrain validate for one file.
func validateFile(e *term.Env, file string) error {
	def, from, err := deffile.LoadWithOrigin(e, file)
	if err != nil {
		return term.UsageError(err)
	}
	if err := deffile.CheckCode(e, def, from); err != nil {
		return term.UsageError(err)
	}
	from.Problems(def.Warnings()).Format(e.Stderr)
	deffile.NoteFunctions(e, def, from)
	fmt.Fprintf(e.Stderr, "%s: %s is valid\n", file, def.Name)
	return nil
}

// eachFile calls do for each file. After an error it continues with the next file: it writes the error to stderr, and the
// process ends with the exit code of the first error. An interrupt ends all.
func eachFile(e *term.Env, files []string, do func(file string) error) error {
	if len(files) == 1 {
		return do(files[0])
	}
	var first *term.Exit
	for _, file := range files {
		err := do(file)
		if err == nil {
			continue
		}
		exit, ok := errors.AsType[*term.Exit](err)
		if !ok {
			exit = &term.Exit{Code: term.ExitUsage, Err: err}
		}
		if exit.Code == term.ExitInterrupted {
			return exit
		}
		if exit.Err != nil {
			term.PrintError(e.Stderr, exit.Err)
		}
		if first == nil {
			first = &term.Exit{Code: exit.Code}
		}
	}
	if first == nil {
		return nil
	}
	return first
}
