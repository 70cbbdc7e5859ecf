// SPDX-License-Identifier: Apache-2.0

// Package exitlooptool provides exit_loop, the tool with which a model ends its loop.
//
//	exit, err := exitlooptool.NewWith(exitlooptool.Config{
//		Criteria: "every test passes and the reviewer has no objection",
//	})
//
// A call ends the nearest loop as soon as the turn ends; it sets the actions Escalate,
// SkipSummarization and Exit. A call with wrong arguments does not end the loop; the model gets an
// error that says what is wrong.
package exitlooptool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// The names that the tool can have.
const (
	Name  = "exit_loop"
	Alias = "exitLoop"
)

// DefaultCriteria is the default of [Config.Criteria].
const DefaultCriteria = "the critique indicates no further changes are needed"

// Config describes the tool for [NewWith].
type Config struct {
	// Name is [Name] or [Alias]; the default is [Name].
	Name string
	// Criteria says when the loop is done, as the end of a sentence that begins "Call this function
	// ONLY when"; the default is [DefaultCriteria].
	Criteria string
}

// New returns exit_loop with the defaults of [Config].
func New() (tool.Tool, error) { return NewWith(Config{}) }

// NewWith returns the tool that cfg describes. It fails if Config.Name is another name than
// [Name] and [Alias].
func NewWith(cfg Config) (tool.Tool, error) {
	switch cfg.Name {
	case "":
		cfg.Name = Name
	case Name, Alias:
	default:
		return nil, fmt.Errorf("exit tool: the name must be %s or %s, not %q", Name, Alias, cfg.Name)
	}
	made, err := functiontool.New(functiontool.Config{
		Name: cfg.Name, Description: Description(cfg.Criteria), InputSchema: schema(session.ExitDone),
	}, exit)
	if err != nil {
		return nil, err
	}
	f, ok := made.(tool.Function)
	if !ok {
		return nil, fmt.Errorf("exit tool: a %T %w", made, tool.ErrUnusable)
	}
	decl := f.Declaration()
	decl.ParametersJsonSchema = schema()
	return &exitTool{Function: f, decl: *decl}, nil
}

// Description returns the description of the tool for the model, with the criteria for ending the
// loop; an empty text means [DefaultCriteria].
func Description(criteria string) string {
	criteria = strings.TrimRight(strings.Join(strings.Fields(criteria), " "), ".")
	if criteria == "" {
		criteria = DefaultCriteria
	}
	return "Call this function ONLY when " + criteria + ". It ends the loop. As long as that is not so, do not call " +
		"it: the loop goes on by itself."
}

// exitTool shows the model another schema than the one that it checks by: without the
// empty status, which is taken but which not every provider lets a schema have.
type exitTool struct {
	tool.Function
	decl genai.FunctionDeclaration
}

// Declaration is a copy, as one of a function is. The schema in it is shared.
func (t *exitTool) Declaration() *genai.FunctionDeclaration {
	d := t.decl
	return &d
}

func (t *exitTool) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	return tool.Pack(req, t)
}

type args struct {
	Reason string   `json:"reason"`
	Score  *float64 `json:"score"`
	Status string   `json:"status"`
	Scope  string   `json:"scope"`
}

// schema describes args; all are optional.
func schema(more ...any) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:                 "object",
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		PropertyOrder:        []string{"reason", "score", "status", "scope"},
		Properties: map[string]*jsonschema.Schema{
			"reason": {Type: "string", Description: "Why the loop ends, in a sentence."},
			"score":  {Type: "number", Description: "How good the result is, if you were asked to score it."},
			"status": {Type: "string", Enum: append(more, session.ExitImpossible, session.ExitBlocked), Description: "Leave it out if the work is done. " +
				`"impossible": the goal cannot be reached. "blocked": going on needs something that is not there.`},
			"scope": {Type: "string", Description: "Leave it out to end only the loop that you are in. " +
				`The name of a loop around it ends that one too, "all" ends every loop.`},
		},
	}
}

// exit asks to leave the loop.
func exit(ctx tool.Context, in args) (struct{}, error) {
	if err := checkScope(ctx, in.Scope); err != nil {
		return struct{}{}, err
	}
	a := ctx.Actions()
	a.Escalate, a.SkipSummarization = true, true
	a.Exit = &session.Exit{Reason: strings.TrimSpace(in.Reason), Status: in.Status, Score: in.Score, Scope: in.Scope}
	if by := ctx.Agent(); by != nil {
		a.Exit.By = by.Name()
	}
	return struct{}{}, nil
}

// checkScope refuses the name of a loop that the agent is not in: the exit would
// end the nearest one instead.
func checkScope(ctx tool.Context, scope string) error {
	if scope == "" || scope == session.ScopeAll {
		return nil
	}
	nearest := drive.At(ctx).Loop()
	if nearest.IsInside(scope) {
		return nil
	}
	if nearest == nil {
		return errors.New("scope: you are in no loop; leave it out")
	}
	names := []string{strconv.Quote(session.ScopeAll)}
	for l := nearest; l != nil; l = l.Outer {
		names = append(names, strconv.Quote(l.Name))
	}
	return fmt.Errorf("scope: there is no loop %q around you; leave it out, or take one of %s", scope,
		strings.Join(names, ", "))
}
