// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
)

// The hint for a command line is a command, which can be pasted as it is.
func TestHintForACommandLineIsACommand(t *testing.T) {
	for line, want := range map[string]string{
		"go test ./...":           "command: [go, test, ./...]",
		"tar --create -f x.tar .": "command: [tar, --create, -f, x.tar, .]",
		"cat -":                   "command: [sh, -c, 'cat -']",
		"ls -l | wc -l":           "command: [sh, -c, 'ls -l | wc -l']",
		"echo 'it is'":            "command: [sh, -c, 'echo ''it is''']",
		"date +%s, x":             "command: [sh, -c, 'date +%s, x']",
		"echo {{user_input}}":     "command: [program, argument]",
	} {
		_, err := definition.Parse("x.yaml", []byte("name: x\ncommand: |-\n  "+line+"\n"), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) != 1 || problems[0].Hint != "write "+want {
			t.Errorf("%s: %v, want the hint %q", line, err, want)
			continue
		}
		pasted := "name: x\n" + strings.TrimPrefix(problems[0].Hint, "write ") + "\n"
		if _, err := definition.Parse("x.yaml", []byte(pasted), definition.Options{}); err != nil {
			t.Errorf("%s: %v", pasted, err)
		}
	}
}
