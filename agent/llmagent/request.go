// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/deep"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// The prompts for a model if no content asks it to speak, in the words of ADK 1.6: begin if there is no content at all,
// else goOn.
const (
	begin = "Handle the requests as specified in the System Instruction."
	goOn  = "Continue processing previous requests as instructed. Exit or provide a summary if no more outputs are " +
		"needed."
)

// request builds the request to the model. Its contents are those of the history, which other requests share. Contents
// that tools have added are in h.added, and an instruction that follows the conversation is in h.instruction. The hint is nil
// if the provider's cache is off.
func (a *Agent) request(ctx agent.Context, h *history) (*model.LLMRequest, *model.CacheHint, error) {
	made := new(struct { // one allocation instead of three, because every turn needs them
		req   model.LLMRequest
		cfg   genai.GenerateContentConfig
		cache model.CacheHint
	})
	req := &made.req
	req.Model, req.Config = a.cfg.Model.Name(), &made.cfg
	if a.cfg.GenerateContentConfig != nil {
		// Callbacks and tools may edit the config, which all requests of the agent share, but neither tools nor schemas.
		own := *a.cfg.GenerateContentConfig
		own.ResponseJsonSchema = nil
		req.Config = deep.Copy(&own, reflect.TypeFor[*genai.Tool](), reflect.TypeFor[*genai.Schema]())
		req.Config.ResponseJsonSchema = a.cfg.GenerateContentConfig.ResponseJsonSchema
	}
	all := texts{list: make([]string, 0, 8)}
	if given := req.Config.SystemInstruction; given != nil {
		text := contentText(given)
		all.add(text, len(text))
	}
	var err error
	if h.instruction, err = a.systemInstruction(ctx, &all); err != nil {
		return nil, nil, err
	}
	text := strings.Join(all.list, "\n\n")
	req.Config.SystemInstruction = newText(genai.RoleUser, text)
	list := h.update(ctx)
	req.Contents = list
	if err := a.addTools(ctx, req); err != nil {
		return nil, nil, err
	}
	if h.added, err = addedTo(list, req.Contents); err != nil {
		return nil, nil, err
	}
	req.Contents = list
	others, err := a.addTransfer(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	form, err := a.output.demand(req)
	if err != nil {
		return nil, nil, err
	}
	own := textBytes(req.Config.SystemInstruction) == len(text) // no tool has added to it
	tool.Instruct(req, others, form)
	if a.cfg.PromptCache == PromptCacheOff {
		return req, nil, nil
	}
	if own && !all.changes { // the texts that were added do not change in the run
		all.fixed = textBytes(req.Config.SystemInstruction)
	}
	made.cache = model.CacheHint{Static: all.fixed, Retention: string(a.cfg.PromptCache)}
	return req, &made.cache, nil
}

// addedTo returns the contents that tools have appended to a conversation.
func addedTo(list, now []*genai.Content) ([]*genai.Content, error) {
	if len(now) < len(list) || !slices.Equal(list, now[:len(list)]) {
		return nil, errors.New("prepare tools: a tool or toolset changed the conversation in the request; " +
			"in ProcessRequest it can only append to req.Contents")
	}
	return slices.Clip(now[len(list):]), nil
}

// with returns a conversation followed by the contents that belong to this request only.
func with(list, more []*genai.Content) []*genai.Content {
	if len(more) == 0 {
		return list
	}
	return append(append(make([]*genai.Content, 0, len(list)+len(more)), list...), more...)
}

// addTools adds the tools to a request. Those of a toolset are sorted by their names, because a server may list
// them in another order each time, and a provider's cache ends at the first byte that differs.
func (a *Agent) addTools(ctx agent.Context, req *model.LLMRequest) error {
	tools := a.cfg.Tools
	for _, set := range a.cfg.Toolsets {
		if err := tool.ProcessSet(ctx, req, set); err != nil {
			return err
		}
		more, err := set.Tools(ctx)
		if err != nil {
			return fmt.Errorf("toolset %q: %w", set.Name(), err)
		}
		tools = append(tools[:len(tools):len(tools)], more...)
		slices.SortStableFunc(tools[len(tools)-len(more):], byName)
	}
	for _, t := range tools {
		if err := tool.Process(ctx, req, t); err != nil {
			return err
		}
	}
	return nil
}

func byName(a, b tool.Tool) int { return strings.Compare(a.Name(), b.Name()) }

// systemInstruction adds the static and the global instruction, the agent's own, and the agent's identity. If
// there is a static one, it returns the agent's own instead of adding it.
func (a *Agent) systemInstruction(ctx agent.Context, all *texts) (told *genai.Content, err error) {
	all.add(a.cfg.StaticInstruction, len(a.cfg.StaticInstruction))
	lookup := drive.At(ctx).Lookup
	add := func(what string, p InstructionProvider, t *template.Template, b *beginning) error {
		text, err := fill(ctx, p, t, lookup)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		fixed := 0 // the text of an InstructionProvider may change completely
		if p == nil {
			fixed = b.bytes(text, lookup)
		}
		all.add(text, fixed)
		return nil
	}
	top := a
	if root, ok := drive.At(ctx).Tree().Root().(*Agent); ok {
		top = root
	}
	if err := add("global instruction", top.cfg.GlobalInstructionProvider, top.global, &top.fixedGlobal); err != nil {
		return nil, err
	}
	if a.cfg.StaticInstruction == "" {
		err = add("instruction", a.cfg.InstructionProvider, a.instruction, &a.fixed)
	} else if text, ferr := fill(ctx, a.cfg.InstructionProvider, a.instruction, lookup); ferr != nil {
		err = fmt.Errorf("instruction: %w", ferr)
	} else if text != "" {
		told = newText(genai.RoleUser, text)
	}
	if err != nil {
		return nil, err
	}
	for _, text := range loopTexts(drive.At(ctx).Loop()) {
		all.add(text, len(text))
	}
	all.add(a.identity, len(a.identity))
	if text := drive.At(ctx).Loop().HintText(a.Name()); text != "" {
		all.add(text, len(text))
	}
	return told, nil
}

// whoIs returns the text that tells a model its identity.
func whoIs(a agent.Agent) string {
	text := fmt.Sprintf("You are an agent. Your internal name is %q.", a.Name())
	if d := a.Description(); d != "" {
		text += fmt.Sprintf(" The description about you is %q.", d)
	}
	return text
}

// loopTexts returns the purposes of the loops around the agent, the outermost first.
func loopTexts(l *drive.Loop) []string {
	if l == nil {
		return nil
	}
	texts := loopTexts(l.Outer)
	if l.Goal != "" {
		texts = append(texts, fmt.Sprintf("The goal of %s: %s", l.Name, l.Goal))
	}
	if l.Instructions != "" {
		texts = append(texts, fmt.Sprintf("How %s goes about it: %s", l.Name, l.Instructions))
	}
	return texts
}

func fill(ctx agent.Context, p InstructionProvider, t *template.Template,
	lookup func(string) (any, bool)) (string, error) {
	if p != nil {
		return p(ctx)
	}
	return t.Execute(lookup)
}

// newText returns a content with one text.
func newText(role genai.Role, text string) *genai.Content {
	c := &struct {
		content genai.Content
		list    [1]*genai.Part
		parts   [1]genai.Part
	}{}
	return fillTexts(&c.content, c.list[:], c.parts[:], role, text)
}

// newTexts returns a content with two texts.
func newTexts(role genai.Role, first, second string) *genai.Content {
	c := &struct {
		content genai.Content
		list    [2]*genai.Part
		parts   [2]genai.Part
	}{}
	return fillTexts(&c.content, c.list[:], c.parts[:], role, first, second)
}

func fillTexts(c *genai.Content, list []*genai.Part, parts []genai.Part, role genai.Role, texts ...string) *genai.Content {
	for i, text := range texts {
		list[i], parts[i].Text = &parts[i], text
	}
	c.Role, c.Parts = string(role), list
	return c
}

func contentText(c *genai.Content) string {
	var b strings.Builder
	for _, p := range c.Parts {
		if p != nil {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
