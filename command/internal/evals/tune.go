// SPDX-License-Identifier: Apache-2.0

package evals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
)

// tuning are the flags with which a loop improves a definition.
type tuning struct {
	part   string
	hidden float64
	fields []string

	texts map[string]string // of the fields to change; nil without --change
}

func (f *tuning) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.part, "part", "", "run only one `part` of the cases: train or hidden")
	fl.Float64Var(&f.hidden, "hidden", 0.3, "share of the cases in the hidden part, which the seed of the cases chooses")
	fl.StringSliceVar(&f.fields, "change", nil, "evaluate FILE with another text in this `AGENT.FIELD`, which stdin has; with several fields, "+
		"stdin has a JSON object")
}

// mostProposed is the largest size of the texts of a change, in bytes.
const mostProposed = 1 << 20

// choose keeps the part of the cases, and reads the texts.
func (f *tuning) choose(cmd *cobra.Command, e *term.Env, set *cases.Set) error {
	switch f.part {
	case eval.PartTrain, eval.PartHidden:
		if !(f.hidden > 0 && f.hidden < 1) {
			return fmt.Errorf("--hidden %v: give a share between 0 and 1, such as 0.3", f.hidden)
		}
		if err := eval.Part(set, f.part, f.hidden); err != nil {
			return fmt.Errorf("--part: %w", err)
		}
	case "":
		if cmd.Flags().Changed("part") || cmd.Flags().Changed("hidden") {
			return errors.New("--hidden is the share of a part; choose the part with --part train or --part hidden")
		}
	default:
		return fmt.Errorf("--part %q: write train or hidden", f.part)
	}
	if len(f.fields) == 0 {
		return nil
	}
	for _, field := range f.fields {
		if err := eval.CheckField(field); err != nil {
			return fmt.Errorf("--change: %w", err)
		}
	}
	input, err := io.ReadAll(io.LimitReader(e.Stdin, mostProposed+1))
	if err != nil {
		return err
	}
	if len(input) > mostProposed {
		return &eval.Refusal{Err: fmt.Errorf("it has more than %d bytes", mostProposed)}
	}
	f.texts = make(map[string]string)
	if text := strings.TrimSpace(string(input)); text == "" || len(f.fields) == 1 {
		f.texts[f.fields[0]] = text
		return nil
	}
	var object map[string]string
	if err := json.Unmarshal([]byte(check.Unfence(string(input))), &object); err != nil {
		return &eval.Refusal{Err: fmt.Errorf("several texts must be a JSON object with a text for each field: %w", err)}
	}
	for _, field := range f.fields { // and no others
		f.texts[field] = object[field]
	}
	return nil
}

// isUnchanged reports whether the changed version is the one that it is compared with, so that there is nothing to compare.
func (f *tuning) isUnchanged(p *eval.Plan) bool {
	return f.texts != nil && len(p.Versions) == 2 && p.Versions[0].Patch == "" && string(p.Versions[0].Program) == string(p.Versions[1].Program)
}

// outcome is the report of an evaluation that did not take place.
type outcome struct {
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}

func (o outcome) print(e *term.Env, asJSON bool) error {
	if asJSON {
		return term.Failure(json.NewEncoder(e.Stdout).Encode(o))
	}
	_, err := fmt.Fprintf(e.Stdout, "%s: %s\n", o.Verdict, o.Reason)
	return term.Failure(err)
}

// printSame says that both versions are one.
func (f *tuning) printSame(e *term.Env, asJSON bool) error {
	return outcome{"same", "the change leaves the definition as it is, so nothing was run"}.print(e, asJSON)
}

// refuse reports a change that was not made. A loop reads the reason in the JSON, and can propose another change.
func (f *tuning) refuse(e *term.Env, asJSON bool, err error) error {
	if _, ok := errors.AsType[*eval.Refusal](err); !ok {
		return term.UsageError(err)
	}
	if err := (outcome{"refused", err.Error()}).print(e, asJSON); err != nil {
		return err
	}
	return &term.Exit{Code: term.ExitFailed}
}
