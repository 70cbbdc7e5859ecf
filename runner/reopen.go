// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// replay is the replay of the run. The spans are the events that the resumed run leaves
// out: those of steps that were cut off and, with cont, those of the run's end.
func (p *past) replay(tree *drive.Tree, cont bool, cfg agent.RunConfig) (*drive.Replay, mark.Spans, error) {
	count := p.counting()
	end, err := drive.End(count)
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
		back, err = drive.Failed(count, tree)
	default:
		loops, back, err = drive.StoppedLoops(count, tree)
	}
	if err != nil {
		return nil, nil, err
	}
	replay, err := drive.NewReplay(p.events, p.superseded.Union(back), tree, p.view.Whole, cfg.Prices)
	if err != nil {
		return nil, nil, err
	}
	replay.Reopen(loops...)
	return replay, back.Union(replay.Superseded()), nil
}

// counting are the run's events that count.
func (p *past) counting() []*session.Event {
	if len(p.superseded) == 0 {
		return p.events
	}
	var count []*session.Event
	for _, ev := range p.events {
		if !p.superseded.Has(ev.Seq) {
			count = append(count, ev)
		}
	}
	return count
}
