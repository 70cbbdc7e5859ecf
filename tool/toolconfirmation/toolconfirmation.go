// SPDX-License-Identifier: Apache-2.0

// Package toolconfirmation describes a tool call that waits for a person's
// consent. Names and wire form are those of ADK for Go.
//
//	c := toolconfirmation.ToolConfirmation{Hint: "Deletes 12 files. Go on?"}
package toolconfirmation

// FunctionCallName is the name of the function call by which an agent asks its
// client for a confirmation.
const FunctionCallName = "adk_request_confirmation"

// ToolConfirmation is a question about one tool call, and its answer.
type ToolConfirmation struct {
	// Hint tells the person what they are agreeing to.
	Hint string `json:"hint"`
	// Confirmed is the answer; false until there is one.
	Confirmed bool `json:"confirmed"`
	// Payload is anything more that the tool wants to have back.
	Payload any `json:"payload"`
}
