// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/record"
	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// pushes sends clients of A2A the tasks whose state has changed (push notifications). The addresses of a task are stored in a
// separate session, so that they survive a restart and no log or export of the run contains their tokens. Every server of the
// store watches all tasks. A server claims a notification in that session before it sends it, so that no other server sends
// it too.
type pushes struct {
	s       *Server
	client  *http.Client
	records record.Records[pushRecord]
	ctx     context.Context // ends when the server closes
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	watched map[string]chan struct{} // the tasks that a goroutine watches; a value in the channel reports a new address
}

// Limits of push notifications.
const (
	pushMost     = 8                // the most addresses of a task
	pushTextMost = 4096             // the most bytes of an address, of a token and of credentials
	pushTimeout  = 10 * time.Second // how long one attempt may take
	pushGrace    = 2 * time.Second  // how long an attempt may continue after the server began to close
	pushClaim    = 2 * time.Minute  // after this, a claim without a delivery counts as that of a dead server
	pushLook     = time.Minute      // the time between two looks for tasks of other servers
)

// pushWaits lists the waits between the attempts to deliver a notification.
var pushWaits = []time.Duration{time.Second, 4 * time.Second, 16 * time.Second}

// pushTarget is an address that gets the changes of a task.
type pushTarget struct {
	a2a.PushConfig
	// Old reports that the client speaks version 0.3.
	Old bool `json:"old,omitempty"`
	// Told is the state of the task in the last notification. Claim names the server that sends this notification, and Since
	// is the time of its claim. Done is true if the notification was delivered or the server has given up.
	Told  string    `json:"told,omitempty"`
	Claim string    `json:"claim,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Done  bool      `json:"done,omitempty"`
}

// pushRecord is the stored record of the notifications of a task.
type pushRecord struct {
	Targets []*pushTarget `json:"targets"`
	// Over is true if the task has ended and its last notification was sent. If a person continues the run afterwards, the
	// client gets no further notifications, because in the protocol a task ends only once.
	Over bool `json:"over,omitempty"`
}

func newPushes(s *Server) *pushes {
	client := &http.Client{Timeout: pushTimeout, Transport: s.runs.Outgoing(),
		// A redirect could send the token to another host, so the client follows none.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p := &pushes{s: s, client: client, watched: make(map[string]chan struct{}), records: record.Records[pushRecord]{
		Service: s.runs.Service, AppName: s.cfg.AppName + record.PushApp, UserID: s.cfg.UserID, Key: "push"}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// add stores an address of a task. It replaces an address that has the same ID, unless the two are equal.
func (p *pushes) add(ctx context.Context, c *a2a.PushConfig, old bool) error {
	c.ID = cmp.Or(c.ID, uuid.NewString())
	err := p.s.runs.Change(ctx, "add push address", func() (string, error) {
		return string(c.TaskID), p.records.Change(ctx, string(c.TaskID), func(rec *pushRecord) error {
			if slices.ContainsFunc(rec.Targets, func(t *pushTarget) bool { return t.Old == old && reflect.DeepEqual(t.PushConfig, *c) }) {
				return record.ErrSame
			}
			rec.Targets = slices.DeleteFunc(rec.Targets, func(t *pushTarget) bool { return t.ID == c.ID })
			if len(rec.Targets) >= pushMost {
				return problem.Bad("the task has %d addresses for notifications, which is the most: delete one", pushMost)
			}
			rec.Targets, rec.Over = append(rec.Targets, &pushTarget{PushConfig: *c, Old: old}), false
			return nil
		})
	})
	if err == nil {
		p.watch(string(c.TaskID))
	}
	return err
}

// watchStore starts a goroutine that, until the server closes, looks in the store for tasks with addresses and watches them.
func (p *pushes) watchStore() {
	p.wg.Go(func() {
		for {
			all, err := p.records.All(p.ctx)
			if err != nil && p.ctx.Err() == nil {
				p.s.cfg.Log.Warn("look for push notifications", "error", credential.Masked(err.Error()))
			}
			for id, rec := range all {
				if !rec.Over && len(rec.Targets) > 0 {
					p.watch(id)
				}
			}
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(pushLook):
			}
		}
	})
}

// watch starts a goroutine that sends the notifications of a task, until the last one is sent or the server closes. If there
// is such a goroutine already, watch wakes it.
func (p *pushes) watch(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.s.runs.Offers(true) {
		return
	}
	if wake := p.watched[id]; wake != nil {
		select {
		case wake <- struct{}{}:
		default:
		}
		return
	}
	wake := make(chan struct{}, 1)
	p.watched[id] = wake
	p.wg.Go(func() {
		ctx := p.ctx
		err := p.follow(ctx, id, wake)
		for err == nil && !p.forget(id, wake) {
			err = p.follow(ctx, id, wake)
		}
		if err != nil {
			defer p.forget(id, nil)
		}
		if errors.Is(err, session.ErrNotFound) { // the run was deleted
			err = p.records.Delete(ctx, id)
		}
		if err != nil && ctx.Err() == nil {
			p.s.cfg.Log.Warn("send push notifications", "run", id, "error", credential.Masked(err.Error()))
		}
	})
}

// forget removes a task from the watched ones. It returns false and keeps the task if a new address was added.
func (p *pushes) forget(id string, wake chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(wake) > 0 && p.ctx.Err() == nil {
		return false
	}
	delete(p.watched, id)
	return true
}

// close ends the goroutines and waits for them. The next server sends the notifications that were not delivered.
func (p *pushes) close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.wg.Wait()
}

// follow sends the task at each change of its state. It returns nil when nothing is left to send or ctx has ended.
func (p *pushes) follow(ctx context.Context, id string, wake <-chan struct{}) error {
	f, err := p.s.follow(ctx, id)
	if err != nil {
		return err
	}
	defer f.leave()
	for {
		_, _, changed, _, err := f.take(math.MaxInt64)
		if err != nil {
			return err
		}
		task, run, err := (&a2aAgent{s: p.s}).task(ctx, id, nil)
		if err != nil {
			return err
		}
		parts := []string{string(task.Status.State)}
		if task.Status.State == a2a.TaskStateInputRequired {
			for _, q := range run.Waits {
				parts = append(parts, q.ID)
			}
		}
		over, err := p.notifyAll(ctx, id, strings.Join(parts, " "), task)
		if err != nil || over {
			return err
		}
		select {
		case <-changed:
		case <-wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// notifyAll sends a state of the task to all addresses that do not have it yet. over is true if nothing is left to send for the task.
func (p *pushes) notifyAll(ctx context.Context, id, state string, task *a2a.Task) (over bool, err error) {
	rec, _, err := p.records.Read(ctx, id)
	if err != nil || rec.Over || len(rec.Targets) == 0 {
		return err == nil, err
	}
	failures := make([]error, len(rec.Targets))
	var wg sync.WaitGroup
	for i, t := range rec.Targets {
		wg.Go(func() { failures[i] = p.notifyTarget(ctx, id, t.ID, state, task) })
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil || !task.Status.State.Terminal() {
		return false, err
	}
	err = p.records.Change(ctx, id, func(rec *pushRecord) error {
		rec.Over = !slices.ContainsFunc(rec.Targets, func(t *pushTarget) bool { return t.Told != state || !t.Done })
		over = rec.Over
		if !over {
			return record.ErrSame
		}
		return nil
	})
	return over, err
}

// notifyTarget claims a notification and sends it, unless it was sent already or another live server has claimed it.
func (p *pushes) notifyTarget(ctx context.Context, id, target, state string, task *a2a.Task) error {
	var mine *pushTarget
	err := p.records.Change(ctx, id, func(rec *pushRecord) error {
		i := slices.IndexFunc(rec.Targets, func(t *pushTarget) bool { return t.ID == target })
		if i < 0 {
			return record.ErrSame
		}
		t := rec.Targets[i]
		alive := t.Claim != p.s.cfg.Owner && time.Since(t.Since) < pushClaim && !p.isDead(t.Claim)
		over := t.Told != state && a2a.TaskState(t.Told).Terminal() // another server has already sent the end of the task
		if t.Told == state && (t.Done || alive) || over {
			return record.ErrSame
		}
		t.Told, t.Claim, t.Since, t.Done = state, p.s.cfg.Owner, time.Now().UTC(), false
		mine = t
		return nil
	})
	if err != nil || mine == nil {
		return err
	}
	if err := p.deliver(ctx, mine, task); err != nil {
		if ctx.Err() != nil {
			return nil // the next server sends it again
		}
		p.s.cfg.Log.Warn("a push notification was not delivered", "run", id, "to", originOf(mine.URL), "error", credential.Masked(err.Error()))
	}
	// Without cancellation, because the notification was sent even if the server closes now.
	return p.records.Change(context.WithoutCancel(ctx), id, func(rec *pushRecord) error {
		i := slices.IndexFunc(rec.Targets, func(t *pushTarget) bool { return t.ID == target && t.Told == state })
		if i < 0 {
			return record.ErrSame
		}
		rec.Targets[i].Done = true
		return nil
	})
}

func (p *pushes) isDead(owner string) bool {
	if p.s.cfg.Dead != nil {
		return p.s.cfg.Dead(owner)
	}
	return lease.Dead(owner)
}

func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address"
	}
	return credential.Origin(u)
}

// deliver sends a task to an address. After a failure that may be temporary it tries again, after each of pushWaits.
func (p *pushes) deliver(ctx context.Context, t *pushTarget, task *a2a.Task) error {
	var body []byte
	var err error
	if t.Old {
		body, err = json.Marshal(a2av0.FromV1Task(task))
	} else {
		body, err = json.Marshal(a2a.StreamResponse{Event: task})
	}
	if err != nil {
		return err
	}
	for _, wait := range append(slices.Clone(pushWaits), 0) {
		again, err := p.send(ctx, t, body)
		if err == nil || !again || wait == 0 {
			return err
		}
		if err := sleep.For(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// send makes one attempt to deliver body. again reports whether another attempt may succeed.
func (p *pushes) send(ctx context.Context, t *pushTarget, body []byte) (again bool, err error) {
	attempt, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(pushGrace, cancel) })()
	req, err := http.NewRequestWithContext(attempt, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	if t.Token != "" {
		req.Header.Set("A2A-Notification-Token", t.Token)
		req.Header.Set("X-A2A-Notification-Token", t.Token) // its name in version 0.3
	}
	if t.Auth != nil && t.Auth.Credentials != "" {
		req.Header.Set("Authorization", cmp.Or(t.Auth.Scheme, "Bearer")+" "+t.Auth.Credentials)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return !errors.Is(err, p.s.runs.Forbidden()), err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode/100 == 2 {
		return false, nil
	}
	again = res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusRequestTimeout
	return again, fmt.Errorf("it answered %s", res.Status)
}
