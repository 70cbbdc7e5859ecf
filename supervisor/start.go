// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// Start starts a run and returns as soon as the run is in the log. From then on the run can be
// found and resumed, even after a crash. A new session is stored together with the run's first
// event: see [store.Start]. The run does not end with ctx. If MaxRuns runs are driven already, it
// begins later.
//
// Errors to expect are [ErrUnderWay] if the session's last run has not ended, session.ErrExists for [Request.New], [ErrDriver] if the request has another
// driver, [ErrQueueFull], a [*lease.HeldError], and Build's error. After one of these errors the
// run is not in the log.
func (s *Supervisor) Start(ctx context.Context, req Request) (*Run, error) {
	r, err := s.start(ctx, &req, true)
	if err != nil {
		req.Program.close()
		return nil, fmt.Errorf("start run: %w", err)
	}
	return r, nil
}

// Submit writes a run to the log and does not drive it; another process calls Resume or Recover. It
// returns the run's ID. The errors are those of Start, except for Build's, which is not called.
func (s *Supervisor) Submit(ctx context.Context, req Request) (string, error) {
	defer req.Program.close()
	r, err := s.start(ctx, &req, false)
	if err != nil {
		return "", fmt.Errorf("submit run: %w", err)
	}
	return r.ID(), nil
}

// start starts a run in a new session, or in an existing session whose last run has ended. If drive is true, this
// supervisor drives the run; otherwise start only writes it to the log.
func (s *Supervisor) start(ctx context.Context, req *Request, drive bool) (*Run, error) {
	if drive && req.Driver != s.cfg.Driver {
		return nil, fmt.Errorf("%w: %q: submit it", ErrDriver, req.Driver)
	}
	req.Started.By, req.Started.Sealed = s.asker(ctx), true
	id := req.SessionID
	if id == "" {
		for {
			r, err := s.startNew(ctx, NewID(), req, drive)
			if !errors.Is(err, session.ErrExists) {
				return r, err
			}
		}
	}
	if req.New {
		return s.startNew(ctx, id, req, drive)
	}
	view, _, err := s.get(ctx, id, true)
	if errors.Is(err, ErrNotFound) && view == nil {
		r, err := s.startNew(ctx, id, req, drive)
		if !errors.Is(err, session.ErrExists) {
			return r, err
		}
	} else if err != nil && view == nil {
		return nil, err
	}
	return s.startInExisting(ctx, id, req, drive)
}

// NewID returns a new ID for a run.
func NewID() string { return "r_" + uuid.NewString()[:8] }

// newRun returns the status that a session records when a run begins.
func newRun(req *Request) mark.Run {
	return mark.Run{ID: "e-" + uuid.NewString(), Name: req.Started.Name, Status: mark.RunRunning, Started: time.Now(),
		Driver: req.Driver, Input: inputOf(req.Message)}
}

// inputMost is the largest size of [mark.Run.Input], in bytes.
const inputMost = 200

// inputOf returns the beginning of the first text in a message, or "" if the message has no text.
func inputOf(message *genai.Content) string {
	if message == nil {
		return ""
	}
	for _, p := range message.Parts {
		if text := strings.TrimSpace(p.Text); text != "" && !p.Thought {
			return brief.ClipBytes(text, inputMost)
		}
	}
	return ""
}

// startNew starts a run in a new session. It fails with session.ErrExists if the session exists.
func (s *Supervisor) startNew(ctx context.Context, id string, req *Request, drive bool) (*Run, error) {
	r, err := s.register(ctx, id)
	if err != nil {
		return nil, err
	}
	req.Started.Session, r.run = id, newRun(req)
	if drive {
		if err := r.join(req.Started, true); err != nil {
			r.quit()
			return nil, err
		}
	}
	first := beginning{req: req}
	prog := req.Program
	if drive && !r.Queued() {
		prog, err = r.opening(&first)
	} else if first.opening, err = session.NewRunEvent(r.run, "user", mark.KindRunStarted, req.Started); err == nil {
		maps.Copy(first.opening.Actions.StateDelta, req.State)
		view := session.NewView(session.ViewConfig{AppName: r.key.AppName, UserID: r.key.UserID, SessionID: id})
		err = r.receiveMessage(view, first.opening, req)
	}
	var made *session.StartResponse
	if err == nil {
		made, err = store.Start(ctx, s.cfg.Service, &session.StartRequest{
			CreateRequest: session.CreateRequest{AppName: r.key.AppName, UserID: r.key.UserID, SessionID: id},
			Events:        []*session.Event{first.opening}, Owner: s.cfg.Owner, TTL: s.cfg.LeaseTTL,
		})
		if err != nil && !errors.Is(err, session.ErrExists) {
			s.deleteSession(r)
		}
	}
	if err != nil {
		if prog != req.Program {
			prog.close()
		}
		r.quit()
		return nil, err
	}
	first.session = made.Session
	r.setLease(made.Lease)
	switch {
	case !drive:
		r.quit()
	case first.tree != nil:
		_, _ = session.ViewOf(made.Session).Chain(r.run.ID) // from now on the view adds each event as it is appended
		go r.drive(prog, &first)
	default:
		prog.close()
		go r.drive(nil, nil)
	}
	return r, nil
}

// beginning is a run that begins.
type beginning struct {
	req     *Request
	tree    *runner.Runner  // nil until opening has built the agents
	session session.Session // the new session; nil for a run in an existing session
	opening *session.Event  // the first event of session
}

