// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// output shows a run. Its errors are errors of standard output; errors of standard error are ignored, because they are no
// reason to end a run.
type output interface {
	started(Request) error
	event(*session.Event, []string, *progress.Fold) error
	finished(Request, result) error
	// note shows a text that is not about an event.
	note(string)
	// close returns the terminal to its earlier state, in every case.
	close()
}

// result describes the end of a run.
type result struct {
	err    error
	code   int
	answer string
	stop   *loop.StopRecord
	// used holds the resources that the run has used on this machine; nil if they were not measured.
	used *progress.Resources
	// tasks says how far the run is with the tasks of its plan; nil without a plan.
	tasks *progress.Tasks
	// findings are the findings about the loops of the run.
	findings []prose.Finding
	// status is the status of an unfinished run, and next holds the lines to print about it.
	status string
	next   []string
	// at is when the run reached this result; zero means now.
	at time.Time
}

// canceled says that the run was canceled, and why; why may be empty.
func (r *result) canceled(why string) {
	r.status, r.code, r.err = string(mark.RunCanceled), term.ExitInterrupted, term.ErrInterrupted
	if why != "" {
		r.next = append(r.next, why)
	}
}

// waits says that the run waits for a person. Its answer is not known yet.
func (r *result) waits(next ...string) {
	r.status, r.code, r.answer, r.next = runstore.WaitsForPerson, term.ExitWaits, "", next
}

// paused says that the run is paused, from its tree and its summary, and how to resume it.
func (r *result) paused(tree *progress.Tree, sum *progress.Summary, resume string) {
	r.status, r.code, r.answer = string(mark.RunIsPaused), term.ExitWaits, ""
	r.next = append(runstore.PausedLines(tree, sum), resume)
}

// show shows the end of the run. The error has the exit code of the process.
func (r *result) show(out output, req Request) error {
	err := out.finished(req, *r)
	switch {
	case r.code == term.ExitFailed:
		return &term.Exit{Code: r.code, Err: r.err}
	case err != nil:
		return term.Failure(err)
	case r.code == term.ExitOK:
		return nil
	}
	return &term.Exit{Code: r.code}
}

// newOutput returns the output of a mode. keys handles the keys of an output that reads keys.
func newOutput(e *term.Env, mode string, keys controls) (output, error) {
	mode, err := term.Mode(e, mode)
	switch {
	case err != nil:
		return nil, err
	case mode == term.Chat:
		return &chat{out: e.Stdout, err: e.Stderr}, nil
	case mode == term.TTY:
		return newViewed(e, keys), nil
	case mode == term.JSON:
		return &ndjson{out: e.Stdout, hint: e.Hint}, nil
	case mode == term.Quiet:
		return &plain{out: e.Stdout, err: io.Discard}, nil
	}
	return &plain{out: e.Stdout, err: e.Stderr}, nil
}

// plain writes a line to stderr for each change, and the answer to stdout.
type plain struct {
	out, err io.Writer

	mu      sync.Mutex
	last    time.Time   // time of the last line
	running string      // running step, which the heartbeat names
	since   time.Time   // start of the running step
	beat    *time.Timer // nil without a heartbeat
}

// silence is the time without output after which the heartbeat writes a line.
const silence = 30 * time.Second

// startedLine says that a run has started.
func startedLine(req Request) string {
	verb := "started"
	if req.Resumed {
		verb = "resumed"
	}
	line := fmt.Sprintf("run %s %s definition=%s", req.Session, verb, req.definition)
	if req.Most > 0 {
		line += fmt.Sprintf(" max_iterations=%d", req.Most)
	}
	return line
}

func (p *plain) started(req Request) error {
	p.line(req.at, startedLine(req))
	p.begin()
	return nil
}

// begin starts the heartbeat, which writes a line from time to time until close.
func (p *plain) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beat = time.AfterFunc(silence/10, p.heartbeat)
}

// close stops the heartbeat.
func (p *plain) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beat != nil {
		p.beat.Stop()
		p.beat = nil
	}
}

func (p *plain) heartbeat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beat == nil {
		return
	}
	if p.running != "" && time.Since(p.last) >= silence {
		p.write(time.Now(), fmt.Sprintf("… still running: %s (%s)", p.running, brief.Clock(time.Since(p.since))))
	}
	p.beat.Reset(silence / 10)
}

func (p *plain) note(s string) { p.line(time.Now(), s) }

func (p *plain) line(at time.Time, s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(at, s)
}

// write writes a line with the time of day of its event; zero means now. The caller must hold p.mu.
func (p *plain) write(at time.Time, s string) {
	p.last = time.Now()
	fmt.Fprintln(p.err, cmp.Or(at, p.last).Local().Format(time.TimeOnly), s)
}

func (p *plain) event(ev *session.Event, lines []string, f *progress.Fold) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, iteration := f.Running()
	if running := runningText(at, iteration); running != p.running {
		p.running, p.since = running, cmp.Or(ev.Timestamp, time.Now())
	}
	for _, l := range lines {
		p.write(ev.Timestamp, l)
	}
	return nil
}

// runningText describes the running step; empty if no step is running.
func runningText(at session.Address, iteration int) string {
	if iteration > 0 {
		return fmt.Sprintf("iteration %d, %s", iteration, at.Agent())
	}
	return string(at)
}

// closing returns the lines about the end of a run: its summary, the findings, what to do next, and what was used.
func closing(req Request, res result) []string {
	lines := append([]string{summary(req, res)}, res.tasks.Lines()...)
	for _, f := range res.findings {
		lines = append(lines, term.Note(f))
	}
	lines = append(lines, res.next...)
	if res.used != nil {
		lines = append(lines, res.used.String())
	}
	return lines
}

