// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// Expected is the expected cost of a run, computed from the texts of the definition: see [Definition.Expected].
type Expected struct {
	// Loops are the outermost loops, in the order of the file. Requests outside of them count as one iteration of the
	// root.
	Loops []ExpectedLoop `json:"loops"`
	// Prices are the prices of the models, by their names.
	Prices []UsedPrice `json:"prices,omitzero"`
	// Uncounted lists the unknown parts that the figures leave out.
	Uncounted []Uncounted `json:"uncounted,omitzero"`
}

// ExpectedLoop is the expected cost of the iterations of a loop.
type ExpectedLoop struct {
	Name       string              `json:"name"`
	Iterations []ExpectedIteration `json:"iterations"`
	// Total is the sum of the iterations and of the finalizer after them.
	Total ExpectedIteration `json:"total"`
	// More says that the loop may have more iterations than these.
	More bool `json:"more,omitzero"`
}

// Uncounted is an unknown part that [Expected] leaves out.
type Uncounted struct {
	What UncountedKind `json:"what"`
	// Name is the name of the agent or of the state key; empty for a request or for all answers.
	Name string `json:"name,omitzero"`
}

// UncountedKind is a kind of [Uncounted].
type UncountedKind string

// The kinds of unknown parts.
const (
	UncountedRequest    UncountedKind = "request"    // the user's request
	UncountedAnswers    UncountedKind = "answers"    // what models answer
	UncountedValue      UncountedKind = "value"      // the value of a placeholder
	UncountedTools      UncountedKind = "tools"      // declarations of tools that the file does not describe
	UncountedTurns      UncountedKind = "turns"      // what an agent asks after a call of a tool
	UncountedIterations UncountedKind = "iterations" // iterations of a loop inside another after the first
	UncountedAgent      UncountedKind = "agent"      // an agent that may ask models by itself
	UncountedPrice      UncountedKind = "price"      // the price of an agent's model
)

// ExpectedIteration is the expected use of one iteration. Tokens are estimates.
type ExpectedIteration struct {
	Number      int   `json:"number,omitzero"`
	Requests    int   `json:"requests"`
	InputTokens int64 `json:"input_tokens"`
	// CachedTokens and CacheWriteTokens of the input are read from the provider's cache and written into it.
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	// Cost is the cost with caches, and Uncached without; nil if the price of a model is unknown.
	Cost     *float64 `json:"cost"`
	Uncached *float64 `json:"cost_without_cache"`
}

func (e *ExpectedIteration) add(v *ExpectedIteration) {
	e.Requests += v.Requests
	e.InputTokens += v.InputTokens
	e.CachedTokens += v.CachedTokens
	e.CacheWriteTokens += v.CacheWriteTokens
	e.OutputTokens += v.OutputTokens
	for _, c := range []struct{ sum, one **float64 }{{&e.Cost, &v.Cost}, {&e.Uncached, &v.Uncached}} {
		switch {
		case *c.one == nil:
			*c.sum = nil
		case *c.sum != nil:
			*c.sum = new(**c.sum + **c.one)
		}
	}
}

// UsedPrice is the price of a model, and its origin.
type UsedPrice struct {
	Model string `json:"model"`
	// Date and Source belong to a list price; they are empty if the definition has the price.
	Date   string `json:"date,omitzero"`
	Source string `json:"source,omitzero"`
}

// The limits on iterations of a loop, and on requests in all, whose cost is computed.
const (
	maxExpectedIterations = 50
	maxExpectedRequests   = 1000
)

