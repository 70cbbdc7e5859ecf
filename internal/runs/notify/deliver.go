// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/process/procgroup"
	"github.com/refrain-dev/refrain/internal/runs/notify/channel"
	"github.com/refrain-dev/refrain/internal/runs/record"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/limited"
	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/internal/values/uuid"
	"github.com/refrain-dev/refrain/session"
)

// outbox says what was delivered of a run.
type outbox struct {
	// Receivers are those who are notified, by the variables that have their addresses.
	Receivers map[string]*receiver `json:"receivers"`
}

// receiver is somebody who is notified.
type receiver struct {
	On []definition.NotifyEvent `json:"on"`
	// Done is the number of the last event of the log of which the receiver needs no more notices.
	Done int64 `json:"done"`
	// Claim names the process that sends the next notice, and Since is when it began.
	Claim string    `json:"claim,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Times of deliveries.
const (
	sendTime  = 10 * time.Second // of one attempt, and of a command
	claimTime = time.Minute      // after this, a claim counts as that of a dead process
	storeTime = 10 * time.Second // to make an outbox
	keepTime  = 72 * time.Hour   // after this, a notice is given up
	firstLook = time.Minute      // between two looks for what is left
	lastLook  = time.Hour
)

// waits are the times between the attempts to send a notice, until the next look.
var waits = []time.Duration{time.Second, 3 * time.Second}

// deliver sends what is left of a run. It removes the outbox when the run has ended and everything is delivered.
func (n *Notifier) deliver(id string) {
	out, _, err := n.records.Read(n.ctx, id)
	if err == nil {
		err = n.deliverOf(id, out)
	}
	if errors.Is(err, session.ErrNotFound) { // the run was deleted
		err = n.records.Delete(n.ctx, id)
	}
	if err != nil {
		n.cfg.Report(fmt.Errorf("notifications of run %s: %s", id, credential.Masked(err.Error())))
	}
}

func (n *Notifier) deliverOf(id string, out *outbox) error {
	view, err := n.view(n.ctx, id, false)
	if err != nil {
		return err
	}
	n.mu.Lock()
	seen, commands := n.seen[id]
	n.mu.Unlock()
	from := seen
	for _, r := range out.Receivers {
		if !commands || r.Done < from {
			from, commands = r.Done, true
		}
	}
	all := notices(view, from)
	if len(all) > 0 && n.cfg.Page != nil {
		page := n.cfg.Page(n.ctx, id)
		for _, one := range all {
			if one.Link = page; page != "" && one.ask != "" {
				one.Link += "#ask"
			}
		}
	}
	var wg sync.WaitGroup
	var left atomic.Bool
	wg.Go(func() { n.command(id, all) })
	for name, r := range out.Receivers {
		wg.Go(func() {
			if !n.sendAll(id, name, r, all) {
				left.Store(true)
			}
		})
	}
	wg.Wait()
	if run := session.RunOf(view); run == nil || !run.Status.IsFinal() || left.Load() || len(out.Receivers) == 0 {
		return nil
	}
	n.mu.Lock()
	more := n.busy[id]
	n.mu.Unlock()
	if more {
		return nil
	}
	return n.records.Delete(n.ctx, id)
}

// sendAll sends to one receiver what is left for it. It returns false if something stays.
func (n *Notifier) sendAll(id, name string, r *receiver, all []*Notice) bool {
	for _, one := range all {
		if one.seq <= r.Done || !slices.Contains(r.On, one.Event) {
			continue
		}
		mine, old := true, time.Since(one.at) >= keepTime
		err := CheckAddress(n.cfg.Getenv, name)
		if err == nil || old { // a process without the address leaves the notice to others
			mine, err = n.claim(id, name, one.seq)
		}
		if err == nil && !mine {
			return false // another process sends it
		}
		done := int64(0) // without a claim it was not sent
		if err == nil {
			if err = n.send(name, one); err == nil || old {
				done = one.seq
			}
			if lost := n.release(id, name, done); lost != nil {
				n.cfg.Report(fmt.Errorf("notification %s to %s may be sent once more, because the store did not take its end: %s",
					one.ID, name, credential.Masked(lost.Error())))
			}
		}
		if done > 0 {
			n.mu.Lock()
			delete(n.reported, one.ID+" "+name)
			n.mu.Unlock()
		}
		switch {
		case err == nil:
		case done > 0:
			n.cfg.Report(fmt.Errorf("notification %s to %s was given up: %w", one.ID, name, err))
		default:
			n.reportOnce(one.ID+" "+name, fmt.Errorf("notification %s to %s was not delivered, and is kept for refrain serve or the next run with notifications: %w",
				one.ID, name, err))
			return false
		}
	}
	return true
}

// reportOnce reports an error about the delivery of a notice, unless it is the one that was reported last.
func (n *Notifier) reportOnce(delivery string, err error) {
	n.mu.Lock()
	last := n.reported[delivery]
	n.reported[delivery] = err.Error()
	n.mu.Unlock()
	if last != err.Error() {
		n.cfg.Report(err)
	}
}

// claim reserves a notice, so that no other process sends it too. It returns false if a live process has reserved it, or if it was
// delivered.
func (n *Notifier) claim(id, name string, seq int64) (mine bool, err error) {
	err = n.records.Change(n.ctx, id, func(o *outbox) error {
		r := o.Receivers[name]
		alive := r != nil && r.Claim != "" && r.Claim != n.cfg.Owner && time.Since(r.Since) < claimTime && !n.cfg.Dead(r.Claim)
		if mine = r != nil && r.Done < seq && !alive; !mine {
			return record.ErrSame
		}
		r.Claim, r.Since = n.cfg.Owner, time.Now().UTC()
		return nil
	})
	return mine, err
}

// release ends a claim. done is the number of the event that needs no more; 0 if it does.
func (n *Notifier) release(id, name string, done int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), storeTime) // the notice was sent even if the time is over
	defer cancel()
	return n.records.Change(ctx, id, func(o *outbox) error {
		r := o.Receivers[name]
		if r == nil {
			return record.ErrSame
		}
		if r.Done = max(r.Done, done); r.Claim == n.cfg.Owner { // a claim that has expired may belong to another process now
			r.Claim, r.Since = "", time.Time{}
		}
		return nil
	})
}

// send sends a notice, and tries again after a failure that may be temporary.
func (n *Notifier) send(name string, one *Notice) error {
	ch, err := open(n.cfg.Getenv, name)
	if err != nil {
		return err
	}
	m, err := one.message()
	if err != nil {
		return err
	}
	for _, wait := range append(slices.Clone(waits), 0) {
		err = attempt(n.ctx, ch, m)
		answer, answered := errors.AsType[*channel.Error](err)
		switch {
		case err == nil:
			return nil
		case wait == 0 || answered && answer.Permanent():
			return fmt.Errorf("%s: %w", ch, err)
		case answered:
			wait = max(wait, min(answer.After, sendTime))
		}
		if sleep.For(n.ctx, wait) != nil {
			return fmt.Errorf("%s: %w", ch, err)
		}
	}
	return err
}

// attempt sends a message once, for at most sendTime.
func attempt(ctx context.Context, ch *channel.Channel, m channel.Message) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	end, _ := ctx.Deadline()
	err := ch.Send(ctx, m)
	if _, answered := errors.AsType[*channel.Error](err); err != nil && !answered && !time.Now().Before(end) {
		return fmt.Errorf("it has not answered within %s", end.Sub(began).Round(time.Millisecond))
	}
	return err
}

// AddressError reports that an environment variable has no address of a service.
type AddressError struct{ Err error }

// Error returns the reason.
func (e *AddressError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *AddressError) Unwrap() error { return e.Err }

// open returns the service whose address is in an environment variable. The error is an [*AddressError].
func open(getenv func(string) string, name string) (*channel.Channel, error) {
	address := getenv(name)
	if address == "" {
		return nil, &AddressError{fmt.Errorf("the environment variable %s is not set", name)}
	}
	ch, err := channel.Parse(address)
	if err != nil {
		return nil, &AddressError{err}
	}
	return ch, nil
}

// CheckAddress returns an [*AddressError] if an environment variable has no address of a service.
func CheckAddress(getenv func(string) string, name string) error {
	_, err := open(getenv, name)
	return err
}

// Test sends a test message, with one attempt, to the service whose address is in an environment variable, and returns the name of the
// service. The error is an [*AddressError] if there is no address.
func Test(ctx context.Context, getenv func(string) string, name string) (service string, err error) {
	ch, err := open(getenv, name)
	if err != nil {
		return "", err
	}
	n := Notice{ID: "test." + uuid.New().String(), Name: "refrain notify test", Event: "test"}
	record, err := json.Marshal(n)
	if err != nil {
		return "", err
	}
	err = attempt(ctx, ch, channel.Message{ID: n.ID, Title: "A test message of refrain", Record: record,
		Text: "Whoever reads it gets the notifications of runs for which " + name + " is named."})
	if err != nil {
		return "", fmt.Errorf("%s: %w", ch, err)
	}
	return ch.String(), nil
}

// commanded are the events of which Config.Command gets notices.
var commanded = []definition.NotifyEvent{definition.NotifyEnded, definition.NotifyLimit, definition.NotifyFailed, definition.NotifyAsks,
	definition.NotifyPaused}

// command starts Config.Command for the notices that it has not had.
func (n *Notifier) command(id string, all []*Notice) {
	for _, one := range all {
		n.mu.Lock()
		seen, commands := n.seen[id]
		n.mu.Unlock()
		if !commands || one.seq <= seen || !slices.Contains(commanded, one.Event) {
			continue
		}
		if err := n.start(one); err != nil {
			n.cfg.Report(fmt.Errorf("--notify-command: %w", err))
		}
		n.mu.Lock()
		n.seen[id] = one.seq
		n.mu.Unlock()
	}
}

// start starts the command with a notice, and waits for its end.
func (n *Notifier) start(one *Notice) error {
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.ctx, sendTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", n.cfg.Command)
	output := &limited.Tail{Most: 1000}
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = child.Inheritance{}.Environ(), bytes.NewReader(append(text, '\n')), output, output
	cmd.WaitDelay = time.Second
	procgroup.Lead(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	err = cmd.Wait()
	_ = procgroup.Kill(cmd.Process)
	if text := brief.Line(child.Secrets(cmd.Env).StrikeWhole(output.String()), 200); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}
