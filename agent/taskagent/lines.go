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

// The bounds of the lines that show what a coding agent does.
const (
	lineLength = 200                    // the most characters of a line
	linesHeld  = 50                     // the most lines that wait to be shown; the oldest ones are dropped
	linesEvery = 100 * time.Millisecond // the shortest time between two times of showing lines
)

// meanwhile calls work in a goroutine and yields each line that work passes to tell as a partial event, which the log does
// not store. work itself must not yield. If the run does not want partial events, meanwhile calls work directly, and tell is
// nil. If the consumer stops, the context of work is canceled. Until it returns, work may call tell from any goroutine. tell
// cleans the text and cuts it to lineLength characters, and ignores an empty one. meanwhile waits for work, and passes on its
// panic.
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

// lines is a queue of the lines that wait to be shown.
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
