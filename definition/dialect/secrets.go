// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// hidden is what stands in place of a secret where a line of a file is shown.
const hidden = '*'

var (
	nameParts = regexp.MustCompile(`[A-Z]*[a-z0-9]+|[A-Z]+`)
	// tokens are texts that are secrets whatever they are called.
	tokens = regexp.MustCompile(`(?i:bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,}|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{6,}|\bAIza[A-Za-z0-9_-]{20,}|\bgh[opsu]_[A-Za-z0-9]{20,}|` +
		`\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[abps]-[A-Za-z0-9-]{10,}|\bAKIA[A-Z0-9]{12,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)
)

// secretName reports whether something of that name is a secret: api_key, apiKey,
// X-Auth-Token, but not output_key or max_tokens.
func secretName(name string) bool {
	before := ""
	for _, word := range nameParts.FindAllString(name[:min(len(name), 200)], -1) {
		word = strings.ToLower(word)
		switch word {
		case "apikey", "token", "secret", "password", "passwd", "passphrase", "pwd", "auth", "authorization", "credential", "credentials", "cookie", "bearer", "signature", "pass", "pat", "dsn", "jwt", "sig":
			return true
		case "key", "keys":
			if before == "api" || before == "access" || before == "private" || before == "secret" || before == "x" {
				return true
			}
		}
		before = word
	}
	return false
}

// secret reports whether a variable or a header looks like a secret: many are, so
// that a name which only may be one's is enough.
func secret(name, value string) bool {
	if secretName(name) {
		return true
	}
	name = strings.ToLower(name)
	for _, word := range []string{"key", "token", "secret", "pass", "auth", "credential", "cookie", "session"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return secretText(value) || strings.Contains(strings.ToLower(value), "bearer ")
}

// secretText reports whether a text is, or has in it, a secret whatever it is called.
func secretText(value string) bool {
	_, found := cleaned(value)
	return found || tokens.MatchString(value)
}

var (
	// userInfo is the name and password in an address, queryParts what it asks with.
	userInfo   = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"']*)@`)
	queryParts = regexp.MustCompile(`([?&;#])([^=?&;#\s"']+)=([^&;#\s"']*)`)
)

// cleaned is a text without the secrets in the addresses in it.
func cleaned(text string) (_ string, found bool) {
	if !strings.Contains(text, "://") {
		return text, false
	}
	out := userInfo.ReplaceAllString(text, "$1")
	found = out != text
	out = queryParts.ReplaceAllStringFunc(out, func(part string) string {
		m := queryParts.FindStringSubmatch(part)
		if m[3] == "" || m[3] == yours || strings.Contains(m[3], "{") && !tokens.MatchString(m[3]) {
			return part
		}
		name, err := url.QueryUnescape(m[2])
		if err != nil || secretName(name) || strings.EqualFold(name, "key") || tokens.MatchString(m[3]) {
			found = true
			return m[1] + m[2] + "=" + yours
		}
		return part
	})
	return out, found
}

// conceal notes the secrets of a file, which no line of it shows.
func (i *importer) conceal(n *yaml.Node, name string) {
	switch n.Kind {
	case yaml.MappingNode:
		for k := 0; k+1 < len(n.Content); k += 2 {
			inner := name
			if key := n.Content[k]; key.Kind == yaml.ScalarNode && (secretName(key.Value) || strings.EqualFold(key.Value, "credentials")) {
				inner = key.Value
			}
			i.conceal(n.Content[k+1], inner)
		}
	case yaml.SequenceNode:
		before := ""
		for _, c := range n.Content {
			inner := name
			if flag(before) {
				inner = before
			}
			i.conceal(c, inner)
			before = c.Value
		}
	case yaml.ScalarNode:
		if key, val, given := strings.Cut(n.Value, "="); name == "" && given && !strings.Contains(key, " ") && secretName(key) && len(val) >= 4 && len(i.secretTexts) < 1000 {
			i.secretTexts = append(i.secretTexts, val) // --token=…
		}
		if name == "" || utf8.RuneCountInString(n.Value) < 4 || n.ShortTag() == "!!bool" {
			return
		}
		if len(i.secretTexts) < 1000 {
			i.secretTexts = append(i.secretTexts, n.Value)
		}
	}
}

