// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/template"
)

// Cache keeps what a deterministic step of a loop has said, for one run of the
// loop: if it would read the same again, it is not run.
type Cache struct {
	// TTL is how long an outcome is good; 0 is until the loop is over.
	TTL time.Duration
	// Key is a template of what the outcome depends on. If it is empty, that is
	// everything that the step's texts and expressions name.
	Key string

	reads []string // by the names that texts give them, sorted, if Key is empty
}

// cache reads true, a duration, or a map; nil for none.
func (r *reader) cache(a *Agent, n *yaml.Node) *Cache {
	if n.Kind != yaml.ScalarNode {
		return r.cacheMap(a, n)
	}
	if n.ShortTag() == "!!bool" {
		if on, _ := r.boolean(n, "cache"); !on {
			return nil
		}
		return &Cache{}
	}
	if _, ok := spanOf(n); !ok {
		r.wrong(n, "cache", "true, a duration such as 10m, or a map with ttl and key")
		return nil
	}
	ttl, ok := r.duration(n, "cache")
	if !ok {
		return nil
	}
	return &Cache{TTL: ttl}
}

func (r *reader) cacheMap(a *Agent, n *yaml.Node) *Cache {
	out := &Cache{}
	ok := r.settings(a, n, "cache", within("cache"), func(key, f string, n *yaml.Node) {
		switch key {
		case "ttl":
			out.TTL, _ = r.duration(n, f)
		case "key":
			if out.Key, _ = r.words(n, f); out.Key == "" && plainText(n) {
				r.report(r.src.of(n), CodeValue, "%s is empty", f).Hint = "leave it out for all that the step names"
			}
		}
	})
	if !ok {
		return nil
	}
	return out
}

// policy is the cache as loopagent has it.
func (c *Cache) policy() *loopagent.Cache {
	if c == nil {
		return nil
	}
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
