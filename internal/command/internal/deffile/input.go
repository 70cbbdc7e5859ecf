// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"fmt"
	"io"
	"strings"
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

// maxInput bounds what is read from standard input.
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
		return "", fmt.Errorf("standard input is larger than %d MiB", maxInput>>20)
	}
	return strings.TrimRight(string(b), "\n"), nil
}
