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
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/progress"
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

// say returns a phrase with its arguments. It writes numbers as the language does.
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
			args[i] = lang.number(float64(x), 0)
		case float64:
			args[i] = lang.number(x, shortest)
		case time.Duration:
			args[i] = progress.Clock(x)
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

// shortest is as many decimals as a number needs, of at most six digits.
const shortest = -1

// number writes a number with a number of decimals: 41,206.5 or 41.206,5.
func (lang Language) number(f float64, decimals int) string {
	if decimals == shortest && math.Abs(f) < 1e6 {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', 6, 64), 64)
	}
	if math.Abs(f) >= 1e15 || f != 0 && math.Abs(f) < 1e-6 {
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
	text := strconv.FormatFloat(f, 'f', decimals, 64)
	sign := ""
	if text[0] == '-' {
		if text = text[1:]; strings.Trim(text, "0.") != "" {
			sign = "−"
		}
	}
	whole, part, _ := strings.Cut(text, ".")
	group, point := ",", "."
	if lang == Portuguese {
		group, point = ".", ","
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + group + whole[i:]
	}
	if part != "" {
		whole += point + part
	}
	return sign + whole
}
