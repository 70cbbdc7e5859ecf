// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

var tokens = regexp.MustCompile(`\b[kvcn][0-9]+\b`)

// tokensOf are the tokens of a value in the order of its text: all of them, or those
// that stay when it gets another value.
func tokensOf(w *written, keeps bool) string {
	var b strings.Builder
	for _, h := range w.head {
		b.WriteString(h + " ")
	}
	b.WriteString(w.key + " ")
	block := w.style == "block" || w.style == "literal" || w.style == "folded"
	if block {
		b.WriteString(w.line + " ")
	}
	if !keeps {
		if w.kind == 's' {
			b.WriteString(w.text + " ")
		}
		for _, item := range w.items {
			b.WriteString(tokensOf(item, false) + " ")
		}
	}
	if !block {
		b.WriteString(w.line + " ")
	}
	if !keeps {
		b.WriteString(strings.Join(w.foot, " "))
	}
	return strings.Join(tokens.FindAllString(b.String(), -1), " ")
}

// change is one operation on a text that was made up, and what has to come of it.
type change struct {
	name  string
	do    func(*edit.Editor) error
	model func() // what the text says then, made by changing the tree
	was   string // tokens that are replaced, one after the other
	is    string
	own   string // tokens of the lines that may change
	loose string // tokens that may be there still, or not
}

// changes makes up an operation for a place.
func changes(a *author, path string, up, w *written, at int) []change {
	all := tokensOf(w, false)
	fresh := []any{"n1", 7, true, nil, "n1 n2: n3 # n4", "n1\nn2", "n1\n\n  n2\nn3\n", []any{"n1", 2},
		map[string]any{"n1": "n2", "n3": []any{map[string]any{"n4": "n5\nn6"}}}}
	value := fresh[a.IntN(len(fresh))]
	list := path[:max(strings.LastIndexAny(path, "[."), 0)]
	out := []change{
		{"set", func(e *edit.Editor) error { return e.Set(path, value) }, func() { w.kind, w.value, w.items = 's', value, nil }, all, tokensOf(w, true), all, all},
		{"remove", func(e *edit.Editor) error { return e.Remove(path) }, func() { up.items = slices.Delete(up.items, at, at+1) }, all, "", all, ""},
	}
	if up.kind == 'm' {
		return out
	}
	to := a.IntN(len(up.items))
	var between []string
	for _, item := range up.items[min(at, to) : max(at, to)+1] {
		between = append(between, tokensOf(item, false))
	}
	was := strings.Join(strings.Fields(strings.Join(between, " ")), " ")
	moved := slices.Clone(between)
	if at < to {
		moved = append(moved[1:], moved[0])
	} else {
		moved = slices.Insert(moved[:len(moved)-1], 0, moved[len(moved)-1])
	}
	return append(out,
		change{"insert", func(e *edit.Editor) error { return e.Insert(list, at, value) }, func() {
			up.items = slices.Insert(up.items, at, &written{kind: 's', value: value})
		}, "", "", "", ""},
		change{"append", func(e *edit.Editor) error { return e.Insert(list, len(up.items), value) }, func() {
			up.items = append(up.items, &written{kind: 's', value: value})
		}, "", "", "", ""},
		change{"duplicate", func(e *edit.Editor) error { return e.Duplicate(path, "") }, func() {
			up.items = slices.Insert(up.items, at+1, w)
		}, all, all + " " + all, "", ""},
		change{"move", func(e *edit.Editor) error { return e.Move(list, at, to) }, func() {
			up.items = slices.Insert(slices.Delete(up.items, at, at+1), to, w)
		}, was, strings.Join(moved, " "), was, ""},
	)
}

