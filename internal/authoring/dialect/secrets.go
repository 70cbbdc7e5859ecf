// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/text/source"
)

// secret reports whether a variable or a header looks like a secret. A name that may be a secret's is enough, because
// many of them are.
func secret(name, value string) bool {
	words := []string{"key", "token", "secret", "pass", "auth", "credential", "cookie", "session"}
	return credential.Named(name) || secretText(value) || strings.Contains(strings.ToLower(value), "bearer ") ||
		slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(name), word) })
}

// secretText reports whether a text is or contains a secret, whatever its name is.
func secretText(value string) bool {
	_, found := credential.Cleaned(value, yours)
	return found || credential.Token(value)
}

// shownLine returns a line of a file without the secrets in it.
func (i *importer) shownLine(at place) string {
	src := i.texts[at.File]
	if src == nil {
		return ""
	}
	return credential.Mask(src.Line(at.Line), i.secretTexts)
}

// secrets copies a map of strings without the values that may be secrets. An environment variable that may be a secret
// is passed on by its name only.
func (i *importer) secrets(a *agent, full string, v value, kind string) any {
	var out object
	var pass []any
	v.all()
	for _, p := range v.pairs() {
		switch {
		case kind == "env" && secret(p.key, p.value.text()):
			pass = append(pass, p.key)
			i.changed(p.at, a.was, full+" "+p.key, "env ["+p.key+"]",
				"it may be a secret, and is taken from the environment of the run")
		case secret(p.key, p.value.text()):
			i.dropped(p.at, a.was, full+" "+p.key, "put it into the definition yourself, and keep that file private",
				"it may be a secret, and is not copied")
		default:
			out = append(out, field{key: p.key, value: p.value.text()})
		}
	}
	if len(pass) == 0 {
		return out
	}
	for _, f := range out {
		pass = append(pass, f.key+"="+f.value.(string))
	}
	return pass
}

// yours replaces a secret that a program needs.
const yours = "YOUR_SECRET"

// arguments copies the arguments of a command without secrets.
func (i *importer) arguments(a *agent, full string, v value) []string {
	out, masked := arguments(v.texts())
	for n, arg := range v.items() {
		if masked[n] {
			i.changed(arg.at(), a.was, full+" args", yours, "it may be a secret, and is not copied").Advice = "write it there yourself, or give it by env"
		}
	}
	return out
}

// arguments returns the arguments of a command without the secrets in them, and which arguments had secrets.
func arguments(args []string) (out []string, masked []bool) {
	out, masked = make([]string, len(args)), make([]bool, len(args))
	before := ""
	for n, text := range args {
		out[n] = argument(before, text)
		masked[n], before = out[n] != text, text
	}
	return out, masked
}

func argument(before, text string) string {
	if source.SecretOption(before) {
		return yours
	}
	text, _ = credential.Cleaned(text, yours)
	for _, sign := range []string{"=", ": "} {
		name, val, given := strings.Cut(text, sign)
		if given && !strings.Contains(name, "://") && (credential.Named(name) || credential.Token(val)) {
			return name + sign + yours
		}
	}
	if credential.Token(text) {
		return yours
	}
	return text
}

// publicURL returns a URL without the secrets in it.
func publicURL(text string) string {
	text, _ = credential.Cleaned(text, yours)
	return credential.WithoutTokens(text, yours)
}

// address copies a URL without the secrets in it.
func (i *importer) address(a *agent, full string, v value) string {
	text := publicURL(v.text())
	if text != v.text() {
		i.changed(v.at(), a.was, full, text, "the parts that may be secret are not copied").Advice = "write it there yourself, and keep that file private"
	}
	return text
}

// payload copies the data for a remote agent, without secrets.
func (i *importer) payload(a *agent, name string, v value) any {
	return v.copied(name, func(name string, v value) any {
		if !secretText(v.text()) && (v.text() == "" || !credential.Named(name) || strings.Contains(v.text(), "{") || v.ShortTag() == "!!bool") {
			return copiedScalar(name, v)
		}
		i.changed(v.at(), a.was, "payload "+name, yours, "it may be a secret, and is not copied").Advice = "write it there yourself, and keep that file private"
		return yours
	})
}
