// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// scriptedProvider is the provider whose models are files.
const scriptedProvider = "scripted"

// naming is the agent, this one or one around it, that names its model; nil if
// none does.
func (a *Agent) naming() *Agent {
	for ; a != nil; a = a.parent {
		if a.Model != "" {
			return a
		}
	}
	return nil
}

// modelName is the name that a file gives, with a script's path relative to the
// current folder instead of the file.
func (a *Agent) modelName() string {
	if path, ok := strings.CutPrefix(a.Model, scriptedProvider+"/"); ok {
		return scriptedProvider + "/" + filepath.Join(filepath.Dir(a.src.Name), filepath.FromSlash(path))
	}
	return a.Model
}

// modelOf is the name of an agent's model, and who gives it; nil if that is the
// default.
func (b *builder) modelOf(a *Agent) (string, *Agent) {
	if n := a.naming(); n != nil {
		return n.modelName(), n
	}
	return b.cfg.DefaultModel, nil
}

// resolve opens the models of a tree and finds its functions and variables, so
// that all that is missing is told at once.
func (b *builder) resolve(ctx context.Context, root *Agent) error {
	functions, err := b.cfg.functions()
	if err != nil {
		return err
	}
	b.functions = functions
	l, failed := newLoader(), make(map[string]bool)
	for a := range root.All {
		b.resolveHooks(l, a)
		if a.Type == TypeFunc {
			b.resolveAgent(l, a)
		}
		if a.Type != TypeLLM {
			continue
		}
		b.resolveTools(l, a)
		name, by := b.modelOf(a)
		if name == "" {
			l.report(a.at("name"), CodeModel, "%q asks a model, and none is given", a.Name).
				Hint = "use --model provider/name, set REFRAIN_MODEL, or write model: provider/name in the file"
			continue
		}
		if b.models[name] != nil || failed[name] {
			continue
		}
		llm, err := b.openInTime(ctx, a, name)
		late, isLate := errors.AsType[*InitError](err)
		switch {
		case isLate:
			return late
		case err == nil:
			b.models[name] = llm
		case by == nil:
			return fmt.Errorf("the default model: %w", err)
		default:
			failed[name] = true
			l.report(by.at("model"), CodeModel, "%v", err).err = err
		}
	}
	if len(l.problems) > 0 {
		return l.problems.sort()
	}
	return nil
}

func (b *builder) openModel(ctx context.Context, name string) (model.LLM, error) {
	if b.cfg.Model != nil {
		return b.cfg.Model(ctx, name)
	}
	return provider.Open(ctx, name, b.cfg.Getenv)
}

// llm makes an agent that asks a model.
func (b *builder) llm(a *Agent) (agent.Agent, error) {
	l, cb := a.LLM, b.around(a)
	name, _ := b.modelOf(a)
	cfg := llmagent.Config{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after, Model: b.models[name], Instruction: l.Instructions,
		Context: l.Context, OutputKey: outputKey(a), GenerateContentConfig: generation(l), OutputSchema: l.OutputSchema,
		Retry: l.Retry,
	}
	if a.mayExit() && a.exitTool() == nil {
		if err := exitTool(a, "", &cfg); err != nil {
			return nil, err
		}
	}
	b.aroundCalls(a, &cfg)
	for _, t := range l.Tools {
		if err := b.tool(a, t, &cfg); err != nil {
			return nil, err
		}
	}
	b.cfg.StandIns.llm(a, &cfg)
	return llmagent.New(cfg)
}

// generation is what the file says of how the model answers.
func generation(l *LLM) *genai.GenerateContentConfig {
	g := &genai.GenerateContentConfig{MaxOutputTokens: int32(l.MaxTokens)}
	if l.Temperature != nil {
		g.Temperature = new(float32(*l.Temperature))
	}
	return g
}
