// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/refrain-dev/refrain/internal/eval/adkresult"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session/mark"
)

// ADKHead returns the results of an eval in ADK's form without its runs: the names and the time of which ADK makes its ID.
func ADKHead(cfg Config, rec *Record) *adkresult.Result {
	base := filepath.Base(rec.Versions[0].Name)
	res := &adkresult.Result{App: strings.TrimSuffix(base, filepath.Ext(base)), Set: cmp.Or(rec.Set.ADK, rec.Set.Name), Time: rec.Began}
	if p, err := program.Decode(mark.RunStarted{Program: rec.Versions[0].Program}); err == nil {
		if def, err := p.DefinitionFor(&cfg.Code); err == nil {
			res.App = def.Name
		}
	}
	return res
}

// ADKResult returns the results of version A in ADK's form. It reads the turns of each case-run from its log.
func ADKResult(ctx context.Context, cfg Config, rec *Record) (*adkresult.Result, error) {
	e := &Eval{Config: cfg, Record: rec}
	res := ADKHead(cfg, rec)
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
