// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/a2apart"
)

// receipt collects the answer to a message.
type receipt struct {
	artifacts []*a2a.Artifact
	message   *a2a.Message // in the place of a task, or with its state
	state     a2a.TaskState
	settled   bool // there is nothing more to wait for
}

// status takes a task's state.
func (a *receipt) status(s a2a.TaskStatus) {
	a.state, a.message = s.State, s.Message
	a.settled = s.State.Terminal() || s.State == a2a.TaskStateInputRequired || s.State == a2a.TaskStateAuthRequired
}

// update takes a piece of an artifact.
func (a *receipt) update(ev *a2a.TaskArtifactUpdateEvent) {
	i := slices.IndexFunc(a.artifacts, func(known *a2a.Artifact) bool {
		return known != nil && known.ID == ev.Artifact.ID
	})
	switch {
	case i < 0:
		a.artifacts = append(a.artifacts, new(*ev.Artifact))
	case ev.Append:
		a.artifacts[i].Parts = append(slices.Clip(a.artifacts[i].Parts), ev.Artifact.Parts...)
	default:
		a.artifacts[i] = new(*ev.Artifact)
	}
}

// size is about how much memory the parts take, in bytes.
func (a *receipt) size() int64 {
	n := int64(0)
	for _, artifact := range a.artifacts {
		if artifact != nil {
			n += partsSize(artifact.Parts)
		}
	}
	return n
}

func partsSize(parts []*a2a.Part) int64 {
	n := int64(0)
	for _, p := range parts {
		n += 64
		if p == nil {
			continue
		}
		switch v := p.Content.(type) {
		case a2a.Text:
			n += int64(len(v))
		case a2a.Raw:
			n += int64(len(v))
		}
	}
	return n
}

// parts returns the parts of the answer: the artifacts, or else the message.
func (a *receipt) parts() []*a2a.Part {
	var all []*a2a.Part
	for _, artifact := range a.artifacts {
		if artifact != nil {
			all = append(all, artifact.Parts...)
		}
	}
	if all == nil && a.message != nil {
		all = a.message.Parts
	}
	return all
}

// content returns the answer as content, or nil. Each artifact begins on a new line.
func (a *receipt) content() *genai.Content {
	var all []*genai.Part
	for _, artifact := range a.artifacts {
		if artifact == nil {
			continue
		}
		parts := a2apart.IncomingAll(artifact.Parts)
		if n := len(all); n > 0 && len(parts) > 0 && parts[0].Text != "" && all[n-1].Text != "" &&
			!strings.HasSuffix(all[n-1].Text, "\n") {
			all[n-1].Text += "\n"
		}
		all = append(all, parts...)
	}
	if all == nil && a.message != nil {
		all = a2apart.IncomingAll(a.message.Parts)
	}
	if all == nil {
		return nil
	}
	return &genai.Content{Role: genai.RoleModel, Parts: all}
}

// output returns the value for the output key; false if the answer has neither text nor data.
func (a *receipt) output(c *genai.Content) (any, bool) {
	if parts := a.parts(); len(parts) == 1 && parts[0] != nil {
		if d, ok := parts[0].Content.(a2a.Data); ok && d.Value != nil {
			return d.Value, true
		}
	}
	if c == nil {
		return nil, false
	}
	var b strings.Builder
	for _, p := range c.Parts {
		b.WriteString(p.Text)
	}
	return b.String(), b.Len() > 0
}

// wordsOf is the text of a message of the remote agent.
func wordsOf(m *a2a.Message) string {
	if m == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range a2apart.IncomingAll(m.Parts) {
		b.WriteString(p.Text)
	}
	return b.String()
}
