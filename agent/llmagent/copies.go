// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/deep"
)

// copies holds the copies of contents that callbacks get, because the log and other requests share the contents
// themselves. A callback may change its request in any way: it may append contents, reorder or replace them, and edit
// them in place.
//
// Only new contents are copied. The next request gets the same copy again if the copy is unchanged. To detect a change,
// every request compares all copies that callbacks can reach, because a callback can write to any of them at any time.
// This allocates nothing and takes about eight nanoseconds for a text.
//
// When the callbacks have returned, the model gets the original content for an unchanged copy, and a new copy of any
// other content. An edit by a callback, even a late one, therefore never reaches the log, another request to a model,
// or a model that is still reading.
//
// Before copies are handed out again, changed ones are replaced. This is done only if some may have changed: if the
// callbacks changed the last request, or if other callbacks, which may have kept that request, were called since.
//
// One limit remains: requests for callbacks share copies. If a callback keeps a request and edits it later, it may also
// edit a newer request of the callbacks, and the other way round.
type copies struct {
	made    []madeCopy
	free    free                   // memory for the next copies
	last    []*genai.Content       // the conversation that list was made from
	list    []*genai.Content       // the copies, as requests to callbacks share them
	own     bool                   // each request gets its own list, because a callback has written into a list
	suspect bool                   // a callback may have changed a copy
	at      map[*genai.Content]int // index in made, by the copy; nil until index needs it
}

// of returns a copy of a conversation, without spare capacity. It reuses the copies of contents that the last
// conversation also had.
func (c *copies) of(list []*genai.Content) []*genai.Content {
	cloned, from := false, len(c.made)
	if c.suspect || from == 0 || from > len(list) || from != len(c.last) || &c.last[0] != &list[0] {
		from = countUnchanged(c.made, c.list, list) // otherwise list continues the last conversation
	}
	for i := from; i < len(list); i++ {
		switch content := list[i]; {
		case i == len(c.made):
			c.made = append(c.made, c.free.makeCopy(content))
		case c.made[i].of != content || c.suspect && !c.made[i].unchanged():
			delete(c.at, c.made[i].copy)
			c.made[i] = c.free.makeCopy(content)
		case c.list[i] == c.made[i].copy:
			continue
		default:
			c.own = true
		}
		if c.at != nil {
			c.at[c.made[i].copy] = i
		}
		if i == len(c.list) {
			c.list = append(c.list, c.made[i].copy)
			continue
		}
		if !cloned { // another request may be reading the list
			c.list, cloned = slices.Clone(c.list), true
		}
		c.list[i] = c.made[i].copy
	}
	c.last, c.suspect = list, false
	if c.own {
		return slices.Clone(c.list[:len(list)])
	}
	return slices.Clip(c.list[:len(list)])
}

// settle returns the conversation for the model, given the copy that callbacks may have changed.
func (c *copies) settle(theirs, list []*genai.Content) []*genai.Content {
	same := countUnchanged(c.made, theirs, list)
	c.suspect = same < len(c.made)
	if same == len(theirs) {
		return slices.Clip(list[:same])
	}
	own := append(make([]*genai.Content, 0, len(theirs)), list[:same]...)
	for i, content := range theirs[same:] {
		if n, ok := c.index(content, same+i); ok && c.made[n].unchanged() {
			content = c.made[n].of
		} else {
			content = deep.Copy(content)
		}
		own = append(own, content)
	}
	return own
}

// index returns the place of a content among the copies. It tries the likely place first.
func (c *copies) index(content *genai.Content, likely int) (int, bool) {
	if likely >= len(c.made) {
		return 0, false
	}
	if c.made[likely].copy == content {
		return likely, true
	}
	if c.at == nil {
		c.at = make(map[*genai.Content]int, len(c.made))
		for i := range c.made {
			c.at[c.made[i].copy] = i
		}
	}
	n, ok := c.at[content]
	return n, ok
}

// none reports whether no copies have been handed out.
func (c *copies) none() bool { return len(c.made) == 0 }