// Whatever a text looks like and whatever is done to it: it says then what a model of
// it says, every comment and every word that is not concerned is there, in its order,
// and the lines that are not concerned are the same bytes.
func TestEditKeepsWhatIsNotConcerned(t *testing.T) {
	refused := 0
	texts := longtest.N(200, 1000)
	for seed := range uint64(texts) {
		a := &author{Rand: rand.New(rand.NewPCG(seed, 1))}
		root, text := a.definition()
		checkSaid(t, seed, "", text, plainOf(root))
		var all []change
		spots(root, nil, func(path string, up, w *written, at int) {
			for _, c := range changes(a, path, up, w, at) {
				c.name += " " + path
				all = append(all, c)
			}
		})
		c := all[a.IntN(len(all))]
		e, err := edit.New([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(e); err != nil {
			refused++
			if string(e.Bytes()) != text {
				t.Errorf("seed %d: %s failed and has changed the text", seed, c.name)
			}
			t.Logf("seed %d: %s: %v\n%s", seed, c.name, err, text)
			continue
		}
		got := string(e.Bytes())
		c.model()
		checkSaid(t, seed, c.name, got, plainOf(root))
		checkTokens(t, seed, c, text, got)
		checkLines(t, seed, c, text, got)
		if n := strings.Count(got, "\n") - strings.Count(got, a.brk); n != 0 || strings.HasPrefix(a.brk, "\n") && strings.Contains(got, "\r\n") {
			t.Errorf("%d lines end in another way", n)
		}
		if !strings.HasSuffix(text, a.brk) && strings.HasSuffix(got, a.brk) && !strings.ContainsAny(got, "|>") && !strings.HasSuffix(text, got) {
			t.Errorf("the last line got an end")
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s\n%s\n--- after\n%s", seed, c.name, text, got)
		}
	}
	if refused > texts/100 {
		t.Errorf("%d of %d operations were refused", refused, texts)
	}
}

// What a form gives back, the whole definition with one field that has another value,
// or is gone, or is new, is written as that one edit would be.
func TestEditMergesAsOneEdit(t *testing.T) {
	for seed := range uint64(300) {
		a := &author{Rand: rand.New(rand.NewPCG(seed, 2))}
		root, text := a.definition()
		type place struct {
			path  string
			up, w *written
			at    int
		}
		var all []place
		spots(root, nil, func(path string, up, w *written, at int) {
			if up.kind == 'm' && (w.kind == 's' || len(up.items) > 1) {
				all = append(all, place{path, up, w, at})
			}
		})
		if len(all) == 0 {
			continue
		}
		one, _ := edit.New([]byte(text))
		whole, _ := edit.New([]byte(text))
		if err := whole.Set("", plainOf(root)); err != nil || string(whole.Bytes()) != text {
			t.Fatalf("seed %d: %v, and what is there already was written again:\n%s\n%s", seed, err, text, whole.Bytes())
		}
		p := all[a.IntN(len(all))]
		var err error
		if p.w.kind == 's' && a.IntN(2) == 0 {
			p.w.value = a.one("n1", "n1\nn2\n")
			err = one.Set(p.path, p.w.value)
		} else if len(p.up.items) > 1 {
			p.up.items = slices.Delete(p.up.items, p.at, p.at+1)
			err = one.Remove(p.path)
		}
		if err == nil {
			err = whole.Set("", plainOf(root))
		}
		if err != nil {
			t.Fatalf("seed %d: %s: %v\n%s", seed, p.path, err, text)
		}
		checkSaid(t, seed, p.path, string(whole.Bytes()), plainOf(root))
		if diff := cmp.Diff(string(one.Bytes()), string(whole.Bytes())); diff != "" {
			t.Fatalf("seed %d: %s (-one +whole):\n%s\n%s", seed, p.path, diff, text)
		}
	}
}

func checkSaid(t *testing.T, seed uint64, name, text string, want any) {
	t.Helper()
	var got any
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("seed %d: %s: %v\n%s", seed, name, err, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("seed %d: %s (-model +text):\n%s\n%s", seed, name, diff, text)
	}
}

// checkTokens looks whether everything that is not concerned is there, in its order.
func checkTokens(t *testing.T, seed uint64, c change, text, got string) {
	t.Helper()
	before := " " + strings.Join(tokens.FindAllString(text, -1), " ") + " "
	want := before
	if c.was != "" {
		was := " " + c.was + " "
		if strings.Count(before, was) != 1 {
			t.Fatalf("seed %d: %s: %q is not in %q", seed, c.name, was, before)
		}
		want = strings.Replace(before, was, " "+c.is+" ", 1)
	}
	loose := make(map[string]bool)
	for tok := range strings.FieldsSeq(c.loose) {
		loose[tok] = !strings.Contains(" "+c.is+" ", " "+tok+" ")
	}
	fixed := func(all []string) []string {
		return slices.DeleteFunc(all, func(tok string) bool { return tok[0] == 'n' || loose[tok] })
	}
	if diff := cmp.Diff(fixed(strings.Fields(want)), fixed(tokens.FindAllString(got, -1)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("seed %d: %s: words and comments (-want +got):\n%s", seed, c.name, diff)
	}
}

// checkLines looks whether the lines that are not concerned are the same. A comma, a
// dash or what is empty then may change the line before, and the one behind.
func checkLines(t *testing.T, seed uint64, c change, text, got string) {
	t.Helper()
	own := make(map[string]bool)
	for tok := range strings.FieldsSeq(c.own) {
		own[tok] = true
	}
	have := make(map[string]int)
	for line := range strings.SplitSeq(got, "\n") {
		have[line]++
	}
	missing := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		in := tokens.FindAllString(line, -1)
		if len(in) == 0 || slices.ContainsFunc(in, func(tok string) bool { return own[tok] }) {
			continue
		}
		if have[line]--; have[line] < 0 {
			missing++
		}
	}
	if missing > 2 {
		t.Errorf("seed %d: %s: %d lines that are not concerned have changed", seed, c.name, missing)
	}
}
