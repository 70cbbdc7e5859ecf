// SPDX-License-Identifier: Apache-2.0

package acpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// enter enters the conversation that the prompt goes to. This is a copy of Config.Conversation if the program copies
// conversations, that conversation itself if the program can load it, or a new one.
func (t *Talk) enter(copies, loads bool) {
	id := acp.SessionId(t.cfg.Conversation)
	switch {
	case t.cfg.Continues && !copies && !loads:
		t.report.Outcome, t.report.Unable = codingcli.NotConfigured, true
		t.end(nil)
	case id == "":
		t.beginNew("")
	case copies:
		fork := acp.UnstableForkSessionRequest{Cwd: t.cfg.Dir, McpServers: []acp.UnstableMcpServer{}, SessionId: id}
		t.call(acp.AgentMethodSessionFork, fork,
			func(result json.RawMessage, failed *acp.RequestError) {
				var r newSession
				if t.isLost(failed) {
					return
				}
				if json.Unmarshal(result, &r) != nil || r.Session == id || r.Session == "" {
					t.beginNew("the program gave no copy of it")
					return
				}
				t.onSession(result, nil)
			})
	default:
		t.session, t.loaded, t.prompts = id, true, sha256.New()
		t.call(acp.AgentMethodSessionLoad, acp.LoadSessionRequest{Cwd: t.cfg.Dir, McpServers: []acp.McpServer{}, SessionId: id},
			func(result json.RawMessage, failed *acp.RequestError) {
				switch {
				case t.isLost(failed):
				case promptHash(t.prompts) != t.cfg.Asked:
					t.beginNew("the program can load it but not copy it, and what it has loaded is not what belongs to the state: " +
						"an iteration was rolled back or an attempt has failed, or the program leaves out a part")
				default:
					t.onSession(result, nil)
				}
			})
	}
}

// isLost reports whether failed is an error, so that the program cannot enter the conversation to continue. If so, isLost
// begins a new conversation. It ends instead if the program is not configured or its provider is limited.
func (t *Talk) isLost(failed *acp.RequestError) bool {
	if failed == nil {
		return false
	}
	if outcome := t.fails(failed); outcome == codingcli.NotConfigured || outcome == codingcli.Limited {
		t.fail(failed)
	} else {
		t.beginNew("the program does not have it: " + brief.Line(t.report.Answer, longestName))
	}
	return true
}

// beginNew begins a new conversation. why is the reason for which an earlier one is not continued; "" if there was none.
func (t *Talk) beginNew(why string) {
	t.session, t.loaded, t.prompts = "", false, nil
	if t.cfg.Continues {
		t.prompts = sha256.New()
	}
	t.report.Answer, t.report.Renewed = "", why
	t.call(acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: t.cfg.Dir, McpServers: []acp.McpServer{}}, t.onSession)
}

// hashPrompt adds a prompt, or a part of a prompt, to the hash of the conversation's prompts. It leaves out white space, because
// programs that repeat a prompt may divide it and change its white space.
func (t *Talk) hashPrompt(text string) {
	if t.prompts != nil {
		_, _ = io.WriteString(t.prompts, strings.Join(strings.Fields(text), ""))
	}
}

// promptHash returns the hash of the prompts of a conversation as text; "" if the prompts are not known.
func promptHash(prompts hash.Hash) string {
	if prompts == nil {
		return ""
	}
	return hex.EncodeToString(prompts.Sum(nil))
}
