// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/loop"
)

// llmField reads a field of an LlmAgent.
func (r *adkReader) llmField(a *agent, p pair) {
	at, v := p.at, p.value
	switch p.key {
	case "model":
		if v.isScalar() {
			r.carryModel(a, p)
		} else {
			r.fail(v.at(), a.was, p.key, "model must be a name, got %s", v.what())
		}
	case "model_code":
		r.modelCode(a, p)
	case "instruction":
		r.carryText(a, p)
	case "static_instruction":
		r.static(a, p)
	case "output_key":
		r.carryKey(a, p)
	case "include_contents":
		r.contents(a, p)
	case "tools":
		r.tools(a, v)
	case "generate_content_config":
		r.generation(a, v)
	case "accumulate_output_key":
		if on, _ := v.boolean(); on {
			r.dropped(at, a.was, p.key, "", "an output key has the final answer only, never what a model says before "+
				"it calls a tool")
		}
	case "disallow_transfer_to_parent", "disallow_transfer_to_peers":
		if on, _ := v.boolean(); on {
			r.add(Mapped, at, a.was, p.key, "", "here an agent cannot hand a conversation over")
		} else {
			r.dropped(at, a.was, p.key, "", "here an agent cannot hand a conversation over")
		}
	case "input_schema", "output_schema":
		advice := "write the same as JSON Schema in output_schema"
		if p.key == "input_schema" {
			advice = "say in the instructions what it is given"
		}
		v.all()
		r.dropped(at, a.was, p.key, advice, "%s is a class in your code, and code is not read", codeName(v))
	}
}

// codeName returns the name in a reference to code.
func codeName(v value) string {
	if v.isMap() {
		v = v.get("name")
	}
	if name := v.text(); name != "" {
		return name
	}
	return "it"
}

// modelCode reads the name of a model that LiteLLM opens. It reports other code.
func (r *adkReader) modelCode(a *agent, p pair) {
	class := codeName(p.value)
	name := p.value.get("args").get("model").text()
	for _, arg := range p.value.get("args").items() {
		if key := arg.get("name"); key.text() == "model" {
			name = arg.get("value").text()
		} else {
			r.dropped(arg.at(), a.was, "model_code "+key.text(),
				"set the provider's variable in the environment: doc/models.md",
				"it is an argument of code, and code is not read")
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
	r.dropped(p.at, a.was, "model_code", "write model: provider/name", "%s is code, and a definition does not run code",
		class)
}

// static adds static_instruction, which ADK sends first, before the instruction.
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
		r.dropped(p.at, a.was, p.key, "write its text in the instruction, without the braces",
			"it has braces in it, which would be placeholders here")
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

// The fields of generate_content_config that have no equivalent in a definition. Python writes them with _, JSON in camel case.
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
				r.carry(a, pair{full, p.at, p.value}, "temperature", f)
				continue
			}
			r.fail(p.value.at(), a.was, full, "temperature must be a number, got %s", p.value.what())
		case name == "max_output_tokens":
			if n, ok := p.value.whole(); ok && n > 0 {
				r.carry(a, pair{full, p.at, p.value}, "max_tokens", n)
				continue
			}
			r.fail(p.value.at(), a.was, full, "max_output_tokens must be a whole number above 0, got %s",
				p.value.what())
		case name == "thinking_config" && p.value.isMap():
			r.thinking(a, p.value, full)
		case name == "response_schema" || name == "response_json_schema" || name == "response_mime_type":
			r.dropped(p.at, a.was, full, "write it as JSON Schema in output_schema",
				"the shape of an answer is in output_schema")
		case slices.Contains(generationFields, name):
			r.dropped(p.at, a.was, full, "", "a definition sets the temperature, the tokens of an answer and the "+
				"thinking level, nothing else")
		default:
			r.fail(p.at, a.was, full, "unknown field %q of generate_content_config", p.key).Advice = meant(name,
				generationFields)
		}
	}
}

// thinking carries over the level. A definition has no equivalent for a budget of tokens, nor for showing thoughts.
func (r *adkReader) thinking(a *agent, v value, full string) {
	levels := loop.ThinkingLevels()
	for _, p := range v.pairs() {
		v.ask(p.key)
		full := full + "." + p.key
		switch level := strings.ToLower(p.value.text()); {
		case p.value.isNull():
		case snake(p.key) != "thinking_level":
			r.dropped(p.at, a.was, full, "", "a definition sets the thinking level, nothing else about thoughts")
		case slices.Contains(levels, level):
			r.carry(a, pair{full, p.at, p.value}, "thinking", level)
		default:
			r.fail(p.value.at(), a.was, full, "thinking_level must be %s, got %s", strings.Join(levels, ", "),
				p.value.what()).Advice = meant(level, levels)
		}
	}
}

