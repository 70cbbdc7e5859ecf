// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// robomotionReader reads the nodes of a flow. It finds the agents, and which of them is connected to the sub-agents port of which.
type robomotionReader struct {
	*importer
	nodes []*robomotionNode
	open  []*robomotionNode
}

// robomotionNode is a node of a flow.
type robomotionNode struct {
	v     value
	id    string
	kind  definition.Type // empty if the node is no agent
	props []prop
	ports map[string][]*robomotionNode // the connected nodes, by the name of the port
}

// prop is a property. Its label is in lower case.
type prop struct {
	label string
	pair
	in    value  // the map that contains it
	scope string // Custom, Message and the like; empty if none is given
}

func (r *robomotionReader) root(name string, data []byte) *agent {
	var v value
	ok := false
	if isSDK(data) {
		v, ok = r.parseSDK(name, data)
	} else {
		v, ok = r.parse(name, data)
	}
	if !ok {
		return nil
	}
	r.read(v)
	first := r.first(v)
	if first == nil {
		return nil
	}
	a := r.agent(first, nil)
	if a != nil {
		r.query(a, first)
	}
	return a
}

// nodeType returns the type of a node, which can be in one of several fields.
func nodeType(v value) string {
	for _, key := range []string{"type", "Type", "node", "Node"} {
		if t := v.get(key).text(); t != "" {
			return t
		}
	}
	return ""
}

var nodeKinds = map[string]definition.Type{"loopagent": definition.TypeLoop, "llmagent": definition.TypeLLM,
	"sequentialagent": definition.TypeSequential, "parallelagent": definition.TypeParallel}

// kindOfNode returns the type of agent for a type of node, or "" if the node is no agent.
func kindOfNode(typ string) definition.Type {
	return nodeKinds[strings.ToLower(strings.ReplaceAll(typ[strings.LastIndexByte(typ, '.')+1:], " ", ""))]
}

// nodesOf returns the nodes of a file: one node, a list, or the nodes of a flow.
func nodesOf(v value) []value {
	switch {
	case v.isList():
		return v.items()
	case v.isMap() && v.get("nodes").isNull():
		return []value{v}
	}
	return v.get("nodes").items()
}

// read finds the nodes and connects them.
func (r *robomotionReader) read(v value) {
	for _, n := range nodesOf(v) {
		r.node(n)
	}
	byID := make(map[string]*robomotionNode)
	for _, n := range r.nodes {
		byID[n.id] = n
		if name := n.name(); byID[name] == nil {
			byID[name] = n
		}
	}
	for _, e := range append(v.get("edges").items(), v.get("connections").items()...) {
		r.edge(byID, e)
	}
	for _, n := range slices.Clone(r.nodes) {
		r.portsOf(byID, n)
	}
}

func (r *robomotionReader) node(v value) *robomotionNode {
	if !v.isMap() || r.tooMany(v.at()) {
		return nil
	}
	n := &robomotionNode{v: v, id: v.get("id").text(), kind: kindOfNode(nodeType(v)),
		ports: make(map[string][]*robomotionNode)}
	for _, p := range v.pairs() {
		switch strings.ToLower(p.key) {
		case "properties", "props", "inputs", "options", "outputs", "common", "common properties":
			v.ask(p.key)
			for _, q := range p.value.pairs() {
				n.prop(p.value, q)
				if last := &n.props[len(n.props)-1]; last.label == "name" && strings.EqualFold(p.key, "inputs") {
					last.label = "agent name" // the node itself has a name too
				}
			}
		case "id", "type", "node", "ports", "nodes", "edges", "connections", "sub-agents", "sub_agents", "callbacks",
			"tools":
			v.ask(p.key)
		case "x", "y", "position", "version": // reported with the other unread fields
		default:
			n.prop(v, p)
		}
	}
	r.nodes = append(r.nodes, n)
	return n
}

// prop adds a property. It unwraps the value, so that {scope: Custom, name: text} becomes text.
func (n *robomotionNode) prop(in value, p pair) {
	out := prop{label: label(p.key), pair: p, in: in}
	if scope := p.value.get("scope"); !scope.isNull() {
		out.scope = scope.text()
		for _, key := range []string{"name", "value"} {
			if v := p.value.get(key); !v.isNull() {
				out.value = v
			}
		}
	}
	n.props = append(n.props, out)
}

var (
	sdkPrefix = lazyregexp.New(`^(?:in|opt|out)([A-Z])`)
	brackets  = lazyregexp.New(`\s*\([^)]*\)`)
	humps     = lazyregexp.New(`([a-z0-9])([A-Z])`)
)

// label converts "Custom Sub-Agents Order", optSubAgentsOrder and similar spellings to one spelling.
func label(key string) string {
	sdk := sdkPrefix().MatchString(key)
	key = sdkPrefix().ReplaceAllString(key, "$1")
	key = humps().ReplaceAllString(brackets().ReplaceAllString(key, ""), "$1 $2")
	key = strings.Join(strings.FieldsFunc(strings.ToLower(key),
		func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), " ")
	if key == "name" && sdk {
		return "agent name"
	}
	return cmp.Or(sameLabels[key], key)
}

// sameLabels has other spellings of labels.
var sameLabels = map[string]string{
	"custom sub agents order": "order", "sub agents order": "order", "user prompt": "query", "timeout seconds": "timeout",
	"llm agent instructions": "instructions", "system prompt": "instructions", "func": "instructions",
	"use robomotion credits": "credits", "robomotion credits": "credits", "use robomotion ai credits": "credits",
	"credentials": "credits", "api key": "credits", "credential": "credits",
}

// fixed reports whether the flow contains the value of a property. Otherwise the value comes with each message.
func (p prop) fixed() bool { return p.scope == "" || p.scope == "Custom" }

