// SPDX-License-Identifier: Apache-2.0

package evals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session/lease"
)

// output are the flags about the report of an eval.
type output struct {
	json, undecidedOK bool
	junit, adk        string
}

func (f *output) add(fl *pflag.FlagSet) {
	fl.BoolVar(&f.json, "json", false, "write the report as JSON, with every run and check")
	fl.StringVar(&f.junit, "junit", "", "also write the report as JUnit XML to `FILE`")
	fl.BoolVar(&f.undecidedOK, "undecided-ok", false, "exit with 0 if there is no verdict")
}

// addResults adds the flags, and that of ADK's result file.
func (f *output) addResults(fl *pflag.FlagSet) {
	f.add(fl)
	fl.StringVar(&f.adk, "adk-result", "", "also write the results into `DIR`, as a file of Google's ADK")
}

// check returns an error if the report cannot be written where it is to be, before anything has cost money.
func (f *output) check() error {
	if f.junit != "" {
		if info, err := os.Stat(f.junit); err == nil && info.IsDir() {
			return fmt.Errorf("--junit %s: it is a folder; name a file in it", f.junit)
		}
		_, before := os.Stat(f.junit)
		file, err := os.OpenFile(f.junit, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
		_ = file.Close()
		if errors.Is(before, fs.ErrNotExist) {
			_ = os.Remove(f.junit) // until there is a report
		}
	}
	if f.adk != "" {
		file, err := os.CreateTemp(f.adk, ".evalset_result-*")
		if err != nil {
			return fmt.Errorf("--adk-result: %w", err)
		}
		return errors.Join(file.Close(), os.Remove(file.Name()))
	}
	return nil
}

// print prints the report of an eval, and returns its exit code. The report is printed also if a file cannot be written.
func (f *output) print(ctx context.Context, w *store, rec *eval.Record) error {
	var failed error
	if f.adk != "" {
		if err := writeADK(ctx, w, rec, f.adk); err != nil {
			failed = fmt.Errorf("--adk-result: %w", err)
		}
	}
	return f.report(w, rec.Report(), failed)
}

// nameOf returns the name of ADK's result file, with its middle cut out if it is longer than a file system takes. Its end has the
// time, which tells results apart.
func nameOf(name string) string {
	const most, end = 250, 60 // bytes
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most-end], "") + strings.ToValidUTF8(name[len(name)-end:], "")
}

func writeADK(ctx context.Context, w *store, rec *eval.Record, dir string) error {
	res, err := eval.ADKResult(ctx, w.config, rec)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	file, err := root.Create(nameOf(res.Name()))
	if err != nil {
		return err
	}
	return errors.Join(res.Write(file), file.Close())
}

func writeJUnit(sum *report.Summary, name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(sum.WriteJUnit(file), file.Close())
}

// report prints a report, and then returns failed, if it is not nil.
func (f *output) report(w *store, rep *report.Report, failed error) error {
	e := w.e
	if rep.Retry != "" {
		rep.Retry += runstore.InHint(w.spec)
	}
	rep.Retry = e.Hint(rep.Retry)
	sum := rep.Summary()
	if f.junit != "" {
		if err := writeJUnit(sum, f.junit); err != nil {
			failed = errors.Join(failed, fmt.Errorf("--junit: %w", err))
		}
	}
	write := func(w io.Writer) error {
		err := sum.WriteText(w, term.ColumnsOf(w))
		if patch := sum.New.Patch; err == nil && patch != "" {
			_, err = io.WriteString(term.Exactly(w), "\n"+patch) // git apply reads it
		}
		return err
	}
	if f.json {
		write = sum.WriteJSON
	}
	if err := write(e.Stdout); err != nil {
		return term.Failure(fmt.Errorf("write the report: %w", err))
	}
	if failed != nil {
		return term.Failure(failed)
	}
	code := sum.ExitCode()
	if code == report.ExitUndecided && f.undecidedOK {
		code = term.ExitOK
	}
	if code == term.ExitOK {
		return nil
	}
	return &term.Exit{Code: code}
}

func newResume(e *term.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "resume EVAL",
		Short: "Continue an eval that was interrupted, or that its budget has ended",
		Long: `Continue an eval that was interrupted, or that its budget has ended. Runs that are over are
not repeated, and those that were cut off continue. With a larger --budget-cost an eval
continues that its budget has ended.`,
		Example: `  refrain eval resume last
  refrain eval resume ev_3f2a1c --budget-cost 10`,
		Args: term.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(f.limit(cmd, new(cases.Set)), f.output.check()); err != nil {
				return term.UsageError(err)
			}
			w, err := openStore(cmd.Context(), e, f.store)
			if err != nil {
				return err
			}
			defer w.close()
			id, err := eval.Find(cmd.Context(), w.config, args[0])
			if err != nil {
				return term.UsageError(err)
			}
			ev, err := eval.Open(cmd.Context(), w.config, id, func(p *eval.Plan) {
				_ = f.limit(cmd, &p.Set) // the flags are checked
			})
			if held, ok := errors.AsType[*lease.HeldError](err); ok {
				return term.UsageError(fmt.Errorf("eval %s goes on: %s drives it", id, held.Owner))
			}
			if err != nil {
				return term.UsageError(err)
			}
			defer ev.Close()
			w.noteChanges(ev)
			return w.follow(cmd.Context(), ev, &f.output)
		},
	}
	cmd.ValidArgsFunction = complete(e)
	fl := cmd.Flags()
	fl.UintVar(&f.parallel, "parallel", 0, "run this many cases at a time (default: as before)")
	f.budget.Add(fl)
	f.output.addResults(fl)
	runstore.Flag(fl, &f.store)
	return cmd
}

