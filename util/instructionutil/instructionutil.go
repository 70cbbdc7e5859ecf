// SPDX-License-Identifier: Apache-2.0

// Package instructionutil fills the placeholders of an instruction, for an agent whose instruction is a function.
//
//	InstructionProvider: func(ctx agent.ReadonlyContext) (string, error) {
//		return instructionutil.InjectSessionState(ctx, "Improve this draft: {draft}")
//	}
package instructionutil

import (
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/text/template"
)

// InjectSessionState fills {key}, {key?}, {artifact.name} and the other placeholders of package template from the
// state and the files that ctx leads to. A placeholder without a value is empty, as in llmagent's Instruction. It
// fails on a template that cannot be read.
//
// A context that is not an [agent.InvocationContext], such as one of a test, has no files.
func InjectSessionState(ctx agent.ReadonlyContext, instruction string) (string, error) {
	t, err := template.Parse(instruction, template.Options{})
	if err != nil {
		return "", fmt.Errorf("instruction: %w", err)
	}
	if inv, ok := ctx.(agent.InvocationContext); ok {
		return t.Execute(drive.At(inv).Lookup)
	}
	return t.Execute(func(key string) (any, bool) {
		v, err := ctx.ReadonlyState().Get(key)
		return v, err == nil
	})
}
