// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/eval/adkresult"
	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Row is an eval in a list.
type Row struct {
	Eval    string         `json:"eval"`
	Name    string         `json:"name"`
	Against string         `json:"against,omitempty"`
	Set     string         `json:"set"`
	Began   time.Time      `json:"began"`
	Over    bool           `json:"over"` // false if the eval goes on, or was interrupted
	Verdict report.Verdict `json:"verdict"`
	Reason  string         `json:"reason,omitempty"`
	Cases   int            `json:"cases"`
	Cost    *float64       `json:"cost"` // of the runs of both versions, and of their judges; nil if it is unknown
	// App and ADKSet are the names of the application and of the cases in ADK's results.
	App    string `json:"app"`
	ADKSet string `json:"adk_set"`
}

// ADK returns the results of the eval in ADK's form without its runs: the names and the time of which ADK makes its ID.
func (r *Row) ADK() *adkresult.Result {
	return &adkresult.Result{App: r.App, Set: r.ADKSet, Time: r.Began}
}

// rowOf returns the row of an eval.
func rowOf(cfg *Config, rec *Record) *Row {
	sum := rec.Report().Summary()
	base := filepath.Base(rec.Versions[0].Name)
	row := &Row{Eval: rec.ID, Name: sum.New.Name, Set: sum.Set, Began: rec.Began, Over: rec.Ended != nil, Verdict: sum.Verdict, Reason: sum.Reason,
		Cases: len(sum.New.Cases), Cost: sum.NewTotal.Whole(), App: strings.TrimSuffix(base, filepath.Ext(base)),
		ADKSet: cmp.Or(rec.Set.ADK, rec.Set.Name)}
	if sum.Old != nil {
		row.Against = sum.Old.Name
		if old := sum.OldTotal.Whole(); old == nil || row.Cost == nil {
			row.Cost = nil
		} else {
			*row.Cost += *old
		}
	}
	if p, err := program.Decode(mark.RunStarted{Program: rec.Versions[0].Program}); err == nil {
		if def, err := p.DefinitionFor(&cfg.Code); err == nil {
			row.App = def.Name
		}
	}
	return row
}

// keyRow holds the [Row] of an eval that has ended, as JSON, so that a list does not read the records of many evals.
const keyRow = mark.KeyPrefix + "eval"

// endedDelta returns the change of state that an eval ends with.
func endedDelta(cfg *Config, rec *Record) (map[string]any, error) {
	text, err := json.Marshal(rowOf(cfg, rec))
	return map[string]any{keyRow: string(text)}, err
}

// List returns the newest evals of a store, at most n; all if n is 0. It reads only the records of those that have not ended.
func List(ctx context.Context, cfg Config, n int) (rows []Row, err error) {
	all, err := sessions(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if n > 0 && len(rows) == n {
			break
		}
		var row Row
		v, _ := s.State().Get(keyRow)
		if text, ok := v.(string); !ok || json.Unmarshal([]byte(text), &row) != nil {
			rec, err := Read(ctx, cfg.Service, cfg.AppName, cfg.UserID, s.ID())
			if errors.Is(err, ErrNotFound) {
				continue // it was removed
			}
			if err != nil {
				return nil, err
			}
			row = *rowOf(&cfg, rec)
		}
		row.Eval, row.Began = s.ID(), row.Began.UTC()
		rows = append(rows, row)
	}
	return rows, nil
}

// sessions returns the sessions of the evals of a store, the newest first.
func sessions(ctx context.Context, cfg *Config) ([]session.Session, error) {
	got, err := cfg.Service.List(ctx, &session.ListRequest{AppName: App(cfg.AppName), UserID: cfg.UserID, Brief: true})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(got.Sessions, func(a, b session.Session) int {
		return cmp.Or(b.LastUpdateTime().Compare(a.LastUpdateTime()), cmp.Compare(a.ID(), b.ID()))
	})
	return got.Sessions, nil
}

// IDs returns the IDs of the evals of a store, the newest first.
func IDs(ctx context.Context, cfg Config) ([]string, error) {
	all, err := sessions(ctx, &cfg)
	ids := make([]string, len(all))
	for i, s := range all {
		ids[i] = s.ID()
	}
	return ids, err
}
