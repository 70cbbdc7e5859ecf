// SPDX-License-Identifier: Apache-2.0

// Package skilltoolset gives agents skills: folders of instructions and files that a model loads when a task needs
// them. The model sees the names and descriptions of all skills, and has three tools: list_skills, load_skill and
// load_skill_resource.
//
//	source := skill.NewFileSystemSource(os.DirFS("skills"))
//	skills, err := skilltoolset.New(ctx, skilltoolset.Config{Source: source})
//	if err != nil {
//		return err
//	}
//	a, err := llmagent.New(llmagent.Config{Name: "helper", Model: llm, Toolsets: []tool.Toolset{skills}})
//
// Load only skills whose authors you trust, because their texts are instructions for the model. Models can read the
// scripts of skills, but no tool of this package runs them.
package skilltoolset

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/skilltoolset/skill"
)

const instruction = "You have skills: instructions and files for certain tasks. Below are their names and what they are for. " +
	"If one fits the task, call `load_skill` with its name before you begin, and do what its instructions, the file SKILL.md, say, step by step. " +
	"If they name a file in references/, assets/ or scripts/, read it with `load_skill_resource`; no other tool has these files."

// Config describes a toolset.
type Config struct {
	// Source provides the skills. Required.
	Source skill.Source
	// Name is the name of the toolset; the default is "SkillToolset".
	Name string
	// SystemInstruction tells the model how to use skills; the default explains the three tools. The list of skills
	// follows it.
	SystemInstruction string
}

// SkillToolset is the toolset that [New] returns.
type SkillToolset struct {
	cfg   Config
	tools []tool.Tool
}

var (
	_ tool.Toolset          = (*SkillToolset)(nil)
	_ tool.RequestProcessor = (*SkillToolset)(nil)
)

// New returns a toolset. It fails without a Source. The toolset reads skills when a model uses them, and does not
// keep the context.
func New(_ context.Context, cfg Config) (*SkillToolset, error) {
	if cfg.Source == nil {
		return nil, errors.New("skill toolset: Source is nil: set one, such as skill.NewFileSystemSource(os.DirFS(\"skills\"))")
	}
	if cfg.Name == "" {
		cfg.Name = "SkillToolset"
	}
	if cfg.SystemInstruction == "" {
		cfg.SystemInstruction = instruction
	}
	ts := &SkillToolset{cfg: cfg}
	list, err := functiontool.New(functiontool.Config{
		Name: "list_skills", Description: "Lists the names and descriptions of all skills.",
	}, ts.list)
	load, lerr := functiontool.New(functiontool.Config{
		Name: "load_skill", Description: "Loads the instructions of a skill.",
	}, ts.load)
	resource, rerr := functiontool.New(functiontool.Config{
		Name: "load_skill_resource", Description: "Reads a text file of a skill.",
	}, ts.resource)
	if err := errors.Join(err, lerr, rerr); err != nil {
		return nil, err
	}
	ts.tools = []tool.Tool{list, load, resource}
	return ts, nil
}

// Name returns the toolset's name.
func (ts *SkillToolset) Name() string { return ts.cfg.Name }

// Tools returns list_skills, load_skill and load_skill_resource.
func (ts *SkillToolset) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return ts.tools, nil }

// ProcessRequest adds the list of skills to the instruction, unless there are no skills.
func (ts *SkillToolset) ProcessRequest(ctx tool.Context, req *model.LLMRequest) error {
	all, err := ts.cfg.Source.ListFrontmatters(ctx)
	if err != nil {
		return err
	}
	if len(all) > 0 {
		tool.Instruct(req, ts.cfg.SystemInstruction, skillList(all))
	}
	return nil
}

// skillList returns the list of skills for a model.
func skillList(all []*skill.Frontmatter) string {
	var b strings.Builder
	b.WriteString("<available_skills>\n")
	for _, f := range all {
		fmt.Fprintf(&b, "<skill>\n<name>%s</name>\n<description>%s</description>\n</skill>\n", f.Name, html.EscapeString(f.Description))
	}
	b.WriteString("</available_skills>")
	return b.String()
}

type listing struct {
	Skills string `json:"skills"`
}

func (ts *SkillToolset) list(ctx tool.Context, _ struct{}) (*listing, error) {
	all, err := ts.cfg.Source.ListFrontmatters(ctx)
	if err != nil {
		return nil, err
	}
	return &listing{skillList(all)}, nil
}

type loadArgs struct {
	Name string `json:"name" jsonschema:"the name of the skill"`
}

type loadResult struct {
	SkillName    string             `json:"skill_name"`
	Instructions string             `json:"instructions"`
	Frontmatter  *skill.Frontmatter `json:"frontmatter"`
}

func (ts *SkillToolset) load(ctx tool.Context, in loadArgs) (*loadResult, error) {
	front, err := ts.cfg.Source.LoadFrontmatter(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	text, err := ts.cfg.Source.LoadInstructions(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &loadResult{in.Name, text, front}, nil
}

type resourceArgs struct {
	SkillName    string `json:"skill_name" jsonschema:"the name of the skill"`
	ResourcePath string `json:"resource_path" jsonschema:"the path of the file in the skill, such as references/style.md"`
}

type resourceResult struct {
	SkillName string `json:"skill_name"`
	Path      string `json:"path"`
	Content   string `json:"content"`
}

func (ts *SkillToolset) resource(ctx tool.Context, in resourceArgs) (_ *resourceResult, err error) {
	r, err := ts.cfg.Source.LoadResource(ctx, in.SkillName, in.ResourcePath)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("skill %q: read %q: %w", in.SkillName, in.ResourcePath, err)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("skill %q: %q is not a text", in.SkillName, in.ResourcePath)
	}
	return &resourceResult{in.SkillName, in.ResourcePath, string(data)}, nil
}
