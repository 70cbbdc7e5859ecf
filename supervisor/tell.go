// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/uuid"
	"github.com/refrain-dev/refrain/session/mark"
)

// MostHint is the largest text of [Supervisor.Tell], in bytes.
const MostHint = 16 << 10

// Tell gives a run a text for its next iteration, whichever process drives the run: the agents of that iteration get the text at
// the end of their instructions or of their prompt, see [agent.Hints]. The mark [mark.KindHinted] has it from then on; until then it waits in the
// store. Several texts add up. Tell reports whether a process drives the run; if not, the run gets the text when it is resumed.
// Errors to expect are [ErrNotFound], [ErrOver] for a run that no limit has stopped and that cannot continue, [ErrDriver] for a run
// that a cluster drives, and [ErrNoHint] for a text that is empty or larger than [MostHint].
func (s *Supervisor) Tell(ctx context.Context, id, text string) (driven bool, err error) {
	if driven, err = s.tell(ctx, id, strings.TrimSpace(text)); err != nil {
		return false, fmt.Errorf("tell run %q: %w", id, err)
	}
	return driven, nil
}

func (s *Supervisor) tell(ctx context.Context, id, text string) (driven bool, err error) {
	view, run, err := s.get(ctx, id, false)
	switch {
	case err != nil:
		return false, err
	case run.Driver != s.cfg.Driver:
		return false, fmt.Errorf("%w: %q", ErrDriver, run.Driver)
	case run.Status == mark.RunCompleted && !stoppedByLimit(view, run):
		return false, fmt.Errorf("%w: it completed", ErrOver)
	case text == "":
		return false, fmt.Errorf("%w: it is empty", ErrNoHint)
	case len(text) > MostHint:
		return false, fmt.Errorf("%w: it has %d bytes, more than %d; shorten it", ErrNoHint, len(text), MostHint)
	}
	key := s.key(id)
	w := &runRequest{Do: doTell, By: s.asker(ctx)}
	w.Hint = &mark.Hint{ID: uuid.New().String(), Text: strings.ToValidUTF8(text, "\uFFFD"), By: w.By, At: time.Now().UTC()}
	r := s.driving(id)
	held, err := s.Driver(ctx, id)
	if err != nil {
		return false, err
	}
	if r == nil && held != nil {
		w.To = held.Token
		return s.send(ctx, key, w)
	}
	if _, err := s.post(ctx, key, "user", markRequest, w); err != nil {
		return false, err
	}
	return r != nil && r.accept(w), nil
}

// recallHints finds out which hints the log of a resumed run has.
func (r *Run) recallHints() {
	r.hints.Recall(func(yield func(string, *mark.Hinted) bool) {
		for ev := range currentMarks(r.view, r.run.ID, mark.KindHinted) {
			var was mark.Hinted
			if ev.Mark.Decode(&was) == nil && !yield(ev.Branch, &was) {
				return
			}
		}
	})
}
