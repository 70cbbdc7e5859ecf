// SPDX-License-Identifier: Apache-2.0

// Package evals has the verb eval and its subcommands.
package evals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// flags are the flags of refrain eval.
type flags struct {
	output
	tune   tuning
	budget deffile.Budget

	cases, against, failed, model, judge, store, root string
	only                                              []string
	repeat, parallel, sample                          uint
	seed                                              uint64
	margin                                            float64
	stopEarly, new                                    bool
}

func New(e *term.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "eval FILE",
		Short: "Evaluate a definition over cases",
		Long: `Run a definition over the cases of a file, check what each run does, and print how many
cases pass. Each case runs three times, because models answer differently each time.

With --against the cases also run with another definition, and eval says which of both is
better: better, worse, same, or not decided, with an interval for the difference. "same"
needs --margin, the difference that does not matter. The other definition can be that of
an earlier eval, whose runs are used again.

A file of cases is YAML, CSV or JSON lines, or a file of Google's ADK; doc/eval.md
describes it. The run of a case asks nobody: the case has the answers of people. Runs act
as refrain run does. List a step that must not act under replace in the file of cases.

Checks can ask a judge: a model that says whether statements are true of an answer, or
which of two versions answers better. --judge-model names it in place of the file.

Before the first run, eval prints how many runs there will be, and their largest possible
cost. --budget-cost ends the eval when it has cost that much, after the runs that are under
way. If eval is interrupted, refrain eval resume EVAL continues it, and repeats no run.

--part train and --part hidden split the cases in two, so that whoever improves the
definition with one part is judged by the other. --change WRITER.instructions evaluates the
definition with the text of stdin in that place, and prints the difference as a patch.
refrain init tune writes a loop that improves a definition with both.

The runs of cases are ordinary runs; refrain runs --all lists them.

Exit codes: 0 every case has passed (with --against: better or same), 1 a case has failed
(worse), 2 wrong usage or an invalid definition, 3 not decided, or ended by the budget or
by errors, 130 interrupted.`,
		Example: `  refrain eval loop.yaml --cases cases.yaml
  refrain eval loop.yaml --cases cases.yaml --against old.yaml --margin 0.05
  refrain eval loop.yaml --cases cases.yaml --against ev_3f2a1c --stop-early
  refrain eval loop.yaml --cases cases.yaml --only tag:refund --repeat 1
  refrain eval loop.yaml --cases cases.yaml --failed ev_3f2a1c
  refrain eval loop.yaml --cases cases.yaml --change writer.instructions <better.txt
  refrain eval resume ev_3f2a1c`,
		Args: term.Args,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.cases, "cases", "", "`FILE` of the cases; required")
	fl.StringVar(&f.against, "against", "", "`FILE` of the definition to compare with, or the ID of an earlier eval")
	fl.UintVar(&f.repeat, "repeat", 0, "run each case this often, in place of what the file of cases says (default 3)")
	fl.UintVar(&f.parallel, "parallel", 0, "run this many cases at a time, in place of what the file says (default 4)")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of what chance decides, such as the order of the cases (default 1)")
	fl.Float64Var(&f.margin, "margin", 0, "largest difference that does not matter, such as 0.02; up to it two versions are the same")
	fl.StringSliceVar(&f.only, "only", nil, "run only the cases with these IDs, or with a tag: `ID|tag:TAG`")
	fl.StringVar(&f.failed, "failed", "", "run only the cases that failed, or were errors, in the eval with this `ID`")
	fl.UintVar(&f.sample, "sample", 0, "run only this many cases, chosen by chance")
	fl.BoolVar(&f.stopEarly, "stop-early", false, "with --against: end when the difference is clear, at one of five looks")
	fl.StringVar(&f.model, "model", "", "`provider/name` of the model for all agents, in place of the definition's")
	f.addJudge(fl)
	f.tune.add(fl)
	fl.BoolVar(&f.new, "new", false, "begin a new eval although the same one was interrupted")
	f.budget.Add(fl)
	f.output.addResults(fl)
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.root, "root", ".", "`directory` that commands may not leave")
	_ = cmd.MarkFlagFilename("cases", "yaml", "yml", "json", "jsonl", "csv")
	_ = cmd.MarkFlagFilename("against", "yaml", "yml")
	_ = cmd.MarkFlagDirname("root")
	for _, sub := range []*cobra.Command{newList(e), newResume(e), newShow(e), newCompare(e), newScore(e), newAdd(e)} {
		cmd.AddCommand(sub)
	}
	return cmd
}

