// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
)

var modelRows = []row[Agent]{
	field("model", "model, as provider/name; on a workflow agent for all agents inside; that of the run if left out",
		plain(modelShape, (*reader).text), func(a *Agent) *string { return &a.Model }),
	field("prompt_cache", "off, so that a provider is not asked to keep what requests repeat; or how long it is to keep that, such as 24h with OpenAI; "+
		"on a workflow agent for all agents inside; on if left out", oneWord("on", "off", "24h"), func(a *Agent) *string { return &a.PromptCache }),
}

func modelShape() shape {
	return &jsonschema.Schema{Type: "string", Title: "text", Examples: []any{"openai/gpt-5-mini", "ollama/qwen3"}}
}

// model checks that a name names a model. It does not need keys.
func (c *checker) model(a *Agent) {
	if n, given := a.nodes["model"]; !given || !source.PlainText(n) || a.Type == TypeCLI || // in the words of its program
		a.Type != "" && !fieldNamed("model").has(a.Type) {
		return
	}
	p, rest, err := provider.Find(a.Model)
	if err != nil {
		problem := c.report(a.at("model"), CodeModel, "%v", err)
		problem.err = err
		if e, ok := errors.AsType[*provider.NameError](err); ok {
			problem.Message, problem.Hint = "model "+quoteText(e.Name)+": "+e.Reason, ""
			if e.Meant != "" {
				problem.suggest("did you mean "+quoteText(e.Meant)+"?", e.Meant)
			}
		}
		return
	}
	if p.Name == scriptedProvider && !filepath.IsLocal(rest) {
		c.report(a.at("model"), CodeOutside, "the script %q leads out of the folder of the definition", rest).
			Hint = "scripts are named relative to the file that names them"
		return
	}
	if p.Name == scriptedProvider {
		c.script(a, path.Join(path.Dir(a.src.Path), filepath.ToSlash(rest)))
	}
}

// readScript is the content of a script when the definition was read.
type readScript struct {
	script *scripted.Script // nil if it could not be read
	err    error            // what is wrong with it
}

// script reads the script of a model and reports its problems. A missing script is no problem, because it may be
// written before the run.
func (c *checker) script(a *Agent, name string) {
	if c.fsys == nil || !filepath.IsLocal(filepath.FromSlash(name)) {
		return
	}
	read, known := c.scripts[name]
	if !known {
		read.script, read.err = scriptIn(c.fsys, name)
		c.scripts[name] = read
	}
	a.script = read.script
	err := read.err
	if err == nil {
		return
	}
	if errors.Is(err, errLeadsOut) {
		c.report(a.at("model"), CodeOutside, "the script %q leads out of the folder of the definition", name).Hint = linkHint
		return
	}
	p := c.report(a.at("model"), CodeModel, "the script %s cannot be used: %v", name, err)
	p.err = err
	if e, ok := errors.AsType[*scripted.SyntaxError](err); ok {
		p.Message = fmt.Sprintf("the script %s:%d:%d cannot be used: %s", name, e.Line, e.Column, e.Msg)
	}
}

// errLeadsOut reports that a link leads out of the folder of the definition.
var errLeadsOut = errors.New("a link leads out of the folder of the definition")

// scriptIn reads a script; both results are nil if it cannot be read. The error is errLeadsOut for a script that is not
// in the folder.
func scriptIn(fsys fs.FS, name string) (*scripted.Script, error) {
	data, err := source.ReadFile(fsys, name)
	switch {
	case err != nil && leadsOut(err):
		return nil, errLeadsOut
	case err != nil:
		return nil, nil
	}
	script, err := scripted.Parse(data)
	if err == nil {
		_, err = scripted.New(script)
	}
	if err != nil {
		return nil, err
	}
	return &script, nil
}

// scriptedProvider is the provider whose models are files.
const scriptedProvider = "scripted"

// naming returns the agent itself or the nearest enclosing agent that names a model; nil if none does.
func (a *Agent) naming() *Agent {
	for ; a != nil; a = a.parent {
		if a.Model != "" {
			return a
		}
	}
	return nil
}

