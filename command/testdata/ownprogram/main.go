// SPDX-License-Identifier: Apache-2.0

// Bakery is a program of one's own: a tool, an agent, a provider of models and a definition, and every verb of refrain.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
	"os"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/command"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

//go:embed bake.yaml
var bake string

func main() {
	addDough, err := functiontool.New(functiontool.Config{Name: "add_dough", Description: "Adds dough to the loaf."}, knead)
	if err != nil {
		panic(err)
	}
	taster, err := agent.New(agent.Config{Name: "taster", Description: "Tastes the loaf.", Run: taste})
	if err != nil {
		panic(err)
	}
	os.Exit(command.Main(
		command.Tool(addDough),
		command.Agent(taster),
		command.Model("oven", oven),
		command.Definition(bake),
	))
}

// knead adds to the weight, and to the file that the test counts.
func knead(ctx tool.Context, _ struct{}) (map[string]any, error) {
	weight := 0.0
	if v, err := ctx.State().Get("weight"); err == nil {
		if _, err := fmt.Sscan(fmt.Sprint(v), &weight); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile("kneaded", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, weight+1); err != nil {
		return nil, err
	}
	return map[string]any{"weight": weight + 1}, ctx.State().Set("weight", weight+1)
}

// taste says how the loaf is. With BAKERY_HOLD it says so on standard error in its second step, and never ends.
func taste(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		weight, _ := ctx.Session().State().Get("weight")
		if os.Getenv("BAKERY_HOLD") != "" && fmt.Sprint(weight) == "2" {
			fmt.Fprintln(os.Stderr, "tasting")
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
			return
		}
		ev := session.NewEvent(ctx, ctx.InvocationID())
		ev.Content = genai.NewContentFromText(fmt.Sprintf("It tastes of %v.", weight), genai.RoleModel)
		yield(ev, nil)
	}
}

// oven opens the models of the bakery: each is a script.
func oven(_ context.Context, name string) (model.LLM, error) {
	return scripted.New(scripted.Script{Name: name, Answers: []scripted.Answer{
		{MatchRequest: "answer add_dough", Text: "There is more dough.", Repeat: true},
		{Calls: []scripted.Call{{Name: "add_dough"}}, Repeat: true},
	}})
}