// options returns the options with which the runner begins the run.
func (f *beginning) options(run mark.Run) []runner.RunOption {
	if f.session != nil {
		return []runner.RunOption{runner.WithOpening(f.session, f.opening)}
	}
	return []runner.RunOption{runner.WithStateDelta(f.req.State), runner.WithStart(run, f.req.Started)}
}

// opening builds the agents of a new run, and makes the run's first event. The caller must close the program, also
// after an error.
func (r *Run) opening(first *beginning) (prog *Program, err error) {
	if prog = first.req.Program; prog == nil {
		if prog, err = r.s.build(r.ctx, first.req.Started); err != nil {
			return nil, err
		}
	}
	if first.tree, err = r.runner(prog); err == nil {
		first.opening, err = first.tree.Opening(r.ctx, r.key.UserID, r.key.SessionID, first.req.Message, prog.RunConfig,
			first.options(r.run)...)
	}
	return prog, err
}

// deleteSession deletes the session of a run after the store has failed to create it, because the store may have created it
// nevertheless. If deleteSession fails too, the session may remain. It then holds a run that can be resumed.
func (s *Supervisor) deleteSession(r *Run) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.LeaseTTL)
	defer cancel()
	_, run, err := s.get(ctx, r.ID(), true)
	if err == nil && run.ID == r.run.ID {
		_ = s.cfg.Service.Delete(ctx, &session.DeleteRequest{AppName: r.key.AppName, UserID: r.key.UserID,
			SessionID: r.key.SessionID})
	}
}

// startInExisting starts a run in an existing session. It fails with ErrUnderWay if the session's last run has not ended.
func (s *Supervisor) startInExisting(ctx context.Context, id string, req *Request, drive bool) (*Run, error) {
	r, err := s.enroll(ctx, id, &ResumeOptions{})
	if err != nil {
		return nil, err
	}
	req.Started.Session, r.run = id, newRun(req)
	// This check needs the lease: without it, another process can start a run in between.
	_, last, err := s.get(ctx, id, true)
	switch {
	case err == nil && !last.Status.IsFinal():
		err = fmt.Errorf("%w: the last run of session %q is %s: resume or cancel it first", ErrUnderWay, id,
			last.Status)
	case errors.Is(err, ErrNotFound): // nothing has run in the session
		err = nil
	}
	if err != nil {
		r.quit()
		return nil, err
	}
	if drive {
		err = r.join(req.Started, true)
	}
	waits := r.Queued()
	if err == nil && waits {
		err = r.submit(req)
	}
	if err != nil || !drive {
		r.quit()
		return r, err
	}
	if waits {
		req.Program.close()
		go r.drive(nil, nil)
		return r, nil
	}
	prog := req.Program
	if prog == nil {
		if prog, err = s.build(r.ctx, req.Started); err != nil {
			r.quit()
			return nil, err
		}
	}
	go r.drive(prog, &beginning{req: req})
	if err := <-r.logged; err != nil {
		<-r.done
		req.Program = nil // drive has closed it
		return nil, err
	}
	return r, nil
}

// submit writes the first event of a run in an existing session. If the session's state cannot be read from its log
// alone, the event also gets the whole state, so that this is possible from then on.
func (r *Run) submit(req *Request) error {
	view, _, err := r.s.get(r.ctx, r.ID(), true)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	ev, err := session.NewRunEvent(r.run, "user", mark.KindRunStarted, req.Started)
	if err != nil {
		return err
	}
	if own := statekey.OwnState(view.State()); !view.HasStateInLog() && len(own) > 0 {
		maps.Copy(ev.Actions.StateDelta, own)
		ev.Actions.StateDelta[mark.KeyNoted] = true
	}
	maps.Copy(ev.Actions.StateDelta, req.State)
	if err = r.receiveMessage(view, ev, req); err != nil {
		return err
	}
	return r.s.cfg.Service.AppendEvent(r.ctx, view, ev)
}

// receiveMessage puts the user's message into ev, the first event of a run that begins later, and passes it to the plugins.
// The run's agents do not exist yet, so the plugins see an empty agent that has the name of the definition.
func (r *Run) receiveMessage(s session.Session, ev *session.Event, req *Request) error {
	var later Program
	if req.Program != nil {
		later.ArtifactService, later.MemoryService = req.Program.ArtifactService, req.Program.MemoryService
		later.RunConfig.SaveInputBlobsAsArtifacts = req.Program.RunConfig.SaveInputBlobsAsArtifacts
	}
	ev.Content = req.Message
	if ev.Content == nil || len(r.s.cfg.PluginConfig.Plugins) == 0 && !later.RunConfig.SaveInputBlobsAsArtifacts {
		return nil
	}
	var err error
	if later.Agent, err = agent.New(agent.Config{Name: cmp.Or(req.Started.Name, "agent")}); err != nil {
		return err
	}
	tree, err := r.runner(&later)
	if err != nil {
		return err
	}
	return tree.Receive(r.ctx, s, ev, later.RunConfig)
}

// quit ends a run that drive was not called for: it leaves the queue, releases the lease and forgets the run.
func (r *Run) quit() {
	r.s.queue.leave(r.ticket)
	if r.lease != nil {
		r.s.release(r.lease)
	}
	r.dismiss()
}
