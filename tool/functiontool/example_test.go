// SPDX-License-Identifier: Apache-2.0

package functiontool_test

import (
	"context"
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

func ExampleNew() {
	type args struct {
		Word  string `json:"word" jsonschema:"what to repeat"`
		Times int    `json:"times"`
	}
	repeat, err := functiontool.New(functiontool.Config{Name: "repeat", Description: "Says a word again."},
		func(_ tool.Context, in args) ([]string, error) {
			words := []string{}
			for range in.Times {
				words = append(words, in.Word)
			}
			return words, nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := agent.NewToolContext(drive.NewInvocation(context.Background(), drive.Invocation{}), "call-1", nil, nil)
	for _, sent := range []map[string]any{{"word": "tick", "times": 2}, {"times": "two"}} {
		fmt.Println(tool.Call(ctx, repeat.(tool.Function), sent))
	}
	// Output:
	// map[result:[tick tick]] <nil>
	// map[] invalid arguments for repeat: word: is missing, expected a string; times: expected an integer, got the string "two"
}
