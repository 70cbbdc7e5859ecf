// SPDX-License-Identifier: Apache-2.0

// Package notify sends people short messages about runs: one has ended, has failed, asks a question.
//
//	n := notify.New(notify.Config{Service: store, AppName: "refrain", UserID: "user", Getenv: os.Getenv})
//	n.Observe(&cfg) // of the supervisor that drives the runs
//	defer n.Close(ctx)
//
// The log of a run says what people are notified of: each notice belongs to one event of the log, whose number is part of the
// notice's ID. Beside the run an [outbox] says, for each receiver, up to which event everything was delivered. The outbox exists
// before the run goes on, so no event is forgotten. A process that is killed leaves at most one notice of each run in delivery
// for each receiver, which the next process sends again with the same ID. So a service takes a notice at most once more for each time
// that a process is killed during its delivery. The same holds for a process that stands still for longer than a claim, for an answer
// that is lost, and for a store that does not take the end of a delivery. Nothing here can fail a run. The store has 10 seconds for an
// outbox, and the run waits for nothing else.
package notify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/record"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Config describes a notifier.
type Config struct {
	// Service has the runs, which AppName and UserID own. Required.
	Service         session.Service
	AppName, UserID string
	// Owner and Dead are those of supervisor.Config.
	Owner string
	Dead  func(owner string) bool
	// To says who is notified of all runs that this process drives. Definitions reads from the log of each run whom its definition
	// names; without it, To has them.
	To          definition.Notify
	Definitions bool
	// Command is a command line for the shell that gets notices as JSON on its standard input: that a run has ended, asks or is
	// paused. It gets each once, while this process lives. Empty for none.
	Command string
	// Getenv reads a variable with an address; nil means os.Getenv.
	Getenv func(string) string
	// Page returns the address of a run's page; "" if it is not known. Optional.
	Page func(ctx context.Context, run string) string
	// Report gets what was not delivered; several goroutines call it. Nil ignores it.
	Report func(error)
}

// Notifier notifies people of the runs of a supervisor.
type Notifier struct {
	cfg     Config
	records record.Records[outbox]
	ctx     context.Context // ends when Close has no more time
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu       sync.Mutex
	closing  chan struct{}
	closed   bool
	looks    bool                         // Later was called
	wants    map[string]definition.Notify // who is notified of each run under way
	seen     map[string]int64             // by run, the last event that Command needs no more
	busy     map[string]bool              // the runs in delivery; true if there is more
	reported map[string]string            // by delivery that has failed, the text that was reported last
}