// snake converts maxOutputTokens to max_output_tokens.
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

// adkTools has the advice for each of ADK's own tools.
var adkTools = map[string]string{
	"exit_loop":               "",
	"AgentTool":               "",
	"McpToolset":              "",
	"MCPToolset":              "",
	"google_search":           "give an MCP server or a command that searches",
	"enterprise_web_search":   "give an MCP server or a command that searches",
	"google_maps_grounding":   "give an MCP server that knows places",
	"url_context":             "give an MCP server that fetches pages, or an http agent before this one",
	"load_web_page":           "give an MCP server that fetches pages, or an http agent before this one",
	"load_artifacts":          "name the file in the instructions: {{artifact.NAME}}",
	"load_memory":             "keep the facts in the state, or give an MCP server",
	"preload_memory":          "keep the facts in the state, or give an MCP server",
	"get_user_choice":         "give what the person decides as an input of the run",
	"transfer_to_agent":       "give the other agent as a tool: {agent: …}",
	"ExampleTool":             "write the examples in the instructions",
	"LongRunningFunctionTool": "give a Go function, or a command",
	"OpenAPIToolset":          "give an MCP server for the API, or http agents",
	"VertexAiSearchTool":      "give an MCP server that searches",
	"BigQueryToolset":         "give an MCP server for the database",
}

// tools reads the tools of a model.
func (r *adkReader) tools(a *agent, v value) {
	if !v.isList() {
		r.fail(v.at(), a.was, "tools", "tools must be a list, got %s", v.what())
		return
	}
	for _, item := range v.items() {
		if !r.only(a, item, "tools", "a tool", "name", "args") {
			return
		}
		name := item.get("name").text()
		if item.isScalar() {
			r.fail(item.at(), a.was, "tools", "a tool is written {name: %s}", item.text())
			continue
		}
		if name == "" {
			r.fail(item.at(), a.was, "tools", "a tool needs a name")
			continue
		}
		r.tool(a, item, name)
	}
}

func (r *adkReader) tool(a *agent, item value, name string) {
	own := strings.TrimPrefix(name, "google.adk.tools.")
	last := own[strings.LastIndexByte(own, '.')+1:]
	full := "tools " + name
	advice, known := adkTools[own]
	near := meant(own, slices.Sorted(maps.Keys(adkTools)))
	switch {
	case own == "exit_loop":
		a.exit = new(true)
		a.came("can_exit_loop", item)
		r.mapped(item.at(), a.was, full, "can_exit_loop")
	case own == "AgentTool":
		r.agentTool(a, item)
	case strings.EqualFold(own, "McpToolset"):
		r.mcp(a, item)
	case known:
		item.all()
		r.dropped(item.at(), a.was, full, advice, "the tool belongs to Google or ADK, and Refrain has no such tool")
	case strings.EqualFold(strings.ReplaceAll(last, "_", ""), "exitloop"):
		a.exit = new(true)
		a.came("can_exit_loop", item)
		r.changed(item.at(), a.was, full, "can_exit_loop", "it looks like the tool that ends the loop, so the "+
			"built-in one replaces it")
	case !strings.Contains(own, ".") && near != "":
		r.fail(item.at(), a.was, full, "there is no tool %q", name).Advice = near
	default:
		r.function(a, item, full, last)
	}
}

// function keeps a function as a tool by its name, because a Go program can provide the function.
func (r *adkReader) function(a *agent, item value, full, name string) {
	name = asciiName(cleanName(name))
	for _, t := range a.tools {
		if o, ok := t.value.(object); ok && o[0].key == "func" && o[0].value == name {
			r.dropped(item.at(), a.was, full, "", "the agent already has the function %s", name)
			return
		}
	}
	a.tools = append(a.tools, tool{value: object{{key: "func", value: name}}, from: item})
	it := r.changed(item.at(), a.was, full, "func "+name, "code is not read: a Go program has to give a function of "+
		"that name; refrain run cannot")
	it.Advice = "or write a command: tools: [{command: […], name: " + name +
		"}]; if it ends the loop (escalate), give the agent can_exit_loop: true"
	if !item.get("args").empty() {
		r.dropped(item.get("args").at(), a.was, full+" args", "", "they are arguments of code, and code is not read")
	}
}

