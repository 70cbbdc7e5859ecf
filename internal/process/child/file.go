// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// filed lists variables whose value can come from a file, which NAME_FILE names.
var filed = []string{
	"REFRAIN_TOKEN", "REFRAIN_STORE", "TEMPORAL_API_KEY",
	"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OLLAMA_API_KEY", "OPENAI_API_KEY",
}

// mostFile is the largest size of such a file in bytes.
const mostFile = 64 << 10

// FromFiles reads the files that REFRAIN_TOKEN_FILE, OPENAI_API_KEY_FILE and the like name, and returns getenv with their
// values, without line breaks at the end. A variable that is set itself comes before its file. The output of programs
// is masked for the values, too. FromFiles fails if a file cannot be read or is empty.
func FromFiles(getenv func(string) string) (func(string) string, error) {
	values := make(map[string]string)
	for _, name := range filed {
		path := getenv(name + "_FILE")
		if path == "" || getenv(name) != "" {
			continue
		}
		value, err := readSecret(path)
		if err != nil {
			return nil, fmt.Errorf("%s_FILE: %w; write the secret into the file, or unset the variable", name, err)
		}
		values[name] = value
	}
	if len(values) == 0 {
		return getenv, nil
	}
	filedPairs.Lock()
	defer filedPairs.Unlock()
	for name, value := range values {
		filedPairs.env = append(filedPairs.env, name+"="+value)
	}
	return func(name string) string {
		if value, ok := values[name]; ok {
			return value
		}
		return getenv(name)
	}, nil
}

// filedPairs has the variables of all files, as NAME=value.
var filedPairs struct {
	sync.Mutex
	env []string
}

func readSecret(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, mostFile+1))
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(text), "\r\n")
	switch {
	case len(text) > mostFile:
		return "", fmt.Errorf("%s has more than %d bytes", path, mostFile)
	case strings.TrimSpace(value) == "":
		return "", fmt.Errorf("%s is empty", path)
	}
	return value, nil
}
