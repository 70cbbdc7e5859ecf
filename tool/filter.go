// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
)

// Predicate decides whether a tool is given to the model.
type Predicate func(ctx agent.ReadonlyContext, tool Tool) bool

// StringPredicate selects the tools with these names.
func StringPredicate(allowedTools []string) Predicate {
	names := slices.Clone(allowedTools)
	return func(_ agent.ReadonlyContext, t Tool) bool { return slices.Contains(names, t.Name()) }
}

// AllowedToolsPredicate does the same as [StringPredicate], under ADK's other name.
func AllowedToolsPredicate(allowedTools []string) Predicate {
	return StringPredicate(allowedTools)
}

// FilterToolset returns a toolset of the tools that the predicate selects. It panics if either
// argument is nil.
func FilterToolset(toolset Toolset, predicate Predicate) Toolset {
	if toolset == nil || predicate == nil {
		panic("tool: FilterToolset needs a toolset and a predicate")
	}
	return &toolFilter{Toolset: toolset, passes: predicate}
}

type toolFilter struct {
	Toolset
	passes Predicate
}

// ProcessRequest lets the toolset prepare the request, if it does that.
func (f *toolFilter) ProcessRequest(ctx Context, req *model.LLMRequest) error {
	return ProcessSet(ctx, req, f.Toolset)
}

func (f *toolFilter) Tools(ctx agent.ReadonlyContext) ([]Tool, error) {
	all, err := f.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}
	var some []Tool // the toolset may keep its slice
	for _, t := range all {
		if f.passes(ctx, t) {
			some = append(some, t)
		}
	}
	return some, nil
}
