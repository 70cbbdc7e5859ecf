// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/template"
)

// Cache keeps the result of a deterministic step for one run of its loop. While the step's input is
// equal, the step does not run again.
type Cache struct {
	// TTL is the time for which a result is valid; 0 means until the loop ends.
	TTL time.Duration
	// Key is a template with everything that the result depends on. Empty uses everything that the
	// step's texts and expressions name.
	Key string

	reads []string // by the names that texts give them, sorted, if Key is empty
}

var cacheParts = parts[Cache]{rows: []row[Cache]{
	field("ttl", "time that a result stays valid; until the loop ends if left out", aSpan, func(c *Cache) *time.Duration { return &c.TTL }),
	field("key", "text with placeholders for everything that the result depends on", plain(filledText, (*reader).cacheKey), func(c *Cache) *string { return &c.Key }),
}}

func cacheShape() shape { return either(yesNo(), duration(), cacheParts.shape()) }

// filledText is a text that is not empty.
func filledText() shape {
	s := anyText()
	s.MinLength = new(1)
	return s
}

func (r *reader) cacheKey(n *source.Node, what string) (string, bool) {
	key, ok := r.words(n, what)
	if ok && key == "" {
		r.report(r.src.Of(n), CodeValue, "%s is empty", what).Hint = "leave it out to use everything that the " +
			"step names"
	}
	return key, ok
}

// cacheOf reads true, a duration, or a map; nil for none.
func cacheOf(p place, n *source.Node) (*Cache, bool) {
	_, timed := spanOf(n)
	switch {
	case n.Kind != source.Scalar:
		return cacheParts.read(p, n)
	case n.ShortTag() == "!!bool":
		if on, ok := p.boolean(n, p.field); !on {
			return nil, ok
		}
		return &Cache{}, true
	case timed:
		ttl, ok := p.duration(n, p.field)
		return &Cache{TTL: ttl}, ok
	}
	p.wrong(n, p.field, "true, a duration such as 10m, or a map with ttl and key")
	return nil, false
}

// policy is the cache as loopagent has it.
func (c *Cache) policy() *loopagent.Cache {
	out := &loopagent.Cache{TTL: c.TTL}
	if c.Key == "" {
		out.Key = c.ofReads
		return out
	}
	key, err := template.Parse(c.Key, template.Options{Dialect: template.Mustache})
	out.Key = func(lookup func(string) (any, bool)) (string, error) {
		if err != nil { // it was checked
			return "", err
		}
		return key.Execute(lookup)
	}
	return out
}

// ofReads is a hash over the values of all that the step reads.
func (c *Cache) ofReads(lookup func(string) (any, bool)) (string, error) {
	h := sha256.New()
	for _, name := range c.reads {
		v, ok := lookup(name)
		if err, bad := v.(error); bad {
			return "", err
		}
		text, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("the value of %s: %w", name, err)
		}
		fmt.Fprintf(h, "%q %t %d\n%s\n", name, ok, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// caches finds out what the steps read that are answered from a cache.
func (c *checker) caches() {
	for a := range c.def.Root.All {
		if c.full() {
			return
		}
		if a.Step == nil || a.Step.Cache == nil || a.Step.Cache.Key != "" {
			continue
		}
		names, why := c.namesOf(a)
		if why != "" {
			c.report(a.at("cache"), CodeCache, "the input of %q is not known: %s", a.Name, why).
				Hint = `name it, as in cache: {key: "{{draft}}"}`
			continue
		}
		a.Step.Cache.reads = slices.Sorted(maps.Keys(names))
	}
}

// cacheKey checks the key that a file gives.
func (c *checker) cacheKey(a *Agent) {
	if a.Step != nil && a.Step.Cache != nil {
		c.template(a, "cache.key", a.Step.Cache.Key, template.Mustache)
	}
}

// namesOf lists what an agent, and all in it, read of what is outside, by the
// names that texts use; why is set if that cannot be said.
func (c *checker) namesOf(a *Agent) (names map[string]bool, why string) {
	names = make(map[string]bool)
	for sub := range a.All {
		if sub.Type == TypeLLM {
			return nil, fmt.Sprintf("%q asks a model, which sees more than its instructions name", sub.Name)
		}
		if sub.Type == TypeA2A && (sub.A2A.Payload == nil || !sub.A2A.NewContext) {
			return nil, fmt.Sprintf("%q may remember earlier requests; give it a payload and new_context: true",
				sub.Name)
		}
		if sub.loopAround() == a.parent {
			counters(sub, names)
		}
	}
	for i := range c.reads {
		rd := &c.reads[i]
		if !rd.agent.in(a) || rd.inner && !rd.known(c.keys) {
			continue
		}
		if rd.any {
			return nil, fmt.Sprintf("%s may read any key", rd.field)
		}
		kind, key := rd.split()
		switch {
		case (kind == "built in" || kind == "loop") && rd.loop() != a.parent && rd.name != "user_input":
		case kind == "loop":
			head, _, _ := strings.Cut(rd.name, ".")
			names[head+"."+key] = true
		case kind == "built in":
			names[rd.name] = true
		case kind == "outside" && !strings.HasPrefix(rd.name, "artifact."):
			head, _, _ := strings.Cut(rd.name, ".")
			names[head] = true
		case kind == "outside":
			names[rd.name] = true
		default:
			names[key] = true
		}
	}
	return names, ""
}

// in reports whether an agent is another one, or in it.
func (a *Agent) in(around *Agent) bool {
	for ; a != nil; a = a.parent {
		if a == around {
			return true
		}
	}
	return false
}

// counters adds what a task's expressions read besides the state.
func counters(a *Agent, names map[string]bool) {
	var texts []string
	if a.ExitWhen != "" {
		texts = append(texts, a.ExitWhen)
	}
	if e := a.Expression; e != nil {
		texts = slices.AppendSeq(append(texts, e.Value), maps.Values(e.Set))
	}
	for _, text := range texts {
		p, err := expr.Compile(text, vocabulary.TaskVariables...)
		if err != nil {
			continue // reported
		}
		for _, v := range vocabulary.TaskVariables {
			keys, all := p.Reads(v.Name)
			switch {
			case v.Type == expr.Map || !all && len(keys) == 0: // of a map, single keys are noted
			case v.Name == "best_score":
				names["best.score"] = true
			default:
				names[v.Name] = true
			}
		}
	}
}
