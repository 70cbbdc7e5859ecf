// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// FieldPath writes a path to a value, as [Editor] reads it. Texts are keys of maps, numbers indexes of lists, from 0.
// It panics with elements of any other type.
//
// FieldPath("sub_agents", 1, "text") returns sub_agents[1].text, and FieldPath("prices", "openai/gpt-4.1", "input")
// returns prices["openai/gpt-4.1"].input.
func FieldPath(elems ...any) string {
	var b strings.Builder
	for _, e := range elems {
		switch e := e.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", e)
		case string:
			b.WriteString(hop{key: e, keyed: true}.in(b.String()))
		default:
			panic(fmt.Sprintf("definition: a %T in a path", e))
		}
	}
	return b.String()
}

// hop is one element of a path: a key, or the place in a list.
type hop struct {
	key   string
	at    int
	keyed bool
}

// in is how the hop is written behind a path.
func (h hop) in(path string) string {
	switch {
	case !h.keyed:
		return "[" + strconv.Itoa(h.at) + "]"
	case h.key == "" || strings.ContainsAny(h.key, ".[]\""):
		return "[" + quotedText(h.key) + "]"
	case path == "":
		return h.key
	}
	return "." + h.key
}

// hopText is the first element of a path.
var hopText = lazyregexp.New(`^(?:\.?([^.\[\]"]+)|\[([0-9]{1,9})\]|\[("(?:[^"\\]|\\.)*")\])`)

// hops takes a path apart.
func hops(path string) ([]hop, error) {
	var all []hop
	for rest := path; rest != ""; {
		m := hopText().FindStringSubmatch(rest)
		if m == nil || rest[0] == '.' && len(all) == 0 || rest[0] != '.' && rest[0] != '[' && len(all) > 0 {
			return nil, fmt.Errorf("%q is not a path to a field; write a path such as sub_agents[0].text or prices[\"a.b\"]",
				path)
		}
		rest = rest[len(m[0]):]
		h := hop{key: m[1], keyed: m[2] == ""}
		h.at, _ = strconv.Atoi(m[2])
		if m[3] != "" {
			if err := json.Unmarshal([]byte(m[3]), &h.key); err != nil {
				return nil, fmt.Errorf("%s in %q is not a quoted text", m[3], path)
			}
		}
		all = append(all, h)
	}
	return all, nil
}

// spot is where a path leads.
type spot struct {
	above []*yaml.Node // the collections that the value is in, the root first
	ats   []int        // the places on the way among the entries of these collections; -1 if the value is not there
	hops  []hop
	path  string
	node  *yaml.Node // nil if only this last one is not there
}

// in is the collection that the value is in; nil for the root.
func (p *spot) in() *yaml.Node {
	if len(p.above) == 0 {
		return nil
	}
	return p.above[len(p.above)-1]
}

// last is the last element of the path, and at the value's place in the collection that it is in.
func (p *spot) last() hop { return p.hops[len(p.hops)-1] }

func (p *spot) at() int { return p.ats[len(p.ats)-1] }

// up is the spot of the collection that the value is in.
func (p *spot) up() *spot {
	n := len(p.hops) - 1
	out := &spot{above: p.above[:n], ats: p.ats[:n], hops: p.hops[:n], node: p.in()}
	for _, h := range out.hops {
		out.path += h.in(out.path)
	}
	return out
}

// find goes down a path. It is an error if more than the last key is not there, and
// if the path leads to where an anchor, an alias or a merge is.
func (s *sheet) find(path string) (*spot, error) {
	all, err := hops(path)
	if err != nil {
		return nil, err
	}
	p := &spot{hops: all, path: path, node: s.root}
	done := ""
	for i, h := range all {
		n := p.node
		if err := s.shared(n); err != nil {
			return nil, err
		}
		at := 0
		if p.node, at, err = s.child(n, h); err != nil {
			return nil, err
		}
		p.above, p.ats = append(p.above, n), append(p.ats, at)
		if p.node == nil && (i < len(all)-1 || n.Kind != yaml.MappingNode || !h.keyed) {
			return nil, s.fail(n, "there is no %s in %s", strings.TrimPrefix(h.in("x"), "."),
				cmp.Or(done, "the definition"))
		}
		done += h.in(done)
	}
	return p, nil
}

// child is the value of a key, or at a place, in a collection; nil if there is none.
func (s *sheet) child(n *yaml.Node, h hop) (child *yaml.Node, at int, err error) {
	if !h.keyed {
		if n.Kind == yaml.SequenceNode && h.at < len(n.Content) {
			return n.Content[h.at], h.at, nil
		}
		return nil, -1, nil
	}
	at = -1
	if n.Kind != yaml.MappingNode {
		return nil, at, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.Kind == yaml.AliasNode || k.ShortTag() == "!!merge":
			if child == nil {
				err = s.fail(k, "%s merges in values from elsewhere, and %q may be one of them; edit the file by hand",
					describeKey(k), h.key)
			}
		case k.Kind == yaml.ScalarNode && k.Value == h.key && child != nil:
			return nil, at, s.fail(k, "%q is given twice, first in line %d; remove one of them", h.key, child.Line)
		case k.Kind == yaml.ScalarNode && k.Value == h.key:
			child, at = n.Content[i+1], i/2
		}
	}
	if child != nil {
		err = nil
	}
	return child, at, err
}

func describeKey(k *yaml.Node) string {
	if k.Kind == yaml.AliasNode {
		return "*" + brief.Printable(k.Value)
	}
	return "<<"
}

// shared is an error if a value stands elsewhere too.
func (s *sheet) shared(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return s.fail(n, "*%s stands for the value in line %d; edit that value by hand", brief.Printable(n.Value),
			n.Alias.Line)
	case n.Anchor != "":
		return s.fail(n, "&%s is defined here, and an edit would also change each *%s; edit the file by hand",
			brief.Printable(n.Anchor), brief.Printable(n.Anchor))
	}
	return nil
}

// alone is an error if a value, or one in it, stands elsewhere too.
func (s *sheet) alone(n *yaml.Node) error {
	if err := s.shared(n); err != nil {
		return err
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.ShortTag() == "!!merge" {
			return s.fail(c, "<< merges in values from elsewhere; edit the file by hand")
		}
		if err := s.alone(c); err != nil {
			return err
		}
	}
	return nil
}