// Expected computes what the iterations of a run are expected to cost, with the providers' caches and without
// them. It goes through the requests as a run would send them, if every loop has all its iterations, no
// request fails, no tool is called, and no iteration takes longer than five minutes. A token is taken to have
// [model.BytesPerToken] bytes. An answer is taken to have Assumed.OutputTokens, at most max_tokens; without
// these, answers are left out. Prices are those of the definition, or else list prices: see [budget.Listed].
func (d *Definition) Expected(given Assumed) *Expected {
	w := &worst{def: d, given: given}
	w.limiting, _ = d.limited(given.Limits)
	e := &expecter{worst: w, fixed: fixedKeys(d), sizes: make(map[string]int), versions: make(map[string]int),
		kept: make(map[string]map[uint64]bool), asked: make(map[*Agent]bool), missing: make(map[Uncounted]bool),
		answers: make(map[string]bool),
		prices:  make(map[string]UsedPrice)}
	for _, in := range d.Inputs {
		e.know(in.Name, in.Default)
	}
	for _, values := range []map[string]any{d.State, given.State} {
		for key, v := range values {
			e.know(key, v)
		}
	}
	if d.Query != "" {
		e.know("user_input", d.Query)
	} else if d.NeedsRequest() != "" {
		e.miss(UncountedRequest, "")
	}
	e.said = append(e.said, dialogMessage{nil, newSegment("user", e.sizes["user_input"])})
	outside := e.during(func() { e.run(d.Root) })
	if outside.Requests > 0 {
		e.out.Loops = append(e.out.Loops, ExpectedLoop{Name: d.Root.Name, Iterations: []ExpectedIteration{outside},
			Total: outside})
	}
	for _, name := range slices.Sorted(maps.Keys(e.prices)) {
		e.out.Prices = append(e.out.Prices, e.prices[name])
	}
	missing := slices.Collect(maps.Keys(e.missing))
	slices.SortFunc(missing, func(a, b Uncounted) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Name, b.Name))
	})
	e.out.Uncounted = missing
	return &e.out
}

// expecter simulates the requests of a run.
type expecter struct {
	*worst
	fixed    []string        // keys whose values stay
	sizes    map[string]int  // of values, in bytes, by key; without those that are unknown
	versions map[string]int  // how often a key has been written
	said     []dialogMessage // the conversation
	loops    []loopUnderWay  // around the current place, the outermost first
	kept     map[string]map[uint64]bool
	asked    map[*Agent]bool
	requests int
	now      ExpectedIteration
	missing  map[Uncounted]bool
	answers  map[string]bool // keys with answers of unknown size
	prices   map[string]UsedPrice
	out      Expected
}

// segment is a part of a request. Segments with the same hash are the same text.
type segment struct {
	hash  uint64
	bytes int
}

// dialogMessage is one message of the conversation.
type dialogMessage struct {
	by *Agent // nil for the user
	segment
}

func newSegment(id string, bytes int) segment {
	h := fnv.New64a()
	_, _ = io.WriteString(h, id)
	return segment{h.Sum64(), bytes}
}

// loopUnderWay is a loop that encloses the current agent.
type loopUnderWay struct {
	starts []int // of its iterations in the conversation
	more   bool  // another iteration follows
}

func (e *expecter) miss(what UncountedKind, name string) { e.missing[Uncounted{what, name}] = true }

// know records a value that is known before the run.
func (e *expecter) know(key string, v any) {
	switch v := v.(type) {
	case nil:
	case string:
		e.sizes[key] = len(v)
	default:
		data, _ := json.Marshal(v)
		e.sizes[key] = len(data)
	}
}

// during returns the requests that f makes, without those of outermost loops that f simulates.
func (e *expecter) during(f func()) ExpectedIteration {
	before := e.now
	e.now = ExpectedIteration{Cost: new(0.0), Uncached: new(0.0)}
	f()
	got := e.now
	e.now = before
	return got
}

// run simulates one run of an agent.
func (e *expecter) run(a *Agent) {
	if expect := a.Type.kind().expect; expect != nil {
		expect(e, a)
		return
	}
	e.wrote(a, 0, false)
}

// parallel simulates the branches, none of which sees the others.
func (e *expecter) parallel(a *Agent) {
	before := len(e.said)
	var all []dialogMessage
	for i, sub := range a.SubAgents {
		if a.races() && (i > 0 || !a.Parallel.Race.Rest) { // as if the first one went on
			e.sliced(sub, a.Parallel.Race, func() { e.run(sub) })
		} else {
			e.run(sub)
		}
		all = append(all, e.said[before:]...)
		e.said = e.said[:before:before]
	}
	e.said = append(e.said, all...)
}

// uncounted records an agent whose requests are unknown.
func (e *expecter) uncounted(a *Agent) {
	e.miss(UncountedAgent, a.Name)
	e.wrote(a, 0, false)
}

