// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/session"
)

// editor returns the command of the person's editor, which VISUAL or EDITOR names; nil if neither is set, or if there is no terminal.
func (k *keyboard) editor() []string {
	if term.KeyboardOf(k.e.Stdin) == nil || term.ScreenOf(k.e.Stderr) == nil {
		return nil
	}
	return strings.Fields(cmp.Or(k.e.Getenv("VISUAL"), k.e.Getenv("EDITOR")))
}

// edited opens values of the state in the editor, each as a file of its own, and returns the edited values. A value that is not a
// text is edited as JSON.
func (k *keyboard) edited(ctx context.Context, editor []string, values map[string]any) (json.RawMessage, error) {
	dir, err := os.MkdirTemp("", "refrain-edit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	keys := slices.Sorted(maps.Keys(values))
	files := make([]string, len(keys))
	for i, key := range keys {
		files[i] = filepath.Join(dir, fileName(i, key))
		if err := os.WriteFile(files[i], []byte(textOf(values[key])), 0o600); err != nil {
			return nil, err
		}
	}
	release := term.OnInterrupt(ctx, func(os.Signal) {}) // Ctrl-C is a key of the editor
	defer release()
	cmd := exec.Command(editor[0], append(editor[1:len(editor):len(editor)], files...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.KeyboardOf(k.e.Stdin), term.ScreenOf(k.e.Stderr), term.ScreenOf(k.e.Stderr)
	cmd.Env = child.Inheritance{}.Environ()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the editor %s: %w; nothing is changed", editor[0], err)
	}
	edit := make(map[string]any, len(keys))
	for i, key := range keys {
		data, err := os.ReadFile(files[i])
		if err != nil {
			return nil, err
		}
		was, isText := values[key].(string)
		text := string(data)
		switch {
		case isText && !strings.HasSuffix(was, "\n"):
			edit[key] = strings.TrimSuffix(text, "\n") // editors end the last line
		case isText:
			edit[key] = text
		default:
			if edit[key], err = session.PlainJSON(data); err != nil {
				return nil, fmt.Errorf("%s is no JSON: %w; nothing is changed", key, err)
			}
		}
	}
	return json.Marshal(edit)
}

// fileName returns the name of the file for the key with an index: without what has a meaning in paths.
func fileName(i int, key string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, key)
	return fmt.Sprintf("%d-%s.txt", i+1, plain)
}

// textOf returns a value as it is shown and edited: a text itself, and any other value as JSON.
func textOf(v any) string {
	if s, is := v.(string); is {
		return s
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data) + "\n"
}
