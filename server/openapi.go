// SPDX-License-Identifier: Apache-2.0

package server

import (
	_ "embed"
	"net/http"
)

// openapi describes the operations in v1.
//
//go:embed openapi.json
var openapi []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openapi)
	return nil
}