// text fills in the text of a template agent.
func (e *expecter) text(a *Agent) {
	size, known := 0, true
	if t, err := template.Parse(a.Text, template.Options{}); err == nil {
		size, known = e.filled(t, a.Text)
	}
	e.wrote(a, size, known)
}

// wrote records the answer of an agent and the keys that it writes.
func (e *expecter) wrote(a *Agent, bytes int, known bool) {
	for _, key := range a.writes() {
		e.versions[key]++
		if delete(e.sizes, key); known {
			e.sizes[key] = bytes
		}
		e.answers[key] = a.Type == TypeLLM && !known
	}
	e.said = append(e.said, dialogMessage{a, newSegment(fmt.Sprint(a.Name, " ", len(e.said), " ", e.requests), bytes)})
}

// iterate simulates a loop.
func (e *expecter) iterate(a *Agent) {
	p, outermost := e.planOf(a), len(e.loops) == 0
	n := int(p.MaxIterations)
	more := n == 0 || n > maxExpectedIterations
	if more {
		n = maxExpectedIterations
	}
	if !outermost && p.MaxIterations == 0 {
		n = 1
		e.miss(UncountedIterations, a.Name)
	}
	of := ExpectedLoop{Name: a.Name, More: more, Total: ExpectedIteration{Cost: new(0.0), Uncached: new(0.0)}}
	at := len(e.loops)
	e.loops = append(e.loops, loopUnderWay{})
	step := func(only bool) {
		for i, sub := range a.SubAgents {
			if (i == p.Finalizer()) == only {
				for range leastSamples(p, i) {
					e.run(sub)
				}
			}
		}
	}
	for _, i := range p.BaselineSteps() {
		begin := e.during(func() {
			for range leastSamples(p, i) {
				e.run(a.SubAgents[i])
			}
		})
		of.Total.add(&begin)
	}
	for i := range n {
		here := &e.loops[at]
		here.starts, here.more = append(here.starts, len(e.said)), i+1 < n || more
		one := e.during(func() { step(false) })
		one.Number = i + 1
		if of.Iterations = append(of.Iterations, one); e.requests > maxExpectedRequests {
			of.More = of.More || i+1 < n
			break
		}
	}
	e.loops[at].more = false
	end := e.during(func() { step(true) })
	e.loops = e.loops[:at]
	for i := range of.Iterations {
		of.Total.add(&of.Iterations[i])
	}
	if of.Total.add(&end); !outermost {
		e.now.add(&of.Total)
	} else if of.Total.Requests > 0 {
		e.out.Loops = append(e.out.Loops, of)
	}
}

// request is a request under construction.
type request struct {
	segments []segment
	static   int // segments at the beginning that stay in the run
	kept     int // segments that the next request of the agent may repeat
	steady   bool
}

func (r *request) add(id string, bytes int) {
	if bytes > 0 {
		r.segments = append(r.segments, newSegment(id, bytes))
	}
}

// ask simulates one run of an agent that asks its model once.
func (e *expecter) ask(a *Agent) {
	r := e.request(a)
	e.requests++
	out := e.given.OutputTokens
	if most := int64(a.LLM.MaxTokens); most > 0 {
		out = min(out, most)
	}
	if out == 0 {
		e.miss(UncountedAnswers, "")
	}
	e.charge(a, r, out)
	e.asked[a] = true
	e.wrote(a, int(out)*model.BytesPerToken, out > 0)
}

