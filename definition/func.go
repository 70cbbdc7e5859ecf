// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition/internal/source"
)

var funcRows = []row[Agent]{field("func", "name of a Go agent that the embedding program registers",
	plain(wordShape, (*reader).goAgentName), func(a *Agent) *string { return &a.Func }).must()}

// NewAgent makes an agent of a Go program. The config has the name, the
// description and the callbacks that the definition gives it, and no sub-agents;
// agent.New with a Run of one's own will do.
type NewAgent func(cfg agent.Config) (agent.Agent, error)

// goAgentName reads the name of a Go agent.
func (r *reader) goAgentName(n *source.Node, field string) (string, bool) {
	text, ok := r.text(n, field)
	if ok && text == "" {
		r.report(r.src.Of(n), CodeValue, "func is empty").Hint = "name one of BuildConfig.Agents"
	}
	return text, ok
}

// goAgent notes that a Go agent may read every key.
func (c *checker) goAgent(a *Agent) {
	if !c.unset(a) {
		c.reads = append(c.reads, read{agent: a, field: "func", code: true, any: true})
	}
}

// resolveAgent reports a Go agent that is not there.
func (b *builder) resolveAgent(l *loader, a *Agent) {
	if b.cfg.Agents[a.Func] != nil {
		return
	}
	names := slices.Sorted(maps.Keys(b.cfg.Agents))
	hint := "the agents are " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "a program in Go gives agents, in BuildConfig.Agents; refrain run has none"
	}
	l.report(a.at("func"), CodeTask, "there is no Go agent %q", a.Func).Hint = didYouMean(a.Func, names, "%q", hint)
}

// goAgent makes an agent of a Go program.
func (b *builder) goAgent(a *Agent) (agent.Agent, error) {
	cb := b.around(a)
	if key := outputKey(a); key != "" {
		cb.after = append([]agent.AfterAgentCallback{keepWords(key)}, cb.after...)
	}
	built, err := b.cfg.Agents[a.Func](agent.Config{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after,
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("build Go agent %q: %w", a.Name, err)
	case built == nil:
		return nil, fmt.Errorf("build Go agent %q: BuildConfig.Agents[%q] made none", a.Name, a.Func)
	case built.Name() != a.Name:
		return nil, fmt.Errorf("build Go agent %q: BuildConfig.Agents[%q] made one that is called %q", a.Name, a.Func,
			built.Name())
	}
	return built, nil
}
