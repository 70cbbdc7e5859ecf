// SPDX-License-Identifier: Apache-2.0

// Server is a Temporal server for tests, in one process. It prints its address and its namespace,
// and ends with its standard input. It is a module of its own, as the server needs 200 others, and
// building it takes 7 minutes of CPU time.
//
//	server        keeps everything in memory
//	server DIR    keeps it in DIR: killed and started again, it goes on at the same address
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	serverlog "go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	plugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const namespace = "refrain"

func main() {
	dir := ""
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	address, err := start(dir)
	if err != nil {
		log.Fatalf("start a Temporal server: %v", err)
	}
	fmt.Println(address, namespace)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func start(dir string) (address string, err error) {
	ports, err := ports(dir)
	if err != nil {
		return "", err
	}
	db, err := database(dir)
	if err != nil {
		return "", err
	}
	address = fmt.Sprintf("127.0.0.1:%d", ports[0])
	cfg := configured(db, ports, address)
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg), temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(serverlog.NewNoopLogger()), temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			// By default a shard hands out 20 tasks a second, so that each of them waits 50 ms.
			dynamicconfig.TransferProcessorMaxPollRPS.Key():             1000,
			dynamicconfig.TimerProcessorMaxPollRPS.Key():                1000,
			dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
			// By default 4096, which would make the test of long histories long.
			dynamicconfig.HistoryCountSuggestContinueAsNew.Key():   200,
			dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key(): 10000,
		}))
	if err != nil {
		return "", err
	}
	return address, server.Start()
}

// ports are those of the four services, and four more by which they find each other. A server that comes
// back has those that it had: in the database it is a member of its cluster, by its address. They are not
// such as the system gives to clients, which could take them meanwhile.
func ports(dir string) (all [8]int, err error) {
	file := filepath.Join(dir, "ports")
	if dir != "" {
		if text, err := os.ReadFile(file); err == nil {
			return all, json.Unmarshal(text, &all)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return all, err
		}
	}
	for i, tries := 0, 0; i < len(all); tries++ {
		all[i] = 10000 + rand.IntN(20000)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", all[i]))
		if err != nil && tries > 100 {
			return all, err
		}
		if err == nil {
			defer l.Close() // when all of them are known, so that they differ
			i++
		}
	}
	if dir == "" {
		return all, nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return all, err
	}
	return all, os.WriteFile(file, text, 0o600)
}

// database makes the tables and the namespace, unless they are there.
func database(dir string) (*config.SQL, error) {
	db := &config.SQL{PluginName: plugin.PluginName, DatabaseName: "refrain",
		ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"}}
	there := false
	if dir != "" {
		db.DatabaseName = filepath.Join(dir, "temporal.db")
		// What a killed process has written is there; only a machine that dies would lose it.
		db.ConnectAttributes = map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "0"}
		_, err := os.Stat(db.DatabaseName)
		there = err == nil
	}
	if there {
		return db, nil
	}
	ns, err := sqlite.NewNamespaceConfig("active", namespace, false, nil)
	if err != nil {
		return nil, err
	}
	if dir != "" { // in memory the server does it
		if err := sqlite.SetupSchema(db); err != nil {
			return nil, err
		}
	}
	return db, sqlite.CreateNamespaces(db, ns)
}

func configured(db *config.SQL, ports [8]int, address string) *config.Config {
	service := func(i int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: ports[i], MembershipPort: ports[i+4], BindOnLocalHost: true}}
	}
	off := "disabled"
	return &config.Config{
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second,
			BroadcastAddress: "127.0.0.1"}},
		Persistence: config.Persistence{DefaultStore: "db", VisibilityStore: "db", NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{"db": {SQL: db}}},
		ClusterMetadata: &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: "active",
			CurrentClusterName: "active", ClusterInformation: map[string]cluster.ClusterInformation{
				"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}}},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{"frontend": service(0), "history": service(1), "matching": service(2),
			"worker": service(3)},
		Archival: config.Archival{History: config.HistoryArchival{State: off},
			Visibility: config.VisibilityArchival{State: off}},
		PublicClient: config.PublicClient{HostPort: address},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: off},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: off}}},
	}
}
