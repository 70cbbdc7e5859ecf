// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"
)

// DefaultStateLimit is how many bytes the state may have after an iteration of a
// loop that does not say: far more than a state is for, and less than a machine
// feels. What grows in every iteration comes to it before it comes to the end of
// the memory.
const DefaultStateLimit = 64 << 20

func sizeOrNone() shape {
	return either(byteSize(), &jsonschema.Schema{Enum: []any{0, "0"}}, oneOf("none"))
}

// stateLimit reads a size; none, or 0, is no limit.
func (r *reader) stateLimit(n *yaml.Node, field string) (int64, bool) {
	if n.Kind == yaml.ScalarNode && (n.Value == "none" || n.Value == "0") {
		return 0, true
	}
	if v := 1.0; n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" && n.Load(&v) == nil && v == 0 {
		return 0, true
	}
	return r.size(n, field)
}
