// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// commit stores a commit of the files after a step, if the step's [Work] names a text for it and the files differ from those of the
// commit before.
func (rs *Runs) commit(ctx agent.InvocationContext, t *workspace.Tree, w *Work, now *state) error {
	if w.Commit == "" {
		return nil
	}
	at := drive.At(ctx)
	text, ok := textAt(at, w.Commit)
	if !ok {
		return nil
	}
	before, err := t.TreeOf(ctx, now.commit)
	if err != nil {
		return err
	}
	if before == "" { // also if the commits of an earlier run are not in the store any more
		now.commit, before = "", t.Start()
	}
	if before == now.hash {
		return nil
	}
	iteration, inLoop := at.Lookup("iteration")
	trailers := "Refrain-Run: " + ctx.Session().ID() + "\n"
	if inLoop && iteration != nil {
		trailers += fmt.Sprintf("Refrain-Iteration: %v\n", iteration)
	}
	now.commit, err = t.Commit(ctx, now.hash, now.commit, MessageOf(text)+"\n\n"+trailers)
	return err
}

// textAt returns a text of the state: the value of a key, or KEY.FIELD of a map.
func textAt(at drive.Place, path string) (text string, ok bool) {
	key, field, isField := strings.Cut(path, ".")
	v, _ := at.Lookup(key)
	if isField {
		m, _ := v.(map[string]any)
		v = m[field]
	}
	text, ok = v.(string)
	return text, ok
}

// restore goes back to earlier files before a step, if the step's [Work] names them. edits has what persons have edited until now.
func restore(ctx agent.InvocationContext, t *workspace.Tree, w *Work, edits string) (err error) {
	text, _ := textAt(drive.At(ctx), w.Restore)
	files, known, stay := strings.Cut(text, " ")
	h := workspace.Hash(files)
	switch {
	case w.Restore == "" || text == "":
		return nil
	case files == StartFiles:
		h = t.Start()
	}
	if later, ok := strings.CutPrefix(edits, strings.TrimSpace(known)); ok && stay {
		trees := treesOf(later)
		for i := 0; i < len(trees); i += 2 {
			if h, err = t.Redo(ctx, h, trees[i], trees[i+1]); err != nil {
				return err
			}
		}
	}
	_, err = t.Ensure(ctx, h)
	return err
}

// Sizes of a commit's message in bytes: most of the first line in characters, and of the rest.
const (
	mostSubject = 72
	mostBody    = 4000
)

// MessageOf returns a message of a commit from an agent's words: a first line of at most 72 characters, and the rest of the text.
func MessageOf(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
	text = strings.TrimSpace(text)
	line, rest, _ := strings.Cut(text, "\n")
	subject := strings.Join(strings.Fields(strings.Trim(line, "#*-> \t\u0060_")), " ")
	if subject == "" {
		subject = "Changes without a message"
	}
	if runes := []rune(subject); len(runes) > mostSubject {
		cut := string(runes[:mostSubject-1])
		if i := strings.LastIndexByte(cut, ' '); i > mostSubject/2 {
			cut = cut[:i]
		}
		subject, rest = cut+"…", text
	}
	var body []string
	for l := range strings.SplitSeq(rest, "\n") {
		body = append(body, strings.TrimRight(l, " \t"))
	}
	if rest = strings.TrimSpace(strings.Join(body, "\n")); rest == "" {
		return subject
	}
	if len(rest) > mostBody {
		rest = strings.ToValidUTF8(rest[:mostBody], "") + " …"
	}
	return subject + "\n\n" + rest
}
