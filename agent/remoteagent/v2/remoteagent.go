// SPDX-License-Identifier: Apache-2.0

// Package remoteagent has package agent/remoteagent under the import path and with the config of ADK v2.
//
//	analyst, err := remoteagent.NewA2A(remoteagent.A2AConfig{
//		Name:              "analyst",
//		AgentCardProvider: remoteagent.NewAgentCardProvider("https://agents.example.org/analyst"),
//	})
package remoteagent

import (
	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/remoteagent"
)

// A2AConfig describes an agent for [NewA2A]. Name is required, and either AgentCard or AgentCardProvider. The config
// of package agent/remoteagent has more fields, such as for headers.
type A2AConfig struct {
	Name, Description string
	// AgentCard says how to reach the remote agent, and AgentCardProvider returns such a card once for each run. Both
	// are trusted.
	AgentCard         *a2a.AgentCard
	AgentCardProvider AgentCardProvider

	BeforeAgentCallbacks []agent.BeforeAgentCallback
	AfterAgentCallbacks  []agent.AfterAgentCallback
	// BeforeRequestCallbacks may change or replace a request.
	BeforeRequestCallbacks []BeforeA2ARequestCallback
	// MessageSendConfig is sent with messages.
	MessageSendConfig *a2a.SendMessageConfig
}

// The types of the config's fields.
type (
	AgentCardProvider        = remoteagent.AgentCardProvider
	BeforeA2ARequestCallback = remoteagent.BeforeA2ARequestCallback
)

// NewAgentCardProvider returns a provider of the card of a source: a URL or the path of a file, as AgentCardSource of package
// agent/remoteagent. A card from a URL can only name the URL's own server.
func NewAgentCardProvider(source string) AgentCardProvider {
	return remoteagent.NewAgentCardProvider(source)
}

// NewA2A returns an agent that calls a remote agent over A2A: see NewA2A of package
// agent/remoteagent.
func NewA2A(cfg A2AConfig) (agent.Agent, error) {
	return remoteagent.NewA2A(remoteagent.A2AConfig{
		Name: cfg.Name, Description: cfg.Description,
		AgentCard: cfg.AgentCard, AgentCardProvider: cfg.AgentCardProvider,
		BeforeAgentCallbacks: cfg.BeforeAgentCallbacks, AfterAgentCallbacks: cfg.AfterAgentCallbacks,
		BeforeRequestCallbacks: cfg.BeforeRequestCallbacks, MessageSendConfig: cfg.MessageSendConfig,
	})
}
