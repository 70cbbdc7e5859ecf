// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/template"
)

// llm writes what an agent that asks a model has.
func (e *exporter) llm(a *definition.Agent, in inherited, out object) object {
	l := a.LLM
	add := func(key string, v any) { out = append(out, field{key: key, value: v}) }
	if m := e.model(a, in.model); m != "" {
		add("model", m)
	}
	add("instruction", e.instruction(a, joined(l.Instructions, in.purpose)))
	e.mapped(at(a, "instructions"), a.Name, "instructions", "instruction")
	if a.OutputKey != "" {
		key := adkKey(a.OutputKey)
		add("output_key", key)
		if key == a.OutputKey {
			e.mapped(at(a, "output_key"), a.Name, "output_key", "")
		} else {
			e.changed(at(a, "output_key"), a.Name, "output_key "+a.OutputKey, key, "ADK's placeholders take letters, digits and _; texts that read it say the same")
		}
	}
	text, exact := contents(l.Context)
	if text != "default" {
		add("include_contents", text)
	}
	if !exact {
		e.changed(at(a, "context"), a.Name, "context "+string(l.Context.Policy), "include_contents default", "ADK shows a model all that was said, or nothing")
	} else {
		e.mapped(at(a, "context"), a.Name, "context", "include_contents")
	}
	if g := e.generation(a); len(g) > 0 {
		add("generate_content_config", g)
	}
	if tools := e.tools(a, in); len(tools) > 0 {
		add("tools", tools)
	}
	return out
}

// model is the name under which ADK knows a model. Gemini's have none before
// them; others need LiteLLM in Python.
func (e *exporter) model(a *definition.Agent, name string) string {
	provider, rest, ok := strings.Cut(name, "/")
	switch {
	case name == "":
		return ""
	case !ok:
		e.mapped(at(a, "model"), a.Name, "model", "")
		return name
	case provider == "gemini":
		e.mapped(at(a, "model"), a.Name, "model", rest)
		return rest
	case provider == "scripted":
		e.dropped(at(a, "model"), a.Name, "model "+name, "give the agent a model in ADK", "a script is no model of ADK's")
		return ""
	}
	e.changed(at(a, "model"), a.Name, "model", name, "ADK for Python asks it through LiteLLM (pip install google-adk[extensions]), and ADK for Go takes only Gemini")
	return name
}

// instruction writes {{key}} as {key?}: ADK fails for {key} if there is no
// value yet, which in a first iteration is usual. What ADK cannot fill in is
// reported.
func (e *exporter) instruction(a *definition.Agent, text string) string {
	t, err := template.Parse(text, template.Options{})
	if err != nil {
		return text
	}
	var b strings.Builder
	done, scan := 0, newScanner(text)
	lost, sections := make(map[string]bool), false
	for _, ref := range t.Keys() {
		start := scan.offset(ref.Line, ref.Column)
		if start < done {
			continue
		}
		if ref.Section {
			sections = true
			continue
		}
		end := start + strings.IndexByte(text[start:], '}') + 1
		for end < len(text) && text[end] == '}' && !ref.Single {
			end++
		}
		if slices.Contains(builtIn, ref.Name) || strings.Contains(ref.Name, ".") && !strings.HasPrefix(ref.Name, "artifact.") {
			lost["{{"+ref.Name+"}}"] = true
		}
		b.WriteString(text[done:start] + "{" + adkKey(ref.Name) + "?}")
		done = end
	}
	b.WriteString(text[done:])
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		advice := "write it in words, or put the value into the state in code"
		if name == "{{user_input}}" {
			advice = "ADK's model sees what the user says anyway"
		}
		e.dropped(at(a, "instructions"), a.Name, name, advice, "ADK has no such value, and leaves the place empty")
	}
	if sections {
		e.dropped(at(a, "instructions"), a.Name, "sections {{#key}}…{{/key}}", "say in words when it counts", "ADK has none; the text in them is there always")
		return sectionTag.ReplaceAllString(b.String(), "")
	}
	return b.String()
}

var sectionTag = regexp.MustCompile(`\{\{\s*[#^/][^{}]*\}\}`)

// adkKey is a key that ADK's braces can name. A dot would make it text there,
// which the model would see.
func adkKey(name string) string {
	if strings.HasPrefix(name, "artifact.") {
		return name
	}
	return strings.NewReplacer("iteration:", "iteration_", ".", "_", "-", "_").Replace(name)
}