func (f *flags) addJudge(fl *pflag.FlagSet) {
	fl.StringVar(&f.judge, "judge-model", "", "`provider/name` of the model that judges, in place of what the file of cases says")
}

func (f *flags) run(cmd *cobra.Command, e *term.Env, file string) error {
	ctx := cmd.Context()
	if f.cases == "" {
		return term.UsageError(fmt.Errorf("no cases are given; write: refrain eval %s --cases FILE", shellword.Of(file)))
	}
	if err := f.checkEmpty(cmd); err != nil {
		return term.UsageError(err)
	}
	if f.stopEarly && f.against == "" {
		return term.UsageError(errors.New("--stop-early ends a comparison; name the other version with --against"))
	}
	set, err := cases.Open(f.cases)
	if err != nil {
		return term.UsageError(err)
	}
	if err := f.output.check(); err != nil {
		return term.UsageError(err)
	}
	p := &eval.Plan{File: f.cases, StopEarly: f.stopEarly}
	err = f.limit(cmd, set)
	if err == nil {
		err = f.tune.choose(cmd, e, set)
	}
	if err != nil {
		return f.tune.refuse(e, f.json, err)
	}
	if err := f.version(ctx, e, p, set, eval.SideA, file); err != nil {
		return err
	}
	isFile := f.against != "" && exists(f.against)
	if isFile {
		if err := f.version(ctx, e, p, set, eval.SideB, f.against); err != nil {
			return err
		}
		if f.tune.isUnchanged(p) {
			return f.tune.printSame(e, f.json)
		}
	}
	w, err := openStore(ctx, e, f.store)
	if err != nil {
		return err
	}
	defer w.close()
	p.Set = *set
	if err := f.choose(ctx, w, p); err != nil {
		return term.UsageError(err)
	}
	p.Hash = p.Set.Hash()
	var known []eval.Scored
	if f.against != "" && !isFile {
		if known, err = w.known(ctx, p, f.against); err != nil {
			return err
		}
	}
	if call := e.Getenv(taskagent.EnvCallID); call != "" {
		w.config.StartID = eval.CallID(call, p)
	} else if err := f.refuseAgain(ctx, w, p); err != nil {
		return err
	}
	worst, judges, err := eval.WorstOf(w.config, p)
	if err == nil {
		err = countable(worst, &p.Set.Budget)
	}
	if err != nil {
		return term.UsageError(err)
	}
	if err := w.tryJudges(ctx, judges); err != nil {
		return err
	}
	ev, err := eval.Start(ctx, w.config, p, known)
	if errors.Is(err, session.ErrExists) { // an earlier attempt of the call began it
		ev, err = eval.Open(ctx, w.config, w.config.StartID, nil)
	}
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		err = fmt.Errorf("eval %s goes on: %s drives it", w.config.StartID, held.Owner)
	}
	if err != nil {
		return term.UsageError(err)
	}
	defer ev.Close()
	return w.follow(ctx, ev, &f.output)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// limit applies the flags that replace what the file of cases says.
