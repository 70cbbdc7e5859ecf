// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strings"
)

// llmField reads a field of an LlmAgent.
func (r *adkReader) llmField(a *agent, p pair) {
	at, v := p.at, p.value
	switch p.key {
	case "model":
		r.model(a, p)
	case "model_code":
		r.modelCode(a, p)
	case "instruction":
		a.tell(v.text(), v, false)
		r.mapped(at, a.was, p.key, "instructions")
	case "static_instruction":
		r.static(a, p)
	case "output_key":
		a.outputKey = v.text()
		a.came("output_key", v)
		r.mapped(at, a.was, p.key, "")
	case "include_contents":
		r.contents(a, p)
	case "tools":
		r.tools(a, v)
	case "generate_content_config":
		r.generation(a, v)
	case "accumulate_output_key":
		if on, _ := v.boolean(); on {
			r.dropped(at, a.was, p.key, "", "an output key has the final answer only, never what a model says before it calls a tool")
		}
	case "disallow_transfer_to_parent", "disallow_transfer_to_peers":
		if on, _ := v.boolean(); on {
			r.add(Mapped, at, a.was, p.key, "", "no agent hands over here")
		} else {
			r.dropped(at, a.was, p.key, "", "no agent hands a conversation over to another here")
		}
	case "input_schema", "output_schema":
		advice := "write the same as JSON Schema in output_schema"
		if p.key == "input_schema" {
			advice = "say in the instructions what it is given"
		}
		v.all()
		r.dropped(at, a.was, p.key, advice, "%s is a class in somebody's code, which is not read", codeName(v))
	}
}

// codeName is the name in a reference to code.
func codeName(v value) string {
	if v.isMap() {
		v = v.get("name")
	}
	if name := v.text(); name != "" {
		return name
	}
	return "it"
}

func (r *adkReader) model(a *agent, p pair) {
	if !p.value.isScalar() {
		r.fail(p.value.at(), a.was, p.key, "model must be a name, got %s", p.value.what())
		return
	}
	r.useModel(a, p.value, p.at, "model", p.value.text())
}

// modelCode reads the name of a model that LiteLLM opens; other code is not read.
func (r *adkReader) modelCode(a *agent, p pair) {
	class := codeName(p.value)
	name := p.value.get("args").get("model").text()
	for _, arg := range p.value.get("args").items() {
		if key := arg.get("name"); key.text() == "model" {
			name = arg.get("value").text()
		} else {
			r.dropped(arg.at(), a.was, "model_code "+key.text(), "set the provider's variable in the environment: doc/models.md", "it is an argument of code that is not read")
			arg.all()
		}
	}
	if m := modelName(name); strings.HasSuffix(class, "LiteLlm") && m != "" {
		a.model = m
		a.came("model", p.value)
		r.changed(p.at, a.was, "model_code", "model "+m, "Refrain asks the provider itself, without LiteLLM").Advice =
			"further arguments, such as api_base, are environment variables here: doc/models.md"
		return
	}
	p.value.all()
	r.dropped(p.at, a.was, "model_code", "write model: provider/name", "%s is code, and a definition runs none", class)
}

// static puts a text that ADK sends first before the instruction.
func (r *adkReader) static(a *agent, p pair) {
	text := p.value.text()
	if p.value.isMap() {
		var parts []string
		for _, part := range p.value.get("parts").items() {
			parts = append(parts, part.get("text").text())
		}
		text = strings.Join(parts, "\n")
	}
	switch {
	case strings.TrimSpace(text) == "":
		r.dropped(p.at, a.was, p.key, "write its text in the instruction", "it is no text")
	case strings.ContainsAny(text, "{}"):
		r.dropped(p.at, a.was, p.key, "write its text in the instruction, without the braces", "it has braces in it, which would be placeholders here")
	default:
		a.tell(text, p.value, true)
		r.changed(p.at, a.was, p.key, "instructions", "it stands before the instruction, in one text")
	}
}

func (r *adkReader) contents(a *agent, p pair) {
	switch p.value.text() {
	case "default":
		a.set("context", "full", p.value)
	case "none":
		a.set("context", "none", p.value)
	default:
		r.fail(p.value.at(), a.was, p.key, "include_contents must be default or none, got %s", p.value.what()).Advice =
			meant(p.value.text(), []string{"default", "none"})
		return
	}
	r.mapped(p.at, a.was, p.key, "context")
}

// The fields of generate_content_config that have no place here. Python writes
// them with _, JSON in camel case.
var generationFields = []string{
	"http_options", "should_return_http_response", "system_instruction", "top_p", "top_k", "candidate_count", "stop_sequences",
	"response_logprobs", "logprobs", "presence_penalty", "frequency_penalty", "seed", "response_mime_type", "response_schema",
	"response_json_schema", "routing_config", "model_selection_config", "safety_settings", "tools", "tool_config", "labels", "cached_content",
	"response_modalities", "media_resolution", "speech_config", "audio_timestamp", "automatic_function_calling", "thinking_config", "image_config",
	"temperature", "max_output_tokens",
}

func (r *adkReader) generation(a *agent, v value) {
	for _, p := range v.pairs() {
		v.ask(p.key)
		name := snake(p.key)
		full := "generate_content_config." + p.key
		switch {
		case p.value.isNull():
		case name == "temperature":
			if f, ok := p.value.number(); ok {
				a.set("temperature", f, p.value)
				r.mapped(p.at, a.was, full, "temperature")
				continue
			}
			r.fail(p.value.at(), a.was, full, "temperature must be a number, got %s", p.value.what())
		case name == "max_output_tokens":
			if n, ok := p.value.whole(); ok && n > 0 {
				a.set("max_tokens", n, p.value)
				r.mapped(p.at, a.was, full, "max_tokens")
				continue
			}
			r.fail(p.value.at(), a.was, full, "max_output_tokens must be a whole number above 0, got %s", p.value.what())
		case name == "response_schema" || name == "response_json_schema" || name == "response_mime_type":
			r.dropped(p.at, a.was, full, "write it as JSON Schema in output_schema", "the shape of an answer is in output_schema")
		case slices.Contains(generationFields, name):
			r.dropped(p.at, a.was, full, "", "a definition says the temperature and the most tokens of an answer, nothing else")
		default:
			r.fail(p.at, a.was, full, "unknown field %q of generate_content_config", p.key).Advice = meant(name, generationFields)
		}
	}
}

// snake writes maxOutputTokens as max_output_tokens.
func snake(s string) string {
	var b strings.Builder
	for n, c := range s {
		if c >= 'A' && c <= 'Z' {
			if n > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
