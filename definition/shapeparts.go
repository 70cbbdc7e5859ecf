// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent/llmagent"
)

func scoreShape() shape {
	judge := settings([]entry{
		{"step", "the step that scores", text()},
		{"samples", "how often it is asked about the same, at most 32", preset(whole(1), 1)},
	})
	return settings([]entry{
		{"key", "the state key of the score: a number, JSON, or text with a number in it", text()},
		{"label", "what stands before the number in a text", text()},
		{"field", "the field of the JSON", text()},
		{"expr", "an expression of the score, instead of key", anyText()},
		{"judge", "the step that scores; or with samples, how often it is asked about the same", either(text(), judge)},
		{"dimensions", "the parts of the score, fields of the JSON", filled(text())},
		{"dimension_target", "what every part has to reach", number()},
		{"target", "the score that ends the loop", number()},
		{"min_delta", "an improvement below it ends the loop", number()},
		{"min_delta_percent", "the same, in per cent of the score before", number()},
		{"patience", "how often running the improvement has to be too small", preset(whole(0), 1)},
		{"lower_is_better", "true if a lower score is the better one", yesNo()},
	})
}

func noProgressShape() shape {
	return settings([]entry{
		{"repeats", "how often the same has to come running", preset(whole(1), 3)},
		{"swings", "how often two results have to come in turns", preset(whole(1), 2)},
		{"keys", "the state keys to look at; all that is said and changed if left out", list(text())},
	})
}

func budgetShape() shape {
	s := settings([]entry{
		{"calls", "requests to models", &jsonschema.Schema{Type: "integer", Minimum: new(1.0), Title: "whole number"}},
		{"tokens", "tokens of input and output together", &jsonschema.Schema{Type: "integer", Minimum: new(1.0), Title: "whole number"}},
		{"cost", "by the prices at the root", &jsonschema.Schema{Type: "number", ExclusiveMinimum: new(0.0), Title: "number"}},
	})
	s.MinProperties = new(1)
	return s
}

func shareShape() shape {
	return &jsonschema.Schema{
		Title: "share", Examples: []any{"10%", 0.1},
		AnyOf: []*jsonschema.Schema{
			{Type: "string", Pattern: `^\s*(0*[0-9]{0,2}(\.[0-9]*)?\s*%|0*\.[0-9]+)\s*$`, AllOf: []*jsonschema.Schema{{Pattern: notNothing}}},
			{Type: "number", ExclusiveMinimum: new(0.0), ExclusiveMaximum: new(1.0)},
		},
	}
}

func retryShape() shape {
	return settings([]entry{
		{"attempts", "how often it runs in all", whole(1)},
		{"backoff", "how long to wait before the second attempt; twice as long before each further one", duration()},
		{"max_backoff", "the longest wait, and the longest that a server may ask for by Retry-After; one that asks for more is not tried again", preset(duration(), "1m")},
	}, "attempts")
}

func circuitShape() shape {
	return settings([]entry{
		{"failures", "how many running open it", whole(1)},
		{"cooldown", "how long it stays open", duration()},
		{"endpoint", "a name for what the step depends on: steps of the loop with the same one share a circuit", text()},
	}, "failures", "cooldown")
}

func adaptiveShape() shape {
	return settings([]entry{
		{"min", "the least that it is", duration()},
		{"max", "the most, and what holds until there are enough runs", duration()},
		{"factor", "what the 95th percentile of the runs is multiplied by, at least 1", preset(&jsonschema.Schema{Type: "number", Minimum: new(0.0), Title: "number"}, 3)},
		{"after", "how many runs it takes, at most 32", preset(whole(1), 5)},
	}, "max")
}

func cacheShape() shape {
	return settings([]entry{
		{"ttl", "how long an outcome is good; until the loop is over if left out", duration()},
		{"key", "a text with placeholders for all that the outcome depends on", expressionText()},
	})
}

