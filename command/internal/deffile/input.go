// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// ParseSets reads the values of --set, each written as key=value.
func ParseSets(sets []string) (map[string]string, error) {
	m := make(map[string]string, len(sets))
	for _, s := range sets {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--set %q: write it as key=value", s)
		}
		m[k] = v
	}
	return m, nil
}

// InitialState returns the initial state of a run with the values of --set. The error about a missing input says how to give
// the input.
func InitialState(def *definition.Definition, sets map[string]string) (map[string]any, error) {
	state, err := def.InitialState(sets)
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		return state, err
	}
	for _, one := range joined.Unwrap() {
		if in, ok := errors.AsType[*definition.InputError](one); ok && in.Missing {
			in.Hint = "give it with --set " + in.Input + "=VALUE"
		}
	}
	return state, err
}

// maxInput is the largest size of standard input that is read, in bytes.
const maxInput = 10 << 20

// ReadInput returns the first argument, or standard input where the argument is "-".
func ReadInput(args []string, stdin io.Reader) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if args[0] != "-" {
		return args[0], nil
	}
	b, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(b) > maxInput {
		return "", fmt.Errorf("standard input is larger than %d MiB; shorten the request, and let the agents read large texts from files",
			maxInput>>20)
	}
	return strings.TrimRight(string(b), "\n"), nil
}
