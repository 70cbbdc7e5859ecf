// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"

	"github.com/refrain-dev/refrain/internal/eval/report"
)

// Compare returns a report that compares version A of two evals. It fails if the second one has not run a case of the first one
// with the same checks, if one of them has not ended, or if the runs of one have chosen the cases of the other: see [Failed].
func Compare(rec, old *Record) (*report.Report, error) {
	if err := unbiased(&old.Plan, rec); err != nil {
		return nil, err
	}
	known, err := Known(&rec.Plan, old)
	if err != nil {
		return nil, err
	}
	if less := rec.unrun(&rec.Plan); len(less) > 0 && !rec.isOver() {
		return nil, rec.unended(less)
	}
	both := *rec
	both.Plan.Versions = []Version{rec.Versions[0], old.AsOld()}
	both.Scored, both.StopEarly = nil, false
	for _, s := range rec.Scored {
		if s.Side == SideA {
			both.Scored = append(both.Scored, s)
		}
	}
	both.Scored = append(both.Scored, known...)
	rep := both.Report()
	rep.New.Name += " (" + rec.ID + ")"
	rep.Retry = ""
	for _, r := range []*Record{rec, old} {
		if r.Ended == nil || r.Ended.Reason != EndedComplete {
			rep.Notes = append(rep.Notes, fmt.Sprintf("Eval %s has not run all of its cases.", r.ID))
		}
	}
	return rep, nil
}
