// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

// written is a value in a text that was made up: every key, every word and every
// comment in it is a token of its own, such as k1, v2 and c3, and it is known whose
// each comment is.
type written struct {
	key    string   // "" in a list
	head   []string // comments above
	line   string   // the comment behind, or behind its key; "" for none
	foot   []string // comments behind, indented deeper
	kind   byte     // 'm', 'l', or 's'
	style  string
	text   string // of a scalar, as it is written; lines of | and > without their indentation
	value  any
	items  []*written
	spaced bool // an empty line before
}

// author makes up texts.
type author struct {
	*rand.Rand
	n          int
	step, list int
	brk        string
	lines      []string
	commas     bool // also behind the last in brackets
}

func (a *author) token(kind string) string {
	a.n++
	return fmt.Sprintf("%s%d", kind, a.n)
}

func (a *author) one(of ...string) string { return of[a.IntN(len(of))] }

func (a *author) comments(odds int) (all []string) {
	for a.IntN(odds) == 0 && len(all) < 2 {
		all = append(all, "#"+a.one(" ", "", "\t", " - ", " k: ")+a.token("c"))
	}
	return all
}

// entry makes up a value of a map or a list.
func (a *author) entry(depth int, keyed, flow, own bool) *written {
	w := &written{spaced: !flow && a.IntN(6) == 0}
	if keyed {
		w.key = a.token("k")
	}
	if !flow || own {
		w.head = a.comments(5)
		if a.IntN(4) == 0 {
			w.line = "# " + a.token("c")
		}
	}
	w.kind = "mlsss"[a.IntN(5)]
	if depth > 3 {
		w.kind = 's'
	}
	if w.kind == 's' {
		a.scalar(w, flow)
		return w
	}
	w.style = "block"
	if flow || a.IntN(4) == 0 {
		w.style = "flow"
		if !flow && a.IntN(2) == 0 {
			w.style = "rows"
		}
	}
	least := 0
	if w.style == "block" {
		least = 1
		if w.foot = a.comments(8); a.list == 0 && w.kind == 'l' {
			w.foot = nil // it would belong to the last in it
		}
		if !keyed {
			w.line = "" // it would belong to the first in it
		}
	}
	if w.style == "rows" {
		least = 1
	}
	for range least + a.IntN(4) {
		item := a.entry(depth+1, w.kind == 'm', w.style != "block", w.style == "rows")
		if !keyed && w.style == "block" && len(w.items) == 0 {
			item.head, item.spaced = nil, false // it stands behind the dash
		}
		w.items = append(w.items, item)
	}
	return w
}

// scalar makes up a text, a number or the like.
func (a *author) scalar(w *written, flow bool) {
	all := []string{a.token("v")}
	for a.IntN(3) == 0 {
		all = append(all, a.token("v"))
	}
	words := strings.Join(all, " ")
	styles := []string{"plain", "single", "double", "number", "null", "literal", "folded", "long", "longquoted"}
	if flow {
		styles = styles[:4]
	}
	w.style, w.text, w.value = a.one(styles...), words, words
	switch w.style {
	case "single":
		w.text, w.value = "'it''s "+words+"'", "it's "+words
	case "double":
		w.text, w.value = `"\"`+words+`\t\u00e9 # é"`, "\""+words+"\té # é"
	case "number":
		a.n++
		w.text, w.value = fmt.Sprint(a.n), a.n
	case "null":
		w.text, w.value = "", nil
	case "literal", "folded":
		more := a.token("v")
		w.text = words + "\n\n" + more + " # no comment"
		w.value = words + "\n\n" + more + " # no comment\n"
		if w.style == "folded" {
			w.value = words + "\n" + more + " # no comment\n"
		}
	case "long":
		more := a.token("v")
		w.text, w.value = words+"\n"+more, words+" "+more
	case "longquoted":
		more := a.token("v")
		w.text, w.value = `"`+words+"\n\n"+more+`"`, words+"\n"+more
	}
}

