// SPDX-License-Identifier: Apache-2.0

package codingloop

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Review describes reviews of what has changed, and the corrections.
type Review struct {
	Definition []byte // of the template review
	CLI, Model string // of the reviewers; empty for those of the loop
	Branch     string // that is reviewed without a loop before; empty for what the loop has done
	Base       string // hash of the commit that the changes of Branch began with
}

// alone returns the definition that reviews a branch.
func (c *Config) alone() (*yaml.Node, error) {
	root, err := c.template()
	if err != nil {
		return nil, err
	}
	cut(root, "inputs")
	state := valueOf(root, "state")
	add(state, "base", c.Review.Base)
	add(state, "tests", c.tests())
	cut(root, "workspace")
	add(root, "workspace", c.workspace(map[string]any{"base": c.Review.Branch}))
	c.limit(valueOf(root, "sub_agents").Content[0])
	return root, nil
}

// reviewed returns the definition of a loop whose work is reviewed when it is done. The root is a loop with one iteration, so that budget
// and time are those of both.
func (c *Config) reviewed(work *yaml.Node) (*yaml.Node, error) {
	review, err := c.template()
	if err != nil {
		return nil, err
	}
	root := mapping("name", "loop", "max_iterations", 1, "timeouts", "none", "max_model_calls", "none")
	for _, key := range []string{"state", "workspace", "timeout", "budget"} {
		if v := cut(work, key); v != nil {
			add(root, key, v)
		}
	}
	cut(work, "max_model_calls")
	cut(work, "result")
	valueOf(work, "name").SetString("work")
	state := valueOf(root, "state")
	add(state, "base", "")
	add(state, "tests", c.tests())
	add(state, "review_task", valueOf(valueOf(review, "state"), "review_task"))
	rounds, report := valueOf(review, "sub_agents").Content[0], valueOf(review, "sub_agents").Content[1]
	cut(rounds, "timeout")
	cut(rounds, "budget")
	steps := valueOf(rounds, "sub_agents")
	steps.Content = slices.Insert(steps.Content, 0, mapping("name", "worked", "type", "expression", "exit_when", "!state.worked",
		"exit_reason", "the work is not done"))
	text := valueOf(report, "text")
	text.SetString("{{said}}\n{{#worked}}\nReview: " + text.Value + "{{/worked}}" +
		"{{^worked}}\nThe loop \"work\" ended before its work was done, so nothing was reviewed; refrain show has its reason.{{/worked}}")
	add(root, "sub_agents", []*yaml.Node{work,
		mapping("name", "work_done", "set", map[string]any{"worked": c.success()}), rounds, report,
		mapping("name", "reviewed", "type", "expression", "exit_when", "state.worked && (state.changes == '' || !state.found.open)",
			"exit_reason", "the work is done, and no finding is above low")})
	return root, nil
}

// success returns the expression for a loop that has ended well.
func (c *Config) success() string {
	switch {
	case c.Plan != nil:
		return "state.ticked.over"
	case c.Until != "" && c.Done != "":
		return exits + " && " + agrees
	case c.Until != "":
		return exits
	case c.Done != "":
		return agrees
	}
	return "true"
}

// tests returns the command line that a correction may not break.
func (c *Config) tests() string {
	lines := []string{c.Until}
	if c.Plan != nil {
		lines = append(lines, c.Plan.Commands...)
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), " && ")
}

// limit gives a loop the limits of the config in place of its own.
func (c *Config) limit(loop *yaml.Node) {
	cut(loop, "timeout")
	cut(loop, "budget")
	if c.Timeout > 0 {
		add(loop, "timeout", c.Timeout.String())
	}
	if c.Cost > 0 {
		add(loop, "budget", map[string]any{"cost": c.Cost})
	}
}

// template returns the definition of the review with the programs of the config.
func (c *Config) template() (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(c.Review.Definition, &doc); err != nil {
		return nil, fmt.Errorf("read the definition of the review: %w", err)
	}
	root := doc.Content[0]
	c.ask(root)
	return root, nil
}

// ask gives all coding agents below a node the program of the config, and commands beside them its sandbox.
func (c *Config) ask(n *yaml.Node) {
	for _, child := range n.Content {
		c.ask(child)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	if command := valueOf(n, "command"); c.Sandbox != "" && command != nil && command.Content[0].Value == "sh" {
		add(n, "sandbox", c.box()) // it runs code that the agent has written, or git with settings that it can change
	}
	if valueOf(n, "cli") == nil {
		return
	}
	reads := valueOf(n, "permissions").Value == "read"
	other := reads && c.Review.CLI != ""
	cut(n, "cli")
	cut(n, "max_turns")
	cut(n, "idle_timeout")
	switch {
	case other:
		add(n, "cli", c.Review.CLI)
	case c.ACP != nil:
		add(n, "acp", c.ACP)
	default:
		add(n, "cli", c.CLI)
	}
	c.options(n, !other)
	model := c.Model
	if reads && (c.Review.Model != "" || other) {
		model = c.Review.Model
	}
	if model != "" {
		add(n, "model", model)
	}
	if reads {
		return
	}
	valueOf(n, "permissions").SetString(c.Permissions)
	c.allow(n)
}

// valueOf returns the value of a key of a mapping; nil if there is none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// cut removes a key of a mapping, and returns its value; nil if there is none.
func cut(n *yaml.Node, key string) *yaml.Node {
	v := valueOf(n, key)
	if v != nil {
		i := slices.Index(n.Content, v)
		n.Content = slices.Delete(n.Content, i-1, i+1)
	}
	return v
}
