// SPDX-License-Identifier: Apache-2.0

package form

import (
	"cmp"

	"github.com/refrain-dev/refrain/definition"
)

// docs explains fields for one type of agent, if the field's own explanation covers several types. The text for ""
// applies to all other types.
var docs = map[string]map[definition.Type]string{
	"instructions": {
		definition.TypeLoop: "how to reach the goal; every model in the loop reads it",
		definition.TypeLLM:  "what the model is told, with placeholders such as {{user_input}}",
	},
	"timeout": {
		"":                     "time limit of the step, such as 30s or 5m; a plain number is seconds",
		definition.TypeLoop:    "time limit of the loop, such as 30s or 5m; a plain number is seconds",
		definition.TypeCommand: "time limit of the command, such as 30s or 5m; a plain number is seconds",
		definition.TypeCLI:     "time limit of the coding agent, such as 30m; a plain number is seconds",
		definition.TypeHTTP:    "time limit of the request, such as 30s or 5m; a plain number is seconds",
	},
	"model": {
		"":                 "model of all agents inside, as provider/name; that of the run if left out",
		definition.TypeLLM: "model, as provider/name; that of the agent around it, or of the run, if left out",
		definition.TypeCLI: "model, in the words of the coding agent; its own choice if left out",
	},
	"prompt_cache": {
		"":                 "off, so that no provider is asked to keep what requests of the agents inside repeat; or how long it is to keep that, such as 24h with OpenAI; on if left out",
		definition.TypeLLM: "off, so that the provider is not asked to keep what requests repeat; or how long it is to keep that, such as 24h with OpenAI; what the agents around say, or on, if left out",
	},
	"on_error": {
		"":                  "after the step has failed: stop (default), skip_step or, in a loop, next_iteration",
		definition.TypeLoop: "after a step of the loop has failed, or the loop itself: stop (default), skip_step or next_iteration",
	},
	"can_exit_loop": {
		"":                        "true lets the agents inside end the loop around this one",
		definition.TypeLLM:        "true lets the model end the loop: it gets the tool exit_loop",
		definition.TypeHuman:      "true lets a person who approves end the loop",
		definition.TypeCommand:    "true lets exit_when end the loop, which is the default",
		definition.TypeCLI:        "true lets exit_when end the loop, which is the default",
		definition.TypeHTTP:       "true lets exit_when end the loop, which is the default",
		definition.TypeExpression: "true lets exit_when end the loop, which is the default",
		definition.TypeTemplate:   "true lets exit_when end the loop, which is the default",
		definition.TypeFunc:       "true lets the agent end the loop",
		definition.TypeA2A:        "a remote agent cannot end the loop; read its answer in stop_when",
	},
	"effect": {
		definition.TypeCommand: "what follows when the command is cut off: idempotent (default), pure, at_most_once or transactional; or " +
			"{at_most_once: true, reconcile: {command} or {url}}, which finds out whether it took place",
		definition.TypeHTTP: "what follows when the request is cut off: idempotent (default), pure, at_most_once or transactional; or " +
			"{at_most_once: true, reconcile: {command} or {url}}, which finds out whether it took place",
	},
}

// docsOf explains a field for each type of agent that has the field. It returns nil if the field's own explanation is enough.
func docsOf(f definition.Field) map[definition.Type]string {
	texts, ok := docs[f.Name]
	if !ok {
		return nil
	}
	having := f.Types
	if having == nil {
		having = definition.Types()
	}
	out := make(map[definition.Type]string)
	for _, t := range having {
		if text := cmp.Or(texts[t], texts[""]); text != "" {
			out[t] = text
		}
	}
	return out
}
