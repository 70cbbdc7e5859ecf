// SPDX-License-Identifier: Apache-2.0

// Package eval runs a definition over cases and scores what it does. An eval is a session of its own, and each of its
// case-runs is an ordinary run, so that both can be resumed after a crash.
//
//	e, err := eval.Start(ctx, cfg, plan, nil)
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	if err := e.Run(ctx); err != nil {
//		return err // refrain eval resume continues
//	}
//	return e.Report().Summary().WriteText(os.Stdout, 80)
//
// The session of the eval records its plan, the result of each case-run, and its end. Subpackages read cases, check answers,
// compare versions and print.
package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Config says where evals are kept, and what drives their case-runs.
type Config struct {
	// Supervisor drives the case-runs. Its Build is that of package program.
	Supervisor *supervisor.Supervisor
	// Service keeps the evals and the case-runs, which AppName and UserID own, as in the supervisor's config.
	Service         session.Service
	AppName, UserID string
	// Code is the Go code that definitions can name.
	Code program.Code
	// StartID is the ID of the eval that [Start] starts; empty makes a new one. If it exists, Start fails with [session.ErrExists].
	StartID string
	// Owner and Dead are those of supervisor.Config, LeaseTTL the time for which an eval belongs to a process that has died.
	Owner    string
	Dead     func(owner string) bool
	LeaseTTL time.Duration
	// OnScored is called after each case-run, by one goroutine at a time. Optional.
	OnScored func(*Scored)
}

// ConfigOf returns the config of evals among the runs of a server.
func ConfigOf(r *operations.Runs) Config {
	return Config{Supervisor: r.Supervisor, Service: r.Service, AppName: r.AppName, UserID: r.UserID, Code: r.Code, Owner: r.Owner, Dead: r.Dead,
		LeaseTTL: cmp.Or(r.LeaseTTL, 15*time.Second)}
}

// Eval is an eval that this process drives. Call Close at the end.
type Eval struct {
	Config
	*Record

	sides  map[string]*side
	grader *cases.Grader
	lease  *lease.Lease
	ctx    context.Context // has the lease, and ends with it
	end    context.CancelCauseFunc
	keeper sync.WaitGroup

	prices []budget.Prices // of the versions, for judges

	judgesMu sync.Mutex
	judges   map[string]*side // by the texts of their definitions

	mu   sync.Mutex
	view *session.View // of the eval's session
}

// side is a version that runs cases.
type side struct {
	def     *definition.Definition
	started mark.RunStarted
}

// state returns the state with which a case begins.
func (s *side) state(c *check.Case) (map[string]any, error) {
	values := maps.Clone(c.Values)
	for _, in := range s.def.Inputs {
		if v, ok := c.State[in.Name]; ok && values[in.Name] == nil { // ADK's cases have no inputs
			if values == nil {
				values = make(map[string]any)
			}
			values[in.Name] = v
		}
	}
	texts, err := operations.AsTexts(values)
	if err != nil {
		return nil, err
	}
	state, err := s.def.InitialState(texts)
	if err != nil {
		return nil, err
	}
	maps.Copy(state, c.State)
	return state, nil
}

// NewVersion returns a version that runs a program.
func NewVersion(name string, p *program.Program, def *definition.Definition) (Version, error) {
	started, err := p.Started(def)
	return Version{Side: SideA, Name: name, Hash: p.Hash(def, p.Root), Program: started.Program}, err
}

// Start starts an eval and returns it; nothing runs yet. known are results of case-runs that are taken over. It fails if a case
// does not fit a version, such as for want of an input.
func Start(ctx context.Context, cfg Config, p *Plan, known []Scored) (*Eval, error) {
	e := &Eval{Config: cfg, Record: &Record{Plan: *p}}
	if err := e.prepare(); err != nil {
		return nil, err
	}
	made, err := create(ctx, &cfg, p, known, nil, nil, cfg.StartID, cfg.Owner)
	if err != nil {
		return nil, fmt.Errorf("start eval: %w", err)
	}
	view := session.ViewOf(made.Session)
	if e.Record, err = recordOf(view); err != nil {
		return nil, err
	}
	e.open(ctx, view, made.Lease)
	return e, nil
}

// Open takes up an eval that has not ended, or that its budget has ended. change may change the budget of its plan, and how many
// case-runs work at a time. Errors to expect are [ErrNotFound] and a [*lease.HeldError], which names the process that drives the eval.
func Open(ctx context.Context, cfg Config, id string, change func(*Plan)) (*Eval, error) {
	e := &Eval{Config: cfg}
	leaser := cfg.Service.(lease.Leaser)
	l, err := acquire(ctx, leaser, Key(cfg.AppName, cfg.UserID, id), &cfg)
	if err != nil {
		return nil, err
	}
	k := Key(cfg.AppName, cfg.UserID, id)
	got, err := cfg.Service.Get(ctx, &session.GetRequest{AppName: k.AppName, UserID: k.UserID, SessionID: id})
	if err == nil {
		e.Record, err = recordOf(session.ViewOf(got.Session))
	}
	if err == nil {
		if change != nil {
			change(&e.Plan)
		}
		err = e.prepare()
	}
	if err != nil {
		_ = leaser.Release(context.WithoutCancel(ctx), l)
		return nil, err
	}
	e.open(ctx, session.ViewOf(got.Session), l)
	if e.isOver() {
		return e, nil
	}
	if err := e.append(markResumed, resumed{e.Set.Budget, e.atOnce()}, map[string]any{keyRow: nil}, func() {}); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// acquire takes the lease of an eval, also from a process that has died.
func acquire(ctx context.Context, leaser lease.Leaser, k lease.Key, cfg *Config) (*lease.Lease, error) {
	l, err := leaser.Acquire(ctx, k, cfg.Owner, cfg.LeaseTTL)
	held, isHeld := errors.AsType[*lease.HeldError](err)
	switch {
	case isHeld && cfg.Dead != nil && cfg.Dead(held.Owner):
		return leaser.TakeOver(ctx, held, cfg.Owner, cfg.LeaseTTL)
	case errors.Is(err, session.ErrNotFound):
		return nil, fmt.Errorf("%w: %q", ErrNotFound, k.SessionID)
	}
	return l, err
}

// open begins to hold the lease.
func (e *Eval) open(ctx context.Context, view *session.View, l *lease.Lease) {
	e.view, e.lease = view, l
	e.ctx, e.end = context.WithCancelCause(lease.With(context.WithoutCancel(ctx), l))
	e.keeper.Go(func() {
		gone := func(err error) bool { return errors.Is(err, session.ErrNotFound) }
		if err := lease.Keep(e.ctx, e.Service.(lease.Leaser), l, e.LeaseTTL, e.LeaseTTL/3, gone); err != nil {
			e.end(err)
		}
	})
}

// Close gives the lease back. Case-runs that the supervisor drives go on.
func (e *Eval) Close() {
	e.end(nil)
	e.keeper.Wait()
	_ = e.Service.(lease.Leaser).Release(context.WithoutCancel(e.ctx), e.lease) // otherwise it expires by itself
}

// prepare reads the versions, compiles the checks, and finds cases that cannot run.
func (e *Eval) prepare() error {
	var err error
	if e.grader, err = e.Set.Grader(); err != nil {
		return err
	}
	e.sides = make(map[string]*side)
	for _, v := range e.Versions {
		if v.Program == nil {
			continue
		}
		p, err := program.Decode(mark.RunStarted{Program: v.Program})
		if err != nil {
			return err
		}
		p.Replace = e.Set.Replace
		def, err := p.DefinitionFor(&e.Code)
		if err != nil {
			return err
		}
		e.prices = append(e.prices, def.Prices)
		s := &side{def: def}
		if s.started, err = p.Started(def); err != nil {
			return err
		}
		e.sides[v.Side] = s
		for i := range e.Set.Cases {
			c := &e.Set.Cases[i]
			if _, err := s.state(c); err != nil {
				return fmt.Errorf("case %q does not fit %s: %w", c.ID, v.Name, err)
			}
			for _, t := range c.Turns {
				if why := def.NeedsRequest(); why != "" && cmp.Or(t.Input, def.Query) == "" {
					return fmt.Errorf("case %q has no input, but a run of %s needs one: %s", c.ID, v.Name, why)
				}
			}
		}
	}
	if err := e.checkReplace(); err != nil {
		return err
	}
	return e.prepareJudges()
}

// checkReplace returns an error about a replaced step that no version has.
func (e *Eval) checkReplace() error {
	for _, name := range slices.Sorted(maps.Keys(e.Set.Replace)) {
		var names []string
		for _, s := range e.sides {
			for a := range s.def.Root.All {
				names = append(names, a.Name)
			}
		}
		if len(names) > 0 && !slices.Contains(names, name) {
			slices.Sort(names)
			return fmt.Errorf("replace: no step is called %q; the steps are %v", name, slices.Compact(names))
		}
	}
	return nil
}

// repeats returns how often a case is run.
func (p *Plan) repeats(c *check.Case) int { return max(1, cmp.Or(c.Repeat, p.Set.Repeat)) }

// ordered returns the cases in the order in which they run: if versions are compared, one by chance that the seed decides.
func (p *Plan) ordered() []*check.Case {
	all := make([]*check.Case, len(p.Set.Cases))
	for i := range all {
		all[i] = &p.Set.Cases[i]
	}
	if len(p.Versions) > 1 {
		p.chance().Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	}
	return all
}

// chance returns a source of random numbers that is the same each time.
func (p *Plan) chance() *rand.Rand { return rand.New(rand.NewPCG(p.Set.Seed, 0xe7a1)) }

// jobs returns the case-runs in the order in which they begin: case by case, the versions alternately.
func (p *Plan) jobs(id string) (all []job) {
	r := p.chance()
	for _, c := range p.ordered() {
		for n := range p.repeats(c) {
			var both []job
			for _, v := range p.Versions {
				if v.Program != nil {
					both = append(both, job{side: v.Side, of: c, n: n + 1, run: runID(id, v.Side, c.ID, strconv.Itoa(n+1))})
				}
			}
			if len(both) > 1 && r.IntN(2) == 1 {
				slices.Reverse(both)
			}
			all = append(all, both...)
		}
	}
	return all
}

// Runs returns how many case-runs the eval has, without those that it takes over.
func (p *Plan) Runs() int { return len(p.jobs("")) }
