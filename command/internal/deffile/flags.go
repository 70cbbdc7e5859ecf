// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
)

// Limits holds the flags that limit a run.
type Limits struct {
	Flags         *pflag.FlagSet
	maxIterations uint
	modelCalls    string
	timeout       time.Duration
	budget        Budget
}

// Budget holds the flags of a budget.
type Budget struct {
	flags         *pflag.FlagSet
	calls, tokens int64
	cost          float64
}

// Add adds the flags to a command.
func (f *Budget) Add(fl *pflag.FlagSet) {
	f.flags = fl
	fl.Int64Var(&f.calls, "budget-calls", 0, "stop when this many requests were sent to models")
	fl.Int64Var(&f.tokens, "budget-tokens", 0, "stop when this many tokens were used, input and output together")
	fl.Float64Var(&f.cost, "budget-cost", 0, "stop at this cost, computed from the prices in the definition")
}

// Add adds the flags to a command.
func (f *Limits) Add(fl *pflag.FlagSet) {
	f.Flags = fl
	fl.UintVar(&f.maxIterations, "max-iterations", 0, "stop after this many iterations, in place of the "+
		"definition's; 0 removes the limit")
	term.DurationFlag(fl, &f.timeout, "timeout", 0, "time limit of the loop, such as 30m, in place of the "+
		"definition's; 0 removes the limit")
	fl.StringVar(&f.modelCalls, "max-model-calls", "", "fail after this `number` of model calls, or none for no "+
		"limit, in place of the definition's (default 500)")
	f.budget.Add(fl)
}

// Given returns the limits whose flags were given.
func (f *Limits) Given() (given definition.Limits, err error) {
	if f.Flags == nil {
		return given, nil
	}
	if f.Flags.Changed("max-iterations") {
		given.MaxIterations = &f.maxIterations
	}
	if f.Flags.Changed("timeout") {
		if f.timeout < 0 {
			return given, term.UsageError(fmt.Errorf("--timeout %s: give a time such as 30m, or 0 for no limit", f.timeout))
		}
		given.Timeout = &f.timeout
	}
	if given.Budget, err = f.budget.Given(); err != nil {
		return given, err
	}
	switch {
	case !f.Flags.Changed("max-model-calls"):
	case f.modelCalls == "none":
		given.MaxModelCalls = -1
	default:
		n, err := strconv.ParseInt(f.modelCalls, 10, 32)
		if err != nil || n < 1 {
			return given, fmt.Errorf("--max-model-calls %s: give a number of at least 1, or none", f.modelCalls)
		}
		given.MaxModelCalls = int(n)
	}
	return given, nil
}

// PrintLess explains how a command prints less and keeps its exit code.
const PrintLess = "let it print the end only, such as: COMMAND >out.log 2>&1; code=$?; tail -n 200 out.log; exit $code"

// Hint adds to an error the name of the flag that helps.
func Hint(err error) error {
	switch agentErr, _ := errors.AsType[*taskagent.CLIError](err); {
	case errors.Is(err, agent.ErrTooManyModelCalls):
		return fmt.Errorf("%w (or with --max-model-calls: a number, or none)", err)
	case agentErr != nil && agentErr.Outcome == taskagent.CLIDenied:
		return fmt.Errorf("%w (with refrain loop: --allow COMMAND, --permissions all or --denied allow)", err)
	case agentErr != nil && agentErr.Outcome == taskagent.CLILimited && !agentErr.GivenUp:
		return fmt.Errorf("%w (on_limit: reset waits for it; with refrain loop, --on-limit wait)", err)
	}
	if long, ok := errors.AsType[*taskagent.LimitError](err); ok && long.Stream == "stdout" {
		return fmt.Errorf("%w, with output_limit; or %s", err, PrintLess)
	}
	return err
}

// Given returns the limits whose flags were given; nil if none was.
func (f *Budget) Given() (*budget.Limits, error) {
	var b budget.Limits
	if changed, err := f.Into(&b); !changed || err != nil {
		return nil, err
	}
	return &b, nil
}

// Into replaces the limits whose flags were given, and reports whether there are any.
func (f *Budget) Into(b *budget.Limits) (given bool, err error) {
	for _, l := range []struct {
		flag string
		n    int64
		to   *int64
	}{{"budget-calls", f.calls, &b.Calls}, {"budget-tokens", f.tokens, &b.Tokens}} {
		if !f.flags.Changed(l.flag) {
			continue
		}
		if l.n < 1 {
			return false, fmt.Errorf("--%s %d: give at least 1, or leave it out for no limit", l.flag, l.n)
		}
		*l.to, given = l.n, true
	}
	if f.flags.Changed("budget-cost") {
		if !(f.cost >= 0) || math.IsInf(f.cost, 0) {
			return false, fmt.Errorf("--budget-cost %v: give 0 or more", f.cost)
		}
		b.Cost, given = new(f.cost), true
	}
	return given, nil
}

// ParseSets reads the values of --set, each written as key=value.
func ParseSets(sets []string) (map[string]string, error) {
	m := make(map[string]string, len(sets))
	for _, s := range sets {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--set %q: write it as key=value", s)
		}
		m[k] = v
	}
	return m, nil
}

// InitialState returns the initial state of a run with the values of --set. The error about a missing input says how to give
// the input.
func InitialState(def *definition.Definition, sets map[string]string) (map[string]any, error) {
	state, err := def.InitialState(sets)
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		return state, err
	}
	for _, one := range joined.Unwrap() {
		if in, ok := errors.AsType[*definition.InputError](one); ok && in.Missing {
			in.Hint = "give it with --set " + in.Input + "=VALUE"
		}
	}
	return state, err
}

// maxInput is the largest size of standard input that is read, in bytes.
const maxInput = 10 << 20

// ReadInput returns the first argument, or standard input where the argument is "-".
func ReadInput(args []string, stdin io.Reader) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if args[0] != "-" {
		return args[0], nil
	}
	b, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(b) > maxInput {
		return "", fmt.Errorf("standard input is larger than %d MiB; shorten the request, and let the agents read large texts from files",
			maxInput>>20)
	}
	return strings.TrimRight(string(b), "\n"), nil
}
