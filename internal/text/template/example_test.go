// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"fmt"

	"github.com/refrain-dev/refrain/internal/text/template"
)

func Example() {
	t, err := template.Parse(`Improve the text: {{draft}}
{{#feedback}}
- {{issue}} ({{weight}})
{{/feedback}}
{{^feedback}}
There is no feedback yet.
{{/feedback}}
Answer as {"text": "..."}.`, template.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := map[string]any{
		"draft":    "A cat sat.",
		"feedback": []any{map[string]any{"issue": "too short", "weight": 0.8}},
	}
	text, err := t.Execute(func(key string) (any, bool) { v, ok := state[key]; return v, ok })
	fmt.Println(text, err)
	// Output:
	// Improve the text: A cat sat.
	// - too short (0.8)
	// Answer as {"text": "..."}. <nil>
}

func ExampleTemplate_Fill() {
	t, err := template.Parse("{{draft}} {{feedback}}{{tone?}}", template.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := t.Fill(func(key string) (any, bool) { return "A cat sat.", key == "draft" })
	fmt.Printf("%q, without %v, %v\n", res.Text, res.Unset, err)
	// Output: "A cat sat. ", without [feedback], <nil>
}

func ExampleTemplate_Keys() {
	t, err := template.Parse("Hello {name},\n{{#tasks}}{{title}} {{/tasks}}", template.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, ref := range t.Keys() {
		fmt.Printf("%d:%d %s inner=%t\n", ref.Line, ref.Column, ref.Name, ref.Inner)
	}
	// Output:
	// 1:7 name inner=false
	// 2:1 tasks inner=false
	// 2:11 title inner=true
}

func ExampleErrors() {
	_, err := template.Parse("{{#draft}}\n{{> footer}}", template.Options{})
	fmt.Println(err)
	// Output:
	// 1:1: section {{#draft}} is not closed
	// 2:1: partials and blocks do not exist: {{>footer}}
}
