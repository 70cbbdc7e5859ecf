// SPDX-License-Identifier: Apache-2.0

package form

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// verbs matches the placeholders of a phrase.
var verbs = lazyregexp.New(`%(?:\.0f|[sqdvt])`)

// captures has the pattern of the values of a placeholder, if not every text is possible.
var captures = map[string]string{"%d": `(-?[0-9]+)`, "%q": `("(?:[^"\\]|\\.)*")`}

// phrase is an English text with placeholders and its Portuguese translation.
type phrase struct {
	english    *regexp.Regexp
	portuguese string
	fixed      int // characters outside placeholders
}

// table has the phrases without placeholders by their English text, and the others in descending order of fixed characters.
type table struct {
	plain    map[string]string
	patterns []phrase
}

//go:embed portuguese.txt
var phrases string

var (
	aboutFields   = sync.OnceValue(func() table { return tableOf("field") })
	aboutProblems = sync.OnceValue(func() table { return tableOf("problem") })
	aboutEnds     = sync.OnceValue(func() table { return tableOf("end") })
)

// tableOf reads a section of the phrases.
func tableOf(section string) table {
	t := table{plain: make(map[string]string)}
	_, text, _ := strings.Cut(phrases, "\n["+section+"]\n")
	text, _, _ = strings.Cut(text, "\n[")
	english := ""
	for line := range strings.Lines(text) {
		portuguese, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		if !is {
			english = portuguese
			continue
		}
		if !verbs().MatchString(english) {
			t.plain[english] = portuguese
			continue
		}
		text, from := "", 0
		for _, at := range verbs().FindAllStringIndex(english, -1) {
			text += regexp.QuoteMeta(english[from:at[0]]) + cmp.Or(captures[english[at[0]:at[1]]], `(.+?)`)
			from = at[1]
		}
		text += regexp.QuoteMeta(english[from:])
		t.patterns = append(t.patterns, phrase{regexp.MustCompile(`^(?s:` + text + `)$`), portuguese, len(verbs().ReplaceAllString(english, ""))})
	}
	sort.SliceStable(t.patterns, func(i, k int) bool { return t.patterns[i].fixed > t.patterns[k].fixed }) // smaller than slices
	return t
}

// say translates a text. It also translates the values in the text that are phrases of the table. It returns a text
// without a phrase unchanged.
func (t table) say(english string) string {
	if text, ok := t.plain[english]; ok {
		return text
	}
	for _, p := range t.patterns {
		if m := p.english.FindStringSubmatch(english); m != nil {
			args := make([]any, 0, len(m)-1)
			for _, value := range m[1:] {
				args = append(args, cmp.Or(t.plain[value], value))
			}
			return fmt.Sprintf(p.portuguese, args...)
		}
	}
	return english
}

// way translates how a loop can end, with its alternatives and figures. A condition stays as the definition has it.
func (t table) way(english string) string {
	if amounts, rest, ok := strings.Cut(strings.TrimPrefix(english, "when "), " are used"); ok && !strings.Contains(amounts, `"`) {
		each := strings.Split(amounts, " or ")
		for i := range each {
			each[i] = t.say(brief.Comma(each[i]))
		}
		return t.say("when " + strings.Join(each, " ou ") + " are used" + rest)
	}
	if gains, ok := strings.CutPrefix(english, improves); ok {
		gains, often, _ := strings.Cut(gains, ", ")
		if gains = brief.Comma(strings.Replace(gains, " or ", " ou ", 1)); often != "" {
			gains += ", " + often
		}
		return t.say(improves + gains)
	}
	if figure, ok := strings.CutPrefix(english, "after "); ok && !strings.Contains(figure, `"`) {
		return t.say("after " + brief.Comma(figure))
	}
	for _, start := range []string{"when the score is ", "when every part of it is ", "when the next "} {
		if strings.HasPrefix(english, start) {
			return t.say(brief.Comma(english))
		}
	}
	return t.say(english)
}

const improves = "when the score improves by less than "

// DocInPortuguese translates the explanation of a field, or of a part of a field.
func DocInPortuguese(doc string) string { return aboutFields().say(doc) }

// FieldsInPortuguese returns the [Fields] with their explanations in Portuguese.
func FieldsInPortuguese() []Field {
	all := Fields()
	for i := range all {
		all[i].Doc = DocInPortuguese(all[i].Doc)
		for kind, doc := range all[i].Docs {
			all[i].Docs[kind] = DocInPortuguese(doc)
		}
		for j := range all[i].Parts {
			all[i].Parts[j].Doc = DocInPortuguese(all[i].Parts[j].Doc)
		}
	}
	return all
}

// InPortuguese translates the outline's problems, fixes and ends.
func (o *Outline) InPortuguese() {
	for i, p := range o.Problems {
		o.Problems[i].Problem = ProblemInPortuguese(p.Problem)
		for j, f := range p.Fixes {
			p.Fixes[j].Title = "Usar " + f.Text
		}
	}
	for _, e := range o.Ends {
		for i := range e.Ways {
			e.Ways[i] = aboutEnds().way(e.Ways[i])
		}
	}
}

// ProblemInPortuguese returns a problem with its message and its hint in Portuguese.
func ProblemInPortuguese(p *definition.Problem) *definition.Problem {
	out := *p
	out.Message, out.Hint = aboutProblems().say(p.Message), aboutProblems().say(p.Hint)
	return &out
}