func (f *flags) limit(cmd *cobra.Command, set *cases.Set) error {
	fl := cmd.Flags()
	for _, n := range []struct {
		flag  string
		value uint
		most  uint
		to    *int
	}{{"repeat", f.repeat, 1000, &set.Repeat}, {"parallel", f.parallel, 256, &set.Parallel}} {
		if fl.Changed(n.flag) {
			if n.value < 1 || n.value > n.most {
				return fmt.Errorf("--%s %d: give a number from 1 to %d", n.flag, n.value, n.most)
			}
			*n.to = int(n.value)
		}
	}
	if fl.Changed("repeat") {
		set.Cases = slices.Clone(set.Cases)
		for i := range set.Cases {
			set.Cases[i].Repeat = 0
		}
	}
	if fl.Changed("seed") {
		set.Seed = f.seed
	}
	if fl.Changed("margin") {
		if err := cases.CheckMargin(f.margin); err != nil {
			return fmt.Errorf("--margin: %w", err)
		}
		set.Margin = f.margin
	}
	if f.judge != "" {
		set.JudgeBy(f.judge)
	}
	_, err := f.budget.Into(&set.Budget)
	return err
}

// version adds a version to the plan. It makes the agents once, to find out what is missing here before anything exists.
func (f *flags) version(ctx context.Context, e *term.Env, p *eval.Plan, set *cases.Set, side, file string) error {
	prog, def, err := deffile.NewProgram(e, file, f.model, f.root, new(deffile.Limits))
	if err != nil {
		return err
	}
	var texts []eval.Text
	patch := ""
	if side == eval.SideA && f.tune.texts != nil {
		if def, texts, patch, err = eval.Change(prog, f.tune.texts); err != nil {
			return f.tune.refuse(e, f.json, err)
		}
	}
	def.Warnings().Format(e.Stderr)
	tried := *prog
	tried.Replace = set.Replace
	made, err := deffile.Build(ctx, e, runstore.Name(e, f.store), &tried, def)
	if err != nil {
		return err
	}
	if made.Close != nil {
		made.Close()
	}
	v, err := eval.NewVersion(file, prog, def)
	v.Side, v.Patch, v.Texts = side, patch, texts
	p.Versions = append(p.Versions, v)
	return err
}

// tryJudges makes the judges once, to find out what is missing here before anything runs, such as a key.
func (w *store) tryJudges(ctx context.Context, judges []*program.Program) error {
	for _, prog := range judges {
		def, err := prog.Definition()
		if err != nil {
			return term.UsageError(err)
		}
		made, err := deffile.Build(ctx, w.e, runstore.Name(w.e, w.spec), prog, def)
		if err != nil {
			return err
		}
		if made.Close != nil {
			made.Close()
		}
	}
	return nil
}

// checkEmpty returns an error about a flag that is given without a value, such as by a variable of a shell that is not set.
func (f *flags) checkEmpty(cmd *cobra.Command) error {
	for _, n := range []struct {
		flag, what string
		empty      bool
	}{
		{"only", "IDs of cases, or tag:TAG", len(f.only) == 0 || slices.Contains(f.only, "")},
		{"failed", "the ID of an eval", f.failed == ""},
		{"judge-model", "a model as provider/name", f.judge == ""},
		{"against", "a file, or the ID of an eval", f.against == ""},
	} {
		if n.empty && cmd.Flags().Changed(n.flag) {
			return fmt.Errorf("--%s is empty; give %s, or leave it out", n.flag, n.what)
		}
	}
	return nil
}

// choose leaves the cases that the flags choose.
func (f *flags) choose(ctx context.Context, w *store, p *eval.Plan) error {
	if f.failed != "" {
		rec, err := w.read(ctx, f.failed)
		if err != nil {
			return err
		}
		if err := eval.Failed(p, rec); err != nil {
			return err
		}
	}
	if len(f.only) > 0 {
		if err := eval.Only(&p.Set, f.only); err != nil {
			return err
		}
	}
	if f.sample > 0 {
		eval.Sample(&p.Set, int(f.sample))
	}
	return nil
}

