// SPDX-License-Identifier: Apache-2.0

package child

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/internal/process/credential"
)

// withheld lists variables that only Refrain uses, such as keys of models and the password of a store, in addition to
// those whose names begin with withheldPrefixes.
var withheld = []string{
	"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OLLAMA_API_KEY", "OPENAI_API_KEY", "PGPASSWORD",
	"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
}

var withheldPrefixes = []string{"REFRAIN_", "TEMPORAL_"}

// basics lists the environment variables that programs need to work.
var basics = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "TEMP", "TMP",
}

// Inheritance selects the variables of this process's environment that a program gets. The program gets all variables
// except those that only Refrain needs, which are REFRAIN_… and TEMPORAL_…, keys of models, headers of telemetry and
// PGPASSWORD.
type Inheritance struct {
	// Clean withholds all variables except the few that programs need to work, such as PATH and HOME.
	Clean bool
	// Inherit names variables that the program always gets.
	Inherit []string
	// Withhold names further variables to withhold.
	Withhold []string
}

// Environ returns the selected variables as NAME=value.
func (i Inheritance) Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(i.Inherit, name) && i.Withholds(name)
	})
}

// Withholds reports whether a program does not get a variable unless Inherit names the variable.
func (i Inheritance) Withholds(name string) bool {
	upper := strings.TrimSuffix(strings.ToUpper(name), "_FILE")
	if i.Clean {
		return !slices.Contains(basics, upper)
	}
	return slices.Contains(withheld, upper) || slices.Contains(i.Withhold, name) ||
		slices.ContainsFunc(withheldPrefixes, func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
}

// Secrets returns the secrets that the output of a program may not contain. They include the secrets of this
// process's environment, because a program may find these too, and those of env, which the program gets in addition.
func Secrets(env []string) *credential.Secrets {
	filedPairs.Lock()
	own := append(os.Environ(), filedPairs.env...)
	filedPairs.Unlock()
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.secrets == nil || !slices.Equal(known.env, own) {
		known.env, known.secrets = own, new(credential.Secrets)
		known.secrets.Environment(own)
	}
	return known.secrets.With(env)
}

// known caches the secrets of this process's environment, because collecting them is slow.
var known struct {
	mu      sync.Mutex
	env     []string
	secrets *credential.Secrets
}