// promptCache returns the setting of the agent, or else of the nearest enclosing agent with one.
func (a *Agent) promptCache() llmagent.PromptCache {
	for ; a != nil; a = a.parent {
		switch a.PromptCache {
		case "":
		case "on":
			return ""
		default:
			return llmagent.PromptCache(a.PromptCache)
		}
	}
	return ""
}

// modelName returns the name of the model in the file, with a script's path relative to the current folder instead of
// the file.
func (a *Agent) modelName() string {
	if path, ok := strings.CutPrefix(a.Model, scriptedProvider+"/"); ok {
		return scriptedProvider + "/" + filepath.Join(filepath.Dir(a.src.Name), filepath.FromSlash(path))
	}
	return a.Model
}

// asksModel reports whether the agent, or an agent inside it, asks a model.
func (a *Agent) asksModel() bool {
	return a.contains(func(sub *Agent) bool { return sub.Type == TypeLLM })
}

// modelOf returns the name of an agent's model, and the agent that names it; nil for the default model.
func (b *builder) modelOf(a *Agent) (string, *Agent) {
	if n := a.naming(); n != nil {
		return n.modelName(), n
	}
	return b.cfg.DefaultModel, nil
}

// resolve opens the models of a tree and finds its functions and variables, and reports everything that is missing at
// once.
func (b *builder) resolve(ctx context.Context, root *Agent) error {
	functions, err := b.cfg.functions()
	if err != nil {
		return err
	}
	b.functions = functions
	l := newLoader()
	b.resolveWorkspace(ctx, l, root.def)
	for a := range root.All {
		b.resolveHooks(l, a)
		b.resolveQueue(l, a)
		if resolve := a.Type.kind().resolve; resolve != nil {
			if err := resolve(ctx, b, l, a); err != nil {
				return err
			}
		}
	}
	if len(l.problems) > 0 {
		return l.problems.sort()
	}
	return nil
}

// resolveModel finds the tools of an agent, and opens its model.
func resolveModel(ctx context.Context, b *builder, l *loader, a *Agent) error {
	b.resolveTools(l, a)
	name, by := b.modelOf(a)
	if name == "" {
		l.report(a.at("name"), CodeModel, "%q needs a model, but none is given", a.Name).
			Hint = "use --model provider/name, set REFRAIN_MODEL, or write model: provider/name in the file"
		return nil
	}
	if err := b.open(ctx, l, a, by, name); err != nil {
		return err
	}
	for _, by := range a.legModels() {
		if err := b.open(ctx, l, a, by, by.modelName()); err != nil {
			return err
		}
	}
	return nil
}

// open opens a model of an agent, unless it is open.
func (b *builder) open(ctx context.Context, l *loader, a, by *Agent, name string) error {
	if _, opened := b.models[name]; opened || b.cfg.queue(a).Name != "" {
		return nil // or its workers open it
	}
	llm, err := b.openInTime(ctx, a, by, name)
	late, isLate := errors.AsType[*InitError](err)
	switch {
	case isLate:
		return late
	case err != nil && by == nil:
		return fmt.Errorf("the default model: %w", err)
	case err != nil:
		l.report(by.at("model"), CodeModel, "%v", err).err = err
	}
	b.models[name] = llm
	return nil
}

// openModel opens the model that an agent names; by is nil for the default model.
func (b *builder) openModel(ctx context.Context, by *Agent, name string) (model.LLM, error) {
	if b.cfg.Model != nil {
		return b.cfg.Model(ctx, name)
	}
	if by != nil && strings.HasPrefix(name, scriptedProvider+"/") {
		llm, err := by.openScript()
		if err != nil {
			return nil, fmt.Errorf("model %q: %w", name, err)
		}
		return llm, nil
	}
	return provider.Open(ctx, name, b.cfg.Getenv)
}

