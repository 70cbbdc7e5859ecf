// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/model"
)

// The rules of Anthropic's caches, of https://platform.claude.com/docs/en/build-with-claude/prompt-caching:
// a request is tools, system and messages, in this order. At a breakpoint the API keeps all that is before it
// for five minutes since its last use, or for an hour. It reads the longest beginning that it has kept at a
// breakpoint, or at one of the 20 blocks before it. There are at most four breakpoints in a request. A
// beginning that is shorter than the model's minimum is not kept. Thoughts cannot have a breakpoint. A
// breakpoint for an hour has to come before those for five minutes. [model.CachesOf] has the minimum.

// marked reports whether p has a breakpoint.
func (p *apiRequest) marked() bool { return p.breakpoints }

// minimum returns about how many bytes a beginning needs to be kept. An error does no harm, because the API
// ignores a breakpoint after too few tokens.
func minimum(name string) int { return model.CachesOf(provider, name).MinTokens * model.BytesPerToken }

// mark sets the breakpoints: after the part of tools and system that a later request of the run repeats; and
// if the next request repeats the whole conversation, after the system, after the end of the previous
// request, and after the last block that the next request repeats. The breakpoint at the end of the previous
// request finds what that request wrote even if more than 20 blocks follow.
func (p *apiRequest) mark(hint *model.CacheHint) {
	if hint == nil || !hint.Later && !hint.Next && !hint.Before {
		return
	}
	five := &breakpoint{Type: "ephemeral"}
	kept, need, size := five, minimum(p.Model), 0
	if hint.Hour {
		kept = &breakpoint{Type: "ephemeral", TTL: "1h"}
	}
	for _, t := range p.Tools {
		size += len(t.Name) + len(t.Description) + lengthOf(t.InputSchema)
	}
	static := 0 // blocks of the system
	if hint.Later && size+hint.Static >= need {
		if static = p.splitSystem(hint.Static); static > 0 {
			p.System[static-1].Cache = kept
		} else if n := len(p.Tools); n > 0 && size >= need {
			p.Tools[n-1].Cache = kept
		}
		p.breakpoints = static > 0 || size >= need
	}
	if !hint.Next && !hint.Before {
		return
	}
	for _, b := range p.System {
		size += b.length()
	}
	if n := len(p.System); n > static && size >= need {
		p.System[n-1].Cache, p.breakpoints = five, true
	}
	p.markMessages(hint, five, need-size)
}

// splitSystem ends a block of the system after the given bytes, and returns the number of blocks up to
// there.
func (p *apiRequest) splitSystem(bytes int) int {
	for i, b := range p.System {
		switch {
		case bytes <= 0:
			return i
		case bytes < len(b.Text) && strings.TrimSpace(b.Text[bytes:]) == "":
			return i + 1
		case bytes < len(b.Text):
			if strings.TrimSpace(b.Text[:bytes]) == "" { // the API refuses a text of white space alone
				return i
			}
			rest := b
			b.Text, rest.Text = b.Text[:bytes], b.Text[bytes:]
			p.System = slices.Replace(p.System, i, i+1, b, rest)
			return i + 1
		}
		bytes -= len(b.Text)
	}
	return len(p.System)
}

// markMessages sets breakpoints in the messages after the given bytes, but not in the last fresh blocks.
func (p *apiRequest) markMessages(hint *model.CacheHint, at *breakpoint, need int) {
	fresh, last := hint.Fresh, len(p.Messages)-1
	for last >= 0 && fresh >= len(p.Messages[last].Content) {
		fresh -= len(p.Messages[last].Content)
		last--
	}
	if last < 0 {
		return
	}
	before := last // the message that ended the request before
	for before >= 0 && p.Messages[before].Role != roleAssistant {
		before--
	}
	before--
	for i, m := range p.Messages[:last+1] {
		blocks := m.Content
		if i == last {
			blocks = blocks[:len(blocks)-fresh]
		}
		for _, b := range blocks {
			if need <= 0 { // the rest of a long conversation need not be measured
				break
			}
			need -= b.length()
		}
		if need <= 0 && (i == before || i == last && hint.Next) {
			p.breakpoints = markLast(blocks, at) || p.breakpoints
		}
	}
}

// markLast sets a breakpoint at the last block that can have one.
func markLast(blocks []block, at *breakpoint) bool {
	for i := range slices.Backward(blocks) {
		if t := blocks[i].Type; t != "thinking" && t != "redacted_thinking" {
			blocks[i].Cache = at
			return true
		}
	}
	return false
}

// length returns the approximate bytes of text in a block.
func (b *block) length() int {
	n := len(b.Text) + len(b.Name)
	if b.Thinking != nil {
		n += len(*b.Thinking)
	}
	if b.Input != nil {
		n += lengthOf(b.Input)
	}
	for _, c := range b.Content {
		n += c.length()
	}
	return n
}

func lengthOf(v map[string]any) int {
	data, _ := json.Marshal(v) // an error comes when the request is sent
	return len(data)
}
