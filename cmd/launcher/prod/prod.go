// SPDX-License-Identifier: Apache-2.0

// Package prod has the launchers of a server: a web server with ADK's REST API and A2A.
//
//	err := prod.NewLauncher().Execute(ctx, &launcher.Config{AgentLoader: agent.NewSingleLoader(root)}, os.Args[1:])
package prod

import (
	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/universal"
	"github.com/refrain-dev/refrain/cmd/launcher/web"
	"github.com/refrain-dev/refrain/cmd/launcher/web/a2a"
	"github.com/refrain-dev/refrain/cmd/launcher/web/api"
)

// NewLauncher returns the launcher.
func NewLauncher() launcher.Launcher {
	return universal.NewLauncher(web.NewLauncher(api.NewLauncher(), a2a.NewLauncher()))
}
