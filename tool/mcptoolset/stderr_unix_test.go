// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcptoolset_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// What a server says on stderr before it ends is told without the keys in its environment, also where
// the text is written in pieces and cut in the middle of a key.
func TestStderrHasNoKeys(t *testing.T) {
	const key = "sk-SECRETKEY1234567890"
	for _, more := range []string{"0", "980", "989", "999"} {
		s := toolset(t, mcptoolset.Config{
			Command: []string{"sh", "-c", `printf 'bad key: %s' "$A" >&2; sleep 0.05; printf %s "$B" >&2; head -c "$MORE" /dev/zero | tr '\0' x >&2`},
			Env:     []string{"SHELF_TOKEN=" + key, "A=sk-SEC", "B=RETKEY1234567890", "MORE=" + more},
		})
		_, err := s.Tools(call(t.Context()))
		if err == nil || !strings.Contains(err.Error(), "it said: ") || strings.Contains(err.Error(), "RETKEY") || strings.Contains(err.Error(), "567890") {
			t.Errorf("%s more: %.200v", more, err)
		}
	}
}
