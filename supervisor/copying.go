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

// copying copies a log into a fork. The fork's events differ: they say nothing about
// the run that it was, and do not change a second time what sessions share. So seals over
// them are made anew. One that did not fit before does not fit in the fork either.
type copying struct {
	from    string           // the session of the log
	log     []*session.Event // as it is
	copied  []*session.Event // as the fork has it
	gone    mark.Spans       // superseded by now
	changed bool             // an event of a step is another one in the fork
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

// mark makes the mark of a copied event anew where it has to be another one.
func (c *copying) mark(ev, f *session.Event) (err error) {
	switch ev.Mark.Kind {
	case mark.KindRunStarted:
		var start mark.RunStarted
		if err := ev.Mark.Decode(&start); err != nil || start.Session != "" {
			return err
		}
		start.Session = c.from // of an older version
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
