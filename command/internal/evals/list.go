// SPDX-License-Identifier: Apache-2.0

package evals

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/eval"
)

func newList(e *term.Env) *cobra.Command {
	var store string
	var limit uint
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List evals",
		Long:    `List the evals of a store, the newest first, with verdict and cost.`,
		Example: "  refrain eval list\n  refrain eval list --limit 0 --json",
		Args:    term.Args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := readStore(cmd.Context(), e, store)
			if err != nil {
				return err
			}
			defer w.close()
			rows, err := eval.List(cmd.Context(), w.config, int(limit))
			if err == nil {
				err = printRows(e, rows, asJSON)
			}
			if len(rows) == 0 && err == nil && !asJSON {
				fmt.Fprintln(e.Stderr, "The store has no evals.")
			}
			return term.Failure(err)
		},
	}
	fl := cmd.Flags()
	fl.UintVar(&limit, "limit", 20, "show at most this many evals; 0 shows all")
	fl.BoolVar(&asJSON, "json", false, "write one line of JSON for each eval")
	runstore.Flag(fl, &store)
	return cmd
}

func printRows(e *term.Env, rows []eval.Row, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(e.Stdout)
		for i := range rows {
			if err := enc.Encode(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		return nil
	}
	table := [][]string{{"EVAL", "VERSION", "AGAINST", "SET", "CASES", "STARTED", "COST", "VERDICT", "WHY"}}
	for i := range rows {
		r := &rows[i]
		table = append(table, []string{r.Eval, term.Cell(r.Name, 40), cmp.Or(term.Cell(r.Against, 40), "-"), term.Cell(r.Set, 30), strconv.Itoa(r.Cases),
			r.Began.Local().Format("2006-01-02 15:04"), term.Cost(r.Cost), string(r.Verdict), cmp.Or(term.Cell(r.Reason, 70), "-")})
	}
	const against, set, cases, started, cost = 2, 3, 4, 5, 6
	return term.PrintTable(e.Stdout, table, term.Layout{Drop: []int{cases, set, cost, started, against}})
}
