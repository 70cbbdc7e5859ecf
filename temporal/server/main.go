// SPDX-License-Identifier: Apache-2.0

// Server is a Temporal server for tests, in one process and in memory. It prints its address and its
// namespace, and ends with its standard input. It is a module of its own, as the server needs 200
// others, and building it takes 7 minutes of CPU time.
package main

import (
	"fmt"
	"io"
	"os"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/temporaltest"
)

func main() {
	s := temporaltest.NewServer(temporaltest.WithBaseServerOptions(
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			// By default a shard hands out 20 tasks a second, so that each of them waits 50 ms.
			dynamicconfig.TransferProcessorMaxPollRPS.Key():             1000,
			dynamicconfig.TimerProcessorMaxPollRPS.Key():                1000,
			dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
			dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():      10000,
		})))
	fmt.Println(s.GetFrontendHostPort(), s.GetDefaultNamespace())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
