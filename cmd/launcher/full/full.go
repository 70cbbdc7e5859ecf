// SPDX-License-Identifier: Apache-2.0

// Package full has all launchers: a console, and a web server with ADK's REST API, A2A and the page.
//
//	err := full.NewLauncher().Execute(ctx, &launcher.Config{AgentLoader: agent.NewSingleLoader(root)}, os.Args[1:])
package full

import (
	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/console"
	"github.com/refrain-dev/refrain/cmd/launcher/universal"
	"github.com/refrain-dev/refrain/cmd/launcher/web"
	"github.com/refrain-dev/refrain/cmd/launcher/web/a2a"
	"github.com/refrain-dev/refrain/cmd/launcher/web/api"
	"github.com/refrain-dev/refrain/cmd/launcher/web/webui"
)

// NewLauncher returns the launcher. Without arguments it runs the console.
func NewLauncher() launcher.Launcher {
	return universal.NewLauncher(console.NewLauncher(), web.NewLauncher(webui.NewLauncher(), a2a.NewLauncher(), api.NewLauncher()))
}
