// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// MaxMessage is the largest number of bytes of the message to a judge. Longer texts lose their middle.
const MaxMessage = 64 << 10

// text is a text to judge, with its name.
type text struct{ name, text string }

// message puts texts between lines that no text can have, because they have the hash of all texts.
func message(texts []text) string {
	h := sha256.New()
	most := MaxMessage - 1024
	for _, t := range texts {
		fmt.Fprintf(h, "%d %s", len(t.text), t.text)
		most -= 128 + len(t.text)
	}
	each := MaxMessage
	if most < 0 {
		each = (MaxMessage-1024)/len(texts) - 128
	}
	mark := hex.EncodeToString(h.Sum(nil))[:16]
	var b strings.Builder
	fmt.Fprintf(&b, "The mark is %s.\n", mark)
	for _, t := range texts {
		fmt.Fprintf(&b, "\nBEGIN %s %s\n%s\nEND %s\n", mark, t.name, shorten(t.text, each), mark)
	}
	return b.String()
}

// shorten returns a text that has at most a number of bytes. A longer text loses its middle.
func shorten(text string, most int) string {
	const gap = "\n[the middle of this text is left out]\n"
	if len(text) <= most {
		return text
	}
	half := max(0, (most-len(gap))/2)
	return strings.ToValidUTF8(text[:half]+gap+text[len(text)-half:], "")
}

// mostBefore is how many texts of a conversation stand before the answer that is judged.
const mostBefore = 40

// conversation returns the texts up to the answer of a turn, which is the last one.
func (s *Subject) conversation(turn int, answer string) (texts []text) {
	for i := range turn + 1 {
		texts = append(texts, text{"message of the user", s.Case.Turns[i].Input})
		for _, c := range s.Turns[i].Calls {
			args, err := json.Marshal(c.Args)
			if err != nil {
				args = []byte("{}")
			}
			texts = append(texts, text{"call of a tool by the agent", c.Name + " " + string(args)})
		}
		if i < turn {
			texts = append(texts, text{"earlier answer of the agent", s.Turns[i].Answer})
		}
	}
	texts = texts[max(0, len(texts)-mostBefore):]
	return append(texts, text{"answer of the agent", answer})
}
