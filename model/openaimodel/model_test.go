// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/openaimodel"
	"github.com/refrain-dev/refrain/model/scripted"
)

func ExampleNewModel() {
	llm, err := openaimodel.NewModel(context.Background(), "gpt-5-mini", &openaimodel.ClientConfig{APIKey: "key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(llm.Name())
	// Output: gpt-5-mini
}

// counter counts the requests that go through it.
type counter int

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	*c++
	return http.DefaultTransport.RoundTrip(r)
}

// Every field reaches the model: the answer comes from the server, with the key, through the client.
func TestConfigReachesTheModel(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	srv := modeltest.OpenAIServer(t, scripted.Script{Answers: []scripted.Answer{{Text: "Hello."}}})
	var sent counter
	llm, err := openaimodel.NewModel(t.Context(), "gpt-5-mini", &openaimodel.ClientConfig{APIKey: "key", BaseURL: srv.BaseURL,
		HTTPClient: &http.Client{Transport: &sent}})
	if err != nil {
		t.Fatal(err)
	}
	req := &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("Hi", genai.RoleUser)}}
	for resp, err := range llm.GenerateContent(t.Context(), req, false) {
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Content.Parts[0].Text; got != "Hello." {
			t.Errorf("answer %q", got)
		}
	}
	if sent != 1 {
		t.Errorf("%d requests through the client, want 1", sent)
	}
	if _, err := openaimodel.NewModel(t.Context(), "gpt-5-mini", nil); err == nil {
		t.Error("no error without a key for OpenAI")
	}
}