// refuseAgain returns an error if the same eval was interrupted, because to continue it costs less.
func (f *flags) refuseAgain(ctx context.Context, w *store, p *eval.Plan) error {
	if f.new {
		return nil
	}
	old, err := eval.Interrupted(ctx, w.config, p)
	if err != nil {
		return term.Failure(err)
	}
	if old == nil {
		return nil
	}
	return term.UsageError(fmt.Errorf("eval %s has the same definition and cases, and was interrupted after %d of %s; continue it with: "+
		"refrain eval resume %[1]s, or begin a new one with --new", old.ID, len(old.Scored), brief.Count(old.Runs(), "run")))
}

// store is a store with evals.
type store struct {
	e      *term.Env
	spec   string // as --store names it
	stock  *runstore.Stock
	config eval.Config

	closeService func() error // of a store that is only read
}

// openStore opens a store, which it creates if it does not exist.
func openStore(ctx context.Context, e *term.Env, spec string) (*store, error) {
	if err := runstore.PrepareFolder(e, spec); err != nil {
		return nil, err
	}
	s, err := runstore.MakeWorkerStock(ctx, e, spec)
	if err != nil {
		return nil, err
	}
	sup, err := s.Supervise(e, nil)
	if err != nil {
		s.Close()
		return nil, err
	}
	cfg := eval.Config{Supervisor: sup, Service: s.Service, AppName: runstore.AppName, UserID: runstore.UserName, Code: e.Code,
		Owner: lease.Process(), Dead: lease.Dead, LeaseTTL: runstore.LeaseTTL}
	return &store{e: e, spec: spec, stock: s, config: cfg}, nil
}

// readStore opens a store to read evals.
func readStore(ctx context.Context, e *term.Env, spec string) (*store, error) {
	service, closeService, err := runstore.OpenService(ctx, e, spec)
	if err != nil {
		return nil, err
	}
	cfg := eval.Config{Service: service, AppName: runstore.AppName, UserID: runstore.UserName}
	return &store{e: e, spec: spec, closeService: closeService, config: cfg}, nil
}

// leave is how long case-runs have to end their steps after Ctrl-C.
const leave = 3 * time.Second

// close pauses the case-runs that go on, and closes the store.
func (w *store) close() {
	if w.closeService != nil {
		_ = w.closeService() // nothing was written
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leave)
	defer cancel()
	if err := w.config.Supervisor.Close(ctx); err != nil {
		term.PrintError(w.e.Stderr, err)
	}
	w.stock.Close()
}

// read reads an eval by its ID, the beginning of its ID, or last for the newest.
func (w *store) read(ctx context.Context, word string) (*eval.Record, error) {
	id, err := eval.Find(ctx, w.config, word)
	if err != nil {
		return nil, err
	}
	return eval.Read(ctx, w.config.Service, w.config.AppName, w.config.UserID, id)
}

// known adds the version of an earlier eval to the plan, and returns its results.
func (w *store) known(ctx context.Context, p *eval.Plan, word string) ([]eval.Scored, error) {
	old, err := w.read(ctx, word)
	if errors.Is(err, eval.ErrNotFound) {
		err = fmt.Errorf("--against %s: there is no such file, and %w", word, err)
	}
	if err != nil {
		return nil, term.UsageError(err)
	}
	known, err := eval.Known(p, old)
	if err != nil {
		return nil, term.UsageError(fmt.Errorf("--against: %w", err))
	}
	v := old.AsOld()
	p.Versions = append(p.Versions, v)
	if age := time.Since(old.Began); age > eval.OldAfter {
		fmt.Fprintf(w.e.Stderr, "Eval %s is %d days old. Models change meanwhile; --against %s runs its definition again.\n", old.ID,
			int(age.Hours()/24), v.Name)
	}
	return known, nil
}

