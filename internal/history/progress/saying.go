// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// maxText limits the text of a step that a tree keeps, in bytes.
const maxText = 32 << 10

// hear records a step's text and the tool that it calls.
func (l *Live) hear(ev *session.Event) {
	if ev.Author == "user" || ev.Address == "" {
		return
	}
	s := l.step(ev.Address, l.tree.Now)
	if x := ev.Actions.Exit; x != nil {
		s.Exit = x
	}
	if ev.Partial {
		if line, ok := ev.CustomMetadata[mark.MetadataDoing].(string); ok {
			s.Line, s.Text = line, brief.EndBytes(s.Text+line+"\n", maxText)
		}
		s.Text = brief.EndBytes(s.Text+ev.Text(), maxText)
		return
	}
	if ev.Mark != nil {
		return
	}
	if ev.UsageMetadata != nil {
		u := model.Used(ev.UsageMetadata)
		addUsage(&s.used.current, Usage{Calls: 1, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
			CachedTokens: u.CachedTokens, CacheWriteTokens: u.CacheWriteTokens, CacheWrite1hTokens: u.CacheWrite1hTokens})
	}
	s.Doing, s.Line = "", ""
	if ev.Content != nil {
		for _, p := range ev.Content.Parts {
			if p != nil && p.FunctionCall != nil {
				s.Doing = p.FunctionCall.Name
			}
		}
	}
	if text := wordsFor(ev); text != "" {
		if s.output != "" {
			text = s.output + "\n\n" + text
		}
		s.output = brief.EndBytes(text, maxText)
		l.texts.add(len(s.output), func() {
			if text, whole := session.Excerpt(s.output), s.output; len(text) < len(whole) {
				s.output = text
				if s.Text == whole {
					s.Text = text
				}
			}
		})
	}
	s.Text = s.output // pieces that were streamed are in it now
}

// Said returns the whole text of a step's last attempt from its events, one paragraph for each message. [Step.Text]
// may have only a part of it.
func Said(events []*session.Event) string {
	var said []string
	for _, ev := range events {
		if ev.Mark != nil {
			if ev.Mark.Kind == mark.KindStepStarted {
				said = nil
			}
		} else if text := wordsFor(ev); text != "" && ev.Author != "user" && !ev.Partial {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n\n")
}
