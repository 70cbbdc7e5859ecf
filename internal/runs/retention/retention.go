// SPDX-License-Identifier: Apache-2.0

// Package retention removes runs whose time is over: by a rule of the server, and by those of schedules.
//
//	c := &retention.Cleaner{Remover: retention.Remover{Service: store, AppName: "refrain", UserID: "user", Files: files},
//		Rules: func() (retention.Rules, error) { return retention.Rules{Rule: retention.Rule{Keep: 30 * 24 * time.Hour}}, nil }}
//	expired, err := c.List(ctx) // what would go
//	err = c.Clean(ctx)
//
// A run stays if it has not ended: if it is driven, waits, is paused or was interrupted. A run with a fork that stays, and a run of an
// eval, stay too. Several processes may clean one store.
package retention

import (
	"slices"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/internal/values/caserun"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Rule says how long runs are kept after their end. 0 means for ever.
type Rule struct {
	// Keep holds for all runs. KeepFailed, if it is not 0, holds for those that have failed.
	Keep, KeepFailed time.Duration
}

// Rules are all rules of a store.
type Rules struct {
	Rule
	// Schedules may have rules for their own runs, which replace those of Rule. A run of a schedule is kept at least as long as the
	// schedule could start it late, because the run is what says that it was started.
	Schedules []*schedule.Schedule
}

// shortest returns the shortest time of a rule; 0 if there is none.
func (r Rules) shortest() (shortest time.Duration) {
	all := []time.Duration{r.Keep, r.KeepFailed}
	for _, s := range r.Schedules {
		all = append(all, s.Keep, s.KeepFailed)
	}
	for _, d := range all {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// of returns how long a run is kept; 0 for ever.
func (r Rules) of(id string, status mark.RunStatus) time.Duration {
	rule, least := r.Rule, time.Duration(0)
	for _, s := range r.Schedules {
		if s.Owns(id) {
			if s.Keep > 0 {
				rule.Keep = s.Keep
			}
			if s.KeepFailed > 0 {
				rule.KeepFailed = s.KeepFailed
			}
			least = s.CatchUp + s.Jitter
		}
	}
	keep := rule.Keep
	if status == mark.RunFailed && rule.KeepFailed > 0 {
		keep = rule.KeepFailed
	}
	if keep == 0 {
		return 0
	}
	return max(keep, least)
}

// Expired is a run whose time is over.
type Expired struct {
	ID     string
	Name   string
	Status mark.RunStatus
	// Ended is when the last event was appended, and Keep is the time of the rule.
	Ended time.Time
	Keep  time.Duration

	parent string // the run that this one was forked from; empty if there is none
}

// Expired returns the runs among all sessions of a store that a rule removes now, each fork before the run that it was forked from.
func (r Rules) Expired(all []session.Session, now time.Time) (list []*Expired) {
	forks := make(map[string][]string)
	due := make(map[string]*Expired)
	for _, s := range all {
		run := session.RunOf(s)
		if run == nil {
			continue
		}
		x := &Expired{ID: s.ID(), Name: run.Name, Status: run.Status, Ended: s.LastUpdateTime(), Keep: r.of(s.ID(), run.Status)}
		if run.Parent != nil {
			x.parent = run.Parent.SessionID
			forks[x.parent] = append(forks[x.parent], s.ID())
		}
		if run.Status.IsFinal() && !caserun.Is(s.ID()) && x.Keep > 0 && now.Sub(x.Ended) > x.Keep {
			due[s.ID()] = x
		}
	}
	goes := make(map[string]bool) // the decisions so far; while a run is decided, it stays, because only forged logs are forks of each other
	var visit func(id string) bool
	visit = func(id string) bool {
		if known, ok := goes[id]; ok {
			return known
		}
		goes[id] = false
		stays := due[id] == nil
		for _, fork := range forks[id] {
			stays = !visit(fork) || stays
		}
		if goes[id] = !stays; !stays {
			list = append(list, due[id])
		}
		return !stays
	}
	for _, s := range slices.Backward(all) { // the oldest first
		visit(s.ID())
	}
	return list
}
