// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// The marks of the session of an eval.
const (
	// markStarted: the eval begins. Data is a [Plan].
	markStarted mark.Kind = "eval_started"
	// markResumed: a process continues the eval. Data is a [resumed].
	markResumed mark.Kind = "eval_resumed"
	// markScored: a case-run is over. Data is a [Scored].
	markScored mark.Kind = "case_scored"
	// markCompared: judges have compared the runs of both versions. Data is a [Compared].
	markCompared mark.Kind = "pair_compared"
	// markEnded: no case-run is started any more. Data is an [Ended]. An eval that its budget has ended can continue with a
	// larger one.
	markEnded mark.Kind = "eval_ended"
)

// App returns the name of the application whose sessions are the evals of the runs of an application. Like the mailboxes of
// runs they are not among the runs.
func App(appName string) string { return appName + ".eval" }

// The names of the versions: A is the one in question, and B is the one that it is compared with.
const (
	SideA = "A"
	SideB = "B"
)

// Version is a version of what is evaluated.
type Version struct {
	// Side is SideA or SideB.
	Side string `json:"side"`
	// Name is the file of the definition, and Hash a hash of it and of the files that it refers to.
	Name string `json:"name"`
	Hash string `json:"hash"`
	// Program is the program.Program of its case-runs; nil if they are those of another eval.
	Program json.RawMessage `json:"program,omitempty"`
	// Eval is the eval whose case-runs are taken over, and Began the time when that eval began.
	Eval  string    `json:"eval,omitempty"`
	Began time.Time `json:"began,omitzero"`
	// Patch is the difference of the definition from its file, as a unified diff; empty if it is that of the file. See [Change].
	Patch string `json:"patch,omitzero"`
	// Texts are the texts that the change was about, as they are in this version.
	Texts []Text `json:"texts,omitzero"`
}

// Plan is what an eval was started with.
type Plan struct {
	// Versions has A, and B if two versions are compared.
	Versions []Version `json:"versions"`
	// File is the name of the file of the cases, and Hash the hash of what decides about their results.
	File string `json:"file"`
	Hash string `json:"hash"`
	// Set has the cases that are run, with the limits of the whole eval.
	Set cases.Set `json:"set"`
	// StopEarly ends the eval at the first of five looks that decides.
	StopEarly bool `json:"stop_early,omitempty"`
	// Scores is the eval whose case-runs were scored again, without running them; empty if it ran its own.
	Scores string `json:"scores,omitempty"`
	// Failed are the evals that chose the cases by what failed in them: see [Failed].
	Failed []string `json:"failed,omitempty"`
}

// Scored is the result of a case-run.
type Scored struct {
	Side string `json:"side"`
	Case string `json:"case"`
	// N is the number of the case-run among those of its case, from 1.
	N int `json:"n"`
	// Run is the ID of the run, and of its session.
	Run   string      `json:"run"`
	Grade check.Grade `json:"grade"`
	// Error is why the case-run has no grade. Then it has neither passed nor failed.
	Error string `json:"error,omitempty"`
	// Answer is the last answer.
	Answer string `json:"answer,omitempty"`
	// Cost is nil if a price is unknown. Seconds is the time for which the run was active.
	Cost    *float64 `json:"cost"`
	Seconds float64  `json:"seconds"`
	Tokens  int64    `json:"tokens"`
	Calls   int64    `json:"calls"`
	// Judges is what the judges of its checks have used; nil if none was asked.
	Judges *Use `json:"judges,omitzero"`
}

// Why an eval has ended.
const (
	EndedComplete = "completed"  // all case-runs are over
	EndedBudget   = "budget"     // its budget is spent
	EndedEarly    = "stop_early" // a look has decided
)

// Ended says why an eval has ended.
type Ended struct {
	Reason string `json:"reason"`
	// Cases is the number of cases, the first ones in order, of the look that has decided, and Alpha its level; 0 if no look has.
	Cases int     `json:"cases,omitempty"`
	Alpha float64 `json:"alpha,omitempty"`
	// Unpriced is the case-run whose cost is unknown, if that ended the eval, because its budget limits the cost. Models are the
	// models without a price, as far as its definition names them.
	Unpriced string   `json:"unpriced,omitempty"`
	Models   []string `json:"models,omitempty"`
}

// resumed says how an eval continues.
type resumed struct {
	// Budget and Parallel replace those of the plan.
	Budget   budget.Limits `json:"budget,omitzero"`
	Parallel int           `json:"parallel"`
}

// Record is what the session of an eval says.
type Record struct {
	ID    string
	Began time.Time
	// Took is the time for which the eval was driven: without that between an interruption and its continuation.
	Took time.Duration
	Plan
	// Scored has one element for each case-run that is over, in the order in which they ended.
	Scored []Scored
	// Pairs has one element for each pair of case-runs that judges have compared.
	Pairs []Compared
	// Ended is nil if the eval goes on, or was interrupted.
	Ended *Ended
}

// AsOld returns version A of the eval as the version that another eval is compared with.
func (r *Record) AsOld() Version {
	a := r.Versions[0]
	return Version{Side: SideB, Name: a.Name, Hash: a.Hash, Eval: r.ID, Began: r.Began}
}

// Own reports whether a result is that of a case-run of this eval, and was not taken over.
func (p *Plan) Own(s *Scored) bool {
	i := slices.IndexFunc(p.Versions, func(v Version) bool { return v.Side == s.Side })
	return i >= 0 && p.Versions[i].Program != nil
}

