// SPDX-License-Identifier: Apache-2.0

// Package rouge compares texts by ROUGE-1, which counts the words that two texts share (Lin 2004).
//
//	f := rouge.F1("The flights were booked", "the flight is booked") // 0.75
//
// The figures are those of Google's package rouge_score with stemming, for texts in ASCII. That package drops all other
// letters. This package keeps words of other scripts whole and does not stem them. Of scripts that put no space between
// words, such as Chinese and Thai, each letter is a word.
package rouge

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// F1 returns the F measure of an answer and its reference: the harmonic mean of the share of the answer's words that are
// in the reference and the share of the reference's words that are in the answer. It is 0 if a text has no words.
func F1(answer, reference string) float64 {
	got, want := Words(answer), Words(reference)
	if len(got) == 0 || len(want) == 0 {
		return 0
	}
	count := make(map[string]int)
	for _, w := range want {
		count[w]++
	}
	common := 0
	for _, w := range got {
		if count[w] > 0 {
			count[w]--
			common++
		}
	}
	if common == 0 {
		return 0
	}
	precision, recall := float64(common)/float64(len(got)), float64(common)/float64(len(want))
	return 2 * precision * recall / (precision + recall)
}

// Words returns the words of a text in lower case. English words of more than three letters are stemmed.
func Words(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(norm.NFC.String(text)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
	var all []string
	for _, w := range words {
		switch {
		case !ascii(w):
			all = letters(all, w)
		case len(w) > 3:
			all = append(all, stem(w))
		default:
			all = append(all, w)
		}
	}
	return all
}

// unspaced are the scripts that put no space between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// letters appends a word. Of a script without spaces it appends each letter, with the marks that follow it.
func letters(all []string, w string) []string {
	start, alone := 0, false // of the word that has begun
	for i, r := range w {
		single := unicode.IsLetter(r) && (unicode.In(r, unspaced...) || r == 'ー' || r == '\uFF70') // these two lengthen any kana
		if i > start && (single || alone && !unicode.IsMark(r)) {
			all, start = append(all, w[start:i]), i
		}
		if i == start {
			alone = single
		}
	}
	return append(all, w[start:])
}

func ascii(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII })
}
