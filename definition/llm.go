// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/genaischema"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
)

// LLM holds the fields that only agents of type llm have.
type LLM struct {
	// Instructions is a template; {key} means the same as {{key}}.
	Instructions string
	// OutputSchema is the schema of an answer in JSON; nil means an answer in words.
	OutputSchema *genai.Schema
	// Context says which part of the conversation the model sees.
	Context llmagent.ContextConfig
	// Temperature is the temperature; nil uses the model's own.
	Temperature *float64
	// MaxTokens is the largest number of tokens of one answer; 0 is the model's own limit.
	MaxTokens uint
	// Thinking says how much the model thinks before it answers; empty leaves it to the model. A
	// model that cannot think may refuse the request.
	Thinking genai.ThinkingLevel
	// RequestRetry says how often a request is sent again after a temporary failure. The Retry of [Step] runs the
	// whole agent again.
	RequestRetry llmagent.RequestRetry
	// StaticInstruction is sent first, without changes; Instructions then follow the conversation.
	StaticInstruction string
	Tools             []Tool
}

func llmOf(a *Agent) *LLM {
	if a.LLM == nil {
		a.LLM = &LLM{}
	}
	return a.LLM
}

var llmRows = []row[LLM]{
	field("instructions", "", aWords, func(l *LLM) *string { return &l.Instructions }),
	field("context", "what the model sees of the conversation: iteration (default), full, digest, none, or {last: n} iterations, with digest: true to summarize those before", value[llmagent.ContextConfig]{contextShape, contextOf}, func(l *LLM) *llmagent.ContextConfig { return &l.Context }).shown(llmagent.ContextIteration),
	field("static_instruction", "text without placeholders that is sent first; instructions then follow the conversation, so that a provider's cache can keep what is before them", aWords, func(l *LLM) *string { return &l.StaticInstruction }),
	special("tools", "tools that the model can call: exit_loop, the name of a Go function, {agent: {…}}, {command, "+
		"name, description, parameters}, {mcp: {command, env}} or {mcp: {url, headers}}",
		func() shape { return schema.List(schema.By("tool")) }, takesTools),
	field("output_schema", "JSON Schema of the answer, which is then JSON", own(func() shape { return schema.By("answer") }, (*reader).outputSchema), func(l *LLM) **genai.Schema { return &l.OutputSchema }),
	field("temperature", "temperature, from 0 to 2; that of the model if left out", maybe(aTemperature), func(l *LLM) **float64 { return &l.Temperature }),
	field("max_tokens", "most tokens of an answer; that of the model if left out", wholeFrom[uint](1, "leave it out for the model's own limit"), func(l *LLM) *uint { return &l.MaxTokens }),
	field("thinking", "how much the model thinks before it answers: minimal, low, medium or high; that of the model if left out", as(oneWord(loop.ThinkingLevels()...), thinkingLevel), func(l *LLM) *genai.ThinkingLevel { return &l.Thinking }),
	field("request_retry", "attempts of a request in all, when the provider is busy or does not answer; 3 if left out; or {attempts, backoff, max_backoff, max_retry_after}", requestRetryParts.inPlace(), func(l *LLM) *llmagent.RequestRetry { return &l.RequestRetry }).shown(3),
}

var requestRetryParts = parts[llmagent.RequestRetry]{or: "attempts", rows: []row[llmagent.RequestRetry]{
	field("attempts", "attempts in all", wholeFrom[int](1, ""), func(t *llmagent.RequestRetry) *int { return &t.Attempts }).shown(3),
	field("backoff", "wait before the second attempt; doubles before each further one", aSpan, func(t *llmagent.RequestRetry) *time.Duration { return &t.Backoff }).shown("500ms"),
	field("max_backoff", "longest wait", aSpan, func(t *llmagent.RequestRetry) *time.Duration { return &t.MaxBackoff }).shown("8s"),
	field("max_retry_after", "longest wait that a provider may ask for", aSpan, func(t *llmagent.RequestRetry) *time.Duration { return &t.MaxRetryAfter }).shown("1m"),
}, settled: func(p place, t *llmagent.RequestRetry) {
	if t.MaxBackoff > 0 && t.MaxBackoff < t.Backoff {
		p.report(p.a.nodes[p.field+".max_backoff"], CodeValue,
			"%s: max_backoff %s is shorter than backoff %s", p.field, t.MaxBackoff, t.Backoff)
	}
}}

