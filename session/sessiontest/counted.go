// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"context"
	"encoding/json"
	"maps"
	"sync/atomic"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// Counted is a service that counts how many events are read from it. The sessions that Get returns
// hold no events in memory, so each access to an event reads it from the store, as in a long
// session of a database.
//
//	svc := sessiontest.Count(session.InMemoryService())
//	resume(svc)
//	if n := svc.Outlined(); n > log.Len() {
//		t.Errorf("read %d events of %d", n, log.Len())
//	}
type Counted struct {
	session.Service
	lease.Leaser
	store.Watcher

	gets, outlined, loaded atomic.Int64
}

// Count returns a service that counts the events read from svc, which must be a lease.Leaser
// and a store.Watcher.
func Count(svc session.Service) *Counted {
	return &Counted{Service: svc, Leaser: svc.(lease.Leaser), Watcher: svc.(store.Watcher)}
}

// Gets returns how often a session that has events was fetched with its whole log.
func (c *Counted) Gets() int { return int(c.gets.Load()) }

// Outlined returns how many events were read without their long texts.
func (c *Counted) Outlined() int { return int(c.outlined.Load()) }

// Loaded returns how many events were read with their long texts.
func (c *Counted) Loaded() int { return int(c.loaded.Load()) }

// Reset sets all counts to 0.
func (c *Counted) Reset() {
	c.gets.Store(0)
	c.outlined.Store(0)
	c.loaded.Store(0)
}

// Get fetches a session. A request with NumRecentEvents or After is not counted.
func (c *Counted) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	got, err := c.Service.Get(ctx, req)
	if err != nil || req.NumRecentEvents != 0 || !req.After.IsZero() {
		return got, err
	}
	was := session.ViewOf(got.Session)
	if was.LastSeq() > 0 {
		c.gets.Add(1)
	}
	cfg := session.ViewConfig{AppName: was.AppName(), UserID: was.UserID(), SessionID: was.ID(),
		State: make(map[string]any), Older: was.Log().Len(), LastSeq: was.LastSeq(), Updated: was.LastUpdateTime()}
	maps.Insert(cfg.State, was.State().All())
	if run := session.RunOf(was); run != nil {
		text, err := json.Marshal(run)
		if err != nil {
			return nil, err
		}
		cfg.State[mark.KeyRun] = string(text)
	}
	if was.HasStateInLog() {
		cfg.State[mark.KeyNoted] = true
	}
	if s := was.Log().Superseded(); s != nil {
		cfg.State[mark.KeySuperseded] = s.String()
	}
	read := func(first, last int64) ([]*session.Event, error) {
		now, err := c.Service.Get(context.WithoutCancel(ctx), req)
		if err != nil {
			return nil, err
		}
		log, evs := session.ViewOf(now.Session).Log(), make([]*session.Event, 0, last-first+1)
		for seq := first; seq <= last; seq++ {
			evs = append(evs, log.At(int(seq)-1))
		}
		return evs, nil
	}
	cfg.Load = func(first, last int64) ([]*session.Event, error) {
		c.loaded.Add(last - first + 1)
		return read(first, last)
	}
	cfg.Outline = func(first, last int64) ([]*session.Event, error) {
		c.outlined.Add(last - first + 1)
		evs, err := read(first, last)
		for i, ev := range evs {
			evs[i] = ev.Outlined()
		}
		return evs, err
	}
	return &session.GetResponse{Session: session.NewView(cfg)}, nil
}
