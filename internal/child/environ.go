// SPDX-License-Identifier: Apache-2.0

package child

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/internal/credential"
)

// withheld are the variables with keys that Refrain itself uses, besides those whose names begin with
// withheldPrefixes: keys of models, and the password of a store.
var withheld = []string{
	"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OLLAMA_API_KEY", "OPENAI_API_KEY", "PGPASSWORD",
	"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
}

var withheldPrefixes = []string{"REFRAIN_", "TEMPORAL_"}

// basics are the environment variables without which programs do not work.
var basics = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "TEMP", "TMP",
}

// Inheritance says which variables of this process's environment a program gets: all that are not
// withheld. Variables are withheld that only Refrain needs: REFRAIN_… and TEMPORAL_…, keys of models,
// headers of telemetry and PGPASSWORD.
type Inheritance struct {
	// Clean withholds all but the few that programs need to work, such as PATH and HOME.
	Clean bool
	// Inherit names variables that the program gets even so.
	Inherit []string
	// Withhold names further variables that are withheld.
	Withhold []string
}

// Environ returns the variables as NAME=value.
func (i Inheritance) Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(i.Inherit, name) && i.Withholds(name)
	})
}

// Withholds reports whether a program does not get a variable unless Inherit names it.
func (i Inheritance) Withholds(name string) bool {
	upper := strings.ToUpper(name)
	if i.Clean {
		return !slices.Contains(basics, upper)
	}
	return slices.Contains(withheld, upper) || slices.Contains(i.Withhold, name) ||
		slices.ContainsFunc(withheldPrefixes, func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
}

// Secrets returns what no program may say to others: the secrets of this process's environment, since
// a program may find those too, and of the variables env that it is given besides.
func Secrets(env []string) *credential.Secrets {
	own := os.Environ()
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.secrets == nil || !slices.Equal(known.env, own) {
		known.env, known.secrets = own, new(credential.Secrets)
		known.secrets.Environment(own)
	}
	return known.secrets.With(env)
}

// known are the secrets of this process's environment. They take a while to make.
var known struct {
	mu      sync.Mutex
	env     []string
	secrets *credential.Secrets
}
