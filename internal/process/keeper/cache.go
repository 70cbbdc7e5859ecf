// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// The rules, in tokens: https://platform.claude.com/docs/en/build-with-claude/prompt-caching (breakpoints, at most
// four; the minimum of Claude Sonnet 4.5; 20 blocks back; five minutes from the last use, or an hour) and
// https://platform.openai.com/docs/guides/prompt-caching (1024 tokens, then steps of 128; here for five minutes).
// The documentation of Gemini's implicit cache says only that it works by prefix, with a minimum that depends on the
// model (https://ai.google.dev/gemini-api/docs/caching). Here Gemini follows OpenAI's rule.
const (
	Minimum    = 1024
	step       = 128
	lookback   = 20
	atMost     = 4
	short      = 5 * time.Minute
	tokenBytes = 4
)

func tokens(bytes int) int { return bytes / tokenBytes }

// entry is a cached beginning of a prompt.
type entry struct {
	until   time.Time
	life    time.Duration
	written int // tokens whose writing was paid
	by      int // the number of the request
	used    bool
}

// use reports whether a beginning is cached, and extends its life.
func (k *Keeper) use(sum [32]byte) bool {
	e := k.kept[sum]
	if e == nil || e.until.Before(k.clock) {
		return false
	}
	e.until, e.used = k.clock.Add(e.life), true
	return true
}

func (k *Keeper) keep(sum [32]byte, life time.Duration, written int) {
	e := &entry{until: k.clock.Add(life), life: life, written: written, by: len(k.requests)}
	k.kept[sum], k.entries = e, append(k.entries, e)
}

// atBreakpoints counts a prompt by Anthropic's rules. A part with a life other than 0 ends with a breakpoint.
func (k *Keeper) atBreakpoints(t *Tokens, texts []string, lives []time.Duration) {
	sums, upTo := make([][32]byte, len(texts)), make([]int, len(texts))
	h, n, marks, least := sha256.New(), 0, 0, time.Hour
	for i, text := range texts {
		h.Write([]byte(text))
		n += len(text)
		sums[i], upTo[i] = [32]byte(h.Sum(nil)), tokens(n)
		if lives[i] == 0 {
			continue
		}
		marks++
		if upTo[i] < Minimum {
			k.wrong = append(k.wrong, fmt.Sprintf("request %d: a breakpoint after %d tokens", len(k.requests), upTo[i]))
		}
		if lives[i] > least {
			k.wrong = append(k.wrong, fmt.Sprintf("request %d: a breakpoint for an hour after one for less", len(k.requests)))
		}
		least = lives[i]
	}
	if marks > atMost {
		k.wrong = append(k.wrong, fmt.Sprintf("request %d: %d breakpoints", len(k.requests), marks))
	}
	hit := -1
	for i := range slices.Backward(texts) {
		for j := i; lives[i] > 0 && j >= max(0, i-lookback) && hit < 0; j-- {
			if k.use(sums[j]) {
				hit, t.Read = j, upTo[j]
			}
		}
	}
	for i := range max(0, hit) { // a read also extends the life of shorter beginnings
		k.use(sums[i])
	}
	from := t.Read
	for i, life := range lives {
		if life == 0 || i <= hit || upTo[i] < Minimum {
			continue
		}
		k.keep(sums[i], life, upTo[i]-from)
		if life > short {
			t.Hour += upTo[i] - from
		} else {
			t.Write += upTo[i] - from
		}
		from = upTo[i]
	}
}

// bySteps returns how many tokens of a prompt are cached by OpenAI's rule, and caches the whole prompt.
func (k *Keeper) bySteps(key, prompt string) (read int) {
	for n := Minimum * tokenBytes; n <= len(prompt); n += step * tokenBytes {
		sum := sha256.Sum256([]byte(key + "\x00" + prompt[:n]))
		if k.use(sum) {
			read = tokens(n)
		} else {
			k.keep(sum, short, 0)
		}
	}
	return read
}
