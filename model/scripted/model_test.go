// SPDX-License-Identifier: Apache-2.0

package scripted_test

import (
	"testing"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
)

func TestLLM(t *testing.T) {
	modeltest.TestLLM(t, modeltest.Options{Open: func(t testing.TB, script scripted.Script) (model.LLM, *modeltest.Server) {
		llm, err := scripted.New(script)
		if err != nil {
			t.Fatal(err)
		}
		return llm, nil
	}})
}
