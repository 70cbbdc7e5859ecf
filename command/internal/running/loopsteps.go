// SPDX-License-Identifier: Apache-2.0

package running

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/findings"
	"github.com/refrain-dev/refrain/command/internal/plan"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/testscan"
)

// readPrompt is the name of the hidden command that reads the prompt of -p again.
const readPrompt = "read-prompt"

// NewReadPrompt makes the hidden command that prints the prompt in a file, or its input, the prompt of before, if the file cannot be read.
func NewReadPrompt(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use: readPrompt + " FILE", Hidden: true, Short: "Read the prompt of refrain loop again", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := io.ReadAll(e.Stdin)
			if err != nil {
				return term.Failure(err)
			}
			if now, err := promptIn(args[0]); err == nil {
				text = now
			}
			_, err = e.Stdout.Write(text)
			return err
		},
	}
}

// promptIn reads the prompt in a file.
func promptIn(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > plan.MostText) {
		err = fmt.Errorf("it is no file of text with at most %d bytes", plan.MostText)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(name)
	}
	if err == nil {
		err = isText(string(text))
	}
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = errors.New("it is empty")
	}
	return text, err
}

// readNotes is the name of the hidden command that reads the notes of the agent.
const readNotes = "read-notes"

// mostNotes is how many bytes of the notes are in a prompt.
const mostNotes = 16 << 10

// NewReadNotes makes the hidden command that prints the end of a file of notes in the current folder. Its input is what it printed before: if
// there is no file, as in the copy of a fork, it writes that.
func NewReadNotes(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use: readNotes + " FILE", Hidden: true, Short: "Read the notes of a coding agent", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := io.ReadAll(e.Stdin)
			if err == nil {
				before, err = notesIn(args[0], before)
			}
			if err == nil {
				_, err = e.Stdout.Write(before)
			}
			return term.Failure(err)
		},
	}
}

// notesIn returns the end of a file of notes. A link, a folder or another kind of file has no notes.
func notesIn(name string, before []byte) ([]byte, error) {
	root, err := os.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("read the notes: %w", err)
	}
	defer root.Close()
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(before) > 0:
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		return before, root.WriteFile(name, before, 0o644)
	case err != nil || !info.Mode().IsRegular():
		return nil, nil
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the notes: %w", err)
	}
	defer f.Close()
	from := max(0, info.Size()-mostNotes)
	text, err := io.ReadAll(io.NewSectionReader(f, from, mostNotes))
	if err != nil {
		return nil, fmt.Errorf("read the notes: %w", err)
	}
	if from > 0 {
		if _, rest, found := bytes.Cut(text, []byte("\n")); found {
			text = rest
		}
		text = append([]byte("(Its beginning is left out, because it is long. Shorten it.)\n"), text...)
	}
	return bytes.ToValidUTF8(text, []byte("\uFFFD")), nil
}

// readFindings is the name of the hidden command that puts the answers of reviewers together.
const readFindings = "read-findings"

// NewReadFindings makes the hidden command that reads the answers of reviewers, a JSON object with a text for each name, and prints a
// [findings.Report].
func NewReadFindings(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use: readFindings, Hidden: true, Short: "Read what reviewers have found", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var answers map[string]string
			if err := json.NewDecoder(e.Stdin).Decode(&answers); err != nil {
				return term.Failure(fmt.Errorf("read the answers of the reviewers: %w", err))
			}
			root, err := os.OpenRoot(".")
			if err != nil {
				return term.Failure(fmt.Errorf("read the answers of the reviewers: %w", err))
			}
			defer root.Close()
			exists := func(name string) bool {
				_, err := root.Lstat(filepath.FromSlash(name))
				return err == nil
			}
			return json.NewEncoder(e.Stdout).Encode(findings.Read(answers, os.Getenv("INPUT_LAST") == "true", exists))
		},
	}
}

// countTests is the name of the hidden command that counts tests.
const countTests = "count-tests"

// NewCountTests makes the hidden command that counts the tests which the files of the current folder declare. Its input is empty, or what
// it printed before the loop. Its failure ends no loop.
func NewCountTests(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use: countTests, Hidden: true, Short: "Count the tests in the current folder",
		RunE: func(cmd *cobra.Command, _ []string) error {
			counts := declaredLimits(cmd.Context())
			var before map[string]int64
			if err := json.NewDecoder(e.Stdin).Decode(&before); err == nil && before["broken"] == 0 {
				counts["total_before"], counts["skipped_before"] = before["passed"]+before["skipped"], before["skipped"]
			}
			return json.NewEncoder(e.Stdout).Encode(counts)
		},
	}
}

// declaredLimits counts the tests of the current folder, in the form of tests: counts.
func declaredLimits(ctx context.Context) map[string]int64 {
	c, err := testscan.Scan(ctx, ".")
	if err != nil {
		return map[string]int64{"passed": 0, "failed": 0, "skipped": 0, "broken": 1}
	}
	return map[string]int64{"passed": max(0, c.Total-c.Skipped), "failed": 0, "skipped": c.Skipped}
}

// testsBefore returns what [NewCountTests] prints in the current folder.
func testsBefore(ctx context.Context) string {
	text, _ := json.Marshal(declaredLimits(ctx)) // numbers can always be encoded
	return string(text)
}
