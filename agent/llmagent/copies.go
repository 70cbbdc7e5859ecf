// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/deep"
)

// copies holds the copies of contents that callbacks get, because the log and other requests share
// the contents themselves. A callback may change its request as it likes: append to it, put
// contents in another order, replace them, and edit them in place.
//
// Only what is new is copied. A copy is handed out again with the next request if it is
// as it was made. To see that, all contents are looked at with each request, which
// allocates nothing and takes eight nanoseconds for a text: whoever has the request can
// write to any of them, and only a look tells.
//
// When the callbacks have returned, the model gets for a copy that is unchanged the
// content itself, and for any other content a copy of that. So what callbacks can reach
// is reached by callbacks only: an edit, even a late one, gets neither into the log nor
// into another request to a model, and does not disturb a model that still reads.
//
// Before copies are handed out again, those that were changed are made again, if there
// may be any: if the last request was changed at all, and if other callbacks were called
// since, which may have kept it.
//
// What is left: requests of callbacks share copies. Who edits a request that he has kept,
// while callbacks have a later one, may edit that; and the other way round.
type copies struct {
	made    []madeCopy
	free    free                   // for the next ones
	last    []*genai.Content       // what they were last made of
	list    []*genai.Content       // the copies, as requests to callbacks share them
	own     bool                   // each request gets a list of its own: a callback has written into one
	suspect bool                   // something may have changed since it was made
	at      map[*genai.Content]int // index in made, by the copy; nil before anybody asks
}

// of returns a copy of a conversation, without spare capacity. It does not copy again the contents
// that the last conversation had too.
func (c *copies) of(list []*genai.Content) []*genai.Content {
	cloned, from := false, len(c.made)
	if c.suspect || from == 0 || from > len(list) || from != len(c.last) || &c.last[0] != &list[0] {
		from = unchanged(c.made, c.list, list) // else it is the last one, and goes on
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
		if !cloned { // others may be reading it
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
	same := unchanged(c.made, theirs, list)
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

// none reports whether nothing was handed out.
func (c *copies) none() bool { return len(c.made) == 0 }