func (e *exporter) generation(a *definition.Agent) object {
	var g object
	if t := a.LLM.Temperature; t != nil {
		g = append(g, field{key: "temperature", value: *t})
		e.mapped(at(a, "temperature"), a.Name, "temperature", "generate_content_config.temperature")
	}
	if n := a.LLM.MaxTokens; n > 0 {
		g = append(g, field{key: "max_output_tokens", value: int(n)})
		e.mapped(at(a, "max_tokens"), a.Name, "max_tokens", "generate_content_config.max_output_tokens")
	}
	return g
}

// tools writes what a model can call.
func (e *exporter) tools(a *definition.Agent, in inherited) []any {
	var out []any
	add := func(name string, args object) {
		t := object{{key: "name", value: name}}
		if args != nil {
			t = append(t, field{key: "args", value: args})
		}
		out = append(out, t)
	}
	exit := in.exit && in.inLoop && !in.finalize
	for _, t := range a.LLM.Tools {
		switch {
		case t.Exit != "":
			exit = true
		case t.Func != "":
			add("tools."+t.Func, nil)
			e.changed(at(a, "tools"), a.Name, "tools "+t.Func, "tools."+t.Func, "ADK takes the name of a Python function: write it in tools.py")
		case t.MCP != nil:
			if args := e.mcp(a, t.MCP); args != nil {
				add("McpToolset", args)
			}
		case t.Agent != nil:
			tool := in
			tool.exit, tool.inLoop, tool.purpose = false, false, ""
			if refs := e.subs([]*definition.Agent{t.Agent}, tool); len(refs) == 1 {
				add("AgentTool", object{{key: "agent", value: refs[0]}})
				e.mapped(at(t.Agent, "name"), a.Name, "tools agent "+t.Agent.Name, "AgentTool")
			}
		}
	}
	if exit {
		add("exit_loop", nil)
		e.exits = true
		e.mapped(at(a, "can_exit_loop"), a.Name, "can_exit_loop", "tools exit_loop")
	}
	return out
}

// mcp writes how an MCP server is reached.
func (e *exporter) mcp(a *definition.Agent, m *definition.MCP) object {
	var args object
	if len(m.Command) > 0 {
		params := object{{key: "command", value: m.Command[0]}}
		if len(m.Command) > 1 {
			args, masked := arguments(m.Command[1:])
			for n := range args {
				if masked[n] {
					e.changed(at(a, "tools"), a.Name, "tools mcp command", yours, "an argument may be a secret, and is not copied").Advice = "write it in its place yourself, or give it by the environment"
				}
			}
			params = append(params, field{key: "args", value: list(args)})
		}
		if env := e.public(a, "env", m.Env); len(env) > 0 {
			params = append(params, field{key: "env", value: env})
		}
		args = object{{key: "stdio_connection_params", value: object{{key: "server_params", value: params}}}}
	} else {
		address, _ := credential.Cleaned(m.URL, yours)
		if address = credential.WithoutTokens(address, yours); address != m.URL {
			e.changed(at(a, "tools"), a.Name, "tools mcp url", address, "what may be a secret in it is not copied").Advice = "write it in its place yourself, and keep that file to yourself"
		}
		params := object{{key: "url", value: address}}
		if headers := e.public(a, "headers", m.Headers); len(headers) > 0 {
			params = append(params, field{key: "headers", value: headers})
		}
		args = object{{key: "streamable_http_connection_params", value: params}}
	}
	if m.Only != nil {
		args = append(args, field{key: "tool_filter", value: list(m.Only)})
	}
	if m.Prefix != "" {
		args = append(args, field{key: "tool_name_prefix", value: strings.TrimSuffix(m.Prefix, "_")})
	}
	e.mapped(at(a, "tools"), a.Name, "tools mcp", "McpToolset")
	if len(m.PassEnv) > 0 {
		e.dropped(at(a, "tools"), a.Name, "tools mcp env "+strings.Join(m.PassEnv, ", "), "set them where ADK runs, and name them in code", "ADK passes no variables on")
	}
	if m.Effect != "" {
		e.dropped(at(a, "tools"), a.Name, "tools mcp effect", "", "ADK does not say whether a call may be made again")
	}
	if m.ConfirmAll || len(m.Confirm) > 0 {
		e.dropped(at(a, "tools"), a.Name, "tools mcp confirm", "require_confirmation is set in code", "ADK's files do not say what a person has to consent to")
	}
	return args
}

// public are the variables or headers that are no secrets. The others are told of,
// and stay where they are.
func (e *exporter) public(a *definition.Agent, kind string, m map[string]string) object {
	var o object
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if secret(key, m[key]) {
			e.dropped(at(a, "tools"), a.Name, "tools mcp "+kind+" "+key, "write it into the file yourself, and keep that file to yourself", "it may be a secret, and is not copied")
			continue
		}
		o = append(o, field{key: key, value: m[key]})
	}
	return o
}