// request builds the request of an agent, in the order in which it is sent.
func (e *expecter) request(a *Agent) *request {
	l, r := a.LLM, &request{steady: true}
	if text := exitDeclaration(a); text != "" {
		r.add(text, len(text))
	}
	for _, t := range l.Tools {
		switch {
		case t.Exit != "":
		case t.Agent != nil:
			text := t.Agent.Name + t.Agent.Description
			if t.Parameters != nil {
				data, _ := json.Marshal(t.Parameters)
				text += string(data)
			}
			r.add(text, len(text))
			e.miss(UncountedTurns, a.Name)
		default:
			e.miss(UncountedTools, a.Name)
			e.miss(UncountedTurns, a.Name)
		}
	}
	r.add(l.StaticInstruction, len(l.StaticInstruction))
	if l.StaticInstruction == "" {
		e.instruction(r, l.Instructions)
	}
	for p := a.loopAround(); p != nil; p = p.loopAround() {
		r.add(p.Loop.Goal, len(p.Loop.Goal))
		r.add(p.Loop.Instructions, len(p.Loop.Instructions))
	}
	who := fmt.Sprintf("You are an agent. Your internal name is %q. %s", a.Name, a.Description)
	if r.add(who, len(who)); r.steady {
		r.static = len(r.segments)
	}
	from := e.heardFrom(a)
	if l.Context.Policy != llmagent.ContextNone && from > 0 {
		r.segments = append(r.segments, e.said[0].segment) // the user's message
	}
	for _, s := range e.said[from:] {
		r.segments = append(r.segments, s.segment)
	}
	r.kept, r.steady = len(r.segments), r.steady && (l.Context.Policy == llmagent.ContextFull)
	if static, steady := r.static, r.steady; l.StaticInstruction != "" {
		e.instruction(r, l.Instructions)
		r.static, r.steady = static, steady
	}
	return r
}

// exitDeclaration returns the text that declares the exit tool to a model; empty if the agent does not have the tool.
func exitDeclaration(a *Agent) string {
	var cfg llmagent.Config
	if a.loopAround() == nil || a.exitTool() == nil && !a.mayExit() || exitTool(a, "", &cfg) != nil {
		return ""
	}
	t, ok := cfg.Tools[0].(interface {
		Declaration() *genai.FunctionDeclaration
	})
	if !ok {
		return ""
	}
	d := t.Declaration()
	schema, _ := json.Marshal(cmp.Or[any](d.ParametersJsonSchema, d.Parameters))
	return d.Name + d.Description + string(schema)
}

// heardFrom returns the index at which the conversation begins that an agent sees, apart from the user's message.
func (e *expecter) heardFrom(a *Agent) int {
	policy := cmp.Or(a.LLM.Context.Policy, llmagent.ContextFull)
	switch {
	case policy == llmagent.ContextNone: // the last message of another, and its own since then
		from := len(e.said) - 1
		for from > 0 && e.said[from].by == a {
			from--
		}
		return from
	case policy == llmagent.ContextFull || len(e.loops) == 0:
		return 0
	}
	starts, shown := e.loops[len(e.loops)-1].starts, 1
	if policy != llmagent.ContextIteration {
		shown = max(1, a.LLM.Context.Last)
	}
	return starts[max(0, len(starts)-shown)]
}

// instruction adds a template: the text between its placeholders, and their values.
func (e *expecter) instruction(r *request, text string) {
	t, err := template.Parse(text, template.Options{})
	if err != nil {
		return
	}
	at := 0
	for _, ref := range t.Keys() {
		if ref.From < at {
			continue
		}
		r.add(text[at:ref.From], ref.From-at)
		at = ref.To
		if stays := ref.Name == "user_input" || ref.Name == "max_iterations" || slices.Contains(e.fixed, ref.Name); !stays && r.steady {
			r.static, r.steady = len(r.segments), false
		}
		if !ref.Section {
			bytes, _ := e.value(ref.Name)
			r.add(e.versionOf(ref.Name), max(1, bytes)) // also an empty value ends what a cache can keep
		}
	}
	r.add(text[at:], len(text)-at)
}

// filled returns the length of a template with the known values of its placeholders.
func (e *expecter) filled(t *template.Template, text string) (bytes int, known bool) {
	bytes, known = len(text), true
	for _, ref := range t.Keys() {
		n, ok := e.value(ref.Name)
		bytes, known = bytes-(ref.To-ref.From)+n, known && ok
	}
	return max(0, bytes), known
}

// keyOf returns the state key that a placeholder names.
func keyOf(name string) string {
	for _, before := range []string{"prev.", "best."} {
		name = strings.TrimPrefix(name, before)
	}
	key, _, _ := strings.Cut(name, ".")
	return key
}

