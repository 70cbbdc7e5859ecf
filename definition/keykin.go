// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// beforeWords are the words in which people ask for what was before, in the
// languages of the definitions that were seen to.
var beforeWords = []string{
	"previous", "prev", "before", "last", "old", "earlier", "prior", "former",
	"anterior", "anteriores", "ultimo", "ultima", "antigo", "passado", "precedente", "vorherige", "letzte",
}

// earlier reports whether a key's name asks for what was before.
func earlier(key string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToLower(key), "_"), func(w string) bool { return slices.Contains(beforeWords, w) })
}

// relative is the one key that another name may mean: one that has a word in
// common with it if the name asks for what was before, as feedback_before and
// feedback_given; else one with all the words of the name, or the other way
// round. It is empty if there is none, or more than one.
func relative(name string, keys []string) string {
	found := ""
	words := strings.Split(strings.ToLower(name), "_")
	for _, key := range keys {
		shared, all := 0, strings.Split(strings.ToLower(key), "_")
		for _, w := range all {
			if utf8.RuneCountInString(w) > 3 && !slices.Contains(beforeWords, w) && slices.Contains(words, w) {
				shared++
			}
		}
		if shared == 0 || !earlier(name) && shared < min(len(words), len(all)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = key
	}
	return found
}
