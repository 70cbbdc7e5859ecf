// SPDX-License-Identifier: Apache-2.0

package server

import "github.com/refrain-dev/refrain/internal/web/wire"

// Routes returns all routes of a server, with their whole paths.
func Routes(s *Server) []wire.Route { return s.allRoutes }
