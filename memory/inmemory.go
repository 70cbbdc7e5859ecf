// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/refrain-dev/refrain/session"
)

// InMemoryService returns a service that finds events by their words and keeps them in the memory
// of this process. An event matches if it has a word of the query; case does not matter. Events
// with more of the words come first, and among equal ones the newer events.
func InMemoryService() Service {
	return &inMemory{owners: make(map[owner]map[string][]indexedEntry)}
}

// owner is whose memory it is.
type owner struct{ app, user string }

// indexedEntry is an entry with the words to find it by.
type indexedEntry struct {
	entry Entry
	words map[string]bool
}

type inMemory struct {
	mu     sync.RWMutex
	owners map[owner]map[string][]indexedEntry // by session ID
}

func (m *inMemory) AddSessionToMemory(_ context.Context, s session.Session) error {
	if s == nil || s.AppName() == "" || s.UserID() == "" {
		return ErrInvalid
	}
	var all []indexedEntry
	for ev := range s.Events().All() {
		if words := wordsOf(ev.Text()); len(words) > 0 {
			all = append(all, indexedEntry{entryOf(ev), words})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o := owner{s.AppName(), s.UserID()}
	if m.owners[o] == nil {
		m.owners[o] = make(map[string][]indexedEntry)
	}
	m.owners[o][s.ID()] = all
	return nil
}

func entryOf(ev *session.Event) Entry {
	return Entry{ID: ev.ID, Content: ev.Content, Author: ev.Author, Timestamp: ev.Timestamp,
		CustomMetadata: maps.Clone(ev.CustomMetadata)}
}

func (m *inMemory) SearchMemory(_ context.Context, req *SearchRequest) (*SearchResponse, error) {
	if req == nil || req.AppName == "" || req.UserID == "" {
		return nil, ErrInvalid
	}
	type hit struct {
		entry Entry
		words int
	}
	var hits []hit
	query := wordsOf(req.Query)
	m.mu.RLock()
	for _, events := range m.owners[owner{req.AppName, req.UserID}] {
		for _, r := range events {
			if n := common(query, r.words); n > 0 {
				hits = append(hits, hit{r.entry, n})
			}
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.words, a.words), b.entry.Timestamp.Compare(a.entry.Timestamp),
			cmp.Compare(a.entry.ID, b.entry.ID))
	})
	res := new(SearchResponse)
	for _, h := range hits {
		res.Memories = append(res.Memories, h.entry)
	}
	return res, nil
}

// wordsOf lists the words of a text in lower case, each once.
func wordsOf(text string) map[string]bool {
	words := make(map[string]bool)
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		words[w] = true
	}
	return words
}

// common counts the words that are in both.
func common(a, b map[string]bool) int {
	n := 0
	for w := range a {
		if b[w] {
			n++
		}
	}
	return n
}
