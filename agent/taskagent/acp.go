// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/acpclient"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/internal/process/procgroup"
)

// errAnswered is the cause with which Refrain ends a program that still runs after its answer.
var errAnswered = errors.New("it has answered")

// acpLeave is how long a program may still run after its answer, when its standard input is closed. Then Refrain ends it.
const acpLeave = time.Second

// talk connects cmd, which has not started, to a client of the Agent Client Protocol that asks it the prompt. The caller calls
// last when the program has ended; last writes the report to kept.
func (p *process) talk(cmd *exec.Cmd, kept *bytes.Buffer, heard func(), doing func(string),
	script *codingcli.Transcript, kill context.CancelCauseFunc) (last func(), err error) {
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	talk := acpclient.New(acpclient.Config{
		Dir: cmd.Dir, Prompt: p.Stdin,
		Continues: p.continues, Conversation: p.before.ID, Asked: p.before.Asked,
		Permissions: p.ACP, Allow: rulesOf(p.Allow), Limit: p.Limit, To: to, Heard: heard, Doing: doing, Script: script,
		End: func(err error) {
			switch {
			case err != nil:
				kill(err)
			default:
				time.AfterFunc(acpLeave, func() { kill(errAnswered) })
			}
		},
	})
	cmd.Stdout = talk
	cmd.Cancel = func() error {
		talk.Cancel()
		return procgroup.Terminate(cmd.Process)
	}
	return func() {
		talk.Close()
		data, err := json.Marshal(talk.Report())
		if err == nil {
			_, _ = kept.Write(data) // each field of the report is bounded
		}
	}, nil
}

// readACP reads the report of a program that speaks the Agent Client Protocol.
func readACP(stdout []byte, _ int) codingcli.Report {
	var r codingcli.Report
	if json.Unmarshal(stdout, &r) != nil || r.Outcome == "" {
		r.Outcome = codingcli.NoResult
		r.Usage.Calls, r.Usage.Estimated = 1, true
	}
	return r
}