// openScript opens the script that an agent names, in the folder of the definition. If the definition has another
// name than its file, the file may not exist on the disk, and openScript uses the script that was read with the
// definition. The error for a link that leads out is errLeadsOut.
func (a *Agent) openScript() (model.LLM, error) {
	if root := a.def.Root.src; a.script != nil && !strings.HasSuffix(filepath.ToSlash(root.Name), root.Path) {
		return scripted.New(*a.script)
	}
	name, dir := filepath.ToSlash(a.src.Name), path.Dir(a.src.Path)
	folder, inside := strings.CutSuffix(name, a.src.Path)
	if !inside || folder != "" && !strings.HasSuffix(folder, "/") { // the definition has another name than its file
		folder, dir = path.Dir(name), "."
	}
	root, err := os.OpenRoot(filepath.FromSlash(cmp.Or(folder, ".")))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	script := strings.TrimPrefix(a.Model, scriptedProvider+"/")
	m, err := scripted.LoadFS(root.FS(), path.Join(dir, filepath.ToSlash(script)))
	switch {
	case err != nil && leadsOut(err):
		return nil, errLeadsOut
	case err != nil:
		return nil, err // a nil *scripted.Model would not be a nil LLM
	}
	return m, nil
}

// DefaultInitTimeout is the default of init_timeout: how long a model or a tool server may take to
// start.
const DefaultInitTimeout = 30 * time.Second

// InitError reports that a model or a tool server of an agent did not start in time.
type InitError struct {
	// Agent is the agent's name; empty for all agents.
	Agent string
	// What names the model or the server that did not answer, such as model "openai/gpt-5-mini".
	What string
	// After is the time that Build waited.
	After time.Duration
}

// Error returns a message with a fixed beginning, for which programs search.
func (e *InitError) Error() string {
	s := fmt.Sprintf("Agent initialization timed out, cannot process message: %s was not ready after %s", e.What,
		brief.Duration(e.After))
	if e.Agent != "" {
		s += fmt.Sprintf(" (agent %q)", e.Agent)
	}
	return s
}

// Unwrap returns context.DeadlineExceeded.
func (e *InitError) Unwrap() error { return context.DeadlineExceeded }

// openInTime opens a model, and returns after the time limit even if opening ignores its context.
func (b *builder) openInTime(ctx context.Context, a, by *Agent, name string) (model.LLM, error) {
	late := &InitError{Agent: a.Name, What: fmt.Sprintf("model %q", name), After: b.cfg.InitTimeout}
	ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.InitTimeout, late)
	defer cancel()
	type opened struct {
		llm model.LLM
		err error
	}
	done := make(chan opened, 1)
	go func() {
		var o opened
		defer func() { done <- o }()
		defer agent.Recover(&o.err)
		o.llm, o.err = b.openModel(ctx, by, name)
	}()
	select {
	case o := <-done:
		if o.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return o.llm, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// punctual is a toolset that must list its tools in time.
type punctual struct {
	tool.Toolset
	late *InitError
}

// Tools lists the tools of the server, which starts at the first call.
func (p *punctual) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, p.late.After, p.late)
	defer cancel()
	tools, err := p.Toolset.Tools(boundedContext{ctx, bounded})
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return nil, p.late
	}
	return tools, err
}

// boundedContext is a context of an agent with a shorter deadline.
type boundedContext struct {
	agent.ReadonlyContext
	bounded context.Context
}

func (c boundedContext) Deadline() (time.Time, bool) { return c.bounded.Deadline() }
func (c boundedContext) Done() <-chan struct{}       { return c.bounded.Done() }
func (c boundedContext) Err() error                  { return c.bounded.Err() }
func (c boundedContext) Value(key any) any           { return c.bounded.Value(key) }

func asPrices(m map[string]budget.Price) budget.Prices { return m }

var priceParts = parts[budget.Price]{rows: []row[budget.Price]{
	field("input", "price of a million input tokens; 0 is free", aPrice, func(p *budget.Price) *float64 { return &p.Input }).must(),
	field("output", "price of a million output tokens; 0 is free", aPrice, func(p *budget.Price) *float64 { return &p.Output }).must(),
	field("cached_input", "price of input tokens from the provider's cache; that of input if left out", aPrice, func(p *budget.Price) *float64 { return &p.CachedInput }),
	field("cache_write", "price of input tokens written into the cache for 5 minutes; 1.25 times that of input if left out", aPrice, func(p *budget.Price) *float64 { return &p.CacheWrite }),
	field("cache_write_1h", "price of input tokens written into the cache for an hour; twice that of input if left out", aPrice, func(p *budget.Price) *float64 { return &p.CacheWrite1h }),
}}

