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

// copying copies a log into a fork. The copied events omit the status of the old run, and the state changes of keys that
// sessions share, because these changes have been made already. Seals over changed events are computed again. A seal that
// did not fit the old log stays as it is, so it does not fit the fork either.
type copying struct {
	from    string           // the ID of the old session
	log     []*session.Event // the events of the old log so far
	copied  []*session.Event // their copies in the fork
	gone    mark.Spans       // the events that are superseded so far
	changed bool             // a copied event lacks a change of shared state, so seals of loops change
}

// add copies the next event.
func (c *copying) add(ev *session.Event) error {
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
	return nil
}

// mark changes the mark of the copy f of the event ev, if the mark names the old session or has a seal over changed events.
func (c *copying) mark(ev, f *session.Event) (err error) {
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
		if made, _, err := seal.OfRun(slices.Values(c.log), ev); err != nil || made != end.Seal {
			return err
		}
		return seal.Run(slices.Values(c.copied), f)
	case mark.KindLoopStopped:
		var record struct{ Digest string }
		if err := ev.Mark.Decode(&record); err != nil || !c.changed {
			return err
		}
		if made, _, err := seal.OfLoop(slices.Values(session.Without(c.log, c.gone)), ev); err != nil || made != record.Digest {
			return err
		}
		return seal.Loop(slices.Values(session.Without(c.copied, c.gone)), f)
	}
	return nil
}
