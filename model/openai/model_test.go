// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"testing"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/model/scripted"
)

func TestLLM(t *testing.T) {
	modeltest.TestLLM(t, modeltest.Options{Open: func(t testing.TB, script scripted.Script) (model.LLM, *modeltest.Server) {
		srv := modeltest.OpenAIServer(t, script)
		llm, err := openai.NewModel("gpt-5-mini", openai.Config{BaseURL: srv.BaseURL, APIKey: "key"})
		if err != nil {
			t.Fatal(err)
		}
		return llm, srv
	}})
}
