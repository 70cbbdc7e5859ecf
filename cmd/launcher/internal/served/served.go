// SPDX-License-Identifier: Apache-2.0

// Package served finds the handler of the server whose routes a sublauncher of web adds.
//
//	defer served.With(config, handler)()
//	h, err := served.By(config) // in SetupSubrouters
package served

import (
	"errors"
	"net/http"
	"sync"

	"github.com/refrain-dev/refrain/cmd/launcher"
)

var handlers sync.Map // of [http.Handler], by the [*launcher.Config]

// With makes By return the handler for a config, until end is called.
func With(cfg *launcher.Config, h http.Handler) (end func()) {
	handlers.Store(cfg, h)
	return func() { handlers.Delete(cfg) }
}

// By returns the handler for a config. It fails outside of a launcher web.
func By(cfg *launcher.Config) (http.Handler, error) {
	h, ok := handlers.Load(cfg)
	if !ok {
		return nil, errors.New("the launcher has no server; pass it to web.NewLauncher")
	}
	return h.(http.Handler), nil
}
