// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// repeats counts the turns in a row in which the model made the same calls.
type repeats struct {
	calls string
	turns int
}

// note counts a turn with these calls. If they differ from those of the turn before, the count begins again.
func (s *repeats) note(calls []*genai.FunctionCall) {
	texts := make([]string, len(calls))
	for i, c := range calls {
		texts[i] = callText(c)
	}
	slices.Sort(texts)
	made := strings.Join(texts, ", ")
	if made != s.calls {
		*s = repeats{calls: made}
	}
	s.turns++
}

// manyRepeats is the number of turns from which an error says that they made the same calls.
const manyRepeats = 3

// explain adds to the error of a limit that the last turns made the same calls again and again.
func (s *repeats) explain(err error) error {
	if s.calls == "" || s.turns < manyRepeats {
		return err
	}
	return fmt.Errorf("%w; each of the last %d turns called %s", err, s.turns, brief.Clip(s.calls, 100))
}
