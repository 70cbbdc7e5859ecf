// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"errors"
	"strings"

	"github.com/refrain-dev/refrain/model/provider"
)

// aliases are how LiteLLM, which ADK and Evo AI use, calls providers.
var aliases = map[string]string{
	"google": "gemini", "vertex_ai": "gemini", "ollama_chat": "ollama", "openai_chat": "openai", "claude": "anthropic",
	"scripted": "", // no product has one; a file must not name scripts of ours
}

// modelName is a model's name as provider/name; empty if it names none that
// there is here.
func modelName(name string) string {
	name = strings.TrimSpace(name)
	before, rest, slash := strings.Cut(name, "/")
	if to, ok := aliases[before]; slash && ok {
		if to == "" {
			return ""
		}
		name = to + "/" + rest
	}
	_, model, err := provider.Find(name)
	switch e, isName := errors.AsType[*provider.NameError](err); {
	case err == nil && !strings.Contains(name, "/"):
		return "gemini/" + model // as ADK, a bare name is Gemini's
	case err == nil:
		return name
	case isName && !slash:
		if e.Meant == "" && (strings.HasPrefix(name, "o1") || strings.HasPrefix(name, "o3") || strings.HasPrefix(name, "o4")) {
			return "openai/" + name
		}
		return e.Meant
	}
	return ""
}

// useModel gives an agent the model that the file names.
func (i *importer) useModel(a *agent, v value, at place, fieldName, name string) {
	a.model = modelName(name)
	a.came("model", v)
	switch {
	case a.model == "":
		i.dropped(at, a.was, fieldName, "write model: provider/name; doc/models.md lists the providers",
			"there is no provider here for the model %q", name)
	case a.model == name:
		i.mapped(at, a.was, fieldName, "")
	default:
		i.mapped(at, a.was, fieldName, "model "+a.model)
	}
}
