// SPDX-License-Identifier: Apache-2.0

// Package rouge compares texts by ROUGE-1, which counts the words that two texts share (Lin 2004).
//
//	f := rouge.F1("The flights were booked", "the flight is booked") // 0.75
//
// The figures are those of Google's package rouge_score with stemming, for texts in ASCII. That package drops all other
// letters. This package keeps words of other scripts whole and does not stem them.
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
	for i, w := range words {
		if len(w) > 3 && ascii(w) {
			words[i] = stem(w)
		}
	}
	return words
}

func ascii(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII })
}