var aPrice = aFactor.checked(func(v float64) bool { return v >= 0 }, "%s must not be negative, got %s", "0 is free")

// unpriced reports agents that ask a model without a price inside a loop with a budget of cost. The price of a script
// is unknown before a run, because the script itself names its model.
func (c *checker) unpriced(a *Agent) {
	switch by := a.naming(); {
	case a.Type == TypeCLI:
		c.unpricedModel(a, a.Command.CLI.PricedAs(), a.Command.CLI.PricedAs(), a.at("cli"))
	case a.Type == TypeLLM:
		for _, by := range append(a.legModels(), by) {
			if by == nil {
				continue
			}
			if p, rest, err := provider.Find(by.Model); err == nil && p.Name != scriptedProvider {
				c.unpricedModel(a, by.Model, rest, by.at("model"))
			}
		}
	}
}

// unpricedModel reports a model of an agent, and price is as what a call looks for its price.
func (c *checker) unpricedModel(a *Agent, name, price string, at source.Span) {
	around := a.loopAround()
	for around != nil && (around.Loop.Budget == nil || around.Loop.Budget.Cost == nil) {
		around = around.loopAround()
	}
	if _, known := c.def.Prices.Of(price); name == "" || around == nil || known {
		return
	}
	p := c.report(at, CodePrice, "the loop %q has a budget of cost, but the price of %q is not known", around.Name, name)
	if p.suggest(c.priceHint(name)); a.Type == TypeCLI {
		p.suggest("codex does not say what it costs; add it to the root: prices: {"+name+
			": {input: …, output: …}}, for a million tokens; or give a budget of tokens", "")
	}
}

func (c *checker) priceHint(model string) (hint, suggestion string) {
	names := slices.Sorted(maps.Keys(c.def.Prices))
	if _, near := meant.Hint(model, names, ""); near != "" {
		return fmt.Sprintf("did you mean %q in prices?", near), near
	}
	return "add it to the root: prices: {" + model + ": {input: …, output: …}}, for a million tokens; 0 is free", ""
}

// most returns the most that input tokens cost. A provider may charge for writing them into its cache, by the price or by
// known rules.
func (p *modelPrice) most() float64 {
	return p.MostInput(p.CacheWrite > 0 || p.CacheWrite1h > 0 || cachesOf(p.model).Charged)
}

// modelPrice is a model with its price.
type modelPrice struct {
	budget.Price
	model string
}

// cachesOf returns the rules of the cache of a model's provider.
func cachesOf(name string) model.Caches {
	p, rest, err := provider.Find(name)
	if err != nil {
		return model.Caches{}
	}
	return model.CachesOf(p.Name, rest)
}

// price returns the price of the model of an agent.
func (w *worst) price(a *Agent) (budget.Price, bool) { return w.priceOf(w.modelOf(a)) }

func (w *worst) priceOf(name string) (budget.Price, bool) {
	if name == "" {
		return budget.Price{}, false
	}
	if p, rest, err := provider.Find(name); err == nil && p.Name != scriptedProvider {
		return w.def.Prices.Of(rest) // as a call looks for it
	}
	return w.def.Prices.Of(name)
}

// prices returns the prices of the models that an agent asks, with those of on_plateau. unknown is a model whose price is
// not known, or ? for a model that has no name; empty if all are known.
func (w *worst) prices(a *Agent) (all []modelPrice, unknown string) {
	names := []string{w.modelOf(a)}
	for _, by := range a.legModels() {
		if w.given.EveryModel == "" {
			names = append(names, by.Model)
		}
	}
	for _, name := range names {
		price, known := w.priceOf(name)
		if all = append(all, modelPrice{price, name}); !known && unknown == "" {
			unknown = cmp.Or(name, "?")
		}
	}
	return all, unknown
}

// modelOf returns the name of an agent's model; empty if neither the definition nor its user names one.
func (w *worst) modelOf(a *Agent) string {
	if w.given.EveryModel != "" {
		return w.given.EveryModel
	}
	if by := a.naming(); by != nil {
		return by.Model
	}
	return w.given.Model
}
