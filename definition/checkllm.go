// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/template"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// llm checks what an agent asks its model, and with which tools.
func (c *checker) llm(a *Agent) {
	l := a.LLM
	c.template(a, "instructions", l.Instructions, template.Canonical)
	if l.OutputSchema != nil && a.mayExit() {
		c.warn(a.at("output_schema"), CodeConflict, "%q has to answer in JSON and may end the loop: many models cannot do both", a.Name).
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
			c.report(t.Agent.at("name"), CodeTool, "%q has a function of that name too", a.Name)
		}
	}
}

// literal warns of placeholders in what models are told as it stands.
func (c *checker) literal(a *Agent, field, text string) {
	t, err := template.Parse(text, template.Options{Dialect: template.Mustache})
	if text == "" || err != nil {
		return
	}
	for _, ref := range t.Keys() {
		c.warn(c.inField(a, field, ref.Line, ref.Column), CodeTemplate, "{{%s}} stays as it is: the %s of a loop go to the model word for word", ref.Name, field).
			Hint = "only the instructions of llm agents have placeholders"
	}
}

// toolName is what every provider lets the name of a tool be.
var toolName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

const toolNameRule = "providers take ASCII letters, digits, _ and -, at most 64"

// agentTool checks what a model is told of an agent that is a tool.
func (c *checker) agentTool(a *Agent) {
	switch {
	case a.Name == exitlooptool.Name || a.Name == exitlooptool.Alias:
		c.report(a.at("name"), CodeTool, "the tool %q has the name of the exit tool", a.Name)
	case !toolName.MatchString(a.Name) && vocabulary.AgentName(a.Name) == "":
		c.report(a.at("name"), CodeTool, "the tool %q cannot have that name: "+toolNameRule, a.Name)
	case a.Description == "":
		c.warn(a.at("name"), CodeTool, "the tool %q has no description: the model cannot know what it is for", a.Name)
	}
}

// model checks that a name names a model. Keys are of no interest yet.
func (c *checker) model(a *Agent) {
	if n, given := a.nodes["model"]; !given || !source.PlainText(n) || a.Type != "" && !fieldNamed("model").has(a.Type) {
		return
	}
	p, rest, err := provider.Find(a.Model)
	if err != nil {
		problem := c.report(a.at("model"), CodeModel, "%v", err)
		problem.err = err
		if e, ok := errors.AsType[*provider.NameError](err); ok {
			problem.Message, problem.Hint = "model "+quoted(e.Name)+": "+e.Reason, ""
			if e.Meant != "" {
				problem.Hint = "did you mean " + quoted(e.Meant) + "?"
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

// script reports what is wrong with the script of a model, if it can be read: one
// that is not there may be written before the run.
func (c *checker) script(a *Agent, name string) {
	if c.fsys == nil || !filepath.IsLocal(filepath.FromSlash(name)) {
		return
	}
	err, known := c.scripts[name]
	if !known {
		err = scriptError(c.fsys, name)
		c.scripts[name] = err
	}
	if err == nil {
		return
	}
	p := c.report(a.at("model"), CodeModel, "the script %s cannot be used: %v", name, err)
	p.err = err
	if e, ok := errors.AsType[*scripted.SyntaxError](err); ok {
		p.Message = fmt.Sprintf("the script %s:%d:%d cannot be used: %s", name, e.Line, e.Column, e.Msg)
	}
}

// scriptError reads a script; nil if it is right, or cannot be read.
func scriptError(fsys fs.FS, name string) error {
	f, err := openRegular(fsys, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, source.MaxFile+1))
	if err != nil || len(data) > source.MaxFile {
		return nil
	}
	script, err := scripted.Parse(data)
	if err == nil {
		_, err = scripted.New(script)
	}
	return err
}

func quoted(s string) string { return `"` + s + `"` }

// mcp asks mcptoolset, which connects to nothing yet.
func (c *checker) mcp(a *Agent, field string, m *MCP) {
	switch {
	case len(m.Command) > 0 && m.URL != "":
		c.report(a.at(field), CodeConflict, "an MCP server has a command or a url, not both")
	case len(m.Command) == 0 && m.URL == "":
		c.report(a.at(field), CodeMissing, "an MCP server needs a command or a url")
	case m.URL == "" && m.Headers != nil:
		c.report(a.at(field+".headers"), CodeConflict, "headers belong to a url")
	case len(m.Command) == 0 && (m.Env != nil || m.PassEnv != nil):
		c.report(a.at(field+".env"), CodeConflict, "env belongs to a command")
	case m.Prefix != "" && !toolName.MatchString(m.Prefix):
		c.report(a.at(field+".prefix"), CodeTool, "the names of tools cannot begin with %q: "+toolNameRule, m.Prefix)
	default:
		c.confirm(a, field, m)
		set, err := mcptoolset.New(mcpConfig(m, "."))
		if err != nil {
			msg := strings.Replace(errors.Unwrap(err).Error(), "the Command", "the command", 1)
			c.report(a.at(field), CodeTool, "%s", msg).err = err
			return
		}
		set.Close()
	}
}

// confirm looks whether the tools to consent to are among those that there are.
func (c *checker) confirm(a *Agent, field string, m *MCP) {
	for _, name := range m.Confirm {
		if m.Only != nil && !slices.Contains(m.Only, name) {
			c.report(a.at(field+".confirm"), CodeConflict, "confirm names %q, which is not in only", name).
				Hint = didYouMean(name, m.Only, "%q", "")
		}
	}
}
