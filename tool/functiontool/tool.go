// SPDX-License-Identifier: Apache-2.0

// Package functiontool makes tools from Go functions. The description of the arguments for the
// model comes from the function's types.
//
//	type args struct {
//		City string `json:"city" jsonschema:"the city's name in English"`
//		Days int    `json:"days,omitempty" jsonschema:"how many days ahead, 0 is today"`
//	}
//	forecast, err := functiontool.New(functiontool.Config{
//		Name:        "forecast",
//		Description: "Tells the weather of a city.",
//	}, func(ctx tool.Context, in args) (string, error) {
//		return weather(ctx, in.City, in.Days)
//	})
package functiontool

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// Config describes a tool for [New].
type Config struct {
	// Name is the tool's name for the model; the default is the handler's name in Go.
	Name string
	// Description tells the model what the tool is for.
	Description string
	// InputSchema describes the arguments, OutputSchema the result; the default is inferred from
	// the handler's types. A result is checked only against an OutputSchema given here.
	InputSchema, OutputSchema *jsonschema.Schema
	// IsLongRunning marks a tool whose answer may come after the call has returned.
	IsLongRunning bool
	// RequireConfirmation makes every call wait for a person's consent.
	RequireConfirmation bool
	// RequireConfirmationProvider is a func(TArgs) bool that decides from the arguments whether a
	// call needs consent; then RequireConfirmation is ignored.
	RequireConfirmationProvider any
	// Effect is a call's effect on the outside world; see [tool.EffectOf].
	Effect tool.Effect
	// Reconcile finds out whether a call that was cut off took place, before a person is asked.
	// It is for the effect [agent.AtMostOnce] only.
	Reconcile agent.Reconcile
}

// Func is the function of a tool. Several agents may call it at the same time.
type Func[TArgs, TResults any] func(tool.Context, TArgs) (TResults, error)

// ErrInvalidArgument is the error of New for a type that cannot hold arguments, and that of a tool
// for arguments that do not fit its schema; see [ArgumentsError].
var ErrInvalidArgument = errors.New("invalid argument")

// New returns a tool that calls handler. TArgs is a struct or a map, or a pointer to one; the tags
// json and jsonschema of a field give its name, its description and whether it is optional. A
// result that is not a JSON object is given to the model as {"result": …}.
//
// It fails on a nil handler, on another type of arguments (with [ErrInvalidArgument]), on types and
// schemas that JSON Schema cannot express, and on a RequireConfirmationProvider of another type.
func New[TArgs, TResults any](cfg Config, handler Func[TArgs, TResults]) (tool.Tool, error) {
	if cfg.Name == "" {
		cfg.Name = nameOf(handler)
	}
	if err := cfg.Effect.Check(); err != nil {
		return nil, fmt.Errorf("function tool %q: %w", cfg.Name, err)
	}
	if cfg.Reconcile != nil && cfg.Effect != agent.AtMostOnce {
		return nil, fmt.Errorf("function tool %q: Reconcile is set, but Effect is not %s; set both or neither", cfg.Name, agent.AtMostOnce)
	}
	f, err := prepare(cfg, reflect.TypeFor[TArgs](), reflect.TypeFor[TResults]())
	if err != nil {
		return nil, fmt.Errorf("function tool %q: %w", cfg.Name, err)
	}
	if handler == nil {
		return nil, fmt.Errorf("function tool %q: the handler is nil", cfg.Name)
	}
	ask, ok := cfg.RequireConfirmationProvider.(func(TArgs) bool)
	if cfg.RequireConfirmationProvider != nil && !ok {
		return nil, fmt.Errorf("function tool %q: RequireConfirmationProvider is a %T, not a %T", cfg.Name,
			cfg.RequireConfirmationProvider, ask)
	}
	f.call = func(ctx tool.Context, args map[string]any) (any, error) {
		var in TArgs
		if err := f.input.decode(args, &in); err != nil {
			return nil, err
		}
		required := cfg.RequireConfirmation
		if ask != nil && ctx.ToolConfirmation() == nil {
			required = ask(in)
		}
		if err := tool.Confirm(ctx, cfg.Name, required); err != nil {
			return nil, err
		}
		return handler(ctx, in)
	}
	return f, nil
}

// prepare is the part of New that does not depend on types.
func prepare(cfg Config, in, out reflect.Type) (*function, error) {
	f := &function{cfg: cfg, decl: genai.FunctionDeclaration{Name: cfg.Name, Description: cfg.Description}}
	var err error
	if f.input, err = newArguments(cfg.Name, cfg.InputSchema, in); err != nil {
		return nil, err
	}
	if f.output, err = newResult(cfg.OutputSchema, out); err != nil {
		return nil, err
	}
	if s := f.input.schema; !empty(s) {
		f.decl.ParametersJsonSchema = s
	}
	if s := f.output.declared; s != nil && !empty(s) {
		f.decl.ResponseJsonSchema = s
	}
	if cfg.IsLongRunning {
		if f.decl.Description != "" {
			f.decl.Description += "\n\n"
		}
		f.decl.Description += "NOTE: This is a long-running operation. Do not call it again while its answer is pending."
	}
	return f, nil
}

// function is a tool.Function around a typed handler.
type function struct {
	cfg    Config
	decl   genai.FunctionDeclaration
	input  *arguments
	output *result
	call   func(tool.Context, map[string]any) (any, error)
}

func (f *function) Name() string        { return f.cfg.Name }
func (f *function) Description() string { return f.cfg.Description }
func (f *function) Effect() tool.Effect { return f.cfg.Effect }
func (f *function) IsLongRunning() bool { return f.cfg.IsLongRunning }

// Reconcile is the config's.
func (f *function) Reconcile() agent.Reconcile { return f.cfg.Reconcile }

func (f *function) Declaration() *genai.FunctionDeclaration {
	d := f.decl
	return &d
}

func (f *function) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	return tool.Pack(req, f)
}

// Run calls the handler. Wrong arguments are an [*ArgumentsError], a panic is
// an [*agent.PanicError].
func (f *function) Run(ctx tool.Context, args any) (res map[string]any, err error) {
	defer func() {
		if r := recover(); r != nil {
			res, err = nil, fmt.Errorf("tool %q: %w", f.cfg.Name, &agent.PanicError{Value: r, Stack: debug.Stack()})
		}
	}()
	m, err := f.input.complete(args)
	if err != nil {
		return nil, err
	}
	out, err := f.call(ctx, m)
	if err != nil {
		return nil, err
	}
	res, err = f.output.of(out)
	switch {
	case err != nil:
		return nil, fmt.Errorf("result of tool %q: %w", f.cfg.Name, err)
	case res == nil && !f.cfg.IsLongRunning:
		res = map[string]any{}
	}
	return res, nil
}