// as returns the property under the name that the report uses.
func (p prop) as(name string) pair { return pair{name, p.at, p.value} }

// get returns a property by its label. ok is false if the property is missing or empty.
func (n *robomotionNode) get(labels ...string) (prop, bool) {
	for _, l := range labels {
		for k := len(n.props) - 1; k >= 0; k-- { // inputs come after the node's own
			if n.props[k].label == l && !n.props[k].value.empty() {
				n.props[k].in.ask(n.props[k].key)
				return n.props[k], true
			}
		}
	}
	return prop{}, false
}

// name returns the name of the agent, or else of the node.
func (n *robomotionNode) name() string { return cmp.Or(n.named().text(), n.id) }

// named returns the value that names the agent. Its Node is nil if there is none.
func (n *robomotionNode) named() value {
	if p, ok := n.get("agent name", "name"); ok && p.fixed() {
		return p.value
	}
	return n.v.get("name")
}

// portNames returns the names of a node's ports by number. The last port leads to the next node of the flow.
func portNames(kind definition.Type) []string {
	if kind == definition.TypeLLM {
		return []string{"sub-agents", "tools", "callbacks", "flow"}
	}
	return []string{"sub-agents", "callbacks", "flow"}
}

// edge reads {from, port, to}, or [from, port, to, port].
func (r *robomotionReader) edge(byID map[string]*robomotionNode, e value) {
	var from, port, to string
	if list := e.items(); len(list) >= 3 {
		from, port, to = list[0].text(), list[1].text(), list[2].text()
	} else {
		pick := func(keys ...string) string {
			for _, key := range keys {
				if t := e.get(key).text(); t != "" {
					return t
				}
			}
			return ""
		}
		from, to = pick("from", "source", "sourceId"), pick("to", "target", "targetId")
		port = pick("port", "fromPort", "sourcePort", "sourceHandle")
	}
	src, dst := byID[from], byID[to]
	if src == nil || dst == nil {
		missing := from
		if src != nil {
			missing = to
		}
		r.fail(e.at(), "", "edges", "an edge leads to or from the node %q, which is not there", missing)
		return
	}
	src.connect(r.portName(src, port, e), dst)
}

// portName returns the name of a port, which the file may give by its number.
func (r *robomotionReader) portName(n *robomotionNode, port string, e value) string {
	if n.kind == "" {
		return "flow"
	}
	names := portNames(n.kind)
	if len(port) == 1 && port[0] >= '0' && port[0] <= '9' {
		return names[min(int(port[0]-'0'), len(names)-1)]
	}
	port = strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(port, "_", "-")), " ", "-")
	switch {
	case port == "" || port == "out" || port == "output" || port == "response":
		return "flow"
	case slices.Contains(names, port):
		return port
	}
	r.fail(e.at(), n.name(), "port "+port, "there is no port %q", port).Advice = meant(port, names)
	return "flow"
}

func (n *robomotionNode) connect(port string, to *robomotionNode) {
	if !slices.Contains(n.ports[port], to) {
		n.ports[port] = append(n.ports[port], to)
	}
}

// portsOf reads the connections in a node itself, where its ports list nodes or their IDs.
func (r *robomotionReader) portsOf(byID map[string]*robomotionNode, n *robomotionNode) {
	for _, p := range append(n.v.get("ports").pairs(), n.v.pairs()...) {
		port := strings.ReplaceAll(strings.ToLower(p.key), "_", "-")
		if port != "sub-agents" && port != "callbacks" && port != "tools" {
			continue
		}
		n.v.get("ports").ask(p.key)
		for _, item := range p.value.items() {
			to := byID[item.text()]
			if item.isMap() {
				if to = r.node(item); to != nil {
					byID[to.name()] = to
					r.portsOf(byID, to)
				}
			}
			if to == nil {
				r.fail(item.at(), n.name(), port, "the port %s leads to the node %q, which is not there", port,
					item.text())
				continue
			}
			n.connect(port, to)
		}
	}
}

// first returns the root agent.
func (r *robomotionReader) first(v value) *robomotionNode {
	used, told := make(map[*robomotionNode]bool), make(map[*robomotionNode]bool)
	var others []string
	for _, n := range r.nodes {
		for _, sub := range n.ports["sub-agents"] {
			used[sub] = used[sub] || sub != n
		}
		for _, helper := range append(n.ports["callbacks"], n.ports["tools"]...) {
			told[helper] = true // reported with the agent that it is connected to
		}
	}
	var tops, loops []*robomotionNode
	agents := len(r.nodes)
	for _, n := range r.nodes {
		switch {
		case n.kind == "" && told[n]:
			agents--
		case n.kind == "":
			n.v.all()
			others = append(others, cmp.Or(nodeType(n.v), n.id))
		case r.opts.Agent != "" && (n.name() == r.opts.Agent || n.id == r.opts.Agent):
			return n
		case !used[n]:
			tops = append(tops, n)
			if n.kind == definition.TypeLoop {
				loops = append(loops, n)
			}
		}
	}
	if len(others) > 0 {
		r.dropped(v.at(), "", "nodes", "whoever runs the definition decides what comes before and after the agents",
			"these nodes are not agents: %s", strings.Join(others, ", "))
	}
	switch {
	case r.opts.Agent != "" || len(tops) > 0:
		first, _ := root(r.importer, v.at(), tops, tops, loops, (*robomotionNode).name)
		return first
	case agents > len(others):
		r.fail(v.at(), "", "", "the agents lead in a circle")
	default:
		r.fail(v.at(), "", "", "there is no agent among the nodes").Advice = "agents are LoopAgent, LLMAgent, " +
			"SequentialAgent and ParallelAgent"
	}
	return nil
}
