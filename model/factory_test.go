// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

// open returns a scripted model with the name.
func open(_ context.Context, name string) (model.LLM, error) {
	return scripted.New(scripted.Script{Name: name})
}

// Patterns stay registered for as long as the process lives.
func init() {
	model.Register("^example-", open)
	model.Register("^tiny$", open)
	model.Register("^big-", open)
	model.Register("(?i)-BROKEN$", func(context.Context, string) (model.LLM, error) { return nil, errBroken })
}

var errBroken = errors.New("no key")

func ExampleNewLLM() {
	// model.Register("^example-", open), in init
	llm, err := model.NewLLM(context.Background(), "example-large")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(llm.Name())
	_, err = model.NewLLM(context.Background(), "other")
	fmt.Println(err)
	// Output:
	// example-large
	// model "other": no registered pattern matches it; call model.Register first
}

func TestNewLLMTakesTheOnlyMatch(t *testing.T) {
	if llm, err := model.NewLLM(t.Context(), "tiny"); err != nil || llm.Name() != "tiny" {
		t.Errorf("tiny: %v, %v", llm, err)
	}
	if _, err := model.NewLLM(t.Context(), "tiny-2"); err == nil {
		t.Error("tiny-2: no error, though only tiny is registered")
	}
	if _, err := model.NewLLM(t.Context(), "x-broken"); !errors.Is(err, errBroken) {
		t.Errorf("x-broken: error %v, want the factory's", err)
	}
	_, err := model.NewLLM(t.Context(), "big-broken")
	for _, want := range []string{`"big-broken"`, "several", `"^big-"`, `"(?i)-BROKEN$"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("big-broken: error %v, want %s in it", err, want)
		}
	}
}

func TestRegisterPanics(t *testing.T) {
	for name, register := range map[string]func(){
		"registered already": func() { model.Register("^tiny$", open) },
		"is nil":             func() { model.Register("^never$", nil) },
		"missing closing":    func() { model.Register("(", open) },
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, name) {
					t.Errorf("panic %q, want %q in it", said, name)
				}
			}()
			register()
		}()
	}
}