// shownLine is a line of a file without the secrets in it.
func (i *importer) shownLine(at place) string {
	text := i.line(at)
	mask := func(s string) string { return strings.Repeat(string(hidden), utf8.RuneCountInString(s)) }
	for _, s := range i.secretTexts {
		for _, part := range strings.FieldsFunc(s, breaks) {
			if len(part) >= 4 && strings.Contains(text, part) {
				text = strings.ReplaceAll(text, part, mask(part))
			}
		}
	}
	text = userInfo.ReplaceAllStringFunc(text, func(s string) string {
		m := userInfo.FindStringSubmatch(s)
		return m[1] + mask(m[2]) + "@"
	})
	text = queryParts.ReplaceAllStringFunc(text, func(s string) string {
		m := queryParts.FindStringSubmatch(s)
		if secretName(m[2]) || strings.EqualFold(m[2], "key") {
			return m[1] + m[2] + "=" + mask(m[3])
		}
		return s
	})
	return tokens.ReplaceAllStringFunc(text, mask)
}

// flag reports whether an argument says that the next one is a secret.
func flag(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && secretName(arg)
}

// secrets copies a map of texts. What may be a secret stays where it is: a
// variable of the environment is passed on by its name.
func (i *importer) secrets(a *agent, full string, v value, kind string) any {
	var out object
	var pass []any
	v.all()
	for _, p := range v.pairs() {
		switch {
		case kind == "env" && secret(p.key, p.value.text()):
			pass = append(pass, p.key)
			i.changed(p.at, a.was, full+" "+p.key, "env ["+p.key+"]", "it may be a secret, and is taken from the environment of the run")
		case secret(p.key, p.value.text()):
			i.dropped(p.at, a.was, full+" "+p.key, "put it into the definition yourself, and keep that file to yourself", "it may be a secret, and is not copied")
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

// yours stands where a secret stood that a program cannot do without.
const yours = "YOUR_SECRET"

// arguments copies those of a command, without secrets.
func (i *importer) arguments(a *agent, full string, v value) []any {
	out, masked := arguments(v.texts())
	for n, arg := range v.items() {
		if masked[n] {
			i.changed(arg.at(), a.was, full+" args", yours, "it may be a secret, and is not copied").Advice = "write it in its place yourself, or give it by env"
		}
	}
	return list(out)
}

// arguments are those of a command without the secrets in them, and which have some.
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
	if flag(before) {
		return yours
	}
	text, _ = cleaned(text)
	for _, sign := range []string{"=", ": "} {
		name, val, given := strings.Cut(text, sign)
		if given && !strings.Contains(name, "://") && (secretName(name) || tokens.MatchString(val)) {
			return name + sign + yours
		}
	}
	if tokens.MatchString(text) {
		return yours
	}
	return text
}

// address copies a URL, without the secrets in it.
func (i *importer) address(a *agent, full string, v value) string {
	text, found := cleaned(v.text())
	if masked := tokens.ReplaceAllString(text, yours); masked != text {
		text, found = masked, true
	}
	if found {
		i.changed(v.at(), a.was, full, text, "what may be a secret in it is not copied").Advice = "write it in its place yourself, and keep that file to yourself"
	}
	return text
}

// payload copies what an agent elsewhere is sent, without secrets.
func (i *importer) payload(a *agent, name string, v value) any {
	switch {
	case v.all().isMap():
		o := object{}
		for _, p := range v.pairs() {
			o = append(o, field{key: p.key, value: i.payload(a, p.key, p.value)})
		}
		return o
	case v.isList():
		list := []any{}
		for _, item := range v.items() {
			list = append(list, i.payload(a, name, item))
		}
		return list
	case secretText(v.text()), v.text() != "" && secretName(name) && !strings.Contains(v.text(), "{") && v.ShortTag() != "!!bool":
		i.changed(v.at(), a.was, "payload "+name, yours, "it may be a secret, and is not copied").Advice = "write it in its place yourself, and keep that file to yourself"
		return yours
	}
	return copied(v)
}
