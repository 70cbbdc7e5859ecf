// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// logCopier copies a log into a fork. The copied events omit the status of the old run, and the state changes of keys that
// sessions share, because these changes have been made already. Seals over changed events are computed again. A seal that
// did not fit the old log stays as it is, so it does not fit the fork either.
type logCopier struct {
	from    string           // the ID of the old session
	log     []*session.Event // the events of the old log so far
	copied  []*session.Event // their copies in the fork
	gone    mark.Spans       // the events that are superseded so far
	changed bool             // a copied event lacks a change of shared state, so seals of loops from older versions change

	logChains, copiedChains seal.Chains
	buf                     []byte
}

// add copies the next event.
func (c *logCopier) add(ev *session.Event) error {
	if s := ev.Mark.Supersedes(); s != nil {
		c.gone = c.gone.Union(s)
	}
	f := *ev
	f.Actions.StateDelta = maps.Clone(ev.Actions.StateDelta)
	maps.DeleteFunc(f.Actions.StateDelta, func(k string, _ any) bool {
		shared := statekey.Shared(k)
		c.changed = c.changed || shared
		return shared || k == mark.KeyRun
	})
	if ev.Mark != nil {
		if err := c.mark(ev, &f); err != nil {
			return err
		}
	}
	c.log, c.copied = append(c.log, ev), append(c.copied, &f)
	if err := c.chain(&c.logChains, ev); err != nil {
		return err
	}
	return c.chain(&c.copiedChains, &f)
}

// chain adds an event to the chains of a log.
func (c *logCopier) chain(to *seal.Chains, ev *session.Event) (err error) {
	if c.buf, err = ev.AppendCanonical(c.buf[:0]); err == nil {
		to.Add(ev, c.buf)
	}
	return err
}

// mark changes the mark of the copy f of the event ev, if the mark names the old session or has a seal over changed events.
func (c *logCopier) mark(ev, f *session.Event) (err error) {
	switch ev.Mark.Kind {
	case mark.KindRunStarted:
		var start mark.RunStarted
		if err := ev.Mark.Decode(&start); err != nil || start.Session != "" {
			return err
		}
		start.Session = c.from // logs of older versions lack it
		f.Mark, err = mark.New(mark.KindRunStarted, start)
		return err
	case mark.KindRunEnded:
		var end mark.RunEnded
		if err := ev.Mark.Decode(&end); err != nil || end.Seal == "" {
			return err
		}
		if ok, err := c.endFits(ev, &end); !ok {
			return err
		}
		chain, err := c.copiedChains.Of(slices.Values(c.copied), ev.InvocationID, seal.All)
		if err != nil {
			return err
		}
		return seal.Run(chain, f)
	case mark.KindLoopStopped:
		var record stopSeal
		if err := ev.Mark.Decode(&record); err != nil {
			return err
		}
		chained := seal.IsChained(record.Digest)
		if !chained && !c.changed {
			return nil
		}
		if ok, err := c.stopFits(ev, &record); !ok {
			return err
		}
		if !chained {
			record.Events = seal.All // those of the loop alone were counted
		}
		chain, err := c.copiedChains.Of(slices.Values(c.copied), ev.InvocationID, record.Events)
		if err != nil {
			return err
		}
		return seal.Loop(chain, f)
	}
	return nil
}

// endFits reports whether the end of a run in the old log has the seal of the events before it.
func (c *logCopier) endFits(ev *session.Event, end *mark.RunEnded) (fits bool, err error) {
	made := ""
	if seal.IsChained(end.Seal) {
		var chain session.Chain
		if chain, err = c.logChains.Of(slices.Values(c.log), ev.InvocationID, seal.All); err == nil {
			made, err = seal.EndOf(chain, ev)
		}
	} else {
		made, _, err = seal.OfRun(slices.Values(c.log), ev)
	}
	return err == nil && made == end.Seal, err
}

// stopSeal is the seal in a stop record.
type stopSeal struct {
	Digest string
	Events int64
}

// stopFits reports whether the stop record of a loop in the old log has the seal of the events before it.
func (c *logCopier) stopFits(ev *session.Event, record *stopSeal) (fits bool, err error) {
	made := ""
	if seal.IsChained(record.Digest) {
		var chain session.Chain
		if chain, err = c.logChains.Of(slices.Values(c.log), ev.InvocationID, record.Events); err == nil {
			made, err = seal.StopOf(chain, ev)
		}
	} else {
		made, _, err = seal.OfLoop(slices.Values(session.Without(c.log, c.gone)), ev)
	}
	return err == nil && made == record.Digest, err
}
