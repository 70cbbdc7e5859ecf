// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/web/a2a"
)

// Options that would have no effect are refused, and so is a launcher outside of web.
func TestOptionsAreRefused(t *testing.T) {
	for want, cfg := range map[string]*launcher.Config{
		"Config.A2AOptions are not available here":   {A2AOptions: []a2asrv.RequestHandlerOption{a2asrv.WithAgentInactivityTimeout(1)}},
		"the launcher has no server; pass it to web": {},
	} {
		if err := a2a.NewLauncher().SetupSubrouters(http.NewServeMux(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