// noteChanges says if the cases have changed since the eval began, because it continues with its own.
func (w *store) noteChanges(ev *eval.Eval) {
	set, err := cases.Open(ev.File)
	if err != nil {
		return // the eval has its cases
	}
	if ids := ev.Changed(set); len(ids) > 0 {
		fmt.Fprintf(w.e.Stderr, "%s has changed since eval %s began: %s. The eval continues with the cases that it began with; "+
			"to run the changed ones, begin a new eval.\n", ev.File, ev.ID, term.Listed(ids))
	}
}

func newShow(e *term.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "show EVAL",
		Short:   "Print the report of an eval",
		Long:    `Print the report of an eval, also of one that goes on. The exit code is that of the eval.`,
		Example: "  refrain eval show last\n  refrain eval show ev_3f2a1c --json",
		Args:    term.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := readStore(cmd.Context(), e, f.store)
			if err != nil {
				return err
			}
			defer w.close()
			rec, err := w.read(cmd.Context(), args[0])
			if err != nil {
				return term.UsageError(err)
			}
			return f.print(cmd.Context(), w, rec)
		},
	}
	cmd.ValidArgsFunction = complete(e)
	fl := cmd.Flags()
	f.output.addResults(fl)
	runstore.Flag(fl, &f.store)
	return cmd
}

func newCompare(e *term.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "compare EVAL EVAL",
		Short: "Say which of two evals is better",
		Long: `Say whether the first eval is better than the second. Both must have run the same cases
with the same checks; refrain eval score checks the runs of an eval again with other
cases. Nothing runs. Exit codes are those of refrain eval --against.`,
		Example: "  refrain eval compare ev_3f2a1c ev_91bc07",
		Args:    term.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := readStore(cmd.Context(), e, f.store)
			if err != nil {
				return err
			}
			defer w.close()
			var recs [2]*eval.Record
			for i := range recs {
				if recs[i], err = w.read(cmd.Context(), args[i]); err != nil {
					return term.UsageError(err)
				}
			}
			rep, err := eval.Compare(recs[0], recs[1])
			if err != nil {
				return term.UsageError(err)
			}
			if cmd.Flags().Changed("margin") {
				if err := cases.CheckMargin(f.margin); err != nil {
					return term.UsageError(fmt.Errorf("--margin: %w", err))
				}
				rep.Margin = f.margin
			}
			return f.report(w, rep, nil)
		},
	}
	cmd.ValidArgsFunction = complete(e)
	fl := cmd.Flags()
	fl.Float64Var(&f.margin, "margin", 0, "largest difference that does not matter, in place of that of the first eval")
	f.output.add(fl)
	runstore.Flag(fl, &f.store)
	return cmd
}

func newScore(e *term.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "score EVAL",
		Short: "Check the runs of an eval again, with other checks",
		Long: `Check the runs of an eval again with the checks of a file of cases. The checks read what
the runs have left; only checks that ask a judge ask a model, and what a judge has said
about a run is not asked again. The result is a new eval, which can be shown and compared.
Cases that the eval has not run are left out.`,
		Example: "  refrain eval score ev_3f2a1c --cases stricter.yaml",
		Args:    term.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.cases == "" {
				return term.UsageError(fmt.Errorf("no cases are given; write: refrain eval score %s --cases FILE", shellword.Of(args[0])))
			}
			set, err := cases.Open(f.cases)
			if err != nil {
				return term.UsageError(err)
			}
			w, err := openStore(cmd.Context(), e, f.store)
			if err != nil {
				return err
			}
			defer w.close()
			old, err := w.read(cmd.Context(), args[0])
			if err != nil {
				return term.UsageError(err)
			}
			if f.judge != "" {
				set.JudgeBy(f.judge)
			}
			rec, err := eval.Score(cmd.Context(), w.config, old, set, f.cases, func(most eval.Worst, judges []*program.Program) error {
				w.sayVotes(old, most)
				return w.tryJudges(cmd.Context(), judges)
			})
			if err != nil {
				return term.UsageError(err)
			}
			return f.print(cmd.Context(), w, rec)
		},
	}
	cmd.ValidArgsFunction = complete(e)
	fl := cmd.Flags()
	fl.StringVar(&f.cases, "cases", "", "`FILE` of the cases with the checks; required")
	_ = cmd.MarkFlagFilename("cases", "yaml", "yml", "json", "jsonl", "csv")
	f.addJudge(fl)
	f.output.addResults(fl)
	runstore.Flag(fl, &f.store)
	return cmd
}

// sayVotes prints how often judges vote on the runs of an eval, and the most that they cost.
func (w *store) sayVotes(old *eval.Record, of eval.Worst) {
	fmt.Fprintf(w.e.Stderr, "Judges give %s on the runs of eval %s%s.\n", brief.Count(of.Votes, "vote"), old.ID, most(of))
}

// complete completes the arguments with the IDs of evals, the newest first. It reports no errors, because a shell does not show
// them.
func complete(e *term.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveKeepOrder | cobra.ShellCompDirectiveNoFileComp
		if len(args) >= strings.Count(cmd.Use, "EVAL") {
			return nil, directive
		}
		quiet := *e
		quiet.Stderr = io.Discard
		w, err := readStore(cmd.Context(), &quiet, cmd.Flags().Lookup("store").Value.String())
		if err != nil {
			return nil, directive
		}
		defer w.close()
		ids, err := eval.IDs(cmd.Context(), w.config)
		if err != nil {
			return nil, directive
		}
		return ids, directive
	}
}
