// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"errors"
	"strconv"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/a2apart"
)

// fresh is a message that begins a task.
func (r *run) fresh() (*a2a.Message, error) {
	msg := &a2a.Message{ContextID: r.conversation()}
	if r.payload == nil {
		msg.Parts = a2apart.Outgoing(r.ctx.UserContent())
		if msg.Parts == nil {
			return nil, errors.New("there is nothing to send: the user's message has neither text nor files; set " +
				"Payload")
		}
		return msg, nil
	}
	v, err := r.A2AAgent.payload(drive.At(r.ctx).Lookup)
	if err != nil {
		return nil, err
	}
	msg.Parts = a2a.ContentParts{a2apart.OutgoingValue(v)}
	return msg, nil
}

// messageID returns the same ID for the same message of a step in every attempt and process.
func (r *run) messageID() string {
	id := drive.At(r.ctx).CallID()
	if r.before.sent > 0 {
		id += "-" + strconv.Itoa(r.before.sent+1)
	}
	return id
}
