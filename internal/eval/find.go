// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Find returns the ID of the eval that a word names: the ID, the beginning of one ID, or last for the newest eval. It fails with
// [ErrNotFound].
func Find(ctx context.Context, cfg Config, word string) (string, error) {
	ids, err := IDs(ctx, cfg)
	if err != nil {
		return "", err
	}
	if word == "last" && len(ids) > 0 {
		return ids[0], nil
	}
	if slices.Contains(ids, word) {
		return word, nil
	}
	var fit []string
	for _, id := range ids {
		if word != "" && (strings.HasPrefix(id, word) || strings.HasPrefix(id, prefix+word)) {
			fit = append(fit, id)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", fmt.Errorf("%q is the beginning of the IDs of %d evals: %s; give more of the ID", word, len(fit), listNames(fit))
	case len(ids) == 0:
		return "", fmt.Errorf("%w: %q; the store has no evals yet", ErrNotFound, word)
	}
	return "", fmt.Errorf("%w: %q; the evals are %s", ErrNotFound, word, listNames(ids))
}

// Interrupted returns the newest eval that does what a plan says, was interrupted, and that no process drives; nil if there is
// none.
func Interrupted(ctx context.Context, cfg Config, p *Plan) (*Record, error) {
	ids, err := IDs(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, id := range ids[:min(len(ids), mostLooked)] {
		rec, err := Read(ctx, cfg.Service, cfg.AppName, cfg.UserID, id)
		if errors.Is(err, ErrNotFound) {
			continue // it was removed
		}
		if err != nil {
			return nil, err
		}
		if rec.Ended != nil || rec.Scores != "" || !rec.same(p) {
			continue
		}
		held, err := cfg.Service.(lease.Leaser).Holder(ctx, Key(cfg.AppName, cfg.UserID, id))
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return nil, err
		}
		if begun, err := rec.hasBegun(ctx, cfg); err != nil || !begun {
			if err != nil {
				return nil, err
			}
			continue // its start failed, or nothing is lost
		}
		if held == nil || cfg.Dead != nil && cfg.Dead(held.Owner) {
			return rec, nil
		}
	}
	return nil, nil
}

// Changed returns the cases of an eval that a set has with other content, or no longer has.
func (r *Record) Changed(set *cases.Set) (ids []string) {
	for i := range r.Set.Cases {
		c := &r.Set.Cases[i]
		k := slices.IndexFunc(set.Cases, func(o check.Case) bool { return o.ID == c.ID })
		if k < 0 || hashOf(set, &set.Cases[k]) != hashOf(&r.Set, c) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// hasBegun reports whether a case-run of the eval has begun.
func (r *Record) hasBegun(ctx context.Context, cfg Config) (bool, error) {
	if r.own() > 0 {
		return true, nil
	}
	e := &Eval{Config: cfg, Record: r}
	n, err := e.begun(ctx, r.left())
	return n > 0, err
}

// mostLooked is how many of the newest evals [Interrupted] reads.
const mostLooked = 10

// same reports whether two plans run the same versions over the same cases.
func (p *Plan) same(q *Plan) bool {
	return p.Hash == q.Hash && p.Set.Seed == q.Set.Seed && p.Set.Repeat == q.Set.Repeat &&
		p.Set.Decide == q.Set.Decide && p.Set.Margin == q.Set.Margin && p.Set.Timeout == q.Set.Timeout && p.StopEarly == q.StopEarly &&
		reflect.DeepEqual(p.Set.Budget, q.Set.Budget) && slices.EqualFunc(p.Versions, q.Versions, func(a, b Version) bool {
		return a.Side == b.Side && a.Name == b.Name && a.Eval == b.Eval && sameJSON(a.Program, b.Program)
	})
}

// sameJSON reports whether two texts have the same JSON value. Versions are compared by it, because their hashes also change with
// files that their runs write.
func sameJSON(a, b json.RawMessage) bool {
	var v, w any
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return json.Unmarshal(a, &v) == nil && json.Unmarshal(b, &w) == nil && reflect.DeepEqual(v, w)
}
