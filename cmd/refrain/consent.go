// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/session"
)

// questions are the tool calls that wait for a person's consent, for which
// nobody can be asked here.
func questions(ev *session.Event) []string {
	var lines []string
	for id := range ev.Actions.RequestedToolConfirmations {
		name := id
		if ev.Content != nil {
			for _, p := range ev.Content.Parts {
				if r := p.FunctionResponse; r != nil && r.ID == id {
					name = r.Name
				}
			}
		}
		lines = append(lines, fmt.Sprintf("%s wanted to call %s, which needs a person's consent: refrain run cannot ask for it, and the call was not made", ev.Author, plainText(name)))
	}
	slices.Sort(lines)
	return lines
}

// unanswered is why a run with open questions has not completed; nil if there
// are none.
func unanswered(questions []string) error {
	if len(questions) == 0 {
		return nil
	}
	calls := make([]string, len(questions))
	for i, q := range questions {
		calls[i], _, _ = strings.Cut(q, ", which needs")
	}
	return errors.New("the run waits for a person's consent, and nobody can give it in this version: " +
		strings.Join(slices.Compact(calls), "; ") + " (take the tool out of confirm, or of only)")
}