// expressionText is a text that is not empty.
func expressionText() shape {
	s := anyText()
	s.MinLength = new(1)
	return s
}

func requestRetryShape() shape {
	return settings([]entry{
		{"attempts", "how often a request is sent in all", preset(whole(1), 3)},
		{"backoff", "how long to wait before the second; twice as long before each further one", preset(duration(), "500ms")},
		{"max_backoff", "the longest wait", preset(duration(), "8s")},
		{"max_retry_after", "the longest that a provider may ask to wait", preset(duration(), "1m")},
	})
}

// contextShape needs one of last and digest: true; best_chars is about a digest.
func contextShape() shape {
	s := settings([]entry{
		{"last", "how many iterations, the running one among them; with a digest that one alone if left out", whole(1)},
		{"digest", "true tells of the iterations before in a few lines, and of the best one in full", yesNo()},
		{"best_chars", "how many characters of what the best iteration has made the digest tells", preset(whole(1), llmagent.DefaultBestChars)},
	})
	is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"digest": {Enum: []any{true}}}, Required: []string{"digest"}}
	other := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"best_chars": nothing()}, Required: []string{"last"}}
	s.AllOf = []*jsonschema.Schema{{If: is, Else: other}}
	return s
}

func priceShape() shape {
	price := func() shape { return &jsonschema.Schema{Type: "number", Minimum: new(0.0), Title: "number"} }
	return settings([]entry{
		{"input", "for a million tokens of input; 0 is free", price()},
		{"output", "for a million tokens of output; 0 is free", price()},
		{"cached_input", "for input that the provider had in a cache; that of other input if left out", price()},
	}, "input", "output")
}

// inputKinds are what JSON Schema calls the types of inputs.
var inputKinds = map[InputType]string{
	InputString: "string", InputInt: "integer", InputNumber: "number", InputBool: "boolean", InputList: "array", InputMap: "object", InputPath: "string",
}

// inputShape is {type, default, description}, or a default alone.
func inputShape() shape {
	long := settings([]entry{
		{"type", "string if there is no default", oneOf(inputTypes...)},
		{"default", "what it is if nobody gives it; without one it has to be given", &jsonschema.Schema{}},
		{"description", "what it is, for whoever gives it", text()},
	})
	for _, name := range inputTypes {
		is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{name}}}, Required: []string{"type"}}
		fits := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"default": {Types: []string{inputKinds[InputType(name)], "null"}}}}
		long.AllOf = append(long.AllOf, &jsonschema.Schema{If: is, Then: fits})
	}
	return either(&jsonschema.Schema{Not: &jsonschema.Schema{Type: "object"}, Title: "value"}, long)
}

// mcpShape is a server of tools. Whether it is started or called, it is one of them.
func mcpShape() shape {
	variables := list(text())
	variables.Items.Pattern = `^[A-Za-z_][A-Za-z0-9_]*(=|$)`
	s := settings([]entry{
		{"command", "the program to start, with its arguments", filled(anyText())},
		{"env", "its environment: NAME passes a variable on, NAME=value sets it; or a map", either(variables, mapOf(anyText()))},
		{"url", "where a server runs already", text()},
		{"headers", "request headers", mapOf(anyText())},
		{"only", "the tools that the model is given; all if left out", unique(filled(text()))},
		{"prefix", "what is put before the names that the model sees", text()},
		{"confirm", "the tools that a person has to consent to, or true for all", either(yesNo(), unique(filled(text())))},
		{"effect", "what calls do to the world outside; what the server says if left out", oneOf(effects...)},
	})
	s.OneOf = []*jsonschema.Schema{without("command", "headers"), without("url", "env")}
	return s
}

// without is a map that has one name and not another.
func without(name, other string) shape {
	return &jsonschema.Schema{Required: []string{name}, Properties: map[string]*jsonschema.Schema{other: nothing()}}
}

func unique(s shape) shape {
	s.UniqueItems = true
	return s
}
