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

// begin begins the replay of the run. The spans are the events that the resumed run leaves
// out: those of steps that were cut off and, with cont, those of the run's end.
func (p *past) begin(tree *drive.Tree, cont bool, cfg agent.RunConfig) (*drive.Replay, mark.Spans, error) {
	end, err := drive.End(p.ends)
	if err != nil {
		return nil, nil, err
	}
	var loops []session.Address
	var back mark.Spans // what is taken back
	switch {
	case end == nil:
	case !cont && end.Error != "":
		return nil, nil, fmt.Errorf("%w; it failed: %s", ErrFinished, end.Error)
	case !cont:
		return nil, nil, ErrFinished
	case end.Error != "":
		back, err = drive.Failed(p.counting(), tree)
	default:
		loops, back, err = drive.StoppedLoops(p.counting(), tree)
	}
	if err == nil && back != nil {
		err = p.readAgain(back, tree, cfg)
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

// readAgain reads the run's events without some more of them.
func (p *past) readAgain(without mark.Spans, tree *drive.Tree, cfg agent.RunConfig) error {
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

// counting returns the run's events that count.
func (p *past) counting() *counted {
	c := &counted{log: p.outline, read: p.reader()}
	for ev := range p.outline() {
		if ev.InvocationID == p.id && !p.superseded.Has(ev.Seq) {
			c.seqs = append(c.seqs, ev.Seq)
		}
	}
	return c
}

// counted are events that are read when somebody looks at them: a log may be long.
type counted struct {
	log  func() iter.Seq[*session.Event] // has their outline, and others
	read func(seq int64) *session.Event
	seqs []int64
}

func (c *counted) Len() int { return len(c.seqs) }

func (c *counted) At(i int) *session.Event { return c.read(c.seqs[i]) }

func (c *counted) All() iter.Seq[*session.Event] {
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
