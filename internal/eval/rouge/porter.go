// SPDX-License-Identifier: Apache-2.0

package rouge

import "strings"

// The stemmer is that of Porter, "An algorithm for suffix stripping" (Program 14, 1980), with the extensions that the
// documentation of NLTK's PorterStemmer lists and applies by default: a table of irregular words, short words in -ies and
// -ied, y after a consonant, -fulli, -alli, -bli and -logi, and vowel-consonant words.

// irregular are the stems of words that the rules would get wrong.
var irregular = map[string]string{
	"sky": "sky", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news", "inning": "inning",
	"innings": "inning", "outing": "outing", "outings": "outing", "canning": "canning", "cannings": "canning",
	"howe": "howe", "proceed": "proceed", "exceed": "exceed", "succeed": "succeed",
}

// suffix is a rule: a word with the ending from gets the ending to, if the rest of the word satisfies when.
type suffix struct {
	from, to string
	when     func(rest string) bool
}

// replace applies the first rule whose ending the word has. If the rule's condition fails, the word stays as it is.
func replace(w string, rules []suffix) string {
	for _, r := range rules {
		if rest, ok := strings.CutSuffix(w, r.from); ok {
			if r.when == nil || r.when(rest) {
				return rest + r.to
			}
			return w
		}
	}
	return w
}

// stem returns the stem of a word in lower case.
func stem(w string) string {
	if s, ok := irregular[w]; ok {
		return s
	}
	if len(w) <= 2 {
		return w
	}
	return double(final(suffixes(adjectives(nouns(ending(stemPast(plural(w))))))))
}

// consonant reports whether a letter is a consonant. A y is one unless it follows a consonant.
func consonant(w string, i int) bool {
	first := i
	for first > 0 && w[first] == 'y' {
		first--
	}
	return strings.IndexByte("aeiou", w[first]) < 0 == ((i-first)%2 == 0)
}

// measure counts the changes from vowels to consonants, Porter's m.
func measure(w string) (m int) {
	vowel := false
	for i := range len(w) {
		c := w[i] != 'y' && consonant(w, i) || w[i] == 'y' && (i == 0 || vowel)
		if c && vowel {
			m++
		}
		vowel = !c
	}
	return m
}

func positive(w string) bool { return measure(w) > 0 }
func long(w string) bool     { return measure(w) > 1 }

func hasVowel(w string) bool {
	for i := range len(w) {
		if !consonant(w, i) {
			return true
		}
	}
	return false
}

// short reports whether a word ends like hop, with a consonant, a vowel and a consonant other than w, x and y, or is a
// vowel and a consonant.
func short(w string) bool {
	n := len(w)
	if n == 2 {
		return !consonant(w, 0) && consonant(w, 1)
	}
	return n > 2 && consonant(w, n-3) && !consonant(w, n-2) && consonant(w, n-1) && !strings.ContainsRune("wxy", rune(w[n-1]))
}

// plural is step 1a.
func plural(w string) string {
	if len(w) == 4 && strings.HasSuffix(w, "ies") {
		return w[:3]
	}
	return replace(w, []suffix{{"sses", "ss", nil}, {"ies", "i", nil}, {"ss", "ss", nil}, {"s", "", nil}})
}

// stemPast is step 1b.
func stemPast(w string) string {
	if rest, ok := strings.CutSuffix(w, "ied"); ok {
		if len(w) == 4 {
			return rest + "ie"
		}
		return rest + "i"
	}
	if strings.HasSuffix(w, "eed") {
		return replace(w, []suffix{{"eed", "ee", positive}})
	}
	rest, ok := strings.CutSuffix(w, "ed")
	if !ok || !hasVowel(rest) {
		if rest, ok = strings.CutSuffix(w, "ing"); !ok || !hasVowel(rest) {
			return w
		}
	}
	n := len(rest)
	switch {
	case strings.HasSuffix(rest, "at"), strings.HasSuffix(rest, "bl"), strings.HasSuffix(rest, "iz"):
		return rest + "e"
	case n > 1 && rest[n-1] == rest[n-2] && consonant(rest, n-1):
		if strings.ContainsRune("lsz", rune(rest[n-1])) {
			return rest
		}
		return rest[:n-1]
	case measure(rest) == 1 && short(rest):
		return rest + "e"
	}
	return rest
}

// ending is step 1c.
func ending(w string) string {
	return replace(w, []suffix{{"y", "i", func(rest string) bool { return len(rest) > 1 && consonant(rest, len(rest)-1) }}})
}

// nouns is step 2.
func nouns(w string) string {
	if rest, ok := strings.CutSuffix(w, "alli"); ok && positive(rest) {
		return nouns(rest + "al")
	}
	return replace(w, []suffix{
		{"ational", "ate", positive}, {"tional", "tion", positive}, {"enci", "ence", positive}, {"anci", "ance", positive},
		{"izer", "ize", positive}, {"bli", "ble", positive}, {"alli", "al", positive}, {"entli", "ent", positive},
		{"eli", "e", positive}, {"ousli", "ous", positive}, {"ization", "ize", positive}, {"ation", "ate", positive},
		{"ator", "ate", positive}, {"alism", "al", positive}, {"iveness", "ive", positive}, {"fulness", "ful", positive},
		{"ousness", "ous", positive}, {"aliti", "al", positive}, {"iviti", "ive", positive}, {"biliti", "ble", positive},
		{"fulli", "ful", positive}, {"logi", "log", func(rest string) bool { return positive(rest + "l") }},
	})
}

// adjectives is step 3.
func adjectives(w string) string {
	return replace(w, []suffix{
		{"icate", "ic", positive}, {"ative", "", positive}, {"alize", "al", positive}, {"iciti", "ic", positive},
		{"ical", "ic", positive}, {"ful", "", positive}, {"ness", "", positive},
	})
}

// suffixes is step 4.
func suffixes(w string) string {
	return replace(w, []suffix{
		{"al", "", long}, {"ance", "", long}, {"ence", "", long}, {"er", "", long}, {"ic", "", long}, {"able", "", long},
		{"ible", "", long}, {"ant", "", long}, {"ement", "", long}, {"ment", "", long}, {"ent", "", long},
		{"ion", "", func(rest string) bool {
			return long(rest) && (strings.HasSuffix(rest, "s") || strings.HasSuffix(rest, "t"))
		}},
		{"ou", "", long}, {"ism", "", long}, {"ate", "", long}, {"iti", "", long}, {"ous", "", long}, {"ive", "", long},
		{"ize", "", long},
	})
}

// final is step 5a.
func final(w string) string {
	return replace(w, []suffix{{"e", "", func(rest string) bool {
		m := measure(rest)
		return m > 1 || m == 1 && !short(rest)
	}}})
}

// double is step 5b.
func double(w string) string {
	return replace(w, []suffix{{"ll", "l", func(rest string) bool { return long(rest + "l") }}})
}
