// SPDX-License-Identifier: Apache-2.0

package form

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// verbs are what a phrase has in the place of a value.
var verbs = lazyregexp.New(`%(?:\.0f|[sqdvt])`)

// captures are what a verb matches, if that is not any text.
var captures = map[string]string{"%d": `(-?[0-9]+)`, "%q": `("(?:[^"\\]|\\.)*")`}

// phrase is an English text with values in it, and how Portuguese says it.
type phrase struct {
	english    *regexp.Regexp
	portuguese string
	fixed      int // characters that are no values
}

// phrases are the texts without values by their English, and the others, those with the most fixed characters first.
var phrases = sync.OnceValues(func() (map[string]string, []phrase) {
	plain, patterns := make(map[string]string), []phrase(nil)
	for _, p := range slices.Concat(fieldPhrases, problemPhrases) {
		if !verbs().MatchString(p[0]) {
			plain[p[0]] = p[1]
			continue
		}
		text, from := "", 0
		for _, at := range verbs().FindAllStringIndex(p[0], -1) {
			text += regexp.QuoteMeta(p[0][from:at[0]]) + cmp.Or(captures[p[0][at[0]:at[1]]], `(.+?)`)
			from = at[1]
		}
		text += regexp.QuoteMeta(p[0][from:])
		patterns = append(patterns, phrase{regexp.MustCompile(`^(?s:` + text + `)$`), p[1], len(verbs().ReplaceAllString(p[0], ""))})
	}
	slices.SortStableFunc(patterns, func(a, b phrase) int { return cmp.Compare(b.fixed, a.fixed) })
	return plain, patterns
})

// InPortuguese translates what a form shows: an explanation of a field, or a problem. A text that has no translation
// stays as it is.
func InPortuguese(english string) string {
	plain, patterns := phrases()
	if text, ok := plain[english]; ok {
		return text
	}
	for _, p := range patterns {
		if m := p.english.FindStringSubmatch(english); m != nil {
			args := make([]any, 0, len(m)-1)
			for _, value := range m[1:] {
				args = append(args, cmp.Or(plain[value], value))
			}
			return fmt.Sprintf(p.portuguese, args...)
		}
	}
	return english
}

// FieldsInPortuguese are the [Fields], explained in Portuguese.
func FieldsInPortuguese() []Field {
	all := Fields()
	for i := range all {
		all[i].Doc = InPortuguese(all[i].Doc)
		for kind, doc := range all[i].Docs {
			all[i].Docs[kind] = InPortuguese(doc)
		}
		for j := range all[i].Parts {
			all[i].Parts[j].Doc = InPortuguese(all[i].Parts[j].Doc)
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
			e.Ways[i] = InPortuguese(e.Ways[i])
		}
	}
}

// ProblemInPortuguese returns a problem with its message and its hint in Portuguese.
func ProblemInPortuguese(p *definition.Problem) *definition.Problem {
	out := *p
	out.Message, out.Hint = InPortuguese(p.Message), InPortuguese(p.Hint)
	return &out
}