// New returns a notifier. [Notifier.Observe] makes it see runs.
func New(cfg Config) *Notifier {
	cfg.Owner = cmp.Or(cfg.Owner, lease.Process())
	if cfg.Dead == nil {
		cfg.Dead = lease.Dead
	}
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
	n := &Notifier{cfg: cfg, closing: make(chan struct{}), wants: make(map[string]definition.Notify), seen: make(map[string]int64), busy: make(map[string]bool),
		reported: make(map[string]string),
		records:  record.Records[outbox]{Service: cfg.Service, AppName: cfg.AppName + record.NotifyApp, UserID: cfg.UserID, Key: "notify"}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Observe lets the notifier see the events of a supervisor's runs.
func (n *Notifier) Observe(cfg *supervisor.Config) {
	each := cfg.OnEvent
	cfg.OnEvent = func(id string, ev *session.Event) {
		if ev.Mark != nil && !ev.Partial {
			n.see(id, ev)
		}
		if each != nil {
			each(id, ev)
		}
	}
}

// see takes an event with a mark of a run that this process drives.
func (n *Notifier) see(id string, ev *session.Event) {
	n.mu.Lock()
	wants, known := n.wants[id]
	n.mu.Unlock()
	if taken := ev.Mark.Kind == mark.KindRunTaken; taken || !known {
		var err error
		if wants, err = n.begin(id, ev.Seq-1, taken); err != nil {
			n.cfg.Report(fmt.Errorf("nobody is notified of run %s: %s", id, credential.Masked(err.Error())))
		}
	}
	if len(wants) == 0 && n.cfg.Command == "" {
		return
	}
	switch ev.Mark.Kind {
	case mark.KindAsked, mark.KindLimited:
		n.wake(id)
	case mark.KindIterationFinished: // a delivery reads the log
		if wantsBest(wants) {
			n.wake(id)
		}
	case mark.KindRunEnded, mark.KindRunPaused:
		n.wake(id)
		n.mu.Lock()
		delete(n.wants, id)
		n.mu.Unlock()
	}
}

// wantsBest reports whether somebody is notified of new best scores.
func wantsBest(to definition.Notify) bool {
	for _, events := range to {
		if slices.Contains(events, definition.NotifyBest) {
			return true
		}
	}
	return false
}

// begin makes the outbox of a run, for notices of its events after one, if somebody wants them. taken says that the run is not new.
func (n *Notifier) begin(id string, after int64, taken bool) (to definition.Notify, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, storeTime)
	defer cancel()
	to, err = n.receivers(ctx, id, taken)
	if len(to) > 0 && err == nil {
		err = n.Register(ctx, id, to, after)
	}
	n.mu.Lock()
	if n.wants[id] = to; n.cfg.Command != "" {
		n.seen[id] = after
	}
	n.mu.Unlock()
	if len(to) > 0 {
		n.wake(id) // what an earlier process has left
		n.Later()
	}
	return to, err
}

// receivers returns who is notified of a run: those of this process, of the definition, and of earlier processes.
func (n *Notifier) receivers(ctx context.Context, id string, taken bool) (definition.Notify, error) {
	to := make(definition.Notify)
	if taken {
		out, _, err := n.records.Read(ctx, id)
		if err != nil {
			return nil, err
		}
		for name, r := range out.Receivers {
			to[name] = r.On
		}
	}
	if n.cfg.Definitions {
		view, err := n.view(ctx, id, true)
		if err != nil {
			return nil, err
		}
		if p, err := program.Of(view); err == nil {
			if def, err := p.Definition(); err == nil {
				maps.Copy(to, def.Notify)
			}
		}
	}
	maps.Copy(to, n.cfg.To)
	return to, nil
}

// Register stores who is notified of the events of a run after one; 0 means all. It does not change what was delivered to those
// who are notified already.
func (n *Notifier) Register(ctx context.Context, id string, to definition.Notify, after int64) error {
	return n.records.Change(ctx, id, func(o *outbox) error {
		same := true
		for name, events := range to {
			switch r := o.Receivers[name]; {
			case r == nil && o.Receivers == nil:
				o.Receivers = make(map[string]*receiver)
				fallthrough
			case r == nil:
				o.Receivers[name], same = &receiver{On: events, Done: after}, false
			case !slices.Equal(r.On, events):
				r.On, same = events, false
			}
		}
		if same {
			return record.ErrSame
		}
		return nil
	})
}

// view returns a run; brief leaves out its state.
func (n *Notifier) view(ctx context.Context, id string, brief bool) (*session.View, error) {
	got, err := n.cfg.Service.Get(ctx, &session.GetRequest{AppName: n.cfg.AppName, UserID: n.cfg.UserID, SessionID: id, Brief: brief})
	if err != nil {
		return nil, err
	}
	return session.ViewOf(got.Session), nil
}

// Later delivers what earlier processes have left, now and then again from time to time until Close.
func (n *Notifier) Later() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.looks {
		return
	}
	n.looks = true
	n.wg.Go(func() {
		for wait := firstLook; ; wait = min(2*wait, lastLook) {
			all, err := n.records.All(n.ctx)
			if err != nil && n.ctx.Err() == nil {
				n.cfg.Report(fmt.Errorf("look for notifications: %s", credential.Masked(err.Error())))
			}
			for id := range all {
				n.wake(id)
			}
			select {
			case <-n.closing:
				return
			case <-time.After(wait):
			}
		}
	})
}

// wake starts to deliver the notices of a run, or makes the delivery look again.
func (n *Notifier) wake(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, busy := n.busy[id]; busy || n.closed {
		if busy {
			n.busy[id] = true
		}
		return
	}
	n.busy[id] = false
	n.wg.Go(func() {
		for more := true; more; {
			n.deliver(id)
			n.mu.Lock()
			if more = n.busy[id]; more {
				n.busy[id] = false
			} else {
				delete(n.busy, id)
			}
			n.mu.Unlock()
		}
	})
}

// Close waits until everything is delivered or failed, and at most until ctx ends. What is not delivered stays in the outbox.
func (n *Notifier) Close(ctx context.Context) {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.closing)
	}
	n.mu.Unlock()
	defer context.AfterFunc(ctx, n.cancel)()
	n.wg.Wait()
	n.cancel()
}
