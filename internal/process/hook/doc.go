// SPDX-License-Identifier: Apache-2.0

// Package hook reports the events of a run to a webhook, a command or a Go function, which may veto
// the next action.
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
// A webhook follows Standard Webhooks (standardwebhooks.com): its headers are webhook-id,
// webhook-timestamp and, with a secret, webhook-signature. The ID is the event's, which stays the
// same when an event is sent twice, so that the receiver can drop the repetition. A command reads
// the same JSON on its standard input.
//
// A hook with Veto can stop the announced action: a webhook by the answer {"veto": true, "reason":
// "…"}, a command by exit code 1 with the reason on its standard error, a Go function by an error.
// A missing or invalid answer stops the action too, unless OnError says otherwise. An empty answer,
// {"veto": false}, or exit code 0 lets the action pass. A hook without Veto only gets the events.
// Its failures go to Config.Failed and have no other effect.
//
// Package definition calls hooks where a file has callbacks.
package hook
