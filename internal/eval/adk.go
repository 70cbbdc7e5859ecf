// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"

	"github.com/refrain-dev/refrain/internal/eval/adkresult"
)

// ADKResult returns the results of version A in ADK's form. It reads the turns of each case-run from its log.
func ADKResult(ctx context.Context, cfg Config, rec *Record) (*adkresult.Result, error) {
	e := &Eval{Config: cfg, Record: rec}
	res := rowOf(&cfg, rec).ADK()
	for i := range rec.Set.Cases {
		c := &rec.Set.Cases[i]
		for _, s := range rec.Scored {
			if s.Side != SideA || s.Case != c.ID {
				continue
			}
			view, err := e.session(ctx, s.Run)
			if err != nil {
				return nil, err
			}
			run := adkresult.Run{Case: *c, Grade: s.Grade, Session: s.Run, User: cfg.UserID}
			if view != nil {
				subject, err := subjectOf(c, view)
				if err != nil {
					return nil, err
				}
				run.Turns = subject.Turns
			}
			res.Runs = append(res.Runs, run)
		}
	}
	return res, nil
}
