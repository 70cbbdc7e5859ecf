// SPDX-License-Identifier: Apache-2.0

// Package hook tells others what a run of agents does, and lets them stop it: a
// webhook, a command, or a Go function.
//
//	gate, err := hook.NewWebhook(hook.WebhookConfig{
//		URL:    "https://hooks.example.org/refrain",
//		Secret: os.Getenv("HOOK_SECRET"),
//		Config: hook.Config{Veto: true},
//	})
//	if err != nil {
//		return err
//	}
//	err = gate.Call(ctx, hook.Event{
//		ID: "call-1", Type: hook.BeforeTool,
//		Data: hook.Data{Agent: "writer", Tool: &hook.Tool{Name: "send_mail"}},
//	})
//	if veto, ok := errors.AsType[*hook.VetoError](err); ok {
//		fmt.Println(veto.Reason)
//	}
//
// A webhook is sent as Standard Webhooks say (standardwebhooks.com): its headers
// are webhook-id, webhook-timestamp and, with a secret, webhook-signature. The ID
// is the event's, which is the same when something is told twice, so that whoever
// is told can drop the repetition. A command reads the same JSON on its standard
// input.
//
// Before something is done, a hook with Veto can stop it: a webhook by the answer
// {"veto": true, "reason": "…"}, a command by exit code 1 with the reason on its
// standard error, a Go function by an error. One that is asked so and does not
// answer stops it too, unless OnError says otherwise, and so does an answer that is
// not understood: what lets pass is an empty one, {"veto": false} with or without a
// reason, or exit code 0. A hook without Veto only watches: that it fails is told
// to Config.Failed, and nothing else comes of it.
//
// Package definition calls hooks where a file has callbacks.
package hook
