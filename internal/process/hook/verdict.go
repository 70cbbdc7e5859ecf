// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// readVerdict reads the answer of a gate: nothing, which is no veto, or an object with veto and
// perhaps reason. Any other answer, such as {"approved": false}, null, or one that has veto twice, is an
// error, because it does not clearly approve.
func readVerdict(answer []byte) (veto bool, reason string, err error) {
	if len(bytes.TrimSpace(answer)) == 0 {
		return false, "", nil
	}
	var said struct {
		Veto   *bool  `json:"veto"`
		Reason string `json:"reason"`
	}
	err = json.Unmarshal(answer, &said, json.RejectUnknownMembers(true))
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return false, "", fmt.Errorf("the value at %q does not belong there", e.JSONPointer)
	}
	if err == nil && said.Veto == nil {
		err = errors.New("it does not say veto")
	}
	if err != nil {
		return false, "", err
	}
	return *said.Veto, said.Reason, nil
}
