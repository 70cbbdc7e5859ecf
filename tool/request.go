// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
)

// ErrUnusable refuses a tool that cannot be called and does not prepare requests. Its text names
// the missing methods.
var ErrUnusable = errors.New("has neither Declaration() *genai.FunctionDeclaration and Run(tool.Context, any) " +
	"(map[string]any, error), nor ProcessRequest(tool.Context, *model.LLMRequest) error")

// Process adds a tool to a request to the model. A RequestProcessor adds itself; Process adds
// any other Function with [Pack]. The errors are those of both, and [ErrUnusable].
func Process(ctx Context, req *model.LLMRequest, t Tool) error {
	if p, ok := t.(RequestProcessor); ok {
		if err := p.ProcessRequest(ctx, req); err != nil {
			return fmt.Errorf("prepare tool %q: %w", t.Name(), err)
		}
		return nil
	}
	return Pack(req, t)
}

// ProcessSet lets a toolset that is a RequestProcessor prepare a request, before its tools do. For
// any other toolset it does nothing.
func ProcessSet(ctx Context, req *model.LLMRequest, set Toolset) error {
	p, ok := set.(RequestProcessor)
	if !ok {
		return nil
	}
	if err := p.ProcessRequest(ctx, req); err != nil {
		return fmt.Errorf("prepare toolset %q: %w", set.Name(), err)
	}
	return nil
}

// Pack adds a tool's declaration to a request, and the tool itself to req.Tools. It changes req and
// req.Config, but not the slices in them, which other requests may share. It fails on a second tool
// of the same name, on a declaration with another name than the tool's, and with [ErrUnusable] on a
// tool that is not a Function.
func Pack(req *model.LLMRequest, t Tool) error {
	name := t.Name()
	if name == "" {
		return fmt.Errorf("pack tool: a %T has no name", t)
	}
	f, ok := t.(Function)
	if !ok {
		return fmt.Errorf("pack tool %q: a %T %w", name, t, ErrUnusable)
	}
	if _, ok := req.Tools[name]; ok {
		return fmt.Errorf("pack tool %q: duplicate tool: the request has another one of that name; rename one of them", name)
	}
	decl := f.Declaration()
	if decl != nil && decl.Name != name {
		return fmt.Errorf("pack tool %q: its declaration has the name %q", name, decl.Name)
	}
	if req.Tools == nil {
		req.Tools = make(map[string]any)
	}
	req.Tools[name] = f
	if req.Config == nil {
		req.Config = &genai.GenerateContentConfig{}
	}
	if decl != nil {
		declare(req.Config, decl)
	}
	return nil
}

// Instruct adds texts to the system instruction of a request, each after an empty line. It leaves out empty
// texts, and does not change the instruction that is there, which other requests may share.
func Instruct(req *model.LLMRequest, texts ...string) {
	var more []string
	for _, text := range texts {
		if text != "" {
			more = append(more, text)
		}
	}
	if more == nil {
		return
	}
	if req.Config == nil {
		req.Config = &genai.GenerateContentConfig{}
	}
	c := genai.Content{Role: genai.RoleUser}
	if given := req.Config.SystemInstruction; given != nil {
		c = *given
	}
	c.Parts = slices.Clone(c.Parts)
	if n := len(c.Parts); n > 0 && c.Parts[n-1] != nil && c.Parts[n-1].Text != "" {
		last := *c.Parts[n-1]
		last.Text = strings.Join(append([]string{last.Text}, more...), "\n\n")
		c.Parts[n-1] = &last
	} else {
		c.Parts = append(c.Parts, genai.NewPartFromText(strings.Join(more, "\n\n")))
	}
	req.Config.SystemInstruction = &c
}

// declare adds a declaration to the first of the config's tools that has any.
func declare(cfg *genai.GenerateContentConfig, decl *genai.FunctionDeclaration) {
	tools := slices.Clone(cfg.Tools)
	i := slices.IndexFunc(tools, func(t *genai.Tool) bool { return t != nil && len(t.FunctionDeclarations) > 0 })
	if i < 0 {
		tools = append(tools, &genai.Tool{FunctionDeclarations: []*genai.FunctionDeclaration{decl}})
	} else {
		with := *tools[i]
		with.FunctionDeclarations = append(slices.Clip(with.FunctionDeclarations), decl)
		tools[i] = &with
	}
	cfg.Tools = tools
}
