// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"context"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// The bounds of the lines that show what a coding agent does: characters in one, how many of them wait to be shown (of
// more, the last), and how often they are shown.
const (
	lineLength = 200
	linesHeld  = 50
	linesEvery = 100 * time.Millisecond
)

// meanwhile calls work, which does not yield, and shows the lines that it tells as pieces that no log has. If the run
// does not want pieces, tell is nil. If nobody listens any more, the context of work ends. work may call tell in any
// goroutine until it returns. tell cleans and bounds the text; an empty one is passed over.
func meanwhile(ctx agent.InvocationContext, yield func(*session.Event, error) bool,
	work func(ctx context.Context, tell func(text string))) {
	if cfg := ctx.RunConfig(); cfg == nil || cfg.StreamingMode != agent.StreamingModeSSE {
		work(ctx, nil)
		return
	}
	inner, leave := context.WithCancel(ctx)
	defer leave()
	l := lines{wake: make(chan struct{}, 1)}
	done := make(chan struct{})
	var broke any
	go func() {
		defer close(done)
		defer func() { broke = recover() }()
		work(inner, l.tell)
	}()
	show := func() (more bool) {
		for _, line := range l.take() {
			ev := &session.Event{}
			ev.Partial, ev.CustomMetadata = true, map[string]any{mark.MetadataDoing: line}
			if !yield(ev, nil) {
				return false
			}
		}
		return true
	}
	for more := true; more; {
		select {
		case <-done:
			more = false
			if broke == nil {
				show()
			}
			continue
		case <-l.wake:
		}
		if more = show(); !more {
			leave()
			break
		}
		pause := time.NewTimer(linesEvery)
		select {
		case <-done:
		case <-pause.C:
		}
		pause.Stop()
	}
	<-done
	if broke != nil {
		panic(broke)
	}
}

// lines are those that wait to be shown.
type lines struct {
	wake chan struct{}
	mu   sync.Mutex
	held []string
}

func (l *lines) tell(text string) {
	if text = brief.Line(text, lineLength); text == "" {
		return
	}
	l.mu.Lock()
	if len(l.held) == linesHeld {
		l.held = l.held[1:]
	}
	l.held = append(l.held, text)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lines) take() (held []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, l.held = l.held, nil
	return held
}
