// SPDX-License-Identifier: Apache-2.0

package definition

// shapes are what the values of the fields can be, by the field's name; or by
// the type of agent and the name, where it is another one there.
var shapes = make(map[string]shape)

// namePattern is wider than what a name can be: classes such as \p{L} are not in
// every validator's regular expressions. It leaves out of the letters what is not
// one in ASCII, Latin-1 and the blocks of punctuation and symbols.
const namePattern = "^[^\\x00-@\\[-`{-\\xa9\\xab-\\xb4\\xb6-\\xb9\\xbb-\\xbf\\xd7\\xf7\u2010-\u205e\u20a0-\u20c0\u2190-\u2bff]" +
	"[^\\x00-,./:-@\\[-^`{-\\xa9\\xab-\\xb4\\xb6-\\xb9\\xbb-\\xbf\\xd7\\xf7\u2010-\u205e\u20a0-\u20c0\u2190-\u2bff]*$"

const finalizeEach = "each_iteration"