// follow runs an eval and prints its report.
func (w *store) follow(ctx context.Context, ev *eval.Eval, out *output) error {
	worst, err := ev.Worst()
	if err != nil {
		return term.Failure(err)
	}
	if err := countable(worst, &ev.Set.Budget); err != nil {
		return term.UsageError(err)
	}
	say(w.e, ev, worst)
	total, done := ev.Runs(), 0
	for _, s := range ev.Scored {
		if ev.Own(&s) {
			done++
		}
	}
	if term.IsTerminal(w.e.Stderr) {
		ev.OnScored = func(s *eval.Scored) {
			done++
			fmt.Fprintf(w.e.Stderr, "  %d of %d  %s\n", done, total, line(s, len(ev.Versions) > 1))
		}
	}
	err = ev.Run(ctx)
	if errors.Is(err, term.ErrInterrupted) || errors.Is(err, context.Canceled) || errors.Is(err, supervisor.ErrClosed) {
		fmt.Fprintf(w.e.Stderr, "Interrupted after %d of %s. Continue with: refrain eval resume %s\n", len(ev.Scored),
			brief.Count(total, "run"), ev.ID)
		return &term.Exit{Code: term.ExitInterrupted}
	}
	if err != nil {
		return term.Failure(fmt.Errorf("%w; continue with: refrain eval resume %s", err, ev.ID))
	}
	return out.print(ctx, w, ev.Record)
}

// countable returns an error about a budget that cannot be counted.
func countable(w eval.Worst, b *budget.Limits) error {
	if b.Cost == nil || w.Unpriced == "" {
		return nil
	}
	return fmt.Errorf("--budget-cost: the price of %s is unknown, so its cost cannot be counted; give it under prices in the definition, "+
		"or limit --budget-tokens", w.Unpriced)
}

// say prints what the eval is going to do, and the most that it can cost.
func say(e *term.Env, ev *eval.Eval, w eval.Worst) {
	text := fmt.Sprintf("Eval %s: %s", ev.ID, brief.Count(w.Runs, "run"))
	if len(ev.Scored) > 0 && w.Runs < ev.Runs() {
		text += fmt.Sprintf(" left of %d", ev.Runs())
	}
	atOnce := min(ev.Set.Parallel, w.Runs)
	if w.Votes > 0 {
		text += " and " + brief.Count(w.Votes, "vote") + " of judges"
	}
	text += most(w)
	if w.Asks && w.Unpriced == "" && !w.Total.Unbounded() {
		text += fmt.Sprintf(" (%s each)", brief.Money(float64(w.Each)))
	}
	fmt.Fprintln(e.Stderr, brief.Clean(text+"."))
	if b := ev.Set.Budget.Cost; b != nil && w.Asks {
		over := "an unknown amount"
		if !w.Each.Unbounded() {
			over = brief.Money(float64(atOnce) * float64(w.Each))
		}
		fmt.Fprintf(e.Stderr, "The budget is %s. The last %s may exceed it by %s.\n", brief.Money(*b), brief.Count(atOnce, "run"), over)
	}
}

// most says what everything costs at the most.
func most(w eval.Worst) (text string) {
	switch {
	case !w.Asks:
	case w.Unpriced != "":
		text += fmt.Sprintf("; the cost is unknown, because the price of %s is", w.Unpriced)
	case w.Total.Unbounded():
		text += "; no limit of cost applies"
	default:
		text += "; they cost at most " + brief.Money(float64(w.Total))
	}
	return text
}

// line describes the result of a case-run.
func line(s *eval.Scored, sides bool) string {
	text := s.Case
	if sides {
		text += " " + s.Side
	}
	text += fmt.Sprintf(" %d  ", s.N)
	switch {
	case s.Error != "":
		text += "error: " + brief.Line(s.Error, 80)
	case s.Grade.Passed == nil:
		text += "not evaluated"
	case *s.Grade.Passed:
		text += "passed"
	default:
		text += "failed"
	}
	if s.Calls > 0 {
		text += "  " + term.Cost(s.Cost)
	}
	return brief.Clean(text + "  " + brief.Clock(time.Duration(s.Seconds*float64(time.Second))))
}
