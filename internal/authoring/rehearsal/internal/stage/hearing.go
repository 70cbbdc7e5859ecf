// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/model"
)

// Hearing keeps the last request of each agent. A nil Hearing keeps nothing.
type Hearing struct {
	mu   sync.Mutex
	told map[string]string
}

// note keeps a request: the instruction alone if it quotes other agents, else the conversation too.
func (h *Hearing) note(agent string, req *model.LLMRequest) {
	if h == nil {
		return
	}
	text := ""
	if req.Config != nil && req.Config.SystemInstruction != nil {
		text = texts(req.Config.SystemInstruction)
	}
	if !spoken().MatchString(text) {
		for _, c := range req.Contents {
			text += "\n" + texts(c)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told == nil {
		h.told = make(map[string]string)
	}
	h.told[agent] = text
}

func texts(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var all []string
	for _, p := range c.Parts {
		if p != nil {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// spoken matches what a stand-in says: its name, and the iterations of the loops around it, from
// the outermost.
var spoken = lazyregexp.New(`Words of ([^,\n]+), iteration (\d+(?:\.\d+)*)\.`)

// HeardOf returns the iterations of a loop that an agent was told about. For an agent that asks no
// model, it returns those that its answer names. The words of an agent in an inner loop count for
// the iteration of l that they were said in.
func (s *Stage) HeardOf(h *Hearing, l, agent *definition.Agent, answer string) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok := h.told[agent.Name]
	if !ok {
		text = answer
	}
	depth := 0
	for around := s.LoopAround(l); around != nil; around = s.LoopAround(around) {
		depth++
	}
	var all []int
	for _, m := range spoken().FindAllStringSubmatch(text, -1) {
		numbers := strings.Split(m[2], ".")
		if who := s.Agents[m[1]]; who == nil || s.StepIn(who, l) == nil || len(numbers) <= depth {
			continue
		}
		if n, err := strconv.Atoi(numbers[depth]); err == nil && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}
