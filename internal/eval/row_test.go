// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"context"
	"testing"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// unreadable is a service that reads no session, and lists them.
type unreadable struct {
	session.Service
	lease.Leaser
	t *testing.T
}

func (u unreadable) Get(_ context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	u.t.Errorf("%s is read", req.SessionID)
	return nil, session.ErrNotFound
}

// The list of evals reads the records of those alone that have not ended.
func TestListReadsNoRecords(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	v := version(t, eval.SideA, "name: app1\ntext: a {{user_input}}\n")
	set := cases.Set{Name: "set", Repeat: 1, Parallel: 1, Cases: []check.Case{oneTurn("good", "cat", "a cat"), oneTurn("bad", "dog", "a cat")}}
	first := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{v}})
	often := set
	often.Repeat = 9 // the report speaks of the runs that there are
	scored, err := eval.Score(t.Context(), b.Config, first.Record, &often, "cases.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := scored.Report().Repeat; n != 1 {
		t.Errorf("the report of runs that ran once says %d", n)
	}
	cfg := b.Config
	cfg.Service = unreadable{b.Service, b.Service.(lease.Leaser), t}
	rows, err := eval.List(t.Context(), cfg, 0)
	if err != nil || len(rows) != 2 || rows[0].Eval != scored.ID || !rows[0].Began.Equal(scored.Began) {
		t.Fatalf("the list is %+v (%v)", rows, err)
	}
	if r := rows[1]; r.Eval != first.ID || r.Verdict != report.Failed || !r.Over || r.App != "app1" || r.Set != "set" || r.Cases != 2 || *r.Cost != 0 || !r.Began.Equal(first.Began) {
		t.Errorf("the row is %+v", r)
	}

	set.Budget = budget.Limits{Calls: 1}
	going, err := eval.Start(t.Context(), b.Config, &eval.Plan{Set: set, Versions: []eval.Version{v}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer going.Close()
	rows, err = eval.List(t.Context(), b.Config, 1)
	if err != nil || len(rows) != 1 || rows[0].Eval != going.ID || rows[0].Over || rows[0].Verdict != report.Undecided {
		t.Errorf("the list is %+v (%v)", rows, err)
	}
}
