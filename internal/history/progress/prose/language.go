// SPDX-License-Identifier: Apache-2.0

// Package prose describes in English and Portuguese the state of a loop, how it can stop, and what its author may
// want to change. [Outlooks] returns the state of each loop of a tree in words:
//
//	for _, o := range prose.Outlooks(live.Tree(), prose.English) {
//		fmt.Println(o.Name, o.Words)
//	}
//
// A [Diagnosis] has the findings about loops that have stopped.
package prose

import (
	"fmt"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Language is a language of sentences, ledgers and findings.
type Language string

// The languages.
const (
	English    Language = "en"
	Portuguese Language = "pt"
)

// LanguageOf returns the language of a tag such as "pt-BR", or English if the sentences are not
// translated to it.
func LanguageOf(tag string) Language {
	if primary, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-"); strings.EqualFold(primary, "pt") {
		return Portuguese
	}
	return English
}

// say returns a phrase with its arguments. It writes figures as the language does.
func (lang Language) say(p phrase, args ...any) string {
	text := p.english
	if lang == Portuguese {
		text = p.portuguese
	}
	if len(args) == 0 {
		return text
	}
	for i, a := range args {
		switch x := a.(type) {
		case int:
			args[i] = lang.figure(brief.Whole(x))
		case int64:
			args[i] = lang.figure(brief.Whole(x))
		case float64:
			args[i] = lang.score(x)
		case time.Duration:
			args[i] = lang.figure(brief.Clock(x))
		}
	}
	return fmt.Sprintf(text, args...)
}

// counted returns the phrase for one thing or the one for several.
func (lang Language) counted(n int, one, several phrase) string {
	if n == 1 {
		return lang.say(one)
	}
	return lang.say(several, n)
}

// figure writes an English figure as the language does.
func (lang Language) figure(english string) string {
	if lang == Portuguese {
		return brief.Comma(english)
	}
	return english
}

// score writes a score, a gain or a bound: 7.997 or 7,997.
func (lang Language) score(f float64) string { return lang.figure(brief.Score(f)) }

// offBy writes a score and by how much it is off, if that is known: 8.1 ± 0.3.
func (lang Language) offBy(score, e float64) string {
	return lang.figure(brief.Score(score) + brief.OffBy(e))
}
