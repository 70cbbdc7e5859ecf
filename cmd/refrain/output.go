// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// output shows a run. An error means that standard output cannot be written to;
// what goes to standard error is not worth ending a run for.
type output interface {
	started(request) error
	event(*session.Event, []string, *progress.Fold) error
	finished(request, result) error
}

// result is what a run came to.
type result struct {
	err    error
	code   int
	answer string
	stop   *loop.StopRecord
	// findings are what the run has shown about its loops.
	findings []progress.Finding
}

func newOutput(e *env, mode string) (output, error) {
	switch mode {
	case "auto", "plain":
		return &plain{out: e.stdout, err: e.stderr}, nil
	case "json":
		return &ndjson{out: e.stdout}, nil
	case "quiet":
		return &plain{out: e.stdout, err: io.Discard}, nil
	}
	return nil, fmt.Errorf("--progress %q: use auto, plain, json or quiet", mode)
}

// plain writes a line for each change to stderr, and the answer to stdout.
type plain struct {
	out, err io.Writer

	mu      sync.Mutex
	last    time.Time // when something was written
	running string    // what to say if nothing happens for long
	quit    chan struct{}
	done    sync.WaitGroup
}

// silence is how long nothing may be written before a sign of life.
const silence = 30 * time.Second

func (p *plain) started(req request) error {
	p.line(fmt.Sprintf("run %s started definition=%s", req.session, req.definition))
	p.quit = make(chan struct{})
	p.done.Go(p.heartbeat)
	return nil
}

func (p *plain) heartbeat() {
	tick := time.NewTicker(silence / 10)
	defer tick.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-tick.C:
			p.mu.Lock()
			if p.running != "" && time.Since(p.last) >= silence {
				p.write("… still running: " + p.running)
			}
			p.mu.Unlock()
		}
	}
}

func (p *plain) line(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(s)
}

// write writes a line with the time of day. p.mu is held.
func (p *plain) write(s string) {
	p.last = time.Now()
	fmt.Fprintln(p.err, p.last.Format(time.TimeOnly), s)
}

func (p *plain) event(_ *session.Event, lines []string, f *progress.Fold) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, iteration := f.Running()
	p.running = string(at)
	if iteration > 0 {
		p.running = fmt.Sprintf("iteration %d, %s", iteration, at.Agent())
	}
	for _, l := range lines {
		p.write(l)
	}
	return nil
}

func (p *plain) finished(req request, res result) error {
	close(p.quit)
	p.done.Wait()
	p.line(summary(req, res))
	for _, f := range res.findings {
		p.line(note(f))
	}
	if answer := strings.TrimRight(res.answer, "\n"); answer != "" {
		if isTerminal(p.out) {
			answer = plainText(answer)
		}
		if _, err := fmt.Fprintln(p.out, answer); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	return nil
}

// summary is the run in one line.
func summary(req request, res result) string {
	status := "completed"
	switch {
	case res.code == exitInterrupted:
		status = "interrupted"
	case res.err != nil:
		status = "failed"
	case res.code == exitLimit:
		status = "stopped by a limit"
	}
	s := fmt.Sprintf("run %s %s", req.session, status)
	rec := res.stop
	if rec == nil {
		return s
	}
	s += fmt.Sprintf(" stop_reason=%s iterations=%d", rec.Reason, rec.Iterations)
	if rec.BestScore != nil {
		s += fmt.Sprintf(" best=%d score=%.4g", rec.BestIteration, *rec.BestScore)
	}
	if rec.Failures > 0 {
		s += fmt.Sprintf(" failures=%d", rec.Failures)
	}
	if rec.Result.Source != "" {
		s += fmt.Sprintf(" result=%s", rec.Result.Source)
	}
	return s
}

// ndjson writes one JSON object a line to stdout: run.started, an event each,
// run.finished.
type ndjson struct{ out io.Writer }

func (j *ndjson) started(req request) error {
	return j.write(map[string]any{
		"type": "run.started", "schema": 1, "run": req.session, "definition": req.definition, "file": req.file,
	})
}

func (j *ndjson) event(ev *session.Event, _ []string, _ *progress.Fold) error {
	return j.write(map[string]any{"type": "event", "event": ev})
}

func (j *ndjson) finished(req request, res result) error {
	m := map[string]any{"type": "run.finished", "run": req.session, "exit_code": res.code, "output": res.answer}
	if res.stop != nil {
		m["stop_reason"] = res.stop.Reason
		m["stop"] = res.stop
	}
	if len(res.findings) > 0 {
		m["findings"] = res.findings
	}
	if res.err != nil {
		m["error"] = res.err.Error()
		if errors.Is(res.err, errInterrupted) {
			m["stop_reason"] = loop.ReasonCanceled
		}
	}
	return j.write(m)
}

func (j *ndjson) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil { // an event that is no JSON must not hide the others
		line, _ = json.Marshal(map[string]any{"type": "warning", "message": err.Error()})
	}
	if _, err := j.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	return nil
}
