// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"iter"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// begin begins the replay of the run. If cont is true the run may have ended. The spans are the events to supersede:
// those of steps that were cut off, and those of the run's end.
func (p *loggedRun) begin(tree *drive.Tree, cont bool, cfg agent.RunConfig) (*drive.Replay, mark.Spans, error) {
	end, err := drive.End(p.endMarks)
	if err != nil {
		return nil, nil, err
	}
	var loops []session.Address
	var back mark.Spans // events of the run's end to supersede
	switch {
	case end == nil:
	case !cont && end.Error != "":
		return nil, nil, fmt.Errorf("%w; it failed: %s", ErrFinished, end.Error)
	case !cont:
		return nil, nil, ErrFinished
	case end.Error != "":
		back, err = drive.FailedSteps(p.currentEvents(), tree)
	default:
		loops, back, err = drive.StoppedLoops(p.currentEvents(), tree)
	}
	if err == nil && back != nil {
		err = p.readWithout(back, tree, cfg)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := p.replay.Begin(p.reader()); err != nil {
		return nil, nil, err
	}
	p.replay.Reopen(loops...)
	return p.replay, back.Union(p.replay.Superseded()), nil
}

// readWithout reads the run's events again, and takes the events in without as superseded.
func (p *loggedRun) readWithout(without mark.Spans, tree *drive.Tree, cfg agent.RunConfig) error {
	whole := p.reader()
	p.replay = drive.NewReplay(p.superseded.Union(without), tree, cfg.Prices)
	for ev := range p.outline() {
		if ev.InvocationID != p.id {
			continue
		}
		if err := p.replay.Add(ev, whole); err != nil {
			return err
		}
	}
	return p.view.Err()
}

// currentEvents returns the run's events that are not superseded.
func (p *loggedRun) currentEvents() *loggedEvents {
	c := &loggedEvents{log: p.outline, read: p.reader()}
	for ev := range p.outline() {
		if ev.InvocationID == p.id && !p.superseded.Has(ev.Seq) {
			c.seqs = append(c.seqs, ev.Seq)
		}
	}
	return c
}

// loggedEvents is a list of events that At reads from the log, because a log may be too long for the memory.
type loggedEvents struct {
	log  func() iter.Seq[*session.Event] // yields the outlines of these events, and of others
	read func(seq int64) *session.Event
	seqs []int64
}

func (c *loggedEvents) Len() int { return len(c.seqs) }

func (c *loggedEvents) At(i int) *session.Event { return c.read(c.seqs[i]) }

func (c *loggedEvents) All() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		i := 0
		for ev := range c.log() {
			if i == len(c.seqs) {
				return
			}
			if ev.Seq != c.seqs[i] {
				continue
			}
			if i++; !yield(ev) {
				return
			}
		}
	}
}
