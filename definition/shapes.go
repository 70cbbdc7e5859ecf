// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// shapes are what the values of the fields can be, by the field's name; or by
// the type of agent and the name, where it is another one there.
var shapes = map[string]shape{
	"name": {
		Type: "string", MinLength: new(1), MaxLength: new(maxName), Pattern: namePattern,
		Not: &jsonschema.Schema{Enum: []any{"user"}}, Title: "name",
	},
	"type":        oneOf(types...),
	"description": text(),

	"display_name": {Type: "string", MinLength: new(1), MaxLength: new(maxName), Title: "text"},
	"color":        colorShape(),
	"callbacks":    callbacksShape(),

	"inputs":          mapOf(inputShape()),
	"state":           {Type: "object", Title: "map"},
	"prices":          mapOf(priceShape()),
	"query":           text(),
	"session":         text(),
	"max_model_calls": preset(either(whole(0), oneOf("none")), agent.DefaultMaxLLMCalls),
	"init_timeout":    preset(duration(), "30s"),

	"goal":              text(),
	"loop instructions": text(),
	"instructions":      anyText(),
	"max_iterations":    preset(whole(0), DefaultMaxIterations),
	"order":             list(text()),
	"stop_when":         by("condition"),
	"stop_check":        preset(oneOf(string(loop.EachIteration), string(loop.EachStep)), loop.EachIteration),
	"score":             either(text(), scoreShape()),
	"quality_gate":      number(),
	"result":            text(),
	"on_regression":     preset(oneOf(regressions...), loop.KeepBest),
	"no_progress":       either(yesNo(), noProgressShape()),
	"not_worth": settings([]entry{
		{"gain", "how much an iteration has to bring", number()},
		{"per", "for what: the iteration itself, a minute, a thousand tokens or a unit of cost", preset(oneOf(measures...), loop.PerIteration)},
	}, "gain"),

	"timeouts":          preset(oneOf(timeouts...), TimeoutsStandard),
	"timeout":           duration(),
	"iteration_timeout": duration(),
	"iteration_delay":   delay(),
	"budget":            budgetShape(),
	"finalizer":         preset(oneOf("after", finalizeEach), "after"),
	"finalizer_reserve": preset(shareShape(), "10%"),
	"state_limit":       preset(either(byteSize(), &jsonschema.Schema{Enum: []any{0, "0"}}, oneOf("none")), "64MiB"),

	"max_consecutive_failures": whole(0),
	"max_concurrency":          whole(0),

	"on_error":          preset(oneOf(policies...), loop.StopOnError),
	"retry":             either(whole(1), retryShape()),
	"circuit":           circuitShape(),
	"adaptive_timeout":  adaptiveShape(),
	"delay_before":      delay(),
	"delay_after":       delay(),
	"cache":             either(yesNo(), duration(), cacheShape()),
	"continue_on_error": yesNo(),
	"sub_agents":        filled(by("step")),

	"model":         {Type: "string", Title: "text", Examples: []any{"openai/gpt-5-mini", "ollama/qwen3"}},
	"context":       preset(either(oneOf(contexts...), contextShape()), llmagent.ContextIteration),
	"tools":         list(by("tool")),
	"output_schema": by("answer"),
	"temperature":   {Type: "number", Minimum: new(0.0), Maximum: new(2.0), Title: "number"},
	"max_tokens":    whole(1),
	"request_retry": preset(either(whole(1), requestRetryShape()), 3),

	"command":       list(anyText()),
	"stdin":         anyText(),
	"env":           mapOf(anyText()),
	"clean_env":     yesNo(),
	"unsafe":        yesNo(),
	"dir":           text(),
	"output_limit":  byteSize(),
	"ok_exit_codes": preset(filled(&jsonschema.Schema{Type: "integer", Minimum: new(0.0), Maximum: new(255.0), Title: "whole number"}), []int{0}),

	"url":            text(),
	"method":         preset(text(), "GET"),
	"headers":        mapOf(anyText()),
	"body":           {Types: []string{"string", "number", "boolean", "object", "array"}, Title: "text, map or list"},
	"size_limit":     byteSize(),
	"redirect_hosts": filled(text()),
	"ok_status":      filled(&jsonschema.Schema{Type: "integer", Minimum: new(100.0), Maximum: new(599.0), Title: "whole number"}),
	"json":           yesNo(),

	"set":   mapOf(&jsonschema.Schema{Types: []string{"string", "number", "boolean", "null"}, MinLength: new(1), Title: "expression"}),
	"value": expression(),
	"text":  anyText(),

	"endpoint":    text(),
	"payload":     {Types: []string{"string", "number", "boolean", "object", "array"}, Title: "text, map or list"},
	"new_context": yesNo(),

	"question": anyText(),
	"ask":      preset(oneOf(questionKinds...), session.AskApproval),
	"options":  filled(anyText()),
	"keys":     unique(filled(text())),
	"deadline": duration(),
	"default":  {Types: []string{"boolean", "string", "number", "object"}, Title: "true or false, text or map"},

	"func": {Type: "string", MinLength: new(1), Title: "text"},

	"effect":            preset(either(oneOf(effects...), effectShape()), agent.Idempotent),
	"expression effect": oneOf(innerEffects...),
	"template effect":   oneOf(innerEffects...),

	"output_key":    text(),
	"result_key":    text(),
	"exit_when":     expression(),
	"exit_reason":   anyText(),
	"can_exit_loop": yesNo(),
}

// namePattern is wider than what a name can be: classes such as \p{L} are not in
// every validator's regular expressions. It leaves out of the letters what is not
// one in ASCII, Latin-1 and the blocks of punctuation and symbols.
const namePattern = "^[^\\x00-@\\[-`{-\\xa9\\xab-\\xb4\\xb6-\\xb9\\xbb-\\xbf\\xd7\\xf7\u2010-\u205e\u20a0-\u20c0\u2190-\u2bff]" +
	"[^\\x00-,./:-@\\[-^`{-\\xa9\\xab-\\xb4\\xb6-\\xb9\\xbb-\\xbf\\xd7\\xf7\u2010-\u205e\u20a0-\u20c0\u2190-\u2bff]*$"

var (
	regressions = []string{string(loop.KeepBest), string(loop.RollbackOnWorse)}
	measures    = []string{string(loop.PerIteration), string(loop.PerMinute), string(loop.PerKTokens), string(loop.PerCost)}
)

const finalizeEach = "each_iteration"
