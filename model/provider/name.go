// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// NameError reports that no model has this name.
type NameError struct {
	Name string
	// Reason says why no model has the name.
	Reason string
	// Meant is the most similar name; empty if no name is similar.
	Meant string
}

// Error returns the name, the reason and the most similar name.
func (e *NameError) Error() string {
	s := fmt.Sprintf("model %q: %s", e.Name, e.Reason)
	if e.Meant != "" {
		s += fmt.Sprintf(" (did you mean %q?)", e.Meant)
	}
	return s
}

// KeyError reports that a provider needs a key that is not in the environment.
type KeyError struct {
	Provider string
	// Variables are the environment variables of which one has to be set.
	Variables []string
}

// Error names the variables.
func (e *KeyError) Error() string {
	return fmt.Sprintf("%s needs a key: set %s", e.Provider, strings.Join(e.Variables, " or "))
}

// OwnName returns the name of a model without that of its provider. Prices are found by this name. The name of a
// script is scripted, unless the script sets another one.
func OwnName(name string) string {
	before, own, slash := strings.Cut(name, "/")
	if !slash || before == "scripted" {
		return before
	}
	return own
}

// Find splits a model's name into its provider and the provider's name of the model. A bare name
// that begins with "gemini-" belongs to Gemini, as in ADK. It fails with a [*NameError]. It does
// not read the environment.
func Find(name string) (Provider, string, error) {
	all := All()
	before, rest, slash := strings.Cut(name, "/")
	if !slash {
		before, rest = "gemini", name
		if name == "" {
			return Provider{}, "", &NameError{Name: name, Reason: "it is empty: want provider/name"}
		}
		if !strings.HasPrefix(name, "gemini-") {
			e := &NameError{Name: name, Reason: "it has no provider before it: want provider/name"}
			if slices.ContainsFunc(all, func(p Provider) bool { return p.Name == name }) {
				e.Reason = "it has no name after the provider: want provider/name"
			} else if p := guess(name); p != "" {
				e.Meant = p + "/" + name
			}
			return Provider{}, "", e
		}
	}
	var names []string
	for _, p := range all {
		if p.Name == before {
			if rest == "" {
				return Provider{}, "", &NameError{Name: name,
					Reason: "it has no name after the provider: want provider/name"}
			}
			return p, rest, nil
		}
		names = append(names, p.Name)
	}
	e := &NameError{Name: name, Reason: fmt.Sprintf("no provider is called %q; there are %s", before,
		strings.Join(names, ", "))}
	if near := suggest.Nearest(before, names); near != "" {
		e.Meant = near + "/" + rest
	}
	return Provider{}, "", e
}

// guess is the provider whose models' names begin so.
func guess(name string) string {
	for prefix, p := range map[string]string{"gpt-": "openai", "claude-": "anthropic"} {
		if strings.HasPrefix(name, prefix) {
			return p
		}
	}
	return ""
}
