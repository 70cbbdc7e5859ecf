// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/template"
)

// remote checks the texts of an agent elsewhere one by one, so that each problem
// has its place, and then asks remoteagent about the whole. It connects to nothing.
func (c *checker) remote(a *Agent) {
	before := len(c.problems)
	texts := map[string]string{"endpoint": a.A2A.Endpoint}
	for name, v := range a.A2A.Headers {
		texts["headers."+name] = v
	}
	textsIn(texts, "payload", a.A2A.Payload)
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		c.template(a, field, texts[field], template.Mustache)
	}
	if Problems(c.problems[before:]).count(SeverityError) > 0 || c.unset(a) || a.broken || vocabulary.AgentName(a.Name) != "" {
		return
	}
	if e := a.A2A.Endpoint; !strings.HasPrefix(e, "http://") && !strings.HasPrefix(e, "https://") {
		c.report(a.at("endpoint"), CodeTask, "endpoint: %q does not begin with http:// or https://", e)
		return
	}
	_, err := newRemote(a, around{})
	for _, e := range taskErrors(err) {
		if _, ok := errors.AsType[template.Errors](e); ok {
			continue // said above
		}
		field, msg := remoteField(e.Error())
		c.report(a.at(field), CodeTask, "%s", msg).err = e
	}
}

var remoteWords = strings.NewReplacer("AgentCardSource", "endpoint", "Payload", "payload", "Headers", "headers", "SizeLimit", "size_limit")

// remoteField gives an error of remoteagent in the words of a file, with the field
// that it is about.
func remoteField(msg string) (field, inWords string) {
	msg = remoteWords.Replace(msg)
	field = msg[:strings.IndexAny(msg+" ", ": [")]
	if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(msg[len(field):], "[")); err == nil {
		if key, err := strconv.Unquote(quoted); err == nil {
			field += "." + key
		}
	}
	return field, msg
}