// ErrNotFound reports that a store has no such eval.
var ErrNotFound = errors.New("there is no such eval")

// Key returns the key of an eval's session.
func Key(appName, userID, id string) lease.Key {
	return lease.Key{AppName: App(appName), UserID: userID, SessionID: id}
}

// Read reads the record of an eval. It fails with [ErrNotFound].
func Read(ctx context.Context, service session.Service, appName, userID, id string) (*Record, error) {
	k := Key(appName, userID, id)
	got, err := service.Get(ctx, &session.GetRequest{AppName: k.AppName, UserID: k.UserID, SessionID: id})
	if errors.Is(err, session.ErrNotFound) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return recordOf(session.ViewOf(got.Session))
}

func recordOf(view *session.View) (*Record, error) {
	r := &Record{ID: view.ID()}
	var since, last time.Time // of the process that drives it
	for ev := range view.Log().All() {
		if ev.Mark == nil {
			continue
		}
		var err error
		switch ev.Mark.Kind {
		case markStarted:
			r.Began, since = ev.Timestamp, ev.Timestamp
			err = ev.Mark.Decode(&r.Plan)
		case markResumed:
			var more resumed
			err = ev.Mark.Decode(&more)
			r.Set.Budget, r.Set.Parallel = more.Budget, more.Parallel
			r.Took, since = r.Took+last.Sub(since), ev.Timestamp
		case markScored:
			var s Scored
			err = ev.Mark.Decode(&s)
			r.Scored, r.Ended = append(r.Scored, s), nil
		case markCompared:
			var c Compared
			err = ev.Mark.Decode(&c)
			r.Pairs = append(r.Pairs, c)
		case markEnded:
			r.Ended = new(Ended)
			err = ev.Mark.Decode(r.Ended)
		}
		if err != nil {
			return nil, fmt.Errorf("read eval %s: %w", r.ID, err)
		}
		last = ev.Timestamp
	}
	r.Took += last.Sub(since)
	if err := view.Err(); err != nil {
		return nil, err
	}
	if len(r.Versions) == 0 {
		return nil, fmt.Errorf("%w: %q does not say what it was started with", ErrNotFound, r.ID)
	}
	return r, nil
}

// create makes the session of an eval with its first events, and returns it with the owner's lease, if it has one. An empty ID stands for
// a new one.
func create(ctx context.Context, cfg *Config, p *Plan, known []Scored, pairs []Compared, ended *Ended, id, owner string) (*session.StartResponse, error) {
	var evs []*session.Event
	add := func(kind mark.Kind, data any) error {
		m, err := mark.New(kind, data)
		evs = append(evs, &session.Event{Author: author, Mark: m})
		return err
	}
	err := add(markStarted, p)
	evs[0].Timestamp = time.Now()
	for i := range known {
		err = errors.Join(err, add(markScored, known[i]))
	}
	for i := range pairs {
		err = errors.Join(err, add(markCompared, pairs[i]))
	}
	if ended != nil {
		err = errors.Join(err, add(markEnded, ended))
		delta, cannot := endedDelta(cfg, &Record{Began: evs[0].Timestamp, Plan: *p, Scored: known, Pairs: pairs, Ended: ended})
		evs[len(evs)-1].Actions.StateDelta, err = delta, errors.Join(err, cannot)
	}
	if err != nil {
		return nil, err
	}
	for {
		made, err := store.Start(ctx, cfg.Service, &session.StartRequest{
			CreateRequest: session.CreateRequest{AppName: App(cfg.AppName), UserID: cfg.UserID, SessionID: cmp.Or(id, NewID())},
			Events:        evs, Owner: owner, TTL: cfg.LeaseTTL,
		})
		if id != "" || !errors.Is(err, session.ErrExists) {
			return made, err
		}
	}
}

// author is the author of the events of an eval.
const author = "eval"

// prefix begins the ID of an eval.
const prefix = "ev_"

// NewID returns a new ID for an eval.
func NewID() string { return prefix + uuid.NewString()[:6] }

// CallID returns the ID of the eval that a call of a step makes. A plan that asks the same gets the same ID in each attempt of the call, so
// that the eval continues.
func CallID(call string, p *Plan) string {
	q := *p
	q.Versions = slices.Clone(p.Versions)
	for i := range q.Versions {
		q.Versions[i].Hash = "" // it also changes with files that the runs write
	}
	data, err := json.Marshal(&q)
	if err != nil {
		panic("eval: a plan that is no JSON: " + err.Error()) // it is stored as JSON
	}
	sum := sha256.Sum256(append([]byte(call+"\n"), data...))
	return prefix + hex.EncodeToString(sum[:6])
}

// mostID is the largest number of characters in the ID of a run.
const mostID = 64

// runID returns the ID of a case-run. The ID of the case is in it as far as it can be in the ID of a run.
func runID(eval, side, of, end string) string {
	before, after := fmt.Sprintf("%s.%s.", eval, side), "."+end
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, of)
	room := mostID - len(before) - len(after)
	if clean == of && len(of) <= room && of != "" {
		return before + of + after
	}
	sum := sha256.Sum256([]byte(of))
	hash := "-" + hex.EncodeToString(sum[:8])
	return before + clean[:min(len(clean), room-len(hash))] + hash + after
}
