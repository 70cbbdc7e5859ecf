// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"testing"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
)

func TestLLM(t *testing.T) {
	modeltest.TestLLM(t, modeltest.Options{Open: func(t testing.TB, script scripted.Script) (model.LLM, *modeltest.Server) {
		srv := modeltest.AnthropicServer(t, script)
		llm, err := anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{BaseURL: srv.BaseURL, APIKey: "key"})
		if err != nil {
			t.Fatal(err)
		}
		return llm, srv
	}})
}
