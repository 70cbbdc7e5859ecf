// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// These callbacks run around a call of a model. The response of a before callback replaces the
// call of the model; that of an after callback replaces the model's response. The first callback
// that returns a response ends the list. A callback may change the request until it returns,
// because the parts that the request shares with the log are copied. Afterwards it may only read
// the request.
//
// The after callbacks also get a response without an answer, such as a refusal. The callbacks on
// errors run only if the model returned no response.
type (
	BeforeModelCallback  func(ctx agent.CallbackContext, llmRequest *model.LLMRequest) (*model.LLMResponse, error)
	AfterModelCallback   func(ctx agent.CallbackContext, llmResponse *model.LLMResponse, llmResponseError error) (*model.LLMResponse, error)
	OnModelErrorCallback func(ctx agent.CallbackContext, llmRequest *model.LLMRequest, llmResponseError error) (*model.LLMResponse, error)
)

// Callbacks around a call of a tool, likewise.
type (
	BeforeToolCallback  func(ctx agent.ToolContext, tool tool.Tool, args map[string]any) (map[string]any, error)
	AfterToolCallback   func(ctx agent.ToolContext, tool tool.Tool, args, result map[string]any, err error) (map[string]any, error)
	OnToolErrorCallback func(ctx agent.ToolContext, tool tool.Tool, args map[string]any, err error) (map[string]any, error)
)