// versionOf identifies a placeholder with its present value.
func (e *expecter) versionOf(name string) string {
	version := []int{e.versions[keyOf(name)]}
	if _, known := e.sizes[keyOf(name)]; !known && !slices.Contains(e.fixed, name) { // such as {{iteration}}
		for _, l := range e.loops {
			version = append(version, len(l.starts))
		}
	}
	return fmt.Sprint(name, version)
}

// value returns the length of a placeholder's value, which is 0 before an agent has written the key.
func (e *expecter) value(name string) (bytes int, known bool) {
	key := keyOf(name)
	if n, ok := e.sizes[key]; ok {
		return n, true
	}
	written := e.versions[key] > 0 || slices.Contains(e.fixed, key)
	if written && !e.answers[key] {
		e.miss(UncountedValue, key)
	}
	return 0, !written
}

// charge adds the cost of a request, and records what the provider's cache holds afterwards.
func (e *expecter) charge(a *Agent, r *request, out int64) {
	name := e.modelOf(a)
	rules := cachesOf(name)
	price, upTo, priced := e.listed(a, name)
	u := budget.Usage{OutputTokens: out}
	ends := make([]uint64, len(r.segments)) // what identifies the beginning up to each segment
	tokens := make([]int64, len(r.segments)+1)
	begins, bytes := uint64(0), 0
	for i, s := range r.segments {
		begins = (begins ^ s.hash) * 1099511628211
		bytes += s.bytes
		ends[i], tokens[i+1] = begins, int64(bytes/model.BytesPerToken)
	}
	u.InputTokens = tokens[len(r.segments)]
	if e.kept[name] == nil {
		e.kept[name] = make(map[uint64]bool)
	}
	// The segments up to which the provider looks into its cache, and up to which it keeps the request.
	look, keep := len(ends), len(ends)
	if rules.Asked {
		look, keep = e.marks(a, r)
	}
	for i := look; i > 0; i-- {
		if e.kept[name][ends[i-1]] && tokens[i] >= int64(rules.MinTokens) {
			u.CachedTokens = tokens[i] - tokens[i]%int64(max(1, rules.Block))
			break
		}
	}
	if rules.MinTokens > 0 && tokens[keep] >= int64(rules.MinTokens) {
		if rules.Charged {
			u.CacheWriteTokens = max(0, tokens[keep]-u.CachedTokens)
		}
		for i := range keep {
			if !rules.Asked || i+1 == keep || i+1 == r.static {
				e.kept[name][ends[i]] = true
			}
		}
	}
	one := ExpectedIteration{Requests: 1, InputTokens: u.InputTokens, CachedTokens: u.CachedTokens,
		CacheWriteTokens: u.CacheWriteTokens, OutputTokens: out}
	if priced && (upTo == 0 || u.InputTokens <= upTo) {
		u = budget.Prices{name: price}.Priced(name, u)
		one.Cost, one.Uncached = u.Cost, new(*u.Cost+u.CacheSaved)
	} else {
		e.miss(UncountedPrice, cmp.Or(name, a.Name))
	}
	e.now.add(&one)
}

// marks returns the segments up to which a request asks its provider to look into its cache and to keep the request.
// It follows llmagent's hints, without turns after tools.
func (e *expecter) marks(a *Agent, r *request) (look, keep int) {
	if a.promptCache() == llmagent.PromptCacheOff {
		return 0, 0
	}
	more := slices.ContainsFunc(e.loops, func(l loopUnderWay) bool { return l.more })
	if more || e.asked[a] {
		look, keep = r.static, r.static
	}
	if r.steady && e.asked[a] {
		look = r.kept
	}
	if r.steady && more {
		look, keep = r.kept, r.kept
	}
	return look, keep
}

// listed returns the price of an agent's model, from the definition or the list prices.
func (e *expecter) listed(a *Agent, name string) (p budget.Price, upTo int64, ok bool) {
	if p, ok = e.price(a); ok {
		e.prices[name] = UsedPrice{Model: name}
		return p, 0, true
	}
	of, rest, err := provider.Find(name)
	if err != nil {
		return p, 0, false
	}
	l, ok := budget.Listed(of.Name + "/" + rest)
	if ok {
		e.prices[name] = UsedPrice{name, l.Date, l.Source}
	}
	return l.Price, l.UpTo, ok
}