// write writes a value behind a key or a dash; column is theirs.
func (a *author) write(w *written, column int, before string) {
	comment := ""
	if w.line != "" {
		comment = "  " + w.line
	}
	margin := func(n int) string { return strings.Repeat(" ", n) }
	switch {
	case w.kind == 's' && (w.style == "literal" || w.style == "folded"):
		sign := map[string]string{"literal": "|", "folded": ">"}[w.style]
		a.lines = append(a.lines, before+" "+sign+comment)
		for l := range strings.SplitSeq(w.text, "\n") {
			if l != "" {
				l = margin(column+a.step) + l
			}
			a.lines = append(a.lines, l)
		}
	case w.kind == 's':
		rows := strings.Split(w.text, "\n")
		for i, row := range rows {
			if i > 0 && row != "" {
				row = margin(column+a.step) + row
			}
			if i == 0 && row != "" {
				row = " " + row
			}
			if i == 0 {
				row = before + row
			}
			if i == len(rows)-1 {
				row += comment
			}
			a.lines = append(a.lines, row)
		}
	case w.style == "flow":
		a.lines = append(a.lines, before+" "+strings.TrimPrefix(flowText(w), w.key+": ")+comment)
	case w.style == "rows":
		open, end := "[", "]"
		if w.kind == 'm' {
			open, end = "{", "}"
		}
		a.lines = append(a.lines, before+" "+open)
		for i, item := range w.items {
			in := margin(column + a.step)
			for _, h := range item.head {
				a.lines = append(a.lines, in+h)
			}
			row := in + flowText(item)
			if i < len(w.items)-1 || a.commas {
				row += ","
			}
			if item.line != "" {
				row += " " + item.line
			}
			a.lines = append(a.lines, row)
		}
		a.lines = append(a.lines, margin(column+1)+end+comment)
	default:
		a.block(w, column, before+comment)
	}
	for _, f := range w.foot {
		a.lines = append(a.lines, margin(column+1)+f)
	}
}

// block writes a collection with lines of its own.
func (a *author) block(w *written, column int, before string) {
	dash := strings.HasSuffix(strings.TrimRight(before, " "), "-")
	at := column + a.step
	if w.kind == 'l' {
		at = column + a.list
	}
	if dash {
		at = column + 2
	} else if before != "" {
		a.lines = append(a.lines, before)
	}
	if column < 0 {
		at = 0
	}
	for i, item := range w.items {
		if item.spaced {
			a.lines = append(a.lines, "")
		}
		for _, h := range item.head {
			a.lines = append(a.lines, strings.Repeat(" ", at)+h)
		}
		start := strings.Repeat(" ", at)
		if i == 0 && dash {
			start = before + " "
		}
		mark := "-"
		if item.key != "" {
			mark = item.key + ":"
		}
		a.write(item, at, start+mark)
	}
}

// flowText is a value in brackets.
func flowText(w *written) string {
	text := w.text
	if w.kind != 's' {
		var parts []string
		for _, item := range w.items {
			parts = append(parts, flowText(item))
		}
		text = "[" + strings.Join(parts, ", ") + "]"
		if w.kind == 'm' {
			text = "{" + strings.Join(parts, ", ") + "}"
		}
	}
	if w.key != "" {
		return w.key + ": " + text
	}
	return text
}

// definition makes up a whole text.
func (a *author) definition() (root *written, text string) {
	a.step, a.list = 2+2*a.IntN(2), 2*a.IntN(2)
	a.brk = a.one("\n", "\n", "\r\n")
	a.commas = a.IntN(2) == 0
	root = &written{kind: 'm', style: "block"}
	for range 1 + a.IntN(6) {
		root.items = append(root.items, a.entry(1, true, false, false))
	}
	a.lines = strings.Split(a.one("", "# yaml-language-server: $schema=x\n---\n", "# c0\n\n"), "\n")
	a.lines = a.lines[:len(a.lines)-1]
	root.items[0].head = nil // what is above it is the file's
	a.block(root, -1, "")
	end := a.one(a.brk, a.brk, "", a.brk+"# c00"+a.brk)
	if end == "" && strings.HasSuffix(a.lines[len(a.lines)-1], "# no comment") {
		end = a.brk // a text behind | has its line end
	}
	text = strings.Join(a.lines, a.brk) + end
	return root, text
}

// plainOf is the value as a program sees it.
func plainOf(w *written) any {
	switch w.kind {
	case 's':
		return w.value
	case 'm':
		m := make(map[string]any)
		for _, item := range w.items {
			m[item.key] = plainOf(item)
		}
		return m
	}
	l := make([]any, 0, len(w.items))
	for _, item := range w.items {
		l = append(l, plainOf(item))
	}
	return l
}

// spots lists the values in another one, with their paths.
func spots(w *written, path []any, visit func(path string, up, w *written, at int)) {
	for i, item := range w.items {
		p := append(append([]any(nil), path...), any(i))
		if item.key != "" {
			p[len(path)] = item.key
		}
		visit(edit.FieldPath(p...), w, item, i)
		spots(item, p, visit)
	}
}