func (r *reader) outputSchema(a *Agent, n *source.Node, field string) (*genai.Schema, bool) {
	a.answer = r.schema(n, field)
	return genaischema.From(a.answer), a.answer != nil
}

func thinkingLevel(word string) genai.ThinkingLevel {
	return genai.ThinkingLevel(strings.ToUpper(word))
}

var aTemperature = numberIn(func(s shape) { s.Minimum, s.Maximum = new(0.0), new(2.0) }).
	checked(func(v float64) bool { return v >= 0 && v <= 2 }, "%s must be between 0 and 2, got %s", "")

var contexts = []string{
	string(llmagent.ContextFull), string(llmagent.ContextIteration), string(llmagent.ContextDigest),
	string(llmagent.ContextNone),
}

const contextForms = "context must be full, iteration, digest, none or {last: n, digest: true}"

// contextMap is a context that is written as a map.
type contextMap struct {
	last, bestChars int
	digest          bool
}

var contextParts = parts[contextMap]{rows: []row[contextMap]{
	field("last", "iterations to send, with the current one; with a digest only the current one if left out", wholeFrom[int](1, "for nothing of what was said, write context: none"), func(c *contextMap) *int { return &c.last }),
	field("digest", "true summarizes earlier iterations in a few lines, and gives the best one in full", aBool, func(c *contextMap) *bool { return &c.digest }),
	field("best_chars", "most characters of the best iteration in the digest", wholeFrom[int](1, ""), func(c *contextMap) *int { return &c.bestChars }).shown(llmagent.DefaultBestChars),
}}

// contextShape returns the shape of a context: the name of a policy, or a map that needs last or digest: true.
// best_chars needs a digest.
func contextShape() shape {
	s := contextParts.shape()
	is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"digest": {Enum: []any{true}}},
		Required: []string{"digest"}}
	other := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"best_chars": schema.Nothing()},
		Required: []string{"last"}}
	s.AllOf = []*jsonschema.Schema{{If: is, Else: other}}
	return schema.Either(schema.OneOf(contexts...), s)
}

// contextOf reads the name of a policy, or the number of iterations that the model sees, and whether a digest
// summarizes the older ones. With a digest and no number the model sees only the running iteration.
func contextOf(p place, n *source.Node) (c llmagent.ContextConfig, ok bool) {
	if n.Kind != source.Map {
		return contextNamed(p, n)
	}
	m, ok := contextParts.read(p, n)
	c = llmagent.ContextConfig{Policy: llmagent.ContextLast, Last: m.last, BestChars: m.bestChars}
	switch {
	case !ok:
	case m.digest:
		c.Policy = llmagent.ContextDigest
	case m.last == 0:
		p.report(n, CodeValue, contextForms)
		return c, false
	case m.bestChars > 0:
		p.report(p.a.nodes["context.best_chars"], CodeValue, "context.best_chars is for a digest, but "+
			"digest is not true").Hint = "add digest: true"
		return c, false
	}
	return c, ok
}

func contextNamed(p place, n *source.Node) (c llmagent.ContextConfig, ok bool) {
	text, ok := p.text(n, p.field)
	if !ok || slices.Contains(contexts, text) {
		return llmagent.ContextConfig{Policy: llmagent.ContextPolicy(text)}, ok
	}
	problem := p.report(n, CodeValue, contextForms+", got %q", text)
	if problem.suggest(meant.Hint(text, contexts, "")); text == "last" {
		problem.suggest("say how many iterations, as {last: 3}", "")
	}
	return c, false
}