func (p *plain) finished(req Request, res result) error {
	p.close()
	for _, line := range closing(req, res) {
		p.line(res.at, line)
	}
	if answer := strings.TrimRight(res.answer, "\n"); answer != "" {
		if _, err := fmt.Fprintln(term.Exactly(p.out), answer); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	return nil
}

// summary describes the run in one line.
func summary(req Request, res result) string {
	status := "completed"
	switch {
	case res.status != "":
		status = res.status
	case res.code == term.ExitInterrupted:
		status = "interrupted"
	case res.err != nil:
		status = "failed"
	case res.code == term.ExitLimit:
		status = "stopped by a limit"
		if res.stop != nil && res.stop.Reason == loop.ReasonNoProgress {
			status = "stopped without progress"
		}
	}
	s := fmt.Sprintf("run %s %s", req.Session, status)
	rec := res.stop
	if rec == nil {
		return s
	}
	s += fmt.Sprintf(" stop_reason=%s iterations=%d", rec.Reason, rec.Iterations)
	if rec.BestScore != nil {
		s += fmt.Sprintf(" best=%d score=%s", rec.BestIteration, brief.Score(*rec.BestScore))
	}
	if rec.BestError > 0 {
		s += " error=" + strings.TrimPrefix(brief.OffBy(rec.BestError), " ± ")
	}
	if rec.Failures > 0 {
		s += fmt.Sprintf(" failures=%d", rec.Failures)
	}
	if rec.Result.Source != "" {
		s += fmt.Sprintf(" result=%s", rec.Result.Source)
	}
	if n := rec.Result.Iteration; rec.Result.Source == loop.FromBest && n != rec.BestIteration {
		s += fmt.Sprintf(" result_iteration=%d", n)
	}
	return s
}

// ndjson writes one JSON object per line to stdout: run.started, one object for each event, run.finished.
type ndjson struct {
	out  io.Writer
	hint func(string) string // applied to the commands in hints
}

func (j *ndjson) started(req Request) error {
	return j.write(map[string]any{
		"type": "run.started", "schema": 1, "run": req.Session, "definition": req.definition, "file": req.File,
	})
}

func (j *ndjson) event(ev *session.Event, _ []string, _ *progress.Fold) error {
	return j.write(map[string]any{"type": "event", "event": ev})
}

func (j *ndjson) finished(req Request, res result) error {
	m := map[string]any{"type": "run.finished", "run": req.Session, "exit_code": res.code, "output": res.answer}
	if res.stop != nil {
		m["stop_reason"] = res.stop.Reason
		m["stop"] = res.stop
	}
	if res.used != nil {
		m["resources"] = res.used
	}
	if res.tasks != nil {
		m["tasks"] = res.tasks
	}
	if len(res.findings) > 0 {
		m["findings"] = res.findings
	}
	if res.status != "" {
		m["status"] = res.status
	}
	if len(res.next) > 0 {
		for i, line := range res.next {
			res.next[i] = j.hint(line)
		}
		m["next"] = res.next
	}
	if res.err != nil {
		m["error"] = res.err.Error()
		if errors.Is(res.err, term.ErrInterrupted) {
			m["stop_reason"] = loop.ReasonCanceled
		}
	}
	return j.write(m)
}

func (j *ndjson) note(string) {}
func (j *ndjson) close()      {}

func (j *ndjson) write(v any) error {
	line, err := progress.MarshalJSON(v)
	if err != nil { // an event that cannot be encoded must not hide the others
		line, _ = progress.MarshalJSON(map[string]any{"type": "warning", "message": err.Error()})
	}
	if _, err := j.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	return nil
}

// chat writes what agents say to out, in pieces if the model streams, and the reasons why loops stopped to err.
type chat struct {
	out, err io.Writer
	speaker  string // agent whose pieces end the output, which then has no line break yet; otherwise empty
	said     string // the pieces
}

func (c *chat) started(req Request) error {
	if req.Resumed {
		fmt.Fprintf(c.err, "(run %s goes on)\n", req.Session)
	}
	return nil
}

func (c *chat) event(ev *session.Event, lines []string, _ *progress.Fold) error {
	if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
		if err := c.ends(); err != nil {
			return err
		}
		for _, line := range lines {
			fmt.Fprintf(c.err, "(%s)\n", strings.TrimSpace(line))
		}
	}
	text := ev.Text()
	switch {
	case ev.Author == "user", !ev.Partial && !ev.Speaks(), text == "":
		return nil
	case !ev.Partial && c.speaker == ev.Author && text == c.said: // the whole text after its pieces
		return c.ends()
	}
	if c.speaker != ev.Author || !ev.Partial {
		if err := c.ends(); err != nil {
			return err
		}
		text = ev.Author + "> " + text
	}
	if ev.Partial {
		c.speaker, c.said = ev.Author, c.said+ev.Text()
	} else {
		text = strings.TrimRight(text, "\n") + "\n"
	}
	return c.write(text)
}

// ends ends the line of pieces.
func (c *chat) ends() error {
	if c.speaker == "" {
		return nil
	}
	c.speaker, c.said = "", ""
	return c.write("\n")
}

func (c *chat) write(text string) error {
	if _, err := io.WriteString(c.out, text); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// finished prints nothing for a completed run, and nothing for a waiting run, because the console asks its question next.
func (c *chat) finished(_ Request, res result) error {
	if err := c.ends(); err != nil {
		return err
	}
	if res.code == term.ExitWaits && res.status != "paused" || res.code == term.ExitOK || res.code == term.ExitLimit {
		return nil
	}
	for _, line := range res.next {
		fmt.Fprintf(c.err, "(%s)\n", line)
	}
	return nil
}

func (c *chat) note(s string) { fmt.Fprintf(c.err, "(%s)\n", s) }
func (c *chat) close()        {}
