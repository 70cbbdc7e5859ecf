// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/term"
)

const askingLetter = `
name: letter
type: sequential
sub_agents:
  - {name: write, text: "one\n\e[2Jtwo\e]0;owned\a", output_key: draft}
  - {name: editor, question: "Shall this go out?\n\n{{draft}}", output_key: review}
  - {name: title, question: "Which title?", ask: answer, output_key: title}
  - {name: last, question: "The last words?", ask: edit, keys: [draft]}
  - {name: say, text: "{{title}} ({{review.approved}}, {{review.reason}}): {{draft}}"}
`

// answers waits for the end of a run that succeeds, and compares what it answers.
func (a *atTerminal) answers(want string) {
	a.t.Helper()
	if code := a.wait(); code != term.ExitOK {
		a.t.Errorf("exit code %d", code)
	}
	if got := a.stdout.String(); got != want {
		a.t.Errorf("answer %q", got)
	}
}

// In a terminal a run asks its questions there, with their line breaks and without what would control the
// terminal, and goes on with the answers. A text is edited in the person's editor.
func TestQuestionsAreAskedInTheTerminal(t *testing.T) {
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf 'mine\\n' >\"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", editor)
	a := startAtTerminal(t, askingLetter, nil)
	a.shows("Shall this go out?\r\n\r\none\r\ntwo\r\nyes or no, and why> ")
	a.press("perhaps\r")
	a.shows("(the answer is yes or no")
	a.press("no, it is dull\r")
	a.shows("Which title?\r\nanswer> ")
	a.press("The cat\r")
	a.shows("e for editor, key=value, or an empty line> ")
	a.press("e\r")
	a.answers("The cat (false, it is dull): mine\n")
	a.restored()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, command := range []string{"\x1b]0;owned", "\x1b[2Jtwo"} {
		if strings.Contains(a.raw.String(), command) {
			t.Errorf("the text of a step commands the terminal: %q", command)
		}
	}
}

// Who leaves a question open is told how to answer it later, in a way that continues the run. The ID of the only
// question is not shown.
func TestQuestionInTheTerminalIsLeftOpen(t *testing.T) {
	for name, tt := range map[string]struct {
		key  string
		code int
	}{"Ctrl-D": {"\x04", term.ExitWaits}, "Ctrl-C": {"\x03", term.ExitInterrupted}} {
		t.Run(name, func(t *testing.T) {
			a := startAtTerminal(t, askingLetter, nil, "--session", "s1")
			a.shows("and why> ")
			a.press(tt.key)
			a.shows("Answer with: refrain answer s1 yes|no --resume\r\n")
			if code := a.wait(); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			a.restored()
			if text := a.text(); strings.Contains(text, "q-") {
				t.Errorf("the ID of the only question is shown:\n%s", text)
			}
		})
	}
}

// A question whose deadline passes while the person thinks is answered by its default, and the run goes on.
func TestQuestionInTheTerminalHasItsDeadline(t *testing.T) {
	a := startAtTerminal(t, `
name: late
type: sequential
sub_agents:
  - {name: editor, question: Send?, deadline: 2s, default: true, output_key: review}
  - {name: say, text: "{{review.approved}}"}
`, nil)
	a.shows("and why> ")
	a.shows("(the deadline has passed")
	a.answers("true\n")
}

// The view of a resumed run shows the time that its steps took before, and its clock goes on from there.
func TestResumedViewHasTheTimesOfBefore(t *testing.T) {
	a := startAtTerminal(t, `
name: letter
type: sequential
sub_agents:
  - {name: draft, command: [sleep, "1.1"]}
  - {name: editor, question: "Send?"}
  - {name: done, text: sent}
`, nil)
	a.shows("and why> ")
	before := len(a.text())
	a.press("yes\r")
	if code := a.wait(); code != term.ExitOK {
		t.Errorf("exit code %d", code)
	}
	a.restored()
	after := a.text()[before:]
	atLeastASecond := `[1-9]\d*(\.\d)?s` // a busy machine takes longer than the command sleeps
	for _, shown := range []string{`draft +\[COMPLETED\] ✓ `, `Elapsed Time: `} {
		if regexp.MustCompile(shown + atLeastASecond).MatchString(after) {
			continue
		}
		t.Errorf("no %s of a second or more in the resumed view:\n%s", shown, after)
	}
}

// The console greets at a terminal, explains itself with /help, and /exit ends it without a request to the agents.
func TestConsoleGreets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "loop.yaml"), []byte("name: echo\ntype: template\ntext: 'about {{user_input}}'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startTerminalIn(t, dir, nil, "console", "loop.yaml", "--session", "s1")
	a.shows("Talking with echo, run s1. /help shows what you can type.\r\nuser> ")
	a.press("/help\r")
	a.shows("/exit   leave; so does Ctrl-D")
	a.press("cats\r/exit\r")
	if code := a.wait(); code != term.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if got := a.stdout.String(); got != "echo> about cats\n" {
		t.Errorf("answer %q", got)
	}
}