// llm checks the instructions and the tools of an agent that asks a model.
func (c *checker) llm(a *Agent) {
	l := a.LLM
	c.template(a, "instructions", l.Instructions, template.Canonical)
	c.spoiled(a)
	if l.OutputSchema != nil && a.mayExit() {
		c.warn(a.at("output_schema"), CodeConflict, "%q must answer in JSON and may end the loop: many models cannot "+
			"do both", a.Name).
			Hint = "let another agent end the loop, or give this one can_exit_loop: false"
	}
	functions := make(map[string]bool)
	for _, t := range l.Tools {
		switch {
		case t.MCP != nil:
			c.mcp(a, t.field, t.MCP)
		case t.Func != "" && functions[t.Func]:
			c.report(a.at(t.field), CodeDuplicate, "the function %q is given twice", t.Func)
		case t.Func != "":
			functions[t.Func] = true
		case t.Agent != nil && t.Agent.Name != "":
			c.agentTool(t.Agent)
		}
	}
	for _, t := range l.Tools {
		if t.Agent != nil && functions[t.Agent.Name] {
			c.report(t.Agent.at("name"), CodeTool, "%q also has a function of this name", a.Name)
		}
	}
}

// literal warns of placeholders in texts that a model gets unchanged.
func (c *checker) literal(a *Agent, field, text string) {
	t, err := template.Parse(text, template.Options{Dialect: template.Mustache})
	if text == "" || err != nil {
		return
	}
	for _, ref := range t.Keys() {
		c.warn(a.inField(field, ref.Line, ref.Column), CodeTemplate,
			"{{%s}} is not replaced: the model gets the %s of a loop word for word", ref.Name, field).
			Hint = "only the instructions of llm agents have placeholders"
	}
}

var llmKind = kind{is: TypeLLM, an: true, check: (*checker).llm, build: (*builder).llm, resolve: resolveModel,
	most: (*worst).llm, expect: (*expecter).ask,
	notes: func(w *WorstCase, l *loader, u *AgentWorst) {
		w.timeNote(l, u)
		w.callNotes(l, u)
		w.roomNote(l, u.Agent)
	},
	calls: func(*Agent) float64 { return 1 }, waits: true,
	exits: func(a *Agent) string { return wordsIf(a.mayExit(), "when it calls exit_loop") },
	data:  func(a *Agent) bool { return a.LLM.OutputSchema != nil },
}

