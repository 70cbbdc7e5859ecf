// SPDX-License-Identifier: Apache-2.0

package definition

import "go.yaml.in/yaml/v4"

// DefaultStateLimit is how many bytes the state may have after an iteration of a
// loop that does not say: far more than a state is for, and less than a machine
// feels. What grows in every iteration comes to it before it comes to the end of
// the memory.
const DefaultStateLimit = 64 << 20

// stateLimit reads a size; none, or 0, is no limit.
func (r *reader) stateLimit(n *yaml.Node) int64 {
	n = deref(n)
	if n.Kind == yaml.ScalarNode && (n.Value == "none" || n.Value == "0") {
		return 0
	}
	if v := 1.0; n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" && n.Load(&v) == nil && v == 0 {
		return 0
	}
	v, ok := r.size(n, "state_limit")
	if !ok {
		r.hint("none is no limit; without state_limit it is 64MiB")
	}
	return v
}

// stateBound sets the limit of a loop that gives none.
func (a *Agent) stateBound() {
	if _, given := a.nodes["state_limit"]; !given {
		a.Loop.StateLimit = DefaultStateLimit
	}
}
