// SPDX-License-Identifier: Apache-2.0

package geminitool_test

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/geminitool"
)

func Example() {
	llm, err := gemini.NewModel(context.Background(), "gemini-2.5-flash", &genai.ClientConfig{APIKey: "key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := llmagent.New(llmagent.Config{Name: "searcher", Model: llm, Tools: []tool.Tool{geminitool.GoogleSearch{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Name())
	// Output: searcher
}