// llm makes an agent that asks a model.
func (b *builder) llm(a *Agent, cb around) (agent.Agent, error) {
	l := a.LLM
	name, _ := b.modelOf(a)
	cfg := llmagent.Config{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after,
		Model: b.askedModel(a, name), Instruction: l.Instructions,
		Context: l.Context, OutputKey: outputKey(a), GenerateContentConfig: generation(l), OutputSchema: l.OutputSchema,
		RequestRetry: l.RequestRetry, PromptCache: a.promptCache(),
		StaticInstruction: l.StaticInstruction, FixedKeys: b.fixed, OutputValue: !b.cfg.TextAnswers,
	}
	for _, by := range a.legModels() {
		if cfg.Models == nil {
			cfg.Models = make(map[string]model.LLM)
		}
		cfg.Models[by.Model] = b.askedModel(a, by.modelName())
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
	if change := b.cfg.StandIns.LLM; change != nil {
		change(a, &cfg)
	}
	return llmagent.New(cfg)
}

// defaultRequests is the default of request_retry: the attempts of a request in all.
const defaultRequests = 3

// llm returns the most that one run of an agent that asks a model uses. The time of the model is unknown.
func (w *worst) llm(a *Agent) AtMost {
	turns := w.turns(a)
	requests := Bound(cmp.Or(a.LLM.RequestRetry.Attempts, defaultRequests))
	u := AtMost{Turns: turns, Calls: turns.times(requests), Seconds: unbounded}
	u.tokensEach, u.costEach = w.request(a)
	u.Tokens, u.Cost = u.Calls.times(u.tokensEach), u.Calls.times(u.costEach)
	for _, t := range a.LLM.Tools {
		if t.Agent != nil {
			u = u.plus(w.once(t.Agent).often(unbounded))
		}
	}
	return u
}

// turns returns how often the model is asked in one run. A model with tools may call them any number of times, but a
// call of exit_loop ends the run.
func (w *worst) turns(a *Agent) Bound {
	for _, t := range a.LLM.Tools {
		if t.Exit == "" {
			return unbounded
		}
	}
	if a.LLM.OutputSchema != nil {
		return 2
	}
	return 1
}

// request returns the most tokens and cost of one request of an agent.
func (w *worst) request(a *Agent) (tokens, cost Bound) {
	in, out := w.given.InputTokens, w.given.OutputTokens
	if a.LLM.MaxTokens > 0 {
		out = int64(a.LLM.MaxTokens)
	}
	tokens = unbounded
	if in > 0 && out > 0 {
		tokens = Bound(in + out)
	}
	prices, unknown := w.prices(a)
	for _, price := range prices {
		switch {
		case unknown != "":
			return tokens, unbounded
		case price.MostInput(true) == 0 && price.Output == 0:
		case tokens.Unbounded():
			return tokens, unbounded
		default:
			cost = max(cost, Bound((float64(in)*price.most()+float64(out)*price.Output)/1e6))
		}
	}
	return tokens, cost
}

func (w *WorstCase) callNotes(l *loader, u *AgentWorst) {
	a := u.Agent
	for _, t := range a.LLM.Tools {
		if t.Exit == "" {
			p := l.note(a.at(t.field), CodeNoBound, "nothing limits how often %q calls tools, with a model call "+
				"after each", a.Name)
			p.Hint = "a budget of calls on a loop around it limits this"
			if n := w.Total.Calls; !n.Unbounded() {
				p.Hint = fmt.Sprintf("here the run, or a loop in it, ends after %.0f requests", float64(n))
			}
			break
		}
	}
	// If the file names no model, the caller of Worst names it.
	if w.of.given.EveryModel != "" {
		return
	}
	for _, by := range append(a.legModels(), a.naming()) {
		if by != nil && by.Model == u.UnpricedModel && u.Cost.Unbounded() && !strings.HasPrefix(by.Model, scriptedProvider+"/") {
			l.note(by.at("model"), CodePrice, "the price of %q is not known", by.Model).
				Hint = "add it to the root: prices: {" + by.Model +
				": {input: …, output: …}}, for a million tokens; 0 is free"
		}
	}
}

// roomNote notes a budget that is too small for a single request of an agent, because such a run stops before its
// first request.
func (w *WorstCase) roomNote(l *loader, a *Agent) {
	out := int64(llmagent.MinOutputTokens)
	if a.LLM.MaxTokens > 0 {
		out = min(out, int64(a.LLM.MaxTokens))
	}
	var in int64
	if text := a.LLM.Instructions; !sections().MatchString(text) {
		in = (int64(len(placeholders().ReplaceAllString(text, ""))) + 2) / 3 // as a run reckons before the first answer
	}
	price, priced := w.of.price(a)
	for _, b := range w.of.budgetsOn(a) {
		const needs = "no request of %q fits into the budget of %s: with its instructions and an answer of %d tokens " +
			"it needs %s, but %s is %s"
		if b.Tokens > 0 && in+out > b.Tokens {
			l.note(b.at, CodeStop, needs, a.Name, b.of, out, fmt.Sprintf("%d tokens", in+out), "tokens", fmt.Sprint(b.Tokens)).
				Hint = "raise tokens"
		}
		if cost := (float64(in)*price.Input + float64(out)*price.Output) / 1e6; priced && b.Cost != nil &&
			cost > *b.Cost {
			l.note(b.at, CodeStop, needs, a.Name, b.of, out, decimal(cost), "cost", decimal(*b.Cost)).Hint = "raise cost"
		}
	}
}

// These match placeholders, and texts between sections, which may be empty.
var (
	placeholders = lazyregexp.New(`\{\{?[^{}]*\}\}?`)
	sections     = lazyregexp.New(`\{\{[#^]`)
)

// spoiled warns of a placeholder that a long text follows in an agent that asks repeatedly, because a provider's
// cache cannot keep text after a changing value.
func (c *checker) spoiled(a *Agent) {
	t, err := template.Parse(a.LLM.Instructions, template.Options{})
	if err != nil || a.loopAround() == nil || a.LLM.StaticInstruction != "" || a.promptCache() == llmagent.PromptCacheOff {
		return
	}
	fixed, kept := fixedKeys(c.def), keptTokens
	if by := a.naming(); by != nil {
		kept = cmp.Or(cachesOf(by.Model).MinTokens, keptTokens)
	}
	for _, ref := range t.Keys() {
		behind := (len(a.LLM.Instructions) - ref.To) / model.BytesPerToken
		switch {
		case ref.Name == "user_input" || ref.Name == "max_iterations" || slices.Contains(fixed, ref.Name):
			continue
		case behind >= kept:
			c.warn(a.inField("instructions", ref.Line, ref.Column), CodeSpoiled,
				"behind {{%s}} stand %d tokens that no cache can keep", ref.Name, behind).
				Hint = "put it last, or put what does not change into static_instruction"
		}
		return // what comes next spoils nothing more
	}
}

// keptTokens is the shortest beginning that any provider caches. It applies to models whose minimum is unknown.
const keptTokens = 1024

// fixedKeys returns the inputs that no agent writes.
func fixedKeys(d *Definition) (keys []string) {
	written := make(map[string]bool)
	for a := range d.Root.All {
		for _, key := range a.writes() {
			written[key] = true
		}
	}
	for _, in := range d.Inputs {
		if !written[in.Name] {
			keys = append(keys, in.Name)
		}
	}
	return keys
}

// generation returns the settings with which the model answers.
func generation(l *LLM) *genai.GenerateContentConfig {
	g := &genai.GenerateContentConfig{MaxOutputTokens: int32(l.MaxTokens)}
	if l.Temperature != nil {
		g.Temperature = new(float32(*l.Temperature))
	}
	if l.Thinking != "" {
		g.ThinkingConfig = &genai.ThinkingConfig{ThinkingLevel: l.Thinking}
	}
	return g
}

// fieldsRead warns of fields that the schema of a key does not have.
func (c *checker) fieldsRead(rd *read, key string) {
	schemas := c.answers(key)
	if schemas == nil {
		return
	}
	var paths [][]string
	switch {
	case rd.code:
		root := "state"
		if strings.HasPrefix(rd.name, "prev.") {
			root = "prev"
		}
		paths = cel.Paths(rd.source, root)
	case !rd.bare:
		if _, rest, ok := strings.Cut(rd.name, key+"."); ok {
			paths = [][]string{append([]string{key}, strings.Split(rest, ".")...)}
		}
	}
	seen := make(map[string]bool)
	for _, path := range paths {
		if whole := strings.Join(path, "."); path[0] == key && !seen[whole] {
			seen[whole] = true
			c.field(rd.place(), path, schemas)
		}
	}
}

// answers returns the schemas of the values that a key can have; nil if it can have others.
func (c *checker) answers(key string) (all []*jsonschema.Schema) {
	if _, given := c.def.State[key]; given || c.input(key) {
		return nil
	}
	for _, w := range c.writers[key] {
		if w.Type != TypeLLM || w.OutputKey != key || w.answer == nil {
			return nil
		}
		all = append(all, w.answer)
	}
	return all
}

// field warns of a path to a field that none of some schemas has.
func (c *checker) field(at source.Span, path []string, schemas []*jsonschema.Schema) {
	for i, name := range path[1:] {
		var inner []*jsonschema.Schema
		var names []string
		for _, s := range schemas {
			if s.Properties == nil { // alternatives, a list or no object
				return
			}
			names = append(names, s.PropertyOrder...)
			if of := s.Properties[name]; of != nil {
				inner = append(inner, of)
			}
		}
		if inner == nil {
			slices.Sort(names)
			names = slices.Compact(names)
			if strings.HasSuffix(name, "()") {
				c.warn(at, CodeUnknownKey, "%s has no %s: it is an object by the output_schema of %q, and no text",
					strings.Join(path[:i+1], "."), name, c.writers[path[0]][0].Name).
					Hint = "ask a field of it; its fields are " + strings.Join(names, ", ")
				return
			}
			c.warn(at, CodeUnknownKey, "%s has no field %q in the output_schema of %q", strings.Join(path[:i+1], "."), name,
				c.writers[path[0]][0].Name).
				suggest(meant.Hint(name, names, "its fields are "+strings.Join(names, ", ")))
			return
		}
		schemas = inner
	}
}
