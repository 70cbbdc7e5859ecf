// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/model/scripted"
)

// rehearseFlags are the flags of refrain rehearse.
type rehearseFlags struct {
	json     bool
	seed     uint64
	sets     []string
	script   string
	faults   []string
	stepTime time.Duration
}

func NewRehearse(e *term.Env) *cobra.Command {
	var f rehearseFlags
	cmd := &cobra.Command{
		Use:   "rehearse FILE [INPUT]",
		Short: "Inject faults into a loop, and see which guard catches them",
		Long: `Run a definition with stand-ins, inject one fault after the other, and report which
guard caught each fault. For a fault that no guard caught, the report says what to add to
the file. The faults include a loop that never exits, a noisy judge, an improvement that
is slow, falling scores, oscillating outputs, a step that hangs, a provider that fails
once or is down, an exit without permission, a growing state, exploding costs, and a
crash at every event.

For a loop with a judge the report also shows what the stop rules do to six courses of
the score: how many of 200 simulated runs are stopped early, after how many iterations,
and what is handed back of the gain of a full run.

No model is asked, no key is needed, and nothing is sent: stand-ins replace commands,
HTTP requests, remote agents, MCP servers, functions and people. Loops, expressions and
templates are real. Delays take no time.

By default the stand-ins make up their answers. --script gives your own answers, in the
format of scripted models: iteration n uses the n-th answer that names the agent or task.

Exit codes: 0 every fault was caught or cannot happen, 1 a fault was not caught, or the
result is unknown, 2 wrong usage or an invalid definition.`,
		Example: `  refrain rehearse loop.yaml
  refrain rehearse loop.yaml --fault step_hung --fault crash
  refrain rehearse loop.yaml --script answers.yaml --set size=3
  refrain rehearse loop.yaml --json | jq '.findings[] | select(.status == "uncaught") | .advice'`,
		RunE: func(cmd *cobra.Command, args []string) error { return rehearse(cmd.Context(), e, &f, args) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "write the report as JSON")
	fl.Uint64Var(&f.seed, "seed", 0, "`number` that seeds the random choices")
	fl.StringArrayVar(&f.sets, "set", nil, "set an input of the definition, as `key=value`; repeat the flag for "+
		"more inputs")
	fl.StringVar(&f.script, "script", "", "`FILE` with answers for the stand-ins")
	fl.StringArrayVar(&f.faults, "fault", nil, "inject only this `fault`, such as step_hung; repeat the flag for "+
		"more faults")
	term.DurationFlag(fl, &f.stepTime, "step-time", rehearsal.DefaultStepTime,
		"simulated time that each step takes")
	return cmd
}

func rehearse(ctx context.Context, e *term.Env, f *rehearseFlags, args []string) error {
	cfg := rehearsal.Config{Seed: f.seed, StepTime: f.stepTime}
	var err error
	if cfg.Values, err = deffile.ParseSets(f.sets); err != nil {
		return err
	}
	if cfg.Input, err = deffile.ReadInput(args[1:], e.Stdin); err != nil {
		return err
	}
	if cfg.Faults, err = chosenFaults(f.faults); err != nil {
		return err
	}
	if cfg.Script, err = answers(f.script); err != nil {
		return fmt.Errorf("--script: %w", err)
	}
	if f.stepTime <= 0 {
		return fmt.Errorf("--step-time %s: give a time above 0", f.stepTime)
	}
	def, err := deffile.Load(e, args[0])
	if err != nil {
		return term.UsageError(err)
	}
	report, err := rehearsal.Run(ctx, def, cfg)
	if err != nil {
		return term.UsageError(err)
	}
	if err := term.Report(e, f.json, report, report.Format); err != nil {
		return err
	}
	if len(report.Open()) > 0 {
		return &term.Exit{Code: term.ExitFailed} // the report says which fault was not caught
	}
	return nil
}

// chosenFaults returns the faults with these names; nil for no names.
func chosenFaults(names []string) ([]rehearsal.Fault, error) {
	var all []rehearsal.Fault
	known := make([]string, 0, len(rehearsal.Faults()))
	for _, f := range rehearsal.Faults() {
		known = append(known, string(f))
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--fault %s: there is no such fault (%s)", name, term.Meant(name, known))
		}
		all = append(all, rehearsal.Fault(name))
	}
	return all, nil
}

// answers reads a script of answers; nil without a file.
func answers(file string) (*scripted.Script, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	script, err := scripted.Parse(text)
	if err != nil {
		return nil, err
	}
	return &script, nil
}
