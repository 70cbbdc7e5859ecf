// SPDX-License-Identifier: Apache-2.0

package running

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/procgroup"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/limited"
	"github.com/refrain-dev/refrain/session/mark"
)

// notice is what the command of --notify-command gets, as JSON.
type notice struct {
	Event      string          `json:"event"` // completed, failed, limit, waiting or interrupted
	Run        string          `json:"run"`
	ExitCode   int             `json:"exit_code"`
	Status     string          `json:"status"`
	Reason     string          `json:"reason,omitzero"` // why the loop stopped
	Iterations int             `json:"iterations"`
	Error      string          `json:"error,omitzero"`
	Cost       string          `json:"cost,omitzero"` // in US dollars, such as "0.40" or "0.40 or more"
	Files      runfiles.Handed `json:"files,omitzero"`
	Seconds    float64         `json:"seconds"`
	Next       string          `json:"next_command,omitzero"`
}

// notifyTime limits the command of --notify-command.
const notifyTime = 10 * time.Second

// exitEvents lists the events of a notice by exit code.
var exitEvents = map[int]string{term.ExitLimit: "limit", term.ExitWaits: "waiting", term.ExitInterrupted: "interrupted"}

// statusEvents lists the events of a notice by the status of the run, if this process ends with exit code 0: another
// process may drive the run by then. A run that is running has no event.
var statusEvents = map[string]string{string(mark.RunRunning): "", string(mark.RunCompleted): "completed", string(mark.RunWaiting): "waiting",
	string(mark.RunIsPaused): "waiting"}

// notify tells the command of --notify-command how a run has ended. It reports a failure of the command, which changes nothing. It does
// nothing if there is no run. It says so if the run goes on in another process, which does not know the command.
func (f *loopFlags) notify(ctx context.Context, e *term.Env, ended error) {
	if f.notifier == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTime)
	defer cancel()
	n, err := f.noticeOf(ctx, e, ended)
	if err != nil {
		return // there is no run
	}
	if n.Event == "" {
		fmt.Fprintf(e.Stderr, "--notify-command: run %s goes on in another process, which does not run the command; wait for its end with: "+
			"refrain watch %[1]s\n", n.Run)
		return
	}
	text, err := json.Marshal(n)
	if err == nil {
		cmd := exec.CommandContext(ctx, "sh", "-c", f.notifier)
		output := &limited.Tail{Most: 1000}
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = child.Inheritance{}.Environ(), bytes.NewReader(append(text, '\n')), output, output
		cmd.WaitDelay = time.Second
		procgroup.Lead(cmd)
		if err = cmd.Start(); err == nil {
			err = cmd.Wait()
			_ = procgroup.Kill(cmd.Process)
			if text := brief.Line(child.Secrets(cmd.Env).StrikeWhole(output.String()), 200); err != nil && text != "" {
				err = fmt.Errorf("%w: %s", err, text)
			}
		}
	}
	if err != nil {
		fmt.Fprintf(e.Stderr, "--notify-command: %v\n", err)
	}
}

// noticeOf reads from the log how the run has ended.
func (f *loopFlags) noticeOf(ctx context.Context, e *term.Env, ended error) (*notice, error) {
	s, id, err := runstore.OpenStock(ctx, e, f.run.store, f.run.session)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	view, run, err := s.View(ctx, id)
	if err != nil {
		return nil, err
	}
	var fold progress.SummaryFold
	var used progress.Resources
	for ev := range view.Log().Outline() {
		fold.Add(ev)
		used.Add(ev)
	}
	sum := fold.Summary()
	n := &notice{Run: id, Status: string(sum.Status), Iterations: sum.Iteration, Error: sum.Error, Seconds: sum.Updated.Sub(sum.Began).Seconds(),
		Next: "refrain show " + id}
	if run != nil {
		n.Status = string(run.Status)
	}
	if sum.Stop != nil {
		n.Reason = string(sum.Stop.Reason)
	}
	if u := used.SoFar(); u.Calls > 0 {
		n.Cost = u.CostText()
	}
	if exit, ok := errors.AsType[*term.Exit](ended); ok {
		n.ExitCode = exit.Code
	} else if ended != nil {
		n.ExitCode = term.ExitFailed
	}
	known := false
	if n.Event, known = exitEvents[n.ExitCode]; n.ExitCode == term.ExitOK {
		n.Event, known = statusEvents[n.Status]
	}
	if !known {
		n.Event = "failed"
	}
	if p, err := program.Of(view); err == nil {
		if def, err := p.Definition(); err == nil && def.Workspace != nil {
			v, _ := view.State().Get(runfiles.Key)
			n.Files = def.Workspace.Handed(v)
		}
	}
	if n.Event == "waiting" || n.Event == "interrupted" {
		n.Next = "refrain resume " + id
	} else if n.Files.Command != "" {
		n.Next = n.Files.Command
	}
	return n, nil
}