// agentTool reads an agent that is used as a tool.
func (r *adkReader) agentTool(a *agent, item value) {
	args := argsOf(item.get("args"))
	ref := args["agent"]
	for _, name := range slices.Sorted(maps.Keys(args)) {
		v := args[name]
		switch on, _ := v.boolean(); {
		case name == "agent":
		case name == "skip_summarization" && on:
			r.dropped(v.at(), a.was, "tools AgentTool skip_summarization", "",
				"the model that has the tool speaks after it")
		case name != "skip_summarization" && name != "include_plugins":
			r.fail(v.at(), a.was, "tools", "unknown argument %q of AgentTool", name).Advice = meant(name,
				[]string{"agent", "skip_summarization"})
		}
	}
	if ref.isScalar() && !ref.isNull() {
		if sub := r.file(a, ref, ref.text()); sub != nil {
			a.tools = append(a.tools, tool{agent: sub, from: item})
			r.changed(ref.at(), a.was, "tools AgentTool", "tools agent", "ADK wants {config_path: %s} there",
				ref.text())
		}
		return
	}
	if !ref.isMap() {
		r.fail(item.at(), a.was, "tools", "AgentTool needs args: {agent: {config_path: file.yaml}}")
		return
	}
	if sub := r.ref(a, ref); sub != nil {
		a.tools = append(a.tools, tool{agent: sub, from: item})
		r.mapped(item.at(), a.was, "tools AgentTool", "tools agent")
	}
}

// argsOf returns the arguments of a tool from a map, or from a list of {name, value}.
func argsOf(v value) map[string]value {
	args := make(map[string]value)
	for _, p := range v.pairs() {
		v.ask(p.key)
		args[p.key] = p.value
	}
	for _, item := range v.items() {
		args[item.get("name").text()] = item.get("value")
	}
	return args
}

// mcp reads an MCP server, which has a command or a URL.
func (r *adkReader) mcp(a *agent, item value) {
	var out object
	args := argsOf(item.get("args"))
	const full = "tools McpToolset"
	server := value{file: item.file}
	for _, name := range []string{"stdio_server_params", "stdio_connection_params", "sse_connection_params", "streamable_http_connection_params"} {
		v, given := args[name]
		delete(args, name)
		if !given || v.isNull() {
			continue
		}
		if !server.isNull() {
			r.fail(v.at(), a.was, full, "an MCP server is reached in one way, got two")
			return
		}
		r.aside(a, v, full)
		if inner := v.get("server_params"); inner.isMap() {
			v = inner
			r.aside(a, v, full)
		}
		server = v
	}
	if command := server.get("command"); !command.empty() {
		list := append([]string{command.text()}, r.arguments(a, full, server.get("args"))...)
		out = append(out, field{key: "command", value: list})
		if env := server.get("env"); !env.empty() {
			out = append(out, field{key: "env", value: r.secrets(a, full+" env", env, "env")})
		}
	} else if !server.get("url").empty() {
		out = r.remoteMCP(a, full, server)
	} else {
		r.fail(item.at(), a.was, full, "McpToolset needs stdio_connection_params with a command, or a url")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		v := args[name]
		switch {
		case v.empty():
		case name == "tool_filter" && v.isList():
			out = append(out, field{key: "only", value: copyOf(v)})
		case name == "tool_name_prefix":
			out = append(out, field{key: "prefix", value: strings.TrimSuffix(v.text(), "_") + "_"})
		case !slices.Contains(mcpArgs, name) && suggest.Nearest(name, mcpArgs) != "":
			r.fail(v.at(), a.was, full, "unknown argument %q of McpToolset", name).Advice = meant(name, mcpArgs)
		default:
			v.all()
			r.dropped(v.at(), a.was, full+" "+name, "", "an MCP server here has command and env, or url and headers, "+
				"and only, prefix and confirm")
		}
	}
	r.carryMCP(a, item, full, out)
}

// mcpArgs lists the arguments of ADK's own class.
var mcpArgs = []string{
	"stdio_server_params", "stdio_connection_params", "sse_connection_params", "streamable_http_connection_params", "tool_filter",
	"tool_name_prefix", "auth_scheme", "auth_credential", "require_confirmation", "header_provider", "errlog",
}

// mcpAside has the advice for fields of a server that have no equivalent in a definition.
var mcpAside = map[string]string{
	"cwd":                    "start it by a command that changes the folder: [sh, -c, cd FOLDER && exec …]",
	"encoding":               "a server speaks UTF-8",
	"encoding_error_handler": "a server speaks UTF-8",
	"timeout":                "give the agent a timeout",
	"sse_read_timeout":       "give the agent a timeout",
	"terminate_on_close":     "a server is told when the run is over",
	"httpx_client_factory":   "HTTPS_PROXY in the environment names a proxy",
}

// aside reports the fields of a server that have no equivalent in a definition.
func (r *adkReader) aside(a *agent, v value, full string) {
	for _, p := range v.pairs() {
		if advice, known := mcpAside[p.key]; known && !p.value.empty() {
			v.ask(p.key)
			p.value.all()
			r.dropped(p.at, a.was, full+" "+p.key, advice, "an MCP server has no such field here")
		}
	}
}
