// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"io"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// chat writes what agents say to out, in pieces if the model streams, and the reasons why loops stopped to err.
type chat struct {
	out, err io.Writer
	speaker  string // agent whose pieces end the output, which then has no line break yet; otherwise empty
	said     string // the pieces
}

func (c *chat) started(req Request) error {
	if req.Resumed {
		fmt.Fprintf(c.err, "(run %s goes on)\n", req.Session)
	}
	return nil
}

func (c *chat) event(ev *session.Event, lines []string, _ *progress.Fold) error {
	if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
		if err := c.ends(); err != nil {
			return err
		}
		for _, line := range lines {
			fmt.Fprintf(c.err, "(%s)\n", strings.TrimSpace(line))
		}
	}
	text := ev.Text()
	switch {
	case ev.Author == "user", !ev.Partial && !ev.Speaks(), text == "":
		return nil
	case !ev.Partial && c.speaker == ev.Author && text == c.said: // the whole text after its pieces
		return c.ends()
	}
	if c.speaker != ev.Author || !ev.Partial {
		if err := c.ends(); err != nil {
			return err
		}
		text = ev.Author + "> " + text
	}
	if ev.Partial {
		c.speaker, c.said = ev.Author, c.said+ev.Text()
	} else {
		text = strings.TrimRight(text, "\n") + "\n"
	}
	return c.write(text)
}

// ends ends the line of pieces.
func (c *chat) ends() error {
	if c.speaker == "" {
		return nil
	}
	c.speaker, c.said = "", ""
	return c.write("\n")
}

func (c *chat) write(text string) error {
	if _, err := io.WriteString(c.out, text); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// finished prints nothing for a completed run, and nothing for a waiting run, because the console asks its question next.
func (c *chat) finished(_ Request, res result) error {
	if err := c.ends(); err != nil {
		return err
	}
	if res.code == term.ExitWaits && res.status != "paused" || res.code == term.ExitOK || res.code == term.ExitLimit {
		return nil
	}
	for _, line := range res.next {
		fmt.Fprintf(c.err, "(%s)\n", line)
	}
	return nil
}

func (c *chat) note(s string) { fmt.Fprintf(c.err, "(%s)\n", s) }
func (c *chat) close()        {}
